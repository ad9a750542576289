//! From what bindgen writes to what kvik-sys keeps.

use std::collections::BTreeSet;

use quote::{ToTokens, format_ident, quote};
use syn::{Expr, File, ForeignItem, ForeignItemFn, ImplItem, Item, ItemImpl, Type, parse_quote};

/// The bindings of one library.
pub(crate) struct Bindings {
    pub(crate) text: String,
    pub(crate) functions: BTreeSet<String>,
}

/// The modules whose names stand in the bindings without a path.
const PATHS: [&str; 2] = [":: core :: ffi :: ", ":: core :: mem :: "];

/// Turns functions into types of function pointers, drops constants that nobody names, and lists the names of cuFile's
/// status codes.
pub(crate) fn shape(bindings: &str, names: &BTreeSet<&str>) -> syn::Result<Bindings> {
    let file: File = syn::parse_str(bindings)?;
    let mut text = String::new();
    let mut functions = BTreeSet::new();
    for item in file.items {
        match item {
            Item::ForeignMod(block) => {
                for function in block.items {
                    if let ForeignItem::Fn(function) = function {
                        functions.insert(function.sig.ident.to_string());
                        text.push_str(&pointer(&function));
                    }
                }
            }
            Item::Impl(block) => {
                if is(&block.self_ty, "CUfileOpError") {
                    text.push_str(&codes(&block));
                }
                if let Some(block) = named(block, names) {
                    text.push_str(&quote!(#block).to_string());
                }
            }
            other @ (Item::Type(_) | Item::Use(_)) => {
                text.push_str(&line(&quote!(#other)));
                continue;
            }
            other => text.push_str(&quote!(#other).to_string()),
        }
        text.push_str("\n\n");
    }
    // Half of the lines are there only for these paths; the head of the file brings the names in.
    let text = PATHS.iter().fold(text, |text, path| text.replace(path, ""));
    Ok(Bindings { text, functions })
}

/// `fn f(a: T) -> R` in an `extern` block becomes `type f = unsafe extern "C" fn(a: T) -> R`.
fn pointer(function: &ForeignItemFn) -> String {
    let name = &function.sig.ident;
    let inputs = function.sig.inputs.to_token_stream();
    let output = function.sig.output.to_token_stream();
    format!("pub type {name} = unsafe extern \"C\" fn({inputs}) {output};\n")
}

/// The block with those constants that are named, or nothing where none is.
fn named(mut block: ItemImpl, names: &BTreeSet<&str>) -> Option<ItemImpl> {
    if block.trait_.is_some() {
        return Some(block);
    }
    block.items.retain_mut(|item| match item {
        ImplItem::Const(constant) => {
            // The long name of the type would stand twice in every line.
            constant.ty = parse_quote!(Self);
            if let Expr::Call(call) = &mut constant.expr {
                call.func = parse_quote!(Self);
            }
            names.contains(constant.ident.to_string().as_str())
        }
        _ => true,
    });
    (!block.items.is_empty()).then_some(block)
}

/// The name of every status code, for texts; cuFile has no function that tells them.
fn codes(block: &ItemImpl) -> String {
    let rows = block.items.iter().filter_map(|item| match item {
        ImplItem::Const(constant) => {
            let name = constant.ident.to_string();
            let Expr::Call(call) = &constant.expr else {
                return None;
            };
            let code = call.args.first()?;
            Some(quote!((#code, #name)))
        }
        _ => None,
    });
    let list = format_ident!("CODES");
    line(&quote!(pub const #list: &[(u32, &str)] = &[#(#rows),*];))
}

/// Without an empty line behind it: there are hundreds of these.
fn line(item: &impl ToTokens) -> String {
    format!("{}\n", item.to_token_stream())
}

fn is(of: &Type, name: &str) -> bool {
    matches!(of, Type::Path(path) if path.path.is_ident(name))
}
