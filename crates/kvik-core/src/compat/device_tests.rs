//! What once could break: cuFile taken where it only copies through the host, a reason that names the wrong check.

use super::*;

/// The checks with all needs met but these.
fn facts(failed: &[(Check, &str)], device: Support, direct_path: Fact<String>) -> DeviceFacts {
    let all = [
        Check::Driver,
        Check::Kernel,
        Check::Library,
        Check::DirectIo,
        Check::Udev,
    ];
    let why = |name| {
        let found = failed.iter().find(|(check, _)| *check == name);
        found.map(|(_, why)| (*why).to_owned())
    };
    DeviceFacts {
        device,
        checks: all.into_iter().map(|name| check(name, why(name))).collect(),
        direct_path,
    }
}

fn shown() -> Fact<String> {
    Fact::Known("nvidia-fs 2.20.5".to_owned())
}

fn not_shown() -> Fact<String> {
    Fact::absent("nvidia-fs is not loaded")
}

#[track_caller]
fn check_text(wanted: CompatMode, facts: &DeviceFacts, expected: &str) {
    let text = match resolve(wanted, facts) {
        Ok(route) => {
            assert_eq!(route.wanted, wanted);
            route.to_string()
        }
        Err(error) => {
            assert_eq!(
                (error.kind(), error.op()),
                (ErrorKind::GdsUnavailable, Op::Open)
            );
            error.to_string()
        }
    };
    assert_eq!(text, expected);
}

#[test]
fn cufile_is_taken_where_it_is_required_or_there_is_a_sign_of_a_direct_path() {
    use CompatMode::{Auto, Off, On};
    let direct = facts(&[], Support::Yes, shown());
    check_text(
        Auto,
        &direct,
        "compat mode auto\n  cuFile    allowed: there is a sign of a direct path, which the first transfer tries with its compatible mode off: nvidia-fs 2.20.5\n  staged    allowed: for what is smaller than gds_threshold, and managed memory",
    );
    check_text(
        Off,
        &direct,
        "compat mode off\n  cuFile    allowed: the compat mode OFF requires it; a sign of a direct path: nvidia-fs 2.20.5\n  staged    allowed: for what is smaller than gds_threshold, and managed memory",
    );
    check_text(
        On,
        &direct,
        "compat mode on\n  staged    allowed: through page-locked host memory\n  cuFile    ruled out: the compat mode ON leaves it alone",
    );
    let without = facts(&[], Support::Yes, not_shown());
    check_text(
        Auto,
        &without,
        "compat mode auto\n  staged    allowed: through page-locked host memory\n  cuFile    ruled out: slower than staging where there is no direct path: nvidia-fs is not loaded",
    );
    check_text(
        Off,
        &without,
        "compat mode off\n  cuFile    allowed: the compat mode OFF requires it; without a direct path it copies through memory of its own: nvidia-fs is not loaded\n  staged    allowed: for what is smaller than gds_threshold, and managed memory",
    );
}

#[test]
fn the_first_check_that_fails_is_the_reason_and_of_the_file_cufile_has_the_last_word() {
    let checks = [
        (Check::Driver, "not usable: no CUDA driver: no file"),
        (Check::Kernel, "not usable under WSL"),
        (Check::Library, "not installed: no file"),
        (
            Check::DirectIo,
            "not usable on a file that is not read past the page cache: EINVAL",
        ),
        (
            Check::Udev,
            "not usable without the record of udev: no file",
        ),
    ];
    for bits in 0_u32..1 << checks.len() {
        let failed: Vec<_> = checks
            .iter()
            .enumerate()
            .filter(|(place, _)| bits & (1 << place) != 0)
            .map(|(_, check)| *check)
            .collect();
        let device = match failed.iter().any(|(check, _)| *check == Check::Driver) {
            true => Support::no("no CUDA driver: no file"),
            false => Support::Yes,
        };
        for direct_path in [shown(), not_shown()] {
            let facts = facts(&failed, device.clone(), direct_path.clone());
            let needed = |(check, _): &&(Check, &'static str)| {
                !matches!(check, Check::DirectIo | Check::Udev)
            };
            let first = failed.iter().find(needed).map(|(_, why)| *why);
            let doubt = failed.iter().find(|check| !needed(check));

            let on = resolve(CompatMode::On, &facts).unwrap();
            assert!(!on.allows(DeviceWay::CuFile));
            assert_eq!(on.allows(DeviceWay::Staged), device.is_yes());

            match (resolve(CompatMode::Off, &facts), first) {
                (Ok(off), None) => {
                    assert_eq!(off.allowed[0].way, DeviceWay::CuFile);
                    assert!(off.allows(DeviceWay::Staged) && off.ruled_out.is_empty());
                    let told = off.allowed[0].why.split_once("; it may refuse this file: ");
                    assert_eq!(told.map(|(_, why)| why), doubt.map(|(_, why)| *why));
                }
                (Err(error), Some(why)) => {
                    let expected = format!("the compat mode OFF requires cuFile, which is {why}");
                    assert!(error.to_string().contains(&expected), "{error}");
                }
                (outcome, first) => panic!("{outcome:?} though the first reason is {first:?}"),
            }

            let auto = resolve(CompatMode::Auto, &facts).unwrap();
            let takes = first.is_none() && direct_path.known().is_some();
            assert_eq!(auto.allows(DeviceWay::CuFile), takes);
            assert_eq!(auto.allows(DeviceWay::Staged), device.is_yes());
            let told = |name: &str| auto.ruled_out.iter().find(|out| out.engine == name);
            if let Some(why) = first {
                assert_eq!(told("cuFile").unwrap().why, why);
            }
            if let Some(why) = device.why_not() {
                assert_eq!(told("staged").unwrap().why, why);
                assert_eq!(auto.allowed, []);
            }

            let outcomes = |check: &CuFileCheck| check.outcome.is_yes();
            assert_eq!(auto.checks.len(), checks.len() + 1, "all checks are told");
            let failing = auto.checks.iter().filter(|check| !outcomes(check)).count();
            assert_eq!(
                failing,
                failed.len() + usize::from(direct_path.known().is_none())
            );
        }
    }
}

