//! Who takes part in a case, and as what.

use std::fmt;

/// As what somebody takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The one that the case is about. The first contender, and only that one.
    Ours,
    /// A plain loop, one of which is the limit.
    Loop,
    /// A part of the way alone, such as the bus without a file: nobody goes the whole way faster, and so it is no limit of
    /// the case either.
    Part,
    /// kvik again, held to one engine.
    Engine,
    /// KvikIO, in a process of its own.
    Kvikio,
    /// The disk tester fio: a second limit, by somebody else's hand.
    Fio,
    /// obstore, Python's door to object_store, in a process of its own.
    Obstore,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ours | Self::Engine => "kvik",
            Self::Loop => "loop",
            Self::Part => "part",
            Self::Kvikio => "kvikio",
            Self::Fio => "fio",
            Self::Obstore => "obstore",
        })
    }
}

/// One of those who take part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contender {
    /// What it does, in a few words: `pread 4 MiB, 2 threads`.
    pub(crate) name: String,
    pub(crate) role: Role,
}

impl Contender {
    pub(crate) fn ours() -> Self {
        Self::new(Role::Ours, OURS)
    }

    pub(crate) fn new(role: Role, name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            role,
        }
    }
}

/// How the contender that the case is about is called in errors.
pub(crate) const OURS: &str = "kvik";
