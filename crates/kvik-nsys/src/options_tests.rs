//! The grammar of the command line, piece by piece.

use super::*;

fn parse(args: &[&str]) -> Result<Request, Wrong> {
    Request::parse(std::iter::once("plugin").chain(args.iter().copied()))
}

#[track_caller]
fn check(args: &[&str], micros: u64, device: Option<&str>) {
    let Ok(Request::Run(options)) = parse(args) else {
        panic!("{args:?} is not understood");
    };
    assert_eq!(options.interval, Duration::from_micros(micros), "{args:?}");
    let found = options.device.as_ref().map(Device::as_str);
    assert_eq!(found, device, "{args:?}");
}

#[track_caller]
fn check_wrong(args: &[&str], expected: &Wrong) {
    match parse(args) {
        Err(wrong) => assert_eq!(wrong, *expected, "{args:?}"),
        Ok(request) => panic!("{args:?} is understood as {request:?}"),
    }
}

#[test]
fn a_value_stands_in_the_argument_of_its_option_or_is_the_next_one() {
    check(&[], 20_000, None);
    check(&["-i", "500"], 500, None);
    check(&["-i500"], 500, None);
    check(&["--interval", "500"], 500, None);
    check(&["--interval=500"], 500, None);
    check(&["-d", "eth0"], 20_000, Some("eth0"));
    check(&["-deth0"], 20_000, Some("eth0"));
    check(&["--device", "eth0"], 20_000, Some("eth0"));
    check(&["--device=eth0", "-i1"], 1, Some("eth0"));
}

#[test]
fn the_next_argument_is_a_value_whatever_it_looks_like() {
    check(&["-d", "-h"], 20_000, Some("-h"));
    check(&["--device", "--interval=1"], 20_000, Some("--interval=1"));
    check(&["-d=lo"], 20_000, Some("=lo"));
    check(&["--device="], 20_000, Some(""));
}

#[test]
fn of_an_option_that_stands_twice_the_last_one_holds() {
    check(
        &["-i", "5", "-d", "a", "--interval=007", "-db"],
        7,
        Some("b"),
    );
}

#[test]
fn an_interval_is_a_positive_number_of_microseconds() {
    check(&["-i", "9223372036854775807"], i64::MAX as u64, None);
    for text in [
        "0",
        "",
        "-5",
        "+5",
        "5us",
        " 5",
        "1e3",
        "0x10",
        "2.5",
        "9223372036854775808",
        "99999999999999999999",
    ] {
        check_wrong(&["-i", text], &Wrong::Interval(text.to_owned()));
    }
    check_wrong(&["-i=5"], &Wrong::Interval("=5".to_owned()));
}

#[test]
fn what_is_not_known_is_named() {
    check_wrong(&["-x"], &Wrong::Option("-x".to_owned()));
    check_wrong(&["--inter=5"], &Wrong::Option("--inter=5".to_owned()));
    check_wrong(&["--"], &Wrong::Option("--".to_owned()));
    check_wrong(&["eth0"], &Wrong::Argument("eth0".to_owned()));
    check_wrong(&["-"], &Wrong::Argument("-".to_owned()));
    check_wrong(&[""], &Wrong::Argument(String::new()));
    check_wrong(&["-d", "lo", "-i"], &Wrong::NoValue("-i".to_owned()));
    check_wrong(&["--device"], &Wrong::NoValue("--device".to_owned()));
}

#[test]
fn help_wins_over_all_that_follows_it() {
    for args in [
        &["-h"][..],
        &["--help"],
        &["-i5", "-h", "-x"],
        &["-h", "eth0"],
    ] {
        assert!(matches!(parse(args), Ok(Request::Help)), "{args:?}");
    }
    check_wrong(&["-x", "-h"], &Wrong::Option("-x".to_owned()));
}

#[test]
fn a_name_has_to_match_as_a_whole() {
    let matches = |text: &str, name: &str| Device::new(text.to_owned()).unwrap().matches(name);
    assert!(matches("eth0", "eth0") && !matches("eth0", "eth01") && !matches("eth0", "veth0"));
    assert!(matches("eth.*", "eth10") && !matches("eth", "eth0"));
    // Each side of the alternative as a whole, and the longer one too though the shorter one matches first.
    assert!(matches("lo|eth0", "lo") && !matches("lo|eth0", "lo0"));
    assert!(matches("eth|eth0", "eth0"));
    assert!(!matches("", "lo") && !matches("LO", "lo"));
}

#[test]
fn what_is_no_regular_expression_is_refused_with_the_reason() {
    for text in ["(", "a)|(b", "[", "*", "(?x)a # b"] {
        let refused = Device::new(text.to_owned()).err();
        assert!(
            matches!(&refused, Some(Wrong::Device { text: named, why }) if named == text && !why.is_empty()),
            "{text}: {refused:?}"
        );
    }
}
