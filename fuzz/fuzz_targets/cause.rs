//! Bodies of refusals, as S3 and WebHDFS write them: none panics, and none brings a secret into a text.
#![no_main]

use kvik_remote::protocol::{Cause, FileStatus};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    let secrets = [SECRET.to_owned()];
    for cause in [
        Cause::of_s3(body, &secrets),
        Cause::of_webhdfs(body, &secrets),
    ] {
        let said = format!("{cause} {cause:?}");
        assert!(!said.contains(SECRET), "{said}");
        for status in [301, 400, 403, 404, 500, 503] {
            let _ = cause.kind(status);
        }
    }
    let _ = FileStatus::read(body);
});

const SECRET: &str = "s3cr3t";
