//! Status: the codes that are answered here, with their words.

use std::fmt;

/// One code of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) code: u16,
    words: &'static str,
}

impl Status {
    pub(super) const OK: Self = Self::new(200, "OK");
    pub(super) const PARTIAL: Self = Self::new(206, "Partial Content");
    pub(super) const NOT_MODIFIED: Self = Self::new(304, "Not Modified");
    pub(super) const BAD_REQUEST: Self = Self::new(400, "Bad Request");
    pub(super) const FORBIDDEN: Self = Self::new(403, "Forbidden");
    pub(super) const NOT_FOUND: Self = Self::new(404, "Not Found");
    pub(super) const METHOD: Self = Self::new(405, "Method Not Allowed");
    pub(super) const TIMEOUT: Self = Self::new(408, "Request Timeout");
    pub(super) const PRECONDITION: Self = Self::new(412, "Precondition Failed");
    pub(super) const BEYOND: Self = Self::new(416, "Range Not Satisfiable");
    pub(super) const MISDIRECTED: Self = Self::new(421, "Misdirected Request");
    pub(super) const TOO_LARGE: Self = Self::new(431, "Request Header Fields Too Large");
    pub(super) const FAILED: Self = Self::new(500, "Internal Server Error");
    pub(super) const VERSION: Self = Self::new(505, "HTTP Version Not Supported");

    const fn new(code: u16, words: &'static str) -> Self {
        Self { code, words }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code, self.words)
    }
}
