//! Opening a library by name, and what is said when it is not there.

use std::error::Error;
use std::ffi::{CStr, CString, OsStr, OsString, c_int, c_void};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::ptr::NonNull;

/// The names and paths under which a library is looked for, in order. The first that opens and has every function that is
/// needed is taken.
///
/// A name with a `/` is a path; any other is looked for where the dynamic linker looks.
///
/// # Example: a copy of the user's before the system's
///
/// ```
/// let candidates = kvik_sys::Candidates::cufile().prefer("/opt/site-packages/nvidia/cu13/lib/libcufile.so.0");
/// assert_eq!(candidates.names().count(), 3);
/// ```
#[derive(Clone, Debug)]
pub struct Candidates {
    names: Vec<OsString>,
    global: Option<&'static str>,
}

impl Candidates {
    /// The names of the driver's library.
    pub fn cuda() -> Self {
        Self::of(["libcuda.so.1", "libcuda.so"], None)
    }

    /// The names of cuFile's library.
    ///
    /// Before it, `librt.so.1` is opened for all libraries to see, where there is one: some builds of libcufile use its
    /// functions without asking for it, and glibc before 2.34 keeps them apart from `libc.so.6`.
    pub fn cufile() -> Self {
        Self::of(["libcufile.so.0", "libcufile.so"], Some("librt.so.1"))
    }

    /// One name or path, and no other.
    pub fn only(name: impl Into<OsString>) -> Self {
        Self {
            names: vec![name.into()],
            global: None,
        }
    }

    /// Puts a name or path before all that are there.
    #[must_use]
    pub fn prefer(mut self, name: impl Into<OsString>) -> Self {
        self.names.insert(0, name.into());
        self
    }

    /// The names, in the order in which they are tried.
    pub fn names(&self) -> impl Iterator<Item = &OsStr> {
        self.names.iter().map(OsString::as_os_str)
    }

    fn of<const N: usize>(names: [&str; N], global: Option<&'static str>) -> Self {
        Self {
            names: names.map(OsString::from).to_vec(),
            global,
        }
    }
}

/// No candidate could be used; it lists each with the reason.
#[derive(Clone, Debug)]
pub struct LoadError {
    tried: Vec<(OsString, Refusal)>,
}

/// Why one candidate could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The dynamic linker could not open it; its own words.
    NotOpened(String),
    /// It was opened, and lacks these functions.
    Lacks(Vec<&'static str>),
}

impl LoadError {
    /// Each name that was tried, in order, with the reason why it was not taken.
    pub fn tried(&self) -> impl Iterator<Item = (&OsStr, &Refusal)> {
        self.tried
            .iter()
            .map(|(name, refusal)| (name.as_os_str(), refusal))
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("no library could be loaded")?;
        for (place, (name, refusal)) in self.tried.iter().enumerate() {
            let mark = if place == 0 { ": tried" } else { ";" };
            write!(to, "{mark} {} ({refusal})", name.display())?;
        }
        Ok(())
    }
}

impl Error for LoadError {}

impl fmt::Display for Refusal {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOpened(text) => to.write_str(text),
            Self::Lacks(symbols) => write!(to, "it lacks {}", symbols.join(", ")),
        }
    }
}

/// A function that the loaded library does not have, because it is older than the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unsupported {
    /// The function's name in the library.
    pub symbol: &'static str,
    /// The first version that has it: of CUDA for the driver's functions, of cuFile for cuFile's.
    pub since: &'static str,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            to,
            "the loaded library has no {}, which came with version {}",
            self.symbol, self.since
        )
    }
}

impl Error for Unsupported {}

/// An open library. It is never closed: threads may stand in its code at any time, even while the process exits.
#[derive(Debug)]
pub(crate) struct Library {
    name: OsString,
    handle: NonNull<c_void>,
}

// SAFETY: POSIX has `dlsym` and `dladdr` callable from any thread, and the library is never closed.
unsafe impl Send for Library {}
// SAFETY: as above; nothing of a `Library` changes after it was opened.
unsafe impl Sync for Library {}

impl Library {
    /// Opens the first candidate of which `fill` can make a table.
    ///
    /// # Safety
    ///
    /// 1. The initialisers of each candidate may run in this process.
    pub(crate) unsafe fn first<T>(
        candidates: &Candidates,
        fill: impl Fn(&Self) -> Result<T, Vec<&'static str>>,
    ) -> Result<(Self, T), LoadError> {
        if let Some(name) = candidates.global {
            // SAFETY: the name is one of the system's C library, which is in the process already or harmless in it.
            // Where there is none, there is nothing to do: the library itself says what it misses.
            let _ = unsafe { open(OsStr::new(name), libc::RTLD_GLOBAL) };
        }
        let mut tried = Vec::new();
        for name in &candidates.names {
            // SAFETY: point 1.
            let refusal = match unsafe { open(name, libc::RTLD_LOCAL) } {
                Ok(handle) => {
                    let library = Self {
                        name: name.clone(),
                        handle,
                    };
                    match fill(&library) {
                        Ok(table) => return Ok((library, table)),
                        Err(missing) => Refusal::Lacks(missing),
                    }
                }
                Err(text) => Refusal::NotOpened(text),
            };
            tried.push((name.clone(), refusal));
        }
        Err(LoadError { tried })
    }

