//! Where a copy of a remote object is made: its part, its journal, and what of it an earlier copy has left there.

use std::ops::Range;
use std::path::Path;

use crate::failure::Result;

use super::destination::{journal_of, part_of};
use super::journal::{Journal, Written};
use super::part::Part;
use super::subject::Subject;

/// What a copy goes on with.
#[derive(Debug)]
pub(super) struct Site {
    // Before the part, whose lock says whose journal it is.
    /// Else why no other copy could go on with the part.
    pub(super) journal: Result<Journal, String>,
    pub(super) part: Part,
    /// What the journal says that the part has, in order; it has to be looked at.
    pub(super) written: Vec<Written>,
}

impl Site {
    /// What an earlier copy of `subject` left for this one to go on with.
    ///
    /// # Errors
    /// Within the result, why what is there is none of that; what is there is gone then. Around it, that it is in use.
    pub(super) fn take_up(
        destination: &Path,
        subject: &Result<Subject, &'static str>,
    ) -> Result<Result<Site, String>> {
        let Some(part) = Part::take_up(destination)? else {
            return Ok(Err("others may have written to it".to_owned()));
        };
        let subject = match subject {
            Ok(subject) => subject,
            Err(why) => return Ok(Err((*why).to_owned())),
        };
        let (journal, written) = match Journal::take_up(&journal_of(destination), subject) {
            Ok(Ok(taken)) => taken,
            Ok(Err(why)) => return Ok(Err(why)),
            Err(failure) => {
                part.keep();
                return Err(failure);
            }
        };
        let length = part.handle().len();
        let site = Site {
            journal: Ok(journal),
            part,
            written,
        };
        match length {
            Ok(length) if length == subject.size => Ok(Ok(site)),
            Ok(length) => {
                let size = subject.size;
                Ok(Err(format!("it has {length} bytes instead of {size}")))
            }
            Err(error) => {
                site.keep();
                Err(error.into())
            }
        }
    }

    /// A new one; without a journal if nobody could go on with it.
    pub(super) fn create(
        destination: &Path,
        subject: &Result<Subject, &'static str>,
    ) -> Result<Site> {
        let part = Part::create(destination)?;
        Ok(Site::of(part, destination, subject))
    }

    /// What cannot be gone on with can still be copied.
    fn of(part: Part, destination: &Path, subject: &Result<Subject, &'static str>) -> Site {
        let journal = match (subject, part.why_not_lasting()) {
            (Err(why), _) => Err((*why).to_owned()),
            (Ok(_), Some(why)) => Err(why.to_owned()),
            (Ok(subject), None) => Journal::create(&journal_of(destination), subject)
                .map_err(|error| format!("no journal could be kept: {error}")),
        };
        Site {
            journal,
            part,
            written: Vec::new(),
        }
    }

    /// Whether another copy could go on with it.
    pub(super) fn is_resumable(&self) -> bool {
        self.journal.is_ok()
    }

    /// Gives the part its final name.
    pub(super) fn publish(self, destination: &Path, sync: bool) -> Result<()> {
        drop(self.journal);
        self.part.publish(destination, sync)
    }

    /// Leaves all as it is.
    pub(super) fn keep(self) {
        if let Ok(journal) = self.journal {
            journal.keep();
        }
        self.part.keep();
    }
}

/// Whether an earlier copy left something there.
pub(super) fn is_taken(destination: &Path) -> bool {
    part_of(destination).symlink_metadata().is_ok()
}

/// What of `0..size` is in none of the pieces, which are in order and do not overlap.
pub(super) fn missing(written: &[Written], size: u64) -> Vec<Range<u64>> {
    let mut missing = Vec::new();
    let mut end = 0;
    for piece in written {
        missing.push(end..piece.range.start);
        end = piece.range.end;
    }
    missing.push(end..size);
    missing.retain(|range| !range.is_empty());
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_part_cannot_be_taken_up_no_journal_is_made_and_the_reason_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("b");
        let text = r#"{"format":1,"url":"ab","version":"a","size":100}"#;
        let subject = Ok(serde_json::from_str(text).unwrap());
        assert!(Site::create(&copy, &subject).unwrap().is_resumable());
        let part = Part::create(&copy).unwrap();
        // As file systems without users have it.
        part.set_mode(0o755).unwrap();
        let site = Site::of(part, &copy, &subject);
        let why = site.journal.as_ref().unwrap_err();
        assert!(why.contains("for its owner alone"), "{why}");
        assert!(!journal_of(&copy).exists());
    }

    #[test]
    fn what_is_missing_lies_between_what_is_there() {
        for (there, size, expected) in [
            (&[][..], 10, &[(0, 10)][..]),
            (&[], 0, &[]),
            (&[(0, 4), (4, 6), (8, 9)], 10, &[(6, 8), (9, 10)]),
            (&[(1, 10)], 10, &[(0, 1)]),
            (&[(0, 10)], 10, &[]),
        ] {
            let range = |(start, end): &(u64, u64)| *start..*end;
            let written: Vec<Written> = there
                .iter()
                .map(|ends| Written {
                    range: range(ends),
                    checksum: 0,
                })
                .collect();
            let expected: Vec<Range<u64>> = expected.iter().map(range).collect();
            assert_eq!(missing(&written, size), expected, "{there:?}");
        }
    }
}
