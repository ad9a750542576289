//! The name that the copy of a remote object gets in a directory. Pure.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use percent_encoding::percent_decode_str;

use crate::failure::{Failure, Result};
use crate::url::shown;

/// What the path of the URL ends with, decoded: nothing of user, host or query, and nothing that leads elsewhere.
pub(super) fn of_url(url: &str) -> Result<OsString> {
    let name = percent_decode_str(last_segment(url)).collect::<Vec<u8>>();
    let usable = !name.is_empty()
        && name != b"."
        && name != b".."
        && !name.iter().any(|byte| [0, b'/'].contains(byte));
    match usable {
        true => Ok(OsString::from_vec(name)),
        false => Err(Failure::usage(format!(
            "copy {}: its path ends with nothing that can be the name of a file",
            shown(Path::new(url))
        ))
        .hint("name the new file itself, as in `kvik copy URL DIRECTORY/NAME`")),
    }
}

fn last_segment(url: &str) -> &str {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    // In other URLs a # belongs to the key or the path.
    let web = ["http", "https"]
        .iter()
        .any(|web| scheme.eq_ignore_ascii_case(web));
    let rest = match web {
        true => rest.split('#').next().unwrap_or_default(),
        false => rest,
    };
    let rest = rest.split('?').next().unwrap_or_default();
    // Without a slash there is a host, perhaps with a user, and no path.
    rest.rsplit_once('/').map_or("", |(_, segment)| segment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_what_the_path_ends_with_decoded() {
        for (url, name) in [
            ("http://host/a.bin", "a.bin"),
            (
                "https://me:secret@host:1/dir/a%20b.bin?token=x/y#z/w",
                "a b.bin",
            ),
            ("HTTP://host/a#b", "a"),
            ("s3://bucket/dir/a#b", "a#b"),
            ("s3://bucket/dir/a?versionId=x/y", "a"),
            ("webhdfs://host:1/dir/100%", "100%"),
            ("http://host/..a", "..a"),
        ] {
            assert_eq!(of_url(url).unwrap(), name, "{url}");
        }
    }

    #[test]
    fn where_there_is_no_name_one_is_asked_for_and_no_secret_becomes_one() {
        for url in [
            "http://me:secret@host",
            "http://me:secret@host?a=b/c",
            "http://me:secret@host#b/c",
            "http://me:secret@host/dir/?a=b",
            "http://me:secret@host/dir/..?a",
            "http://me:secret@host/dir/%2e%2E",
            "http://me:secret@host/dir/.",
            "http://me:secret@host/dir/a%2Fb",
            "http://me:secret@host/dir/..%2fb",
            "http://me:secret@host/dir/a%00b",
            "s3://bucket",
        ] {
            let failure = of_url(url).expect_err(url);
            let hint = failure.hint_text().unwrap_or_default();
            assert!(hint.contains("DIRECTORY/NAME"), "{url}: {hint}");
            assert!(
                !failure.message().contains("secret"),
                "{}",
                failure.message()
            );
        }
    }
}
