//! Remote objects: the exam, and servers that are not as they should be.

mod background;
mod exams;
mod named;
mod names;
mod opening;
mod process;
mod redirects;
mod replies;
mod s3;
mod s3_settings;
mod silence;
mod tokens;
mod trust;
