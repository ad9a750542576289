//! Which known name somebody may have meant.

/// The known name that is closest to `name`, if it is close: at most one edit in three letters. For those who refuse a name and
/// want to say which one may have been meant.
///
/// # Example: a slip
/// ```
/// assert_eq!(kvik_config::nearest("regoin", ["region", "timeout"]), Some("region"));
/// assert_eq!(kvik_config::nearest("colour", ["region", "timeout"]), None);
/// ```
#[must_use]
pub fn nearest(name: &str, known: impl IntoIterator<Item = &'static str>) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    known
        .into_iter()
        .map(|candidate| (edits(&name, &candidate.to_ascii_lowercase()), candidate))
        .min_by_key(|(edits, _)| *edits)
        .filter(|(edits, candidate)| *edits * 3 <= candidate.len())
        .map(|(_, candidate)| candidate)
}

/// How many letters are to be changed, added or removed to get from `a` to `b` (Levenshtein).
pub(crate) fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_name_and_another_word_finds_none() {
        let known = ["num_threads", "task_size", "log_file"];
        assert_eq!(nearest("num_thread", known), Some("num_threads"));
        assert_eq!(nearest("TaskSize", known), Some("task_size"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("", known), None);
    }

    #[test]
    fn edits_are_counted() {
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("same", "same"), 0);
    }
}
