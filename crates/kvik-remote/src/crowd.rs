//! The requests that are under way to one host, whoever makes them: no more than its [`Pace`] allows.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kvik_core::corridor::PerProcess;
use kvik_stats::names;
use tokio::sync::oneshot;
use url::{Position, Url};

use crate::failure::Failure;
use crate::pace::{Began, Pace};

/// All requests of this process to one host.
pub(crate) struct Crowd(Mutex<Inside>);

struct Inside {
    pace: Pace,
    under_way: usize,
    waiting: VecDeque<oneshot::Sender<Result<Admission, Failure>>>,
    // How often the host was heard of: by an answer, or by the lack of one that all who waited were told.
    heard: u64,
}

/// The right to have one request under way, as long as it is there.
pub(crate) struct Admission {
    // Empty where nobody has taken it.
    crowd: Option<Arc<Crowd>>,
    began: Began,
    heard: u64,
}

/// The crowds of this process, by scheme, host and port.
type Crowds = Mutex<HashMap<Box<str>, Arc<Crowd>>>;

impl Crowd {
    /// The one of the host of this URL.
    pub(crate) fn of(url: &Url) -> Arc<Crowd> {
        static CROWDS: PerProcess<Crowds> = PerProcess::new();
        let crowds = CROWDS.get_or(Crowds::default);
        let mut crowds = crowds.lock().unwrap_or_else(PoisonError::into_inner);
        let host = &url[..Position::BeforePath];
        if let Some(crowd) = crowds.get(host) {
            return Arc::clone(crowd);
        }
        if crowds.len() >= MOST_HOSTS {
            // Those that somebody waits for or is in stay.
            crowds.retain(|_, crowd| Arc::strong_count(crowd) > 1);
        }
        let crowd = Arc::new(Crowd::new());
        crowds.insert(host.into(), Arc::clone(&crowd));
        crowd
    }

    fn new() -> Crowd {
        Crowd(Mutex::new(Inside {
            pace: Pace::new(),
            under_way: 0,
            waiting: VecDeque::new(),
            heard: 0,
        }))
    }

    /// Waits until one more request may be under way, in the order of asking.
    ///
    /// # Errors
    /// What those met who were under way meanwhile, if the host had an answer for none of them: a queue before a dead host
    /// would have no end, since each who waits has its limits only from when it is let in.
    pub(crate) async fn enter(self: &Arc<Self>) -> Result<Admission, Failure> {
        let called = {
            let mut inside = self.inside();
            if inside.under_way < inside.pace.limit() {
                return Ok(inside.take(self));
            }
            let (call, called) = oneshot::channel();
            inside.waiting.push_back(call);
            called
        };
        match called.await {
            Ok(called) => called,
            // Whoever waits holds the crowd, and with it the other end.
            Err(_) => Ok(self.inside().take(self)),
        }
    }

    /// Calls in who may come.
    fn admit(self: &Arc<Self>, mut inside: MutexGuard<'_, Inside>) {
        while inside.under_way < inside.pace.limit() {
            let Some(call) = inside.waiting.pop_front() else {
                return;
            };
            if let Err(Ok(mut admission)) = call.send(Ok(inside.take(self))) {
                // Nobody waits for it any more.
                admission.crowd = None;
                inside.leave();
            }
        }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    fn take(&mut self, crowd: &Arc<Crowd>) -> Admission {
        self.under_way += 1;
        names::HTTP_CONNECTIONS_IN_USE.add(1);
        Admission {
            crowd: Some(Arc::clone(crowd)),
            began: self.pace.begin(),
            heard: self.heard,
        }
    }

    /// One who was let in is gone.
    fn leave(&mut self) {
        self.under_way -= 1;
        names::HTTP_CONNECTIONS_IN_USE.subtract(1);
    }

    /// One who was let in when the host had been heard of so often has met this. If it was not heard of since then, all who
    /// wait are told.
    fn fail(&mut self, heard: u64, failure: &Failure) {
        if heard != self.heard {
            return;
        }
        self.heard += 1;
        for call in self.waiting.drain(..) {
            let why = format!("{}, as another request before this one", failure.why);
            // Who does not wait any more need not know.
            let _ = call.send(Err(Failure::unsent(failure.kind, why)));
        }
    }
}

impl Admission {
    /// The host has answered, and not that it has too many.
    pub(crate) fn answered(&self) {
        let Some(crowd) = &self.crowd else { return };
        let mut inside = crowd.inside();
        let under_way = inside.under_way;
        inside.pace.answered(under_way);
        inside.heard += 1;
        crowd.admit(inside);
    }

    /// The host has too many.
    pub(crate) fn too_many(&self) {
        let Some(crowd) = &self.crowd else { return };
        let mut inside = crowd.inside();
        inside.pace.too_many(self.began);
        inside.heard += 1;
    }

    /// The host took the request, and was silent.
    pub(crate) fn silent(&self, failure: &Failure) {
        let Some(crowd) = &self.crowd else { return };
        let mut inside = crowd.inside();
        inside.pace.silent(self.began);
        inside.fail(self.heard, failure);
    }

