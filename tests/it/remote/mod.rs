//! Remote objects: the exam, and servers that are not as they should be.

mod background;
mod connections;
mod diagnosis;
mod exams;
mod hdfs;
mod hostile;
mod limits;
mod named;
mod names;
mod opening;
mod process;
mod proxies;
mod redirects;
mod replies;
mod s3;
mod s3_settings;
mod secrets;
mod silence;
mod tokens;
mod trust;
