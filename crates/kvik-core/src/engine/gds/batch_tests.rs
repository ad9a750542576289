//! The lane, with a test that answers in cuFile's place.

use std::cell::RefCell;
use std::rc::Rc;

use kvik_sys::CuFileStatus;

use super::*;

/// cuFile as a test says: what was submitted to it, and what it answers, round by round.
#[derive(Default)]
struct Script {
    room: usize,
    /// The file ends here.
    size: u64,
    rounds: Vec<Vec<Request>>,
    answer: Option<Box<Answer>>,
    /// Answers that were not collected.
    events: Vec<Event>,
    alone: Vec<(u64, usize)>,
    cancelled: bool,
    has_another_way: bool,
    given_up: usize,
    unanswered: usize,
}

type Answer = dyn Fn(usize, &Request) -> Option<Result<usize, CuFileFailure>>;

#[derive(Clone)]
struct Scripted(Rc<RefCell<Script>>);

impl Scripted {
    /// Answers the requests of round `n` as `answer` says; `None` is never.
    fn new(
        room: usize,
        answer: impl Fn(usize, &Request) -> Option<Result<usize, CuFileFailure>> + 'static,
    ) -> Scripted {
        Scripted(Rc::new(RefCell::new(Script {
            room,
            size: 1_000_000,
            answer: Some(Box::new(answer)),
            ..Script::default()
        })))
    }

    fn lane<'w>(&self) -> BatchLane<'w, Scripted> {
        BatchLane::new(self.clone(), Duration::from_millis(20))
    }
}

impl Requests for Scripted {
    fn room(&self) -> usize {
        self.0.borrow().room
    }

    fn base(&self, window: &DeviceWindow<'_>) -> Result<u64> {
        Ok(window.address() & !0xFFF)
    }

    fn left(&self, window: &DeviceWindow<'_>, offset: u64, moved: usize) -> Result<usize> {
        let there = self.0.borrow().size.saturating_sub(offset + moved as u64);
        Ok((window.len() - moved).min(there as usize))
    }

    fn submit(&mut self, requests: &[Request]) -> Submitted {
        let mut script = self.0.borrow_mut();
        assert_eq!(script.unanswered, 0, "one submission at a time");
        assert!(requests.len() <= script.room.max(1));
        if script.room == 0 {
            return Submitted::None;
        }
        let round = script.rounds.len();
        script.rounds.push(requests.to_vec());
        script.unanswered = requests.len();
        for request in requests {
            let outcome = script.answer.as_ref().unwrap()(round, request);
            let cookie = request.cookie;
            let event = outcome.map(|outcome| Event { cookie, outcome });
            script.events.extend(event);
        }
        Submitted::All
    }

    fn collect(&mut self, limit: Duration, events: &mut Vec<Event>) -> Result<(), String> {
        let mut script = self.0.borrow_mut();
        if script.events.is_empty() {
            thread::sleep(limit.min(Duration::from_millis(5)));
        }
        // One at a time, the last one first.
        events.extend(script.events.pop());
        Ok(())
    }

    fn answered(&mut self) {
        self.0.borrow_mut().unanswered -= 1;
    }

    fn cancel(&mut self, _: &mut Vec<Event>) {
        self.0.borrow_mut().cancelled = true;
    }

    fn give_up(&mut self) {
        let mut script = self.0.borrow_mut();
        script.given_up = std::mem::take(&mut script.unanswered);
        script.room = 0;
    }

    fn retry(&self, op: Op, failure: CuFileFailure) -> Result<()> {
        match failure {
            CuFileFailure::System(Some(libc::EINTR)) => Ok(()),
            failure => Err(Error::new(ErrorKind::Device, op, failure.to_string())),
        }
    }

    fn give_way(&self, _: &dyn std::fmt::Display) {}

    fn has_another_way(&self) -> bool {
        self.0.borrow().has_another_way
    }

    fn move_alone(
        &mut self,
        window: &DeviceWindow<'_>,
        offset: u64,
        moved: usize,
    ) -> (usize, Option<Error>) {
        self.0.borrow_mut().alone.push((offset, moved));
        (window.len(), None)
    }
}

