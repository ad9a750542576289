//! One scenario a file.

mod cancelled;
mod exams;
mod few_large_files;
mod many_small_files;
mod one_busy_pool;
