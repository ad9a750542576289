//! What a test says that lacks its server.

use kvik_tests::need;

#[test]
#[should_panic(expected = "`cargo xtask servers up` starts it")]
fn a_test_that_lacks_its_server_fails_and_says_how_to_get_it() {
    let _ = need::server("gopher");
}
