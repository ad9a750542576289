//! `kvik doctor`: what kvik can use on this machine, and what would make it faster.

mod findings;
mod gpu;
mod remote;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use kvik::config::Config;
use kvik::{DeviceRoute, FileHandle, FileKind, FileProbe, GpuProbe, Probe, Route, Support};
use serde_json::json;

use crate::Exit;
use crate::cmd::stat::as_json;
use crate::failure::Result;
use crate::output::Report;
use crate::style::HEADING;
use crate::url::url_of;

use findings::{Level, of_file, of_machine, of_route, of_settings, try_a_read};

/// Show what kvik can use on this machine, and what would make it faster
///
/// Collects facts about the machine and its GPUs, and about PATH if there is one; reads a file in
/// parallel and compares the bytes; then says what stands in the way and what to do about it. The
/// CUDA driver is loaded and started for it, where there is one; cuFile's driver is not opened.
///
/// With a URL it walks the way to the object instead: what the URL means, whose keys are used, name,
/// connection, TLS, a first request with its redirects, clocks, ranges, what tells versions apart; at last
/// it opens the object. It asks for a few bytes. No secret is shown.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, after_long_help = AFTER)]
pub(crate) struct Flags {
    /// A file or directory whose storage is looked at, too; or the URL of an object, with `://` in it
    path: Option<PathBuf>,
}

const AFTER: &str = "\
Output:
  Findings are `ok`, `note` (works, could be better) or `problem` (something does not work).
  Advice follows `->`. What comes behind a problem on the way to a URL is `skipped`.

Exit codes:
  0 no problem (notes do not count), 2 a setting is unusable, 3 no such PATH, 5 a read gave
  wrong bytes; with a URL that of the problem, as reading it would end: 1 no connection, 3 no
  such object, 4 refused, 7 no ranges; `kvik --help` has the whole table.

Examples:
  kvik doctor
  kvik doctor /mnt/fast
  kvik doctor https://example.org/data.bin
  kvik doctor s3://bucket/data.bin
  kvik doctor --json | jq '.findings[] | select(.level != \"ok\")'";

pub(crate) fn run(flags: &Flags) -> Result<Report> {
    if let Some(url) = flags.path.as_deref().and_then(url_of) {
        return Ok(remote::run(url));
    }
    let probe = Probe::collect();
    let file = flags.path.as_ref().map(FileProbe::of).transpose()?;
    let config = Config::current();
    let route = route(flags.path.as_deref(), file.as_ref());
    let gpu = GpuProbe::collect(&config);
    let device = device_route(&route, &probe, &gpu, file.as_ref());

    let mut findings = of_settings(&config);
    findings.extend(try_a_read(Path::new("/proc/self/exe")));
    findings.extend(of_machine(&probe));
    findings.extend(file.iter().flat_map(of_file));
    findings.extend(of_route(&route));
    findings.extend(gpu::of_devices(&gpu));
    if let Some(device) = &device {
        findings.extend(gpu::of_cufile(&device.checks, &probe, file.as_ref()));
    }
    findings.extend(gpu::of_direct_path(&gpu, file.as_ref()));
    let problems = findings
        .iter()
        .filter(|finding| finding.level == Level::Problem)
        .count();
    let notes = findings
        .iter()
        .filter(|finding| finding.level == Level::Note)
        .count();
    let devices = gpu.devices.known().map_or(0, Vec::len);
    let verdict = verdict(&config, &route, devices, (problems, notes));
    let exit = findings
        .iter()
        .map(|finding| finding.exit)
        .find(|exit| *exit != Exit::Ok)
        .unwrap_or(Exit::Ok);

    let mut text = format!(
        "{HEADING}machine{HEADING:#}\n{}\n{HEADING}GPU{HEADING:#}\n{}\n",
        indented(&probe.to_string()),
        indented(&gpu.to_string())
    );
    // Writing to a String cannot fail, here and below.
    if let Some(file) = &file {
        let _ = writeln!(
            text,
            "{HEADING}path{HEADING:#}\n{}",
            indented(&file.to_string())
        );
    }
    if let Ok(route) = &route {
        let _ = writeln!(
            text,
            "{HEADING}route{HEADING:#}\n{}",
            indented(&route.to_string())
        );
    }
    if let Some(device) = &device {
        let _ = writeln!(
            text,
            "{HEADING}route of device memory{HEADING:#}\n{}",
            indented(&device.to_string())
        );
    }
    if let (Some(device), Some(_)) = (&device, &file) {
        let _ = writeln!(text, "  what cuFile needs for this path");
        for check in &device.checks {
            let _ = writeln!(text, "    {:22}{}", check.check, check.outcome);
        }
    }
    let _ = writeln!(text, "{HEADING}findings{HEADING:#}");
    findings.iter().for_each(|finding| finding.write(&mut text));
    let _ = writeln!(text, "{HEADING}verdict{HEADING:#}\n  {verdict}");
    let object = json!({
        "machine": as_json(&probe)?,
        "gpu": as_json(&gpu)?,
        "path": file.as_ref().map(as_json).transpose()?,
        "route": route.as_ref().ok().map(as_json).transpose()?,
        "device_route": device.as_ref().map(as_json).transpose()?,
        "findings": as_json(&findings)?,
        "verdict": verdict,
    });
    Ok(Report::new(object).text(text).exit(exit))
}

