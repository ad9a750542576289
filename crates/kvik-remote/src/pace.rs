//! How many requests a host is given at a time: learnt from how it answers. Pure.

/// How many requests may be under way to a host.
///
/// A host that nobody has asked yet is given few, and twice as many each time that all of these were answered: a burst of
/// reads does not open all of its connections at once. One that says it is asked too much, or takes requests and is silent,
/// is given half of it, and from there on one more for each row of answers. Silence alone leaves what a new host is given:
/// it may have reasons that have nothing to do with how many ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    limit: usize,
    // Up to here it doubles.
    quickly_to: usize,
    // Answers since the last step, where it goes slowly.
    answers: usize,
    cuts: u64,
}

/// When a request began: what is wrong with it is no news if the limit was cut since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Began(u64);

impl Pace {
    pub(crate) fn new() -> Pace {
        Pace {
            limit: FIRST,
            quickly_to: MOST,
            answers: 0,
            cuts: 0,
        }
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    pub(crate) fn begin(&self) -> Began {
        Began(self.cuts)
    }

    /// An answer came while so many requests were under way, it among them.
    pub(crate) fn answered(&mut self, under_way: usize) {
        // Who reads one by one shows nothing of what the host would make of many.
        if 2 * under_way <= self.limit || self.limit == MOST {
            return;
        }
        self.answers += 1;
        if self.limit < self.quickly_to || self.answers >= self.limit {
            self.answers = 0;
            self.limit += 1;
        }
    }

    /// The host refused a request since it has too many.
    pub(crate) fn too_many(&mut self, began: Began) {
        self.cut(began, 1);
    }

    /// The host took a request, and was silent.
    pub(crate) fn silent(&mut self, began: Began) {
        self.cut(began, self.limit.min(FIRST));
    }

    fn cut(&mut self, began: Began, least: usize) {
        if began.0 == self.cuts {
            self.cuts += 1;
            self.limit = (self.limit / 2).max(least);
            self.quickly_to = self.limit;
            self.answers = 0;
        }
    }
}

// What a listener with a short queue takes at once.
const FIRST: usize = 8;
// As many as KvikIO opens at most.
const MOST: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds in which all requests that may be under way are, and are answered.
    fn after(mut pace: Pace, rounds: usize) -> Pace {
        for _ in 0..rounds {
            let limit = pace.limit();
            for _ in 0..limit {
                pace.answered(limit);
            }
        }
        pace
    }

    #[test]
    fn a_new_host_is_given_twice_as_many_each_round_up_to_a_limit() {
        for (rounds, limit) in [(0, 8), (1, 16), (2, 32), (5, 256), (9, 256)] {
            assert_eq!(after(Pace::new(), rounds).limit(), limit, "{rounds} rounds");
        }
    }

    #[test]
    fn who_asks_for_little_learns_nothing() {
        let mut pace = Pace::new();
        for _ in 0..1000 {
            pace.answered(4);
        }
        assert_eq!(pace.limit(), 8);
        pace.answered(5);
        assert_eq!(pace.limit(), 9);
    }

    #[test]
    fn a_host_that_has_too_many_is_given_half_and_slowly_more() {
        let mut pace = after(Pace::new(), 3);
        pace.too_many(pace.begin());
        assert_eq!(pace.limit(), 32);
        let later = after(pace.clone(), 3);
        assert_eq!(later.limit(), 35);
        for limit in [16, 8, 4, 2, 1, 1] {
            pace.too_many(pace.begin());
            assert_eq!(pace.limit(), limit);
        }
        // Even one that had none left for us is tried again.
        assert_eq!(after(pace, 1).limit(), 2);
    }

    #[test]
    fn a_host_that_is_silent_is_given_half_but_no_less_than_a_new_one() {
        let mut pace = after(Pace::new(), 2);
        for limit in [16, 8, 8] {
            pace.silent(pace.begin());
            assert_eq!(pace.limit(), limit);
        }
        pace.too_many(pace.begin());
        // Nor is it given more for it.
        pace.silent(pace.begin());
        assert_eq!(pace.limit(), 4);
    }

    #[test]
    fn a_burst_that_fails_together_counts_once() {
        let mut pace = after(Pace::new(), 2);
        let burst = [pace.begin(); 20];
        for began in burst {
            pace.too_many(began);
        }
        assert_eq!(pace.limit(), 16);
        pace.too_many(pace.begin());
        assert_eq!(pace.limit(), 8);
    }
}
