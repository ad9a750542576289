//! The program and a tool that writes down what it is told: exit codes, which interfaces, and what reaches the tool.
#![allow(clippy::unwrap_used, reason = "a panic here is a failed test")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// The program, without a tool.
fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kvikio_nic_nsys_plugin"));
    command.env_remove("NVTX_INJECTION64_PATH");
    command
}

/// What cargo built beside this test: `name` of a dependency, or of an example.
#[track_caller]
fn built(name: &str) -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let deps = program.parent().unwrap();
    let places = [
        deps.join(name),
        deps.join("../examples").join(name),
        deps.join("..").join(name),
    ];
    let found = places.into_iter().find(|place| place.exists());
    found.unwrap_or_else(|| {
        panic!("there is no {name}: `cargo test -p kvik-nsys` builds it, if no target is named")
    })
}

fn tool() -> PathBuf {
    built("libnvtx_fake.so")
}

#[track_caller]
fn check(args: &[&str], code: i32, out: &str, error: &str) {
    let Output {
        status,
        stdout,
        stderr,
    } = program().args(args).output().unwrap();
    let [stdout, stderr] = [stdout, stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(status.code(), Some(code), "{args:?}: {stderr}");
    assert!(stdout.contains(out), "{args:?}: {stdout}");
    assert!(stderr.contains(error), "{args:?}: {stderr}");
    assert_eq!(
        stdout.is_empty(),
        out.is_empty(),
        "{args:?} prints {stdout}"
    );
}

#[test]
fn help_is_printed_and_exits_with_0() {
    check(&["-h"], 0, "--interval MICROSECONDS", "");
    check(&["--help"], 0, "usage: ", "");
}

#[test]
fn a_command_line_that_is_not_understood_exits_with_2_and_says_how_it_is_used() {
    let lines: [(&[&str], &str); 6] = [
        (&["-i", "0"], "kvikio_nic: interval '0' is not"),
        (&["-d", "("], "kvikio_nic: '(' is not a regular expression"),
        (&["-x"], "kvikio_nic: there is no option '-x'"),
        (&["eth0"], "kvikio_nic: argument 'eth0' is not expected"),
        (&["--device"], "kvikio_nic: option '--device' needs a value"),
        (&["-i"], "--interval MICROSECONDS"),
    ];
    for (args, error) in lines {
        check(args, 2, "", error);
        check(args, 2, "", "usage: ");
    }
}

#[test]
fn a_name_that_no_interface_has_exits_with_1_and_lists_those_that_there_are() {
    let names = fs::read_dir("/sys/class/net").unwrap();
    for name in names.map(|name| name.unwrap()) {
        let name = name.file_name().into_string().unwrap();
        if Path::new("/sys/class/net").join(&name).is_dir() {
            check(&["-d", "no such"], 1, "", &name);
        }
    }
    check(
        &["-dno such"],
        1,
        "",
        "the whole matches 'no such' ('eth.*' is",
    );
}

#[test]
fn a_tool_that_cannot_be_told_anything_exits_with_1_and_says_why() {
    let refused = |path: &Path, what: &str, error: &str| {
        let output = program()
            .args(["-d", "lo"])
            .env("NVTX_INJECTION64_PATH", path)
            .env("FAKE_NVTX_REFUSE", what)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(
            text.contains(error) && text.contains(path.to_str().unwrap()),
            "{text}"
        );
    };
    refused(
        Path::new("/no/such/tool.so"),
        "",
        "cannot be loaded: /no/such/tool.so",
    );
    refused(&tool(), "core", "refuses NVTX");
    refused(&tool(), "extension", "refuses payloads");
    refused(&tool(), "counters", "refuses counters");
    refused(&tool(), "calls", "has no nvtxPayloadSchemaRegister");
}

/// A folder like `/sys/class/net`, with one interface that is up and one of each kind that is left alone unless asked for.
fn machine() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let interfaces = [
        ("lo", 1, "unknown", 772),
        ("eth0", 2, "up", 1),
        ("eth10", 3, "down", 1),
        ("tun0", 4, "unknown", 65534),
    ];
    for (name, index, state, kind) in interfaces {
        let place = folder.path().join(name);
        fs::create_dir_all(place.join("statistics")).unwrap();
        fs::write(place.join("ifindex"), format!("{index}\n")).unwrap();
        fs::write(place.join("operstate"), format!("{state}\n")).unwrap();
        fs::write(place.join("type"), format!("{kind}\n")).unwrap();
        counters(folder.path(), name, 1000, 2000);
    }
    // It stands there on machines with bonds, and is no interface.
    fs::write(folder.path().join("bonding_masters"), "\n").unwrap();
    folder
}

