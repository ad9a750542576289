//! Writes the bindings of one library of kvik-sys: `kvik-bindgen HEADER NAMES INCLUDE...`.
//!
//! The names, one a line, are those that the crate's own code uses. Functions become types of function pointers, and come
//! with the types that they need; of enumerations only the constants that are named are kept. No comment of the vendor's is
//! taken over. `cargo xtask codegen bindings` collects the names and calls this.
#![forbid(unsafe_code)]

mod shape;

use std::collections::BTreeSet;
use std::error::Error;
use std::io::Write;
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs};

use bindgen::{Builder, EnumVariation, Formatter, RustEdition, RustTarget};

fn main() -> ExitCode {
    match run() {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("kvik-bindgen: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<String, Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let header = arguments.next().ok_or("give the header to read")?;
    let list = fs::read_to_string(arguments.next().ok_or("give the file of names")?)?;
    let cufile = header.ends_with("cufile.h");
    let names: BTreeSet<&str> = list
        .lines()
        .filter(|name| is_cufile(name) == cufile)
        .collect();
    let functions: Vec<&str> = names
        .iter()
        .copied()
        .filter(|name| name.starts_with("cu"))
        .collect();
    let others: Vec<&str> = names
        .iter()
        .copied()
        .filter(|name| name.starts_with("CU"))
        .collect();

    let mut builder = Builder::default()
        .header(&header)
        .clang_args(arguments.map(|folder| format!("-I{folder}")))
        // Declares the forms of earlier versions beside those of this one; libraries go on exporting them.
        .clang_arg("-D__CUDA_API_VERSION_INTERNAL")
        .allowlist_function(functions.join("|"))
        .allowlist_type(others.join("|"))
        .allowlist_var(others.join("|"))
        .default_enum_style(EnumVariation::NewType {
            is_bitfield: false,
            is_global: false,
        })
        .generate_comments(false)
        .layout_tests(true)
        .use_core()
        .rust_edition(RustEdition::Edition2024)
        .rust_target(RustTarget::stable(85, 0).map_err(|why| why.to_string())?)
        .formatter(Formatter::None);
    if cufile {
        builder = builder
            .blocklist_type("CUresult|cudaError_enum|CUstream|CUstream_st")
            .blocklist_type("timespec|__time_t|__syscall_slong_t")
            // Tables of file systems in user space, which nobody here makes.
            .opaque_type("CUfileFSOps");
    }
    let bindings = builder.generate()?.to_string();
    let file = shape::shape(&bindings, &names)?;
    let missing: Vec<&str> = functions
        .into_iter()
        .filter(|name| !file.functions.contains(*name))
        .collect();
    if !missing.is_empty() {
        return Err(format!("{header} does not declare {}", missing.join(", ")).into());
    }
    let uses = if cufile {
        "use core::{ffi::*, mem::*};\n\nuse libc::timespec;\n\nuse super::cuda::{CUresult, CUstream};\n\n"
    } else {
        "use core::{ffi::*, mem::*};\n\n"
    };
    format(&format!("{uses}{}", file.text))
}

/// Whether a name is one of cuFile's; all others are the driver's.
fn is_cufile(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("cufile") || name.starts_with("cu_file")
}

fn format(text: &str) -> Result<String, Box<dyn Error>> {
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    if let Some(mut input) = rustfmt.stdin.take() {
        input.write_all(text.as_bytes())?;
    }
    let output = rustfmt.wait_with_output()?;
    if !output.status.success() {
        return Err("rustfmt refused the bindings".into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
