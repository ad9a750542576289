//! Remote objects: the exam, and servers that are not as they should be.

mod exams;
mod opening;
mod redirects;
mod replies;
mod silence;