fn counters(folder: &Path, name: &str, received: u64, sent: u64) {
    for (file, bytes) in [("rx_bytes", received), ("tx_bytes", sent)] {
        let path = folder.join(name).join("statistics").join(file);
        fs::write(path, format!("{bytes}\n")).unwrap();
    }
}

/// The plugin over a folder, at moments of the test's.
struct Sampling {
    child: Child,
    moments: ChildStdin,
    said: BufReader<ChildStdout>,
    log: PathBuf,
    seen: usize,
}

impl Sampling {
    /// With the names of the interfaces that it samples.
    fn start(folder: &Path, device: &[&str], log: &Path) -> (Sampling, String) {
        let mut child = Command::new(built("sample_folder"))
            .arg(folder)
            .arg(tool())
            .args(device)
            .env("FAKE_NVTX_LOG", log)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let moments = child.stdin.take().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut names = String::new();
        said.read_line(&mut names).unwrap();
        let log = log.to_owned();
        let sampling = Sampling {
            child,
            moments,
            said,
            log,
            seen: 0,
        };
        (sampling, names.trim_end().to_owned())
    }

    fn sample(&mut self, millis: u64) {
        writeln!(self.moments, "{millis}").unwrap();
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        assert_eq!(line, format!("{millis}\n"));
    }

    /// What the tool was told since the last time that somebody asked.
    fn told(&mut self) -> Vec<String> {
        let log = fs::read_to_string(&self.log).unwrap();
        let lines: Vec<String> = log.lines().skip(self.seen).map(str::to_owned).collect();
        self.seen += lines.len();
        lines
    }

    /// The last words that the tool hears.
    fn end(self) -> String {
        let Sampling {
            mut child,
            moments,
            log,
            ..
        } = self;
        drop(moments);
        assert!(child.wait().unwrap().success());
        let log = fs::read_to_string(log).unwrap();
        log.lines().last().unwrap().to_owned()
    }
}

