//! A table of text with aligned columns: words to the left, figures to the right.

use std::fmt;

pub(crate) struct Table<const N: usize> {
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    pub(crate) fn new(header: &[&str; N]) -> Self {
        Self {
            rows: vec![header.map(str::to_owned)],
        }
    }

    pub(crate) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    /// Whether there is nothing under the header.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }
}

impl<const N: usize> fmt::Display for Table<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut widths = [0; N];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
                if column > 0 {
                    line.push_str("  ");
                }
                // Words begin where the column begins; figures end where it ends, so that digits stand below digits.
                let words = column == 0 || self.is_words(column);
                line.push_str(&if words {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                });
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

impl<const N: usize> Table<N> {
    fn is_words(&self, column: usize) -> bool {
        let cells = self.rows.iter().skip(1);
        cells
            .filter_map(|row| row[column].chars().next())
            .all(char::is_alphabetic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["case", "rate", "limit by"]);
        table.row(["hot".into(), "12.00".into(), "a loop".into()]);
        table.row(["cold and long".into(), "1.00".into(), "b".into()]);
        let wanted = "case            rate  limit by\nhot            12.00  a loop\ncold and long   1.00  b\n";
        assert_eq!(table.to_string(), wanted);
    }

    #[test]
    fn a_column_of_words_in_the_middle_is_aligned_to_the_left() {
        let mut table = Table::new(&["case", "beside", "rate"]);
        table.row(["hot".into(), "a loop".into(), "1.25 GB/s".into()]);
        table.row(["hot".into(), "b".into(), String::new()]);
        let wanted = "case  beside       rate\nhot   a loop  1.25 GB/s\nhot   b\n";
        assert_eq!(table.to_string(), wanted);
    }

    #[test]
    fn a_last_column_of_figures_is_aligned_to_the_right() {
        let mut table = Table::new(&["size", "ratio"]);
        table.row(["4 KiB".into(), "0.5".into()]);
        assert_eq!(table.to_string(), "size   ratio\n4 KiB    0.5\n");
    }
}
