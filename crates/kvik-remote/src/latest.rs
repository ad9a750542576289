//! One question for all who wait for its answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kvik_core::corridor::PerProcess;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// The last answer to a question that is asked by one at a time; those who wait meanwhile share it, be it a failure.
pub(crate) struct Latest<T>(PerProcess<Arc<Asked<T>>>);

struct Asked<T> {
    /// The number of the question that was begun last.
    begun: AtomicU64,
    /// The number of the one that was answered last.
    ended: AtomicU64,
    /// That one's answer, by its number. Held by whoever asks.
    answered: Arc<Mutex<Option<(u64, T)>>>,
}

/// What somebody finds who has waited for those who came before.
pub(crate) enum Found<T> {
    /// They were told something that is an answer for him, too.
    Answer(T),
    /// It is on him to ask.
    Turn(Turn<T>),
}

/// The right to ask. The others wait until this is gone; it may be given to whoever goes on with the question when nobody
/// waits for its answer any more.
pub(crate) struct Turn<T> {
    asked: Arc<Asked<T>>,
    number: u64,
    answered: OwnedMutexGuard<Option<(u64, T)>>,
}

impl<T: Clone> Latest<T> {
    pub(crate) fn new() -> Latest<T> {
        // Not inherited by a child: a question that the parent's threads ask is answered to nobody there.
        Latest(PerProcess::new())
    }

    /// Looks for the answer to a question that begins after this was called: one that was begun before may be answered by
    /// what was so before.
    pub(crate) async fn after_now(&self) -> Found<T> {
        let asked = self.asked();
        asked.after(asked.begun.load(Ordering::SeqCst)).await
    }

    /// Looks for the answer to the question that is under way, or to the next one.
    pub(crate) async fn under_way(&self) -> Found<T> {
        let asked = self.asked();
        asked.after(asked.ended.load(Ordering::SeqCst)).await
    }

    fn asked(&self) -> &Arc<Asked<T>> {
        self.0.get_or(|| {
            Arc::new(Asked {
                begun: AtomicU64::new(0),
                ended: AtomicU64::new(0),
                answered: Arc::default(),
            })
        })
    }
}

impl<T: Clone> Asked<T> {
    /// The answer to a question whose number is greater than `before`.
    async fn after(self: &Arc<Self>, before: u64) -> Found<T> {
        let answered = Arc::clone(&self.answered).lock_owned().await;
        match &*answered {
            Some((number, answer)) if *number > before => Found::Answer(answer.clone()),
            _ => Found::Turn(Turn {
                number: self.begun.fetch_add(1, Ordering::SeqCst) + 1,
                asked: Arc::clone(self),
                answered,
            }),
        }
    }
}

impl<T: Clone> Turn<T> {
    /// Tells the answer to all who wait for it. Who comes after that is not told, and waits until this is gone: what the
    /// answer changes for him is done between the two, and so none that learnt of it is told it as news.
    pub(crate) fn answer(&mut self, answer: T) {
        *self.answered = Some((self.number, answer));
        self.asked.ended.store(self.number, Ordering::SeqCst);
    }
}

impl<T> std::fmt::Debug for Latest<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Latest").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::task::{JoinHandle, yield_now};

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(test);
    }

    async fn turn(found: impl Future<Output = Found<u64>>) -> Turn<u64> {
        match found.await {
            Found::Turn(turn) => turn,
            Found::Answer(answer) => panic!("{answer} is no answer to this"),
        }
    }

    /// Ten who come now: each finds an answer, or asks and is answered by the number of his question.
    async fn ten(latest: &Arc<Latest<u64>>, is_new: bool) -> Vec<JoinHandle<u64>> {
        let one = || {
            let latest = Arc::clone(latest);
            tokio::spawn(async move {
                let found = match is_new {
                    true => latest.after_now().await,
                    false => latest.under_way().await,
                };
                match found {
                    Found::Answer(answer) => answer,
                    Found::Turn(mut turn) => {
                        turn.answer(turn.number);
                        turn.number
                    }
                }
            })
        };
        let all = (0..10).map(|_| one()).collect();
        // On the one thread of this runtime all of them have come by then.
        for _ in 0..20 {
            yield_now().await;
        }
        all
    }

    async fn assert_told(waiting: Vec<JoinHandle<u64>>, answer: u64) {
        for one in waiting {
            assert_eq!(one.await.unwrap(), answer);
        }
    }

    /// A question that was under way when somebody came does not serve him; all who wait share the next one.
    #[test]
    fn who_waits_shares_a_question_that_begins_after_he_came() {
        run(async {
            let latest = Arc::new(Latest::new());
            let mut first = turn(latest.after_now()).await;
            let waiting = ten(&latest, true).await;
            first.answer(1);
            drop(first);
            assert_told(waiting, 2).await;
            // Nobody has asked since then.
            assert_eq!(turn(latest.after_now()).await.number, 3);
        });
    }

    #[test]
    fn who_waits_shares_the_question_that_is_under_way() {
        run(async {
            let latest = Arc::new(Latest::new());
            let mut first = turn(latest.under_way()).await;
            let waiting = ten(&latest, false).await;
            first.answer(1);
            // Who knows the answer already asks for another one.
            let late = ten(&latest, false).await;
            drop(first);
            assert_told(waiting, 1).await;
            assert_told(late, 2).await;
            // An answer of the past serves nobody who comes now.
            assert_eq!(turn(latest.under_way()).await.number, 3);
        });
    }

    #[test]
    fn a_question_that_was_given_up_is_asked_by_the_next_one_who_waits() {
        run(async {
            let latest = Arc::new(Latest::new());
            let first = turn(latest.under_way()).await;
            let waiting = ten(&latest, false).await;
            drop(first);
            assert_told(waiting, 2).await;
        });
    }
}
