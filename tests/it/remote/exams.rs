//! Remote objects sit the exam of every door.

use kvik_tests::conformance::{Remote, exam_of_large_tasks, short_exam};

#[test]
fn remote_objects_pass() {
    short_exam(&Remote::new(), 4);
}

#[test]
fn objects_of_s3_pass() {
    short_exam(&Remote::of_s3(), 4);
}

#[test]
fn public_objects_of_s3_pass() {
    short_exam(&Remote::of_public_s3(), 20);
}

#[test]
fn objects_by_presigned_urls_pass() {
    short_exam(&Remote::by_presigned_urls(), 20);
}

#[test]
fn files_of_hdfs_pass() {
    short_exam(&Remote::of_hdfs(), 60);
}

/// Nothing of them is kept from when they were opened.
#[test]
fn remote_objects_of_known_size_pass() {
    exam_of_large_tasks(&Remote::of_known_size());
    short_exam(&Remote::of_known_size(), 20);
}