#[test]
fn facts_of_a_machine_become_the_checks_in_their_words() {
    let config = kvik_config::Config::resolve([kvik_config::Layer::new()
        .cuda_library(Some("/nowhere/libcuda.so.1".into()))
        .cufile_library(Some("/nowhere/libcufile.so.0".into()))])
    .unwrap();
    let mut machine = Probe::collect();
    let mut gpu = GpuProbe::collect(&config);
    let mut file = FileProbe::of("/proc/self/exe").unwrap();
    machine.wsl = true;
    file.direct_opens = Support::no("it is a FIFO");
    file.udev_record = Support::no("/run/udev/data/b8:1: gone");
    file.block_device = Fact::Known(crate::BlockDevice {
        id: 0x801,
        major: 8,
        minor: 1,
        name: "sda".to_owned(),
    });
    gpu.nvidia_fs = Fact::absent("the kernel module nvidia-fs is not loaded");
    gpu.p2pdma = Support::no("no GPU offers its memory");

    let words = |gpu: &GpuProbe, file: &FileProbe| -> Vec<String> {
        let route = DeviceRoute::resolve(CompatMode::Auto, &machine, gpu, file).unwrap();
        let told = |check: &CuFileCheck| check.outcome.why_not().unwrap_or("yes").to_owned();
        route.checks.iter().map(told).collect()
    };
    let driver =
        "not usable: no CUDA driver: no library could be loaded: tried /nowhere/libcuda.so.1 (";
    let library = "not installed: no library could be loaded: tried /nowhere/libcufile.so.0 (";
    let found = words(&gpu, &file);
    assert!(found[0].starts_with(driver), "{}", found[0]);
    assert!(found[2].starts_with(library), "{}", found[2]);
    let others: Vec<&str> = [1, 3, 4, 5].map(|place| found[place].as_str()).to_vec();
    assert_eq!(
        others,
        [
            "not usable under WSL",
            "not usable on a file that is not read past the page cache: it is a FIFO",
            "not usable without the record of udev: /run/udev/data/b8:1: gone",
            "without a direct path: the kernel module nvidia-fs is not loaded, and no GPU offers its memory",
        ]
    );

    // A network file system has no block device, and needs no record of one.
    file.block_device = Fact::absent("nfs4 has no block device of its own");
    assert_eq!(words(&gpu, &file)[4], "yes");
    gpu.nvidia_fs = Fact::Known("2.20.5".to_owned());
    assert_eq!(words(&gpu, &file)[5], "yes");
    gpu.nvidia_fs = Fact::absent("not loaded");
    gpu.p2pdma = Support::Yes;
    assert_eq!(words(&gpu, &file)[5], "yes");
    file.direct_opens = Support::Yes;
    assert_eq!(words(&gpu, &file)[3], "yes");
}

#[test]
fn what_is_known_of_an_open_file_takes_the_place_of_what_was_expected() {
    use CompatMode::{Auto, Off, On};
    let facts = facts(&[], Support::Yes, shown());
    let text = |wanted, standing| {
        let route = resolve(wanted, &facts).unwrap();
        route.of_file(standing).to_string()
    };
    let proof = "cuFile has registered it";
    assert_eq!(
        text(Auto, Standing::Registered(proof)),
        "compat mode auto\n  cuFile    allowed: a direct path was proven for this file: cuFile has registered it\n  staged    allowed: for what is smaller than gds_threshold, and managed memory"
    );
    assert_eq!(
        text(Off, Standing::Registered("it is required")),
        "compat mode off\n  cuFile    allowed: it is required\n  staged    allowed: for what is smaller than gds_threshold, and managed memory"
    );
    assert_eq!(
        text(Auto, Standing::GivenUp("a call of it failed".to_owned())),
        "compat mode auto\n  staged    allowed: through page-locked host memory\n  cuFile    ruled out: a call of it failed"
    );
    let untried = resolve(Auto, &facts).unwrap().to_string();
    assert_eq!(text(Auto, Standing::Untried), untried);
    let on = resolve(On, &facts).unwrap().to_string();
    assert_eq!(text(On, Standing::Registered(proof)), on);
}