/// The route of the file, or of any file where the path is none.
fn route(path: Option<&Path>, file: Option<&FileProbe>) -> kvik::Result<Route> {
    let own = Path::new("/proc/self/exe");
    let is_file =
        file.is_some_and(|file| matches!(file.kind, FileKind::Regular | FileKind::BlockDevice));
    let path = path.filter(|_| is_file).unwrap_or(own);
    FileHandle::open(path).map(|handle| handle.route())
}

/// The ways to device memory for the file, or for any file where the path is none. None where a setting stands in the way, which
/// the route tells.
fn device_route(
    route: &kvik::Result<Route>,
    machine: &Probe,
    gpu: &GpuProbe,
    file: Option<&FileProbe>,
) -> Option<DeviceRoute> {
    let wanted = route.as_ref().ok()?.wanted;
    let mut file = match file {
        Some(file) => file.clone(),
        None => FileProbe::of("/proc/self/exe").ok()?,
    };
    // Of the files in a directory none was tried.
    if file.kind == FileKind::Directory {
        file.direct_opens = Support::Yes;
    }
    DeviceRoute::resolve(wanted, machine, gpu, &file).ok()
}

fn verdict(
    config: &Config,
    route: &kvik::Result<Route>,
    devices: usize,
    (problems, notes): (usize, usize),
) -> String {
    let counted = format!("{}, {}", count(problems, "problem"), count(notes, "note"));
    match (route, config.num_threads()) {
        (Ok(_), Ok(threads)) if problems == 0 => {
            let devices = match devices {
                0 => String::new(),
                _ => format!(" and {}", count(devices, "device")),
            };
            format!("kvik works here, with up to {threads} threads{devices}; {counted}")
        }
        _ => format!("something stands in the way; {counted}"),
    }
}

fn count(number: usize, word: &str) -> String {
    match number {
        0 => format!("no {word}s"),
        1 => format!("1 {word}"),
        _ => format!("{number} {word}s"),
    }
}

fn indented(text: &str) -> String {
    text.lines()
        .map(|line| format!("  {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_counts_what_was_found() {
        let route = FileHandle::open("/proc/self/exe").map(|handle| handle.route());
        let config = Config::default();
        assert!(verdict(&config, &route, 0, (0, 2)).starts_with("kvik works here"));
        assert!(verdict(&config, &route, 0, (0, 1)).ends_with("threads; no problems, 1 note"));
        assert!(verdict(&config, &route, 2, (0, 0)).contains("threads and 2 devices; no problems"));
        assert!(
            verdict(&config, &route, 0, (2, 0))
                .starts_with("something stands in the way; 2 problems")
        );
    }
}
