//! Remote objects: the exam, and servers that are not as they should be.

mod exams;
mod hostile;
mod limits;
mod names;
mod opening;
mod process;
mod redirects;
mod replies;
mod s3;
mod s3_settings;
mod secrets;
mod silence;
mod trust;
