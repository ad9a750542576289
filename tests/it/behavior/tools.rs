//! Settings of calls and handles, tools of the page cache, and silence.

use kvik::{
    ByteSize, Config, FileHandle, Layer, ReadOptions, ThreadPool, drop_file_page_cache,
    page_cache_info,
};
use kvik_tests::pattern::{assert_same, file, pattern};

use super::{LEN, fixture};
use crate::child;

/// "A call wins over a handle, a handle over a context."
#[test]
fn a_call_wins_over_a_handle_and_a_handle_over_a_context() {
    let (_folder, path, _) = fixture();
    let tasks_fit = |pool: &ThreadPool| pool.threads() + 1;
    // So small that every read is cut, and none is made by the calling thread alone.
    let cut = || {
        Layer::new()
            .task_size(ByteSize::kib(4))
            .inline_size(ByteSize::new(0))
    };
    let read = |handle: &FileHandle, options: &ReadOptions| {
        handle.read_at_with(&mut vec![0; LEN], 0, options).unwrap();
    };
    let _context = Config::enter(cut().num_threads(2)).unwrap();
    let pool = ThreadPool::new("context");
    let options = FileHandle::options().read(true).thread_pool(&pool);
    read(&options.open(&path).unwrap(), &ReadOptions::new());
    assert_eq!(tasks_fit(&pool), 2);
    let config = Config::resolve([cut().num_threads(3)]).unwrap();
    let handle = options.open_with(&path, &config).unwrap();
    read(&handle, &ReadOptions::new());
    assert_eq!(tasks_fit(&pool), 3);
    read(&handle, &ReadOptions::new().num_threads(4));
    assert_eq!(tasks_fit(&pool), 4);
}

/// "`page_cache_info` counts the cached pages that a range touches; a range past the end has none."
#[test]
fn page_cache_info_counts_the_cached_pages_of_a_range() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "cached", 1, 40 * 4096);
    // Just written, so all there; on a file system without a page cache this test has nothing to count.
    let whole = page_cache_info(&path, 0, 0).unwrap();
    assert_eq!((whole.resident_pages, whole.total_pages), (40, 40));
    let touched = page_cache_info(&path, 4095, 2).unwrap();
    assert_eq!((touched.resident_pages, touched.total_pages), (2, 2));
    let past = page_cache_info(&path, 1 << 20, 4096).unwrap();
    assert_eq!((past.resident_pages, past.total_pages), (0, 0));
}

/// "`drop_file_page_cache` drops the pages that lie wholly within the range, after writing them out if asked."
#[test]
fn drop_file_page_cache_drops_written_pages_of_the_range() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "dropped", 1, 40 * 4096);
    drop_file_page_cache(&path, 0, 0, true).unwrap();
    assert_eq!(page_cache_info(&path, 0, 0).unwrap().resident_pages, 0);
    assert_same(&std::fs::read(&path).unwrap(), &pattern(1, 0, 40 * 4096));
}

/// "The library prints nothing to standard output."
#[test]
fn the_library_prints_nothing() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(child("every-call").arg(folder.path()).succeeds(), "");
}
