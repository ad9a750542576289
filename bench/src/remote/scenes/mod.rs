//! The scenes of a remote run: what a case prepares, times, checks and proves.

mod pieces;
mod whole;

pub(super) use pieces::PiecesScene;
pub(super) use whole::WholeScene;
