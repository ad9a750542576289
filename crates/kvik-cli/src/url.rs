//! Arguments that are URLs and no paths.

use std::path::Path;

use kvik::Location;

use crate::failure::show;

/// The argument as a URL, if it begins like one: no path that anybody types does.
pub(crate) fn url_of(argument: &Path) -> Option<&str> {
    let text = argument.to_str()?;
    let (scheme, _) = text.split_once("://")?;
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "+-.".contains(letter);
    (!scheme.is_empty() && scheme.chars().all(plain)).then_some(text)
}

/// The argument for a text: a URL without its secrets.
pub(crate) fn shown(argument: &Path) -> String {
    match url_of(argument) {
        None => show(argument),
        Some(url) => Location::parse(url).map_or_else(|_| HIDDEN.to_owned(), |at| at.to_string()),
    }
}

// What is no URL may be anything.
const HIDDEN: &str = "the URL";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_told_from_paths_and_shown_without_their_secrets() {
        for path in ["a.bin", "./http:/a", "://a", "dir/x://y"] {
            assert_eq!(url_of(Path::new(path)), None, "{path}");
        }
        let url = Path::new("https://me:secret@example.org/a?token=secret");
        assert!(url_of(url).is_some());
        assert!(!shown(url).contains("secret"), "{}", shown(url));
    }
}
