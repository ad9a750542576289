//! The format of AWS's files of profiles. Pure: a text goes in, its sections come out.

use std::collections::BTreeMap;

/// The values of one section by their names in lower case. A value that has values of its own below it, by indentation,
/// holds them as `name.inner`.
pub(super) type Values = BTreeMap<String, String>;

/// Reads `text`. Sections come by what stands in their brackets, with single spaces; of two with one name the second adds
/// to the first.
///
/// # Errors
/// The number of a line that is neither. The line itself may hold a secret.
pub(super) fn read(text: &str) -> Result<BTreeMap<String, Values>, usize> {
    let mut sections: BTreeMap<String, Values> = BTreeMap::new();
    let mut section: Option<String> = None;
    // The value that indented lines belong to.
    let mut above: Option<String> = None;
    // Editors of another system begin a file with a mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (at, line) in text.lines().enumerate() {
        let inner = line.starts_with([' ', '\t']);
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').filter(|_| !inner) {
            let (name, rest) = name.split_once(']').ok_or(at + 1)?;
            let rest = rest.trim_start();
            if !rest.is_empty() && !rest.starts_with(['#', ';']) {
                return Err(at + 1);
            }
            let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
            sections.entry(name.clone()).or_default();
            (section, above) = (Some(name), None);
            continue;
        }
        let values = section.as_ref().and_then(|name| sections.get_mut(name));
        let values = values.ok_or(at + 1)?;
        match (inner, &above) {
            (true, Some(outer)) => match (values.get(outer), line.split_once('=')) {
                (Some(value), Some((name, inner))) if value.is_empty() => {
                    let name = format!("{outer}.{}", name.trim().to_ascii_lowercase());
                    values.insert(name, without_comment(inner));
                }
                // A long value that goes on; none of ours does.
                _ => {}
            },
            _ => {
                let (name, value) = line.split_once('=').ok_or(at + 1)?;
                let name = name.trim().to_ascii_lowercase();
                values.insert(name.clone(), without_comment(value));
                above = Some(name);
            }
        }
    }
    Ok(sections)
}

/// The value before a comment, which begins after a space: in the middle of a word the characters are part of it.
fn without_comment(value: &str) -> String {
    let mut spaced = true;
    let mut end = value.len();
    for (at, c) in value.char_indices() {
        if spaced && matches!(c, '#' | ';') {
            end = at;
            break;
        }
        spaced = c.is_whitespace();
    }
    value[..end].trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sections_values_and_inner_values_are_read_whatever_the_spaces() {
        let text = "\u{feff}# first\r\n[ profile   a ] # why\r\n\
                    Region=eu-west-1\r\n  aws_access_key_id = AK#IA  ; mine\r\n\
                    \r\n[services s]\ns3 =\n  endpoint_url = http://h:1/ # x\n\taddressing_style=path\n\
                    empty =\nlong = a\n  b c\n[profile a]\nregion = us-east-1\n";
        let sections = read(text).unwrap();
        let a = &sections["profile a"];
        assert_eq!(a["region"], "us-east-1");
        let s = &sections["services s"];
        assert_eq!(s["s3.endpoint_url"], "http://h:1/");
        assert_eq!(s["s3.addressing_style"], "path");
        assert_eq!((s["empty"].as_str(), s["long"].as_str()), ("", "a"));
        assert_eq!(
            read("[a]\nk = #x\nl =;y\nm = x;y").unwrap()["a"]["m"],
            "x;y"
        );
    }

    #[test]
    fn a_line_that_is_nothing_is_told_by_its_number() {
        for (text, line) in [
            ("k = v", 1),
            ("[a]\nsecret", 2),
            ("[a", 1),
            ("[a] b", 1),
            ("\n\n= \n", 3),
        ] {
            assert_eq!(read(text), Err(line), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_reading_panic(text in "[\\[\\]a-c=#; \\t\\r\\n\u{e9}]{0,60}") {
            let _ = read(&text);
        }

        #[test]
        fn a_value_is_read_as_it_was_written(name in "[a-z_]{1,12}", value in "[A-Za-z0-9/+=]{1,40}") {
            let sections = read(&format!("[default]\n{name} = {value}\n")).unwrap();
            prop_assert_eq!(&sections["default"][&name], &value);
        }
    }
}
