//! Progress on standard error: a bar on a terminal, a plain line now and then elsewhere, nothing with `--quiet`.

use std::io::{IsTerminal, Write};
use std::ops::Range;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::Output;
use crate::units;

/// How far one phase of a command has come. Dropping it takes a bar off the screen.
pub(crate) struct Progress {
    label: &'static str,
    total: u64,
    done: u64,
    /// What was done before, in no time of this run.
    before: u64,
    begun: Instant,
    view: View,
}

enum View {
    Bar(ProgressBar),
    Lines { last: Instant },
    Nothing,
}

impl Progress {
    /// `total` in bytes; 0 if nobody knows.
    pub(crate) fn new(output: &Output, label: &'static str, total: u64) -> Self {
        let view = if output.quiet() {
            View::Nothing
        } else if std::io::stderr().is_terminal() {
            View::Bar(bar(label, total))
        } else {
            View::Lines {
                last: Instant::now(),
            }
        };
        Progress {
            label,
            total,
            done: 0,
            before: 0,
            begun: Instant::now(),
            view,
        }
    }

    /// So many bytes were done before, by another run.
    pub(crate) fn begin_at(&mut self, bytes: u64) {
        (self.done, self.before) = (bytes, bytes);
        if let View::Bar(bar) = &self.view {
            bar.set_position(bytes);
            bar.reset_eta();
        }
    }

    pub(crate) fn done(&self) -> u64 {
        self.done
    }

    /// So many bytes are done by now, if it is more than was told before.
    pub(crate) fn reach(&mut self, bytes: u64) {
        self.advance(bytes.saturating_sub(self.done));
    }

    pub(crate) fn advance(&mut self, bytes: u64) {
        self.done += bytes;
        match &mut self.view {
            View::Bar(bar) => bar.inc(bytes),
            View::Lines { last } if last.elapsed() >= PAUSE => {
                *last = Instant::now();
                let done = self.before..self.done;
                let line = line(self.label, done, self.total, self.begun.elapsed());
                // Progress that cannot be shown is no reason to stop the work.
                let _ = writeln!(std::io::stderr(), "{line}");
            }
            View::Lines { .. } | View::Nothing => {}
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let View::Bar(bar) = &self.view {
            bar.finish_and_clear();
        }
    }
}

/// Named steps, some of which end with a line worth keeping.
pub(crate) struct Steps(View);

impl Steps {
    pub(crate) fn new(output: &Output) -> Self {
        Steps(if output.quiet() {
            View::Nothing
        } else if std::io::stderr().is_terminal() {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(8));
            bar.set_style(
                ProgressStyle::with_template("{msg}")
                    .unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            View::Bar(bar)
        } else {
            View::Lines {
                last: Instant::now(),
            }
        })
    }

    /// What is going on: on a terminal in place of what went on before. Elsewhere only if it is `worth` a line of its own.
    pub(crate) fn now(&self, text: &str, worth: bool) {
        match &self.0 {
            View::Bar(bar) => {
                bar.set_message(text.to_owned());
                bar.tick();
            }
            View::Lines { .. } if worth => self.keep(text),
            View::Lines { .. } | View::Nothing => {}
        }
    }

    /// A line that stays.
    pub(crate) fn keep(&self, text: &str) {
        match &self.0 {
            View::Bar(bar) => bar.println(text),
            View::Lines { .. } => {
                let _ = writeln!(std::io::stderr(), "{text}");
            }
            View::Nothing => {}
        }
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        if let View::Bar(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

fn bar(label: &'static str, total: u64) -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(8);
    let bar = ProgressBar::with_draw_target((total > 0).then_some(total), target);
    let template = if total > 0 {
        "{prefix} {percent:>3} % [{bar:30}] {binary_bytes} of {binary_total_bytes}, {decimal_bytes_per_sec}, {eta} left"
    } else {
        "{prefix} {binary_bytes}, {decimal_bytes_per_sec}"
    };
    // The templates are constants, and a test below parses them; the default style is right in any case.
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style.progress_chars("=> "));
    bar.set_prefix(label);
    bar
}

/// `copying: 33.3 %, 1.00 GiB of 3.00 GiB, 2.00 GB/s, 1.07 s left`; all but `done.start` was done in `time`.
fn line(label: &str, done: Range<u64>, total: u64, time: Duration) -> String {
    let now = done.end - done.start;
    let rate = units::rate(now, time);
    if total == 0 {
        return format!("{label}: {}, {rate}", units::size(done.end));
    }
    let share = units::percent(done.end, total);
    let left = total.saturating_sub(done.end);
    // No time or nothing done says nothing of the rest, and what would take longer than can be told is not told.
    let wait = time.as_secs_f64() * left as f64 / now as f64;
    let wait = Duration::try_from_secs_f64(wait).ok().map(units::time);
    let wait = wait.map_or_else(String::new, |wait| format!(", {wait} left"));
    format!(
        "{label}: {share}, {} of {}, {rate}{wait}",
        units::size(done.end),
        units::size(total)
    )
}

// Often enough to see life, seldom enough not to flood the log of a batch job.
const PAUSE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_share_amount_rate_and_what_is_left_of_the_time() {
        let two = Duration::from_secs(2);
        assert_eq!(
            line("copying", 0..4 << 20, 12 << 20, two),
            "copying: 33.3 %, 4.00 MiB of 12.0 MiB, 2.10 MB/s, 4.00 s left"
        );
        assert_eq!(
            line("copying", 4 << 20..8 << 20, 12 << 20, two),
            "copying: 66.7 %, 8.00 MiB of 12.0 MiB, 2.10 MB/s, 2.00 s left"
        );
        assert_eq!(
            line("copying", 5..5, 10, two),
            "copying: 50.0 %, 5 B of 10 B, 0 B/s"
        );
        assert_eq!(
            line("copying", 0..4 << 20, 0, two),
            "copying: 4.00 MiB, 2.10 MB/s"
        );
    }

    #[test]
    fn both_templates_of_the_bar_are_valid() {
        for total in [0, 10] {
            let bar = bar("copying", total);
            bar.set_draw_target(ProgressDrawTarget::hidden());
            bar.inc(3);
            assert_eq!(bar.position(), 3);
        }
    }
}
