//! What becomes of rates when interfaces come, go and start again.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::*;

/// A folder like `/sys/class/net` with interfaces in it.
fn folder(names: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (place, name) in names.iter().enumerate() {
        set(folder.path(), name, place as u64 + 1, 0, 0);
    }
    folder
}

fn set(folder: &Path, name: &str, index: u64, received: u64, sent: u64) {
    let folder = folder.join(name);
    fs::create_dir_all(folder.join("statistics")).unwrap();
    fs::write(folder.join("ifindex"), format!("{index}\n")).unwrap();
    for (file, bytes) in [("rx_bytes", received), ("tx_bytes", sent)] {
        fs::write(folder.join("statistics").join(file), format!("{bytes}\n")).unwrap();
    }
}

fn sampler(folder: &Path, names: &[&str]) -> Sampler {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    Sampler::new(Interfaces::new(folder), &names, Duration::ZERO)
}

#[track_caller]
fn check(
    sampler: &mut Sampler,
    millis: u64,
    each: &[Option<(f64, f64)>],
    total: Option<(f64, f64)>,
) {
    let plain = |rates: Rates| (rates.received, rates.sent);
    let sample = sampler.sample(Duration::from_millis(millis));
    let found: Vec<Option<(f64, f64)>> = sample.each.iter().map(|rates| rates.map(plain)).collect();
    assert_eq!((&found[..], sample.total.map(plain)), (each, total));
}

const MIB: u64 = 1 << 20;

#[test]
fn the_first_sample_is_the_rate_since_the_start() {
    let folder = folder(&["a", "b"]);
    set(folder.path(), "a", 1, 100 * MIB, 200 * MIB);
    let mut sampler = sampler(folder.path(), &["a", "b"]);
    set(folder.path(), "a", 1, 101 * MIB, 203 * MIB);
    set(folder.path(), "b", 2, 4 * MIB, 0);
    let each = [Some((2.0, 6.0)), Some((8.0, 0.0))];
    check(&mut sampler, 500, &each, Some((10.0, 6.0)));
    let still = [Some((0.0, 0.0)); 2];
    check(&mut sampler, 1000, &still, Some((0.0, 0.0)));
}

#[test]
fn after_counters_that_went_back_there_is_one_sample_without_a_rate() {
    let folder = folder(&["a", "b"]);
    set(folder.path(), "a", 1, 1 << 40, 1 << 40);
    let mut sampler = sampler(folder.path(), &["a", "b"]);
    set(folder.path(), "a", 1, 5, 5);
    set(folder.path(), "b", 2, MIB, MIB);
    // How much both of them received is not known then.
    check(&mut sampler, 1000, &[None, Some((1.0, 1.0))], None);
    set(folder.path(), "a", 1, 5 + MIB, 5);
    let each = [Some((1.0, 0.0)), Some((0.0, 0.0))];
    check(&mut sampler, 2000, &each, Some((1.0, 0.0)));
}

#[test]
fn an_interface_that_is_gone_has_no_rate_and_adds_nothing_until_it_is_back() {
    let folder = folder(&["a", "b"]);
    let mut sampler = sampler(folder.path(), &["a", "b"]);
    fs::remove_dir_all(folder.path().join("a")).unwrap();
    set(folder.path(), "b", 2, MIB, 0);
    check(
        &mut sampler,
        1000,
        &[None, Some((1.0, 0.0))],
        Some((1.0, 0.0)),
    );
    // Back under another number, with counters of its own.
    set(folder.path(), "a", 9, 7 * MIB, 7 * MIB);
    check(&mut sampler, 2000, &[None, Some((0.0, 0.0))], None);
    set(folder.path(), "a", 9, 8 * MIB, 9 * MIB);
    let each = [Some((1.0, 2.0)), Some((0.0, 0.0))];
    check(&mut sampler, 3000, &each, Some((1.0, 2.0)));
}

#[test]
fn an_interface_that_went_and_came_back_between_two_samples_has_no_rate() {
    let folder = folder(&["a"]);
    let mut sampler = sampler(folder.path(), &["a"]);
    set(folder.path(), "a", 2, 1 << 50, 1 << 50);
    check(&mut sampler, 20, &[None], None);
}

#[test]
fn when_all_are_gone_the_total_is_not_known() {
    let folder = folder(&["a"]);
    let mut sampler = sampler(folder.path(), &["a"]);
    fs::remove_dir_all(folder.path().join("a")).unwrap();
    check(&mut sampler, 20, &[None], None);
}