#[test]
fn the_tool_is_told_a_domain_a_group_for_each_interface_and_one_for_all_and_then_the_rates() {
    let (machine, log) = (machine(), tempfile::NamedTempFile::new().unwrap());
    let (mut sampling, names) = Sampling::start(machine.path(), &[], log.path());
    // Up, or of a driver that does not know it; no loopback.
    assert_eq!(names, "eth0 tun0");
    let group = r#"scope=17 id=0 version=2 semantics=0x0 unit="MiB/s"*1/1 limits=0:[0, 0]"#;
    // Word for word what KvikIO's plugin (26.10) tells the same tool of two interfaces.
    let expected = [
        r#"domain 1 "KvikIO NIC""#.to_owned(),
        "extension 2 compatible=0x104 types=1/1,1/1,2/2,2/2,4/4,4/4,8/8,8/8,8/8,8/8,1/1,1/1,2/2,2/2,4/4,4/4,8/8,8/8,4/4,8/8,16/16,8/8,8/8,4/4,1/1,2/2,4/4".to_owned(),
        r#"schema 11 "NIC bandwidth" type=1 flags=0x8 size=16 mask=0x7e align=0 id=0"#.to_owned(),
        r#"field 11 "rx" type=20 offset=0 "Receive rate" flags=0x0"#.to_owned(),
        r#"field 11 "tx" type=20 offset=8 "Transmit rate" flags=0x0"#.to_owned(),
        "extension 4 compatible=0x102".to_owned(),
        format!(r#"counter 21 domain=1 schema=11 "eth0" "" {group}"#),
        format!(r#"counter 22 domain=1 schema=11 "tun0" "" {group}"#),
        format!(r#"counter 23 domain=1 schema=11 "total" "" {group}"#),
    ];
    assert_eq!(sampling.told(), expected);

    counters(machine.path(), "eth0", 1000 + (3 << 20), 2000 + (1 << 19));
    counters(machine.path(), "tun0", 1000 + (1 << 20), 2000);
    sampling.sample(500);
    let told = ["sample 21 6 1", "sample 22 2 0", "sample 23 8 1"];
    assert_eq!(sampling.told(), told);
    sampling.sample(1000);
    let told = ["sample 21 0 0", "sample 22 0 0", "sample 23 0 0"];
    assert_eq!(sampling.told(), told);
    assert_eq!(sampling.end(), "end of domain 1");
}

#[test]
fn a_rate_that_is_not_known_is_told_as_unavailable() {
    let (machine, log) = (machine(), tempfile::NamedTempFile::new().unwrap());
    let (mut sampling, names) = Sampling::start(machine.path(), &["lo|eth0"], log.path());
    assert_eq!(names, "eth0 lo");
    sampling.told();
    // Counters that start again: 2^64 bytes less a few did not come in 20 ms.
    counters(machine.path(), "eth0", 5, 5);
    sampling.sample(20);
    assert_eq!(sampling.told(), ["none 21 2", "sample 22 0 0", "none 23 2"]);
    // An interface that is gone.
    fs::remove_dir_all(machine.path().join("lo")).unwrap();
    counters(machine.path(), "eth0", 5 + (1 << 20), 5);
    sampling.sample(1020);
    assert_eq!(
        sampling.told(),
        ["sample 21 1 0", "none 22 2", "sample 23 1 0"]
    );
    sampling.end();
}

#[test]
fn who_asks_by_name_gets_interfaces_that_are_down_and_the_loopback() {
    let (machine, log) = (machine(), tempfile::NamedTempFile::new().unwrap());
    for (device, expected) in [
        ("eth.*", "eth0 eth10"),
        ("lo", "lo"),
        ("eth[0-9]", "eth0"),
        (".*", "eth0 eth10 lo tun0"),
    ] {
        let (sampling, names) = Sampling::start(machine.path(), &[device], log.path());
        assert_eq!(names, expected, "{device}");
        sampling.end();
    }
}

#[test]
fn a_machine_with_nothing_but_a_loopback_is_an_error() {
    let machine = machine();
    for name in ["eth0", "tun0"] {
        fs::remove_dir_all(machine.path().join(name)).unwrap();
    }
    let output = Command::new(built("sample_folder"))
        .arg(machine.path())
        .arg(tool())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && text.contains("NothingUp"),
        "{text}"
    );
}

#[test]
fn the_program_samples_until_a_signal_and_then_exits_with_0() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut child = program()
            .args(["--device=lo", "--interval=1000"])
            .env("NVTX_INJECTION64_PATH", tool())
            .env("FAKE_NVTX_LOG", log.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        assert_eq!(line, "kvikio_nic: sampling 1 interface(s) every 1000 us\n");
        let samples = || {
            let log = fs::read_to_string(log.path()).unwrap();
            log.lines()
                .filter(|line| line.starts_with("sample 21 "))
                .count()
        };
        while samples() < 5 {
            assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
            std::thread::yield_now();
        }
        kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{signal}");
        let log = fs::read_to_string(log.path()).unwrap();
        assert_eq!(log.lines().last(), Some("end of domain 1"));
        assert_eq!(said.lines().count(), 0);
    }
}

#[test]
fn without_a_tool_the_program_says_that_nothing_is_recorded_and_goes_on() {
    let mut child = program()
        .args(["-dlo", "-i1000"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(child.stderr.take().unwrap());
    let lines: Vec<String> = said.lines().take(2).map(Result::unwrap).collect();
    assert_eq!(
        lines[0],
        "kvikio_nic: sampling 1 interface(s) every 1000 us"
    );
    assert!(lines[1].starts_with("kvikio_nic: nothing is recorded: NVTX_INJECTION64_PATH"));
    assert!(child.try_wait().unwrap().is_none());
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