    /// There was no connection to the host, which says nothing of how many may ask.
    pub(crate) fn unconnected(&self, failure: &Failure) {
        if let Some(crowd) = &self.crowd {
            crowd.inside().fail(self.heard, failure);
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        if let Some(crowd) = self.crowd.take() {
            let mut inside = crowd.inside();
            inside.leave();
            crowd.admit(inside);
        }
    }
}

// More than anybody reads from at a time; redirects may lead to any number.
const MOST_HOSTS: usize = 256;

#[cfg(test)]
mod tests {
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    use kvik_core::ErrorKind;

    use super::*;

    type Entered = Result<Admission, Failure>;

    fn outcome(waiting: Pin<&mut impl Future<Output = Entered>>) -> Option<Entered> {
        match waiting.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(entered) => Some(entered),
            Poll::Pending => None,
        }
    }

    fn poll(waiting: Pin<&mut impl Future<Output = Entered>>) -> Option<Admission> {
        outcome(waiting).map(|entered| entered.unwrap())
    }

    fn full(crowd: &Arc<Crowd>) -> Vec<Admission> {
        let mut admissions = Vec::new();
        while let Some(admission) = poll(pin!(crowd.enter())) {
            admissions.push(admission);
        }
        admissions
    }

    #[test]
    fn each_answer_lets_one_more_in_and_each_end_the_next_one() {
        let crowd = Arc::new(Crowd::new());
        let mut admissions = full(&crowd);
        assert_eq!(admissions.len(), 8);
        let (mut first, mut second) = (pin!(crowd.enter()), pin!(crowd.enter()));
        assert!(poll(first.as_mut()).is_none() && poll(second.as_mut()).is_none());
        drop(admissions.pop());
        let first = poll(first.as_mut());
        assert!(first.is_some() && poll(second.as_mut()).is_none());
        admissions[0].answered();
        assert!(poll(second.as_mut()).is_some());
    }

    #[test]
    fn who_does_not_wait_any_more_keeps_nobody_waiting() {
        let crowd = Arc::new(Crowd::new());
        let mut admissions = full(&crowd);
        {
            let mut given_up = pin!(crowd.enter());
            assert!(poll(given_up.as_mut()).is_none());
        }
        let mut waiting = pin!(crowd.enter());
        assert!(poll(waiting.as_mut()).is_none());
        // One that was called in and is dropped before it knows.
        let mut called = Box::pin(crowd.enter());
        assert!(poll(called.as_mut()).is_none());
        drop(admissions.pop());
        let admission = poll(waiting.as_mut());
        assert!(admission.is_some());
        drop(admission);
        drop(called);
        assert!(poll(pin!(crowd.enter())).is_some());
        drop(admissions);
        assert_eq!(full(&crowd).len(), 8);
        assert_eq!(crowd.inside().under_way, 0);
    }

    #[test]
    fn a_host_that_has_too_many_lets_nobody_in_until_enough_have_left() {
        let crowd = Arc::new(Crowd::new());
        let mut admissions = full(&crowd);
        admissions[0].too_many();
        admissions.truncate(4);
        assert!(poll(pin!(crowd.enter())).is_none());
        drop(admissions.pop());
        assert!(poll(pin!(crowd.enter())).is_some());
    }

    #[test]
    fn who_waits_before_a_dead_host_hears_what_those_before_it_met_and_hears_it_once() {
        let failure = Failure::passing(ErrorKind::TimedOut, "no connection");
        let crowd = Arc::new(Crowd::new());
        let admissions = full(&crowd);
        let mut waiting = pin!(crowd.enter());
        assert!(poll(waiting.as_mut()).is_none());
        admissions[0].unconnected(&failure);
        let heard = outcome(waiting.as_mut()).unwrap().err().unwrap();
        let why = "no connection, as another request before this one";
        assert_eq!((heard.kind, heard.why.as_str()), (ErrorKind::TimedOut, why));
        // The next try is no business of those who began before it.
        let mut again = pin!(crowd.enter());
        assert!(poll(again.as_mut()).is_none());
        admissions[1].unconnected(&failure);
        admissions[2].silent(&failure);
        assert!(outcome(again.as_mut()).is_none());
        assert_eq!(crowd.inside().pace.limit(), 8);
        drop(admissions);
        assert!(poll(again.as_mut()).is_some());
    }

    #[test]
    fn who_waits_goes_on_waiting_where_somebody_was_answered_meanwhile() {
        let failure = Failure::passing(ErrorKind::TimedOut, "no connection");
        let crowd = Arc::new(Crowd::new());
        let admissions = full(&crowd);
        for refuses in [false, true] {
            let mut waiting = pin!(crowd.enter());
            match refuses {
                true => admissions[0].too_many(),
                false => crowd.inside().heard += 1,
            }
            assert!(poll(waiting.as_mut()).is_none());
            admissions[1].unconnected(&failure);
            admissions[2].silent(&failure);
            assert!(outcome(waiting.as_mut()).is_none(), "{refuses}");
        }
    }

    #[test]
    fn a_crowd_is_that_of_scheme_host_and_port() {
        let of = |url| Crowd::of(&Url::parse(url).unwrap());
        let one = of("http://one.invalid/a?b");
        assert!(Arc::ptr_eq(&one, &of("http://one.invalid:80/c")));
        for url in [
            "https://one.invalid/a",
            "http://one.invalid:81/a",
            "http://two.invalid/",
        ] {
            assert!(!Arc::ptr_eq(&one, &of(url)), "{url}");
        }
    }
}