/// Runs reads of so many bytes, one behind the other in file and memory; each is known by its number.
fn run(lane: &mut BatchLane<'_, Scripted>, lengths: &[usize]) -> Vec<(usize, Option<Error>)> {
    let mut offset = 0;
    let mut tasks = lengths.iter().enumerate().map(|(index, len)| {
        let range = offset..offset + *len as u64;
        let address = 0x10_000 + offset;
        offset = range.end;
        let window = DeviceWindow::new(address, *len, 0x1000_0000, Direction::Read);
        (Task { index, range }, Window::Device(window))
    });
    let mut done = Vec::new();
    let mut outcomes: Vec<_> = lengths.iter().map(|_| None).collect();
    loop {
        while lane.room() > 0 {
            let Some((task, window)) = tasks.next() else {
                break;
            };
            lane.start(task, window);
        }
        if lane.in_flight() == 0 {
            break;
        }
        lane.poll(&mut done);
        for completion in done.drain(..) {
            assert_eq!(completion.window.filled(), completion.moved);
            let outcome = (completion.moved, completion.error);
            assert!(
                outcomes[completion.task.index].replace(outcome).is_none(),
                "handed back twice"
            );
        }
    }
    outcomes.into_iter().map(Option::unwrap).collect()
}

fn counts(outcomes: &[(usize, Option<Error>)]) -> Vec<usize> {
    assert!(outcomes.iter().all(|(_, error)| error.is_none()));
    outcomes.iter().map(|(moved, _)| *moved).collect()
}

#[test]
fn more_tasks_than_there_is_room_for_go_in_several_submissions() {
    let cufile = Scripted::new(4, |_, request| Some(Ok(request.len)));
    let lengths: Vec<_> = (1..=10).map(|number| number * 100).collect();
    let outcomes = run(&mut cufile.lane(), &lengths);
    assert_eq!(counts(&outcomes), lengths);
    let script = cufile.0.borrow();
    let rounds: Vec<_> = script.rounds.iter().map(Vec::len).collect();
    assert_eq!(rounds.iter().sum::<usize>(), 10);
    assert!(rounds.iter().all(|round| *round <= 4), "{rounds:?}");
    for request in script.rounds.iter().flatten() {
        assert_eq!(request.base + request.behind, 0x10_000 + request.offset);
        assert_eq!(request.base % 4096, 0);
    }
}

#[test]
fn short_and_interrupted_requests_go_on_in_the_next_submission() {
    let cufile = Scripted::new(8, |round, request| {
        Some(match (round, request.cookie) {
            (0, 1) => Ok(30),
            (0, 2) => Err(CuFileFailure::System(Some(libc::EINTR))),
            _ => Ok(request.len),
        })
    });
    let outcomes = run(&mut cufile.lane(), &[100, 100, 100, 100]);
    assert_eq!(counts(&outcomes), [100; 4]);
    let script = cufile.0.borrow();
    let later = script.rounds[1..].iter().flatten();
    let later: Vec<_> = later.map(|request| (request.offset, request.len)).collect();
    assert_eq!(later.len(), 2);
    assert!(later.contains(&(130, 70)) && later.contains(&(200, 100)));
}

#[test]
fn nothing_is_asked_for_beyond_the_end_and_what_begins_there_is_no_request() {
    let cufile = Scripted::new(8, |_, request| Some(Ok(request.len)));
    cufile.0.borrow_mut().size = 250;
    let outcomes = run(&mut cufile.lane(), &[100, 100, 100, 100]);
    assert_eq!(counts(&outcomes), [100, 100, 50, 0]);
    let script = cufile.0.borrow();
    let asked: Vec<_> = script.rounds[0].iter().map(|one| one.len).collect();
    assert_eq!((asked, script.rounds.len()), (vec![100, 100, 50], 1));
}

#[test]
fn a_failure_is_that_of_its_task_and_more_bytes_than_were_asked_for_are_a_breach() {
    let cufile = Scripted::new(8, |_, request| {
        Some(match request.cookie {
            1 => Err(CuFileFailure::System(Some(libc::EIO))),
            2 => Ok(101),
            _ => Ok(request.len),
        })
    });
    let outcomes = run(&mut cufile.lane(), &[100, 100, 100, 100]);
    let kind = |at: usize| outcomes[at].1.as_ref().map(Error::kind);
    let kinds = [kind(0), kind(1), kind(2), kind(3)];
    let (failed, breach) = (Some(ErrorKind::Device), Some(ErrorKind::Internal));
    assert_eq!(kinds, [None, failed, breach, None]);
    assert_eq!([0, 1, 2, 3].map(|at| outcomes[at].0), [100, 0, 0, 100]);
}

