//! Cuts a range of a file into tasks. Pure: no clock, file or setting.

use std::ops::Range;

use crate::error::{Error, ErrorKind, Op, Result};

/// One piece of a [`Plan`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its number in the plan, from 0.
    pub index: usize,
    /// Its range, in bytes from the start of the file.
    pub range: Range<u64>,
}

impl Task {
    /// How many bytes the task moves.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Whether the task moves nothing, which no task of a plan does.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }
}

/// A range of a file cut into tasks that cover it without gap or overlap, in rising order.
///
/// Every task but the first and the last is `task_size` bytes long. Where the range starts unaligned, the first task is
/// shortened so that all later ones start at a multiple of [`Plan::ALIGNMENT`].
///
/// # Example: three tasks, the first one short
/// ```
/// use kvik_core::corridor::Plan;
///
/// let plan = Plan::new(100, 10_000, 8192)?;
/// let ranges: Vec<_> = plan.tasks().map(|task| task.range).collect();
/// assert_eq!(ranges, [100..8192, 8192..10_100]);
/// # Ok::<(), kvik_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    range: Range<u64>,
    first_end: u64,
    task_size: u64,
}

impl Plan {
    /// Later tasks start at multiples of this many bytes: the page of x86-64, and of direct I/O on every known file
    /// system.
    pub const ALIGNMENT: u64 = 4096;

    /// The share of each of `among` threads, or requests, in a range of `len` bytes, in whole pages: with tasks of this size
    /// all of them have something to do. It is a mebibyte at least. Below that, handing half of the work to another thread
    /// costs more than it saves: two threads begin to beat one between 1 and 2 MiB of cached file (`kvik bench file --case
    /// thresholds`, two-core machine), and what a request costs beside its bytes is little next to so many of them.
    #[must_use]
    pub fn share(len: u64, among: usize) -> u64 {
        len.div_ceil(among.max(1) as u64)
            .next_multiple_of(Plan::ALIGNMENT)
            .max(1 << 20)
    }

    /// Plans `len` bytes from `offset`, in tasks of at most `task_size` bytes.
    ///
    /// # Errors
    /// `Misuse` if `task_size` is 0, or if the range has bytes beyond 2^63 - 1, where no file has any.
    pub fn new(offset: u64, len: u64, task_size: u64) -> Result<Plan> {
        if task_size == 0 {
            return Err(Error::new(
                ErrorKind::Misuse,
                Op::Configure,
                "the task size must be positive",
            ));
        }
        let end = offset
            .checked_add(len)
            .filter(|end| len == 0 || i64::try_from(*end).is_ok())
            .ok_or_else(|| {
                let why = format!(
                    "a range of {len} bytes from {offset} ends beyond the largest file offset, {}",
                    i64::MAX
                );
                Error::new(ErrorKind::Misuse, Op::Configure, why)
            })?;
        let misaligned = offset % Plan::ALIGNMENT;
        let first_len = if task_size > misaligned {
            task_size - misaligned
        } else {
            task_size
        };
        Ok(Plan {
            range: offset..end,
            first_end: end.min(offset.saturating_add(first_len)),
            task_size,
        })
    }

    /// The whole range.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// How many tasks there are; 0 for an empty range.
    #[must_use]
    pub fn len(&self) -> usize {
        match self.range.is_empty() {
            true => 0,
            false => 1 + (self.range.end - self.first_end).div_ceil(self.task_size) as usize,
        }
    }

    /// Whether the range is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// Task number `index`, if there is one.
    #[must_use]
    pub fn task(&self, index: usize) -> Option<Task> {
        let range = match index {
            _ if index >= self.len() => return None,
            0 => self.range.start..self.first_end,
            // Cannot overflow: `index < len()` puts the start below `range.end`.
            _ => {
                let start = self.first_end + (index as u64 - 1) * self.task_size;
                start..self.range.end.min(start.saturating_add(self.task_size))
            }
        };
        Some(Task { index, range })
    }

    /// All tasks in rising order.
    pub fn tasks(&self) -> impl Iterator<Item = Task> + '_ {
        (0..self.len()).filter_map(|index| self.task(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn tasks_cover_the_range_in_order_and_start_aligned(
            offset in 0u64..1 << 40, len in 0u64..1 << 22, task_size in 1u64..1 << 20,
        ) {
            // Bounded so that a case has at most some thousand tasks.
            let task_size = task_size.max(len / 4096);
            let plan = Plan::new(offset, len, task_size).unwrap();
            let mut at = offset;
            for (index, task) in plan.tasks().enumerate() {
                prop_assert_eq!(task.index, index);
                prop_assert_eq!(task.range.start, at);
                prop_assert!(!task.is_empty() && task.len() <= task_size);
                prop_assert!(index == 0 || task_size % Plan::ALIGNMENT != 0 || at % Plan::ALIGNMENT == 0);
                at = task.range.end;
            }
            prop_assert_eq!(at, offset + len);
            prop_assert_eq!(plan.task(plan.len()), None);
        }
    }

    #[test]
    fn the_last_offset_of_a_file_is_planned_and_the_one_beyond_is_refused() {
        let end = i64::MAX as u64;
        let last = Plan::new(end - 1, 1, u64::MAX).unwrap();
        assert_eq!(last.task(0).map(|task| task.range), Some(end - 1..end));
        for (offset, len) in [(end, 1), (u64::MAX, 1), (1, u64::MAX)] {
            assert_eq!(
                Plan::new(offset, len, 4096).unwrap_err().kind(),
                ErrorKind::Misuse
            );
        }
    }

    #[test]
    fn a_task_size_of_zero_is_refused() {
        let error = Plan::new(0, 1, 0).unwrap_err();
        assert_eq!(
            error.to_string(),
            "settings: the task size must be positive"
        );
    }
}
