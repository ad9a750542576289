//! Who asks for names, how often, and what they hear.

use std::collections::BTreeSet;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Waker};

use tokio::sync::Semaphore;

use super::*;

/// Answers when it is let.
struct Scripted {
    lookups: Arc<AtomicUsize>,
    let_go: Arc<Semaphore>,
    fails: bool,
}

impl Lookup for Scripted {
    fn lookup(&self, name: &str) -> Soon<'static, io::Result<Vec<SocketAddr>>> {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        let (let_go, fails) = (Arc::clone(&self.let_go), self.fails);
        let number = u8::try_from(name.len()).unwrap();
        Box::pin(async move {
            let permit = let_go.acquire().await;
            permit.unwrap().forget();
            match fails {
                true => Err(io::Error::new(io::ErrorKind::NotFound, "no such name")),
                false => Ok((0..4).map(|last| address(number, last)).collect()),
            }
        })
    }
}

fn address(number: u8, last: u8) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, number, last)), 0)
}

fn scripted(fails: bool) -> (Names, Arc<AtomicUsize>, Arc<Semaphore>) {
    let (lookups, let_go) = (Arc::default(), Arc::new(Semaphore::new(0)));
    let system = Scripted {
        lookups: Arc::clone(&lookups),
        let_go: Arc::clone(&let_go),
        fails,
    };
    (Names::asking(Box::new(system)), lookups, let_go)
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(work)
}

/// Begins to wait for it.
fn begin<T>(work: Pin<&mut impl Future<Output = T>>) {
    let mut nobody = Context::from_waker(Waker::noop());
    assert!(work.poll(&mut nobody).is_pending());
}

/// What two who wait at the same time hear.
async fn two(names: &Names, let_go: &Semaphore) -> [io::Result<Vec<SocketAddr>>; 2] {
    let mut first = pin!(names.find("ab"));
    let mut second = pin!(names.find("ab"));
    begin(first.as_mut());
    begin(second.as_mut());
    let_go.add_permits(1);
    [first.await, second.await]
}

#[test]
fn names_below_localhost_are_this_machine() {
    for name in ["b.localhost", "a.b.LocalHost", "b.localhost."] {
        assert!(is_here(name), "{name}");
    }
    // The first of them has a line in the system's own file.
    for name in [
        "localhost",
        "localhost.example.org",
        "xlocalhost",
        "b.xlocalhost",
        "",
    ] {
        assert!(!is_here(name), "{name}");
    }
}

#[test]
fn all_who_want_a_name_at_once_ask_once_and_later_ones_not_at_all() {
    let (names, lookups, let_go) = scripted(false);
    run(async {
        let [first, second] = two(&names, &let_go).await;
        let expected: BTreeSet<_> = (0..4).map(|last| address(2, last)).collect();
        for found in [first, second, names.find("ab").await] {
            assert_eq!(BTreeSet::from_iter(found.unwrap()), expected);
        }
        assert_eq!(lookups.load(Ordering::Relaxed), 1);
        let_go.add_permits(1);
        assert_eq!(names.find("abc").await.unwrap().len(), 4);
        assert_eq!(lookups.load(Ordering::Relaxed), 2);
    });
}

#[test]
fn who_gives_up_waiting_leaves_the_question_to_others() {
    let (names, lookups, let_go) = scripted(false);
    run(async {
        begin(pin!(names.find("ab")));
        let_go.add_permits(1);
        assert_eq!(names.find("ab").await.unwrap().len(), 4);
        assert_eq!(lookups.load(Ordering::Relaxed), 2);
    });
}

#[test]
fn a_failure_is_told_to_all_who_wait_and_not_kept() {
    let (names, lookups, let_go) = scripted(true);
    run(async {
        for found in two(&names, &let_go).await {
            let error = found.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
            assert_eq!(error.to_string(), "no such name");
        }
        assert_eq!(lookups.load(Ordering::Relaxed), 1);
        let_go.add_permits(1);
        names.find("ab").await.unwrap_err();
        assert_eq!(lookups.load(Ordering::Relaxed), 2);
    });
}

#[test]
fn a_name_that_is_forgotten_is_asked_for_anew_and_not_while_it_is_being_asked_for() {
    let (names, lookups, let_go) = scripted(false);
    run(async {
        let_go.add_permits(1);
        names.find("ab").await.unwrap();
        names.forget("ab");
        let mut second = pin!(names.find("ab"));
        begin(second.as_mut());
        names.forget("ab");
        names.forget("unknown");
        let mut third = pin!(names.find("ab"));
        begin(third.as_mut());
        let_go.add_permits(1);
        assert_eq!(second.await.unwrap().len(), 4);
        assert_eq!(third.await.unwrap().len(), 4);
        assert_eq!(lookups.load(Ordering::Relaxed), 2);
    });
}

#[test]
fn an_answer_is_good_for_some_seconds_and_their_number_is_bounded() {
    let answered = |at| {
        let found = Ok(vec![address(1, 1)]);
        let answer = Answer { found, at };
        OnceCell::new_with(Some(answer))
    };
    let now = Instant::now();
    let cell = answered(now);
    assert!(is_good(&cell, now + Duration::from_secs(7)));
    assert!(!is_good(&cell, now + Duration::from_secs(8)));

    let mut known = Known::default();
    for number in 0..10_000 {
        let asked = known.of(&format!("host-{number}"), now);
        let answer = answered(now).into_inner();
        assert!(asked.set(answer.unwrap()).is_ok());
        assert!(known.0.len() <= MOST_NAMES);
    }
    // What is over makes room, and what is not stays.
    let mut known = Known::default();
    for number in 0..MOST_NAMES {
        let old = answered(now).into_inner();
        let asked = known.of(&format!("host-{number}"), now);
        assert!(asked.set(old.unwrap()).is_ok());
    }
    known.of("waits", now + LIFE);
    assert_eq!(known.0.len(), 1);
}

#[test]
fn addresses_come_in_every_order_with_the_preferred_version_in_front() {
    let six = |last| SocketAddr::new(IpAddr::V6(Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, last)), 0);
    let listed = [six(1), address(0, 1), six(2), address(0, 2), six(3)];
    let mut fronts = BTreeSet::new();
    for dice in 0..1000_u64 {
        let mut shuffled = listed;
        shuffle(&mut shuffled, dice.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        assert!(
            shuffled[..3].iter().all(SocketAddr::is_ipv6),
            "{shuffled:?}"
        );
        assert_eq!(BTreeSet::from(shuffled), BTreeSet::from(listed));
        fronts.insert(shuffled[..3].to_vec());
    }
    assert_eq!(fronts.len(), 6);
    shuffle(&mut [], 7);
}