    /// The name under which it was opened.
    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    /// The address of a function.
    pub(crate) fn symbol(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: `handle` came from `dlopen` and is never closed; the name ends with a NUL.
        NonNull::new(unsafe { libc::dlsym(self.handle.as_ptr(), name.as_ptr()) })
    }
}

/// The file from which the code at an address was loaded.
pub(crate) fn file_of(address: *const c_void) -> Option<PathBuf> {
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: `dladdr` accepts any address and writes to `info` alone.
    let found = unsafe { libc::dladdr(address, &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: `dladdr` found the object, whose name is a C string that lives as long as the object, which is never closed.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(PathBuf::from(OsString::from_vec(name.to_bytes().to_vec())))
}

/// # Safety
///
/// 1. The initialisers of the library may run in this process.
unsafe fn open(name: &OsStr, scope: c_int) -> Result<NonNull<c_void>, String> {
    let Ok(name) = CString::new(name.as_bytes()) else {
        return Err("the name contains a NUL byte".to_owned());
    };
    // All symbols now, so that a library that cannot work is refused here and not at a call. NODELETE: see `Library`.
    let flags = libc::RTLD_NOW | libc::RTLD_NODELETE | scope;
    // SAFETY: the name ends with a NUL; the rest is point 1.
    let handle = unsafe { libc::dlopen(name.as_ptr(), flags) };
    NonNull::new(handle).ok_or_else(why)
}

/// What the dynamic linker says about this thread's last failure.
fn why() -> String {
    // SAFETY: takes nothing, and answers for the calling thread.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the dynamic linker gives no reason".to_owned();
    }
    // SAFETY: a C string that stays until this thread's next call of the dynamic linker, which is behind this copy.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}

/// Declares a table of functions: those that must be there, then those that may be missing, each with the version that
/// brought it. Fields carry the vendor's names; their types are generated from the vendor's header.
macro_rules! table {
    (
        $(#[$doc:meta])*
        $name:ident of $raw:ident { $($required:ident,)* }
        and perhaps { $($optional:ident since $since:literal,)* }
    ) => {
        $(#[$doc])*
        #[expect(non_snake_case, reason = "the vendor's names, so that one search finds a function everywhere")]
        pub(crate) struct $name {
            $(pub(crate) $required: crate::raw::$raw::$required,)*
            $(pub(crate) $optional: Result<crate::raw::$raw::$optional, crate::Unsupported>,)*
        }

        impl $name {
            /// Looks up every function, or names those that must be there and are not.
            #[expect(non_snake_case, reason = "as the fields")]
            pub(crate) fn fill(library: &crate::library::Library) -> Result<Self, Vec<&'static str>> {
                let mut missing = Vec::new();
                $(
                    let $required = crate::library::symbol!(library, $required);
                    if $required.is_none() {
                        missing.push(stringify!($required));
                    }
                )*
                let ($(Some($required),)*) = ($($required,)*) else {
                    return Err(missing);
                };
                Ok(Self {
                    $(
                        // SAFETY: the function that the library exports under this name, whose type the vendor's header
                        // gives, and which it keeps for all later versions.
                        $required: unsafe {
                            std::mem::transmute::<std::ptr::NonNull<std::ffi::c_void>, crate::raw::$raw::$required>($required)
                        },
                    )*
                    $(
                        $optional: match crate::library::symbol!(library, $optional) {
                            // SAFETY: as above.
                            Some(address) => Ok(unsafe {
                                std::mem::transmute::<std::ptr::NonNull<std::ffi::c_void>, crate::raw::$raw::$optional>(address)
                            }),
                            None => Err(crate::Unsupported { symbol: stringify!($optional), since: $since }),
                        },
                    )*
                })
            }

            /// The functions that are not there, of those that may be missing.
            pub(crate) fn unsupported(&self) -> Vec<crate::Unsupported> {
                [$(self.$optional.err(),)*].into_iter().flatten().collect()
            }
        }
    };
}

macro_rules! symbol {
    ($library:ident, $name:ident) => {
        match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
            Ok(name) => $library.symbol(name),
            Err(_) => None,
        }
    };
}

pub(crate) use {symbol, table};

#[cfg(test)]
#[path = "library_tests.rs"]
mod tests;
