//! The shape of Rust files: they open with what they are for, they end before nobody reads on, and no test is put aside.

use super::{File, Problem};

/// Files settle at 100 to 300 lines; past this nobody finishes reading.
const LONGEST: usize = 600;

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    files
        .iter()
        .filter(|file| file.is_rust())
        .flat_map(check_file)
        .collect()
}

fn check_file(file: &File) -> Vec<Problem> {
    let mut problems = Vec::new();
    if !file.text.starts_with("//!") {
        problems.push(Problem::new(
            &file.path,
            1,
            "does not start with `//!`; say in a sentence what the module is for",
        ));
    }
    let lines = file.text.lines().count();
    if lines > LONGEST {
        let text = format!(
            "has {lines} lines, more than {LONGEST}; give one of its nouns a file of its own"
        );
        problems.push(Problem::new(&file.path, lines, text));
    }
    for (number, line) in code(&file.text) {
        if line.contains("#[ignore") {
            let text = "an ignored test looks like a passed one; move it to a group that is asked for, as tests/stress";
            problems.push(Problem::new(&file.path, number, text));
        }
    }
    problems
}

/// The lines of a Rust file with comments and the insides of text literals taken out, with their numbers.
///
/// Not a parser: it knows `//`, `/* */`, `"..."` over several lines, `r#"..."#` and character literals, which is what the
/// searches here need.
pub(crate) fn code(text: &str) -> Vec<(usize, String)> {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = skip(rest, kept.chars().next_back());
        if skipped == 0 {
            kept.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        // The line breaks stay, so that line numbers do.
        kept.extend(
            rest[..skipped]
                .chars()
                .filter(|character| *character == '\n'),
        );
        rest = &rest[skipped..];
    }
    kept.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.to_owned()))
        .collect()
}

/// How many bytes a comment or literal at the start of `text` takes; 0 where there is none.
fn skip(text: &str, before: Option<char>) -> usize {
    let until = |open: usize, close: &str| {
        text[open..]
            .find(close)
            .map_or(text.len(), |end| open + end + close.len())
    };
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return until(2, "*/");
    }
    if text.starts_with('"') {
        return literal(text, '"');
    }
    if let Some(inside) = text.strip_prefix('\'') {
        // A lifetime is a quote that is not closed after one character.
        let mut inside = inside.chars();
        let closed = match inside.next() {
            Some('\\') => true,
            Some(_) => inside.next() == Some('\''),
            None => false,
        };
        return if closed { literal(text, '\'') } else { 0 };
    }
    let name = before.is_some_and(|character| character.is_alphanumeric() || character == '_');
    if text.starts_with('r') && (!name || before == Some('b')) {
        let hashes = text[1..]
            .chars()
            .take_while(|character| *character == '#')
            .count();
        if text[1 + hashes..].starts_with('"') {
            return until(2 + hashes, &format!("\"{}", "#".repeat(hashes)));
        }
    }
    0
}

fn literal(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (place, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return place + character.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn kept(text: &str, expected: &str) {
        let lines: Vec<String> = code(text).into_iter().map(|(_, line)| line).collect();
        assert_eq!(lines.join("\n"), expected);
    }

    #[test]
    fn comments_and_texts_are_no_code() {
        kept("a // unsafe\nb", "a \nb");
        kept("a /* unsafe\n */ b", "a \n b");
        kept(r#"f("unsafe \" {", x)"#, "f(, x)");
        kept("f(r#\"un\"safe\"#, x)", "f(, x)");
        kept("f('\"', 'a', '\\'', x)", "f(, , , x)");
    }

    #[test]
    fn lifetimes_are_code() {
        kept("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}");
    }

    #[test]
    fn a_module_without_a_first_line_is_found() {
        let file = File {
            path: "a.rs".into(),
            text: "use x;\n".to_owned(),
        };
        assert_eq!(
            check_file(&file)[0].to_string().split(';').next(),
            Some("a.rs:1: does not start with `//!`")
        );
    }
}