#[test]
fn what_cufile_does_not_do_in_a_batch_is_asked_of_it_alone() {
    let refusal = CuFileStatus { op: 5049, cuda: 0 };
    let cufile = Scripted::new(8, move |_, request| {
        Some(match request.cookie {
            1 => Ok(40),
            2 => Err(CuFileFailure::Status(refusal)),
            _ => Ok(request.len),
        })
    });
    let outcomes = run(&mut cufile.lane(), &[100, 40, 100, 100]);
    assert_eq!(counts(&outcomes), [100, 40, 100, 100]);
    assert_eq!(cufile.0.borrow().alone, [(140, 0)]);
}

#[test]
fn a_read_of_nothing_before_the_end_of_the_file_is_made_again_alone() {
    let cufile = Scripted::new(8, |_, request| {
        Some(Ok(match request.cookie {
            1 => 0,
            _ => request.len,
        }))
    });
    let outcomes = run(&mut cufile.lane(), &[100, 40, 100]);
    assert_eq!(counts(&outcomes), [100, 40, 100]);
    assert_eq!(cufile.0.borrow().alone, [(100, 0)]);
}

#[test]
fn what_fails_in_a_batch_goes_on_alone_where_there_is_another_way() {
    let cufile = Scripted::new(8, |_, request| {
        Some(match request.cookie {
            1 => Err(CuFileFailure::System(Some(libc::EIO))),
            _ => Ok(request.len),
        })
    });
    cufile.0.borrow_mut().has_another_way = true;
    let outcomes = run(&mut cufile.lane(), &[100, 40, 100]);
    assert_eq!(counts(&outcomes), [100, 40, 100]);
    assert_eq!(cufile.0.borrow().alone, [(100, 0)]);
}

#[test]
fn a_batch_that_does_not_answer_is_given_up_and_the_memory_of_its_requests_alone_is_to_be_kept() {
    let cufile = Scripted::new(3, |_, request| {
        (request.cookie != 1).then_some(Ok(request.len))
    });
    let outcomes = run(&mut cufile.lane(), &[100, 100, 100, 100, 100]);
    for (number, (moved, error)) in outcomes.iter().enumerate() {
        match number {
            1 => {
                let error = error.as_ref().unwrap();
                assert!(error.is_abandoned() && *moved == 0, "{error}");
                let text = error.to_string();
                assert!(text.contains("cuFile has not answered for 20ms"), "{text}");
            }
            _ => assert!(error.is_none() && *moved == 100, "{number}"),
        }
    }
    let script = cufile.0.borrow();
    assert!(script.cancelled);
    assert_eq!(script.given_up, 1);
    // What came after it went by calls of its own.
    assert_eq!(script.alone, [(300, 0), (400, 0)]);
}

#[test]
fn without_room_for_batches_each_task_is_a_call_of_its_own() {
    let cufile = Scripted::new(0, |_, _| None);
    let outcomes = run(&mut cufile.lane(), &[100, 200]);
    assert_eq!(counts(&outcomes), [100, 200]);
    assert_eq!(cufile.0.borrow().alone, [(0, 0), (100, 0)]);
}

#[test]
fn dropping_a_lane_waits_for_what_is_in_flight() {
    let cufile = Scripted::new(8, |_, request| Some(Ok(request.len)));
    let mut lane = cufile.lane();
    for number in 0..3 {
        let range = number as u64 * 10..number as u64 * 10 + 10;
        let window = DeviceWindow::new(4096 + range.start, 10, 8192, Direction::Read);
        let task = Task {
            index: number,
            range,
        };
        lane.start(task, Window::Device(window));
    }
    lane.submit();
    assert_eq!(cufile.0.borrow().unanswered, 3);
    drop(lane);
    assert_eq!(cufile.0.borrow().unanswered, 0);
}
