//! The batches of [`batches`](crate::batches) by cuFile, which takes their entries many at a time.

use crate::batches::{
    By, cancelled_and_dropped, entries_are_written, hundreds_of_entries, memory_of_all_kinds,
};

#[test]
fn hundreds_of_entries_of_all_sizes_and_offsets_are_read_by_cufile() {
    hundreds_of_entries(By::CuFile);
}

#[test]
fn entries_of_all_sizes_are_written_by_cufile_and_what_lies_between_them_stays() {
    entries_are_written(By::CuFile);
}

#[test]
fn cancelled_and_dropped_batches_by_cufile_leave_nothing_behind() {
    cancelled_and_dropped(By::CuFile);
}

#[test]
fn memory_of_host_and_device_and_both_ways_are_one_batch() {
    memory_of_all_kinds(By::CuFile);
}
