//! Listing: what a folder has, as a page for people.

use std::ffi::OsString;
use std::fmt::Write;

use super::files::{Entries, Entry, encode};

/// A page of links. `names` lead to the folder.
pub(super) fn html(names: &[OsString], entries: &Entries) -> String {
    let mut path = String::from("/");
    let mut title = String::from("/");
    for name in names {
        let _ = write!(path, "{}/", encode(name));
        let _ = write!(title, "{}/", name.to_string_lossy());
    }
    let title = escape(&title);
    let mut page = format!(
        "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>{title}</title></head>\n<body><h1>{title}</h1>\n<pre>\n"
    );
    // Writing to a String cannot fail.
    if let Some((_, above)) = names.split_last() {
        let above: String = above.iter().map(|name| encode(name) + "/").collect();
        let _ = writeln!(page, "<a href=\"/{above}\">../</a>");
    }
    for (name, entry) in &entries.all {
        let (slash, length) = match entry {
            Entry::File(length) => ("", format!("  {length}")),
            Entry::Folder => ("/", String::new()),
            Entry::Link => ("", "  link".to_owned()),
        };
        let shown = escape(&name.to_string_lossy());
        let name = encode(name);
        let _ = writeln!(
            page,
            "<a href=\"{path}{name}{slash}\">{shown}{slash}</a>{length}"
        );
    }
    if entries.more {
        page.push_str("and more\n");
    }
    page.push_str("</pre></body></html>\n");
    page
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            control if control.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_as_text_and_linked_encoded() {
        let entries = Entries {
            all: vec![
                ("<b>\"&\n".into(), Entry::File(7)),
                ("sub".into(), Entry::Folder),
                ("way".into(), Entry::Link),
            ],
            more: true,
        };
        let page = html(&["a b".into(), "c".into()], &entries);
        for line in [
            "<body><h1>/a b/c/</h1>",
            "<a href=\"/a%20b/\">../</a>",
            "<a href=\"/a%20b/c/%3Cb%3E%22%26%0A\">&lt;b&gt;&quot;&amp;\u{fffd}</a>  7",
            "<a href=\"/a%20b/c/sub/\">sub/</a>",
            "<a href=\"/a%20b/c/way\">way</a>  link",
            "and more",
        ] {
            assert!(page.lines().any(|found| found == line), "{line}:\n{page}");
        }
    }

    #[test]
    fn nothing_leads_up_from_the_top() {
        let page = html(&[], &Entries::default());
        assert!(
            page.contains("<h1>/</h1>") && !page.contains("href"),
            "{page}"
        );
    }
}
