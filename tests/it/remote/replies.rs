//! Servers whose answers are not what was asked for, or end early.
