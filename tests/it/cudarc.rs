//! Memory of cudarc: the right bytes, behind whatever cudarc has queued, and nothing else of it changed. Each scenario is a
//! process that finds the fake libcuda under the real one's name, since that is how cudarc looks for it.

use kvik_tests::child::Child;
use kvik_tests::fake;

#[test]
fn slices_and_views_of_cudarc_are_read_into_and_written_from() {
    check("slices");
}

#[test]
fn the_callers_context_stays_current_and_no_other_context_is_made() {
    check("contexts");
}

#[test]
fn transfers_wait_for_what_cudarc_has_queued_on_any_stream_of_the_slice() {
    check("order");
}

#[test]
fn a_stream_that_is_named_is_waited_for_beside_the_slices_own() {
    check("named");
}

#[test]
fn an_owned_slice_is_filled_in_the_background_and_freed_on_any_thread() {
    check("owned");
}

#[test]
fn pinned_memory_of_cudarc_is_memory_of_the_host_once_its_copies_are_done() {
    check("pinned");
}

#[test]
fn a_slice_whose_stream_records_a_graph_is_refused_and_the_recording_goes_on() {
    check("recording");
}

#[test]
fn what_cudarc_only_keeps_of_a_failure_is_an_error_of_the_call() {
    check("failures");
}

#[test]
fn memory_of_another_driver_than_kviks_is_refused() {
    // A copy is another library, with devices of its own.
    let (_folder, copy) = fake::without(&fake::cuda(), &[]);
    run("another-driver", |child| child.arg(&copy));
}

#[test]
fn a_forked_child_is_told_so() {
    check("forks");
}

#[track_caller]
fn check(scenario: &str) {
    run(scenario, |child| child);
}

#[track_caller]
fn run(scenario: &str, with: impl FnOnce(Child) -> Child) {
    let folder = fake::folder();
    let child = crate::child("cudarc").env("LD_LIBRARY_PATH", folder.path());
    with(child.arg(scenario)).succeeds();
}
