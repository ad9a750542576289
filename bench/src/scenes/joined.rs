//! A scene to which others come who measure themselves, in processes of their own.

use crate::contender::Contender;
use crate::race::{Amounts, Moved, Scene};
use crate::trouble::{Outcome, Trouble};

/// One contender who is not of this process: its memory and its clock are its own.
pub(crate) trait Rival {
    fn contender(&self) -> Contender;
    /// Before its turn, not timed.
    fn prepare(&mut self, amount: u64, salt: u64) -> Outcome<()>;
    /// Its turn, with its own figures in [`Moved::elsewhere`].
    fn turn(&mut self, amount: u64) -> Outcome<Moved>;
    /// After its turn: the position of a byte that did not come.
    fn check(&mut self, amount: u64, salt: u64) -> Outcome<Option<u64>>;
    /// After all rounds, an extra turn of which every byte is compared: the position of the first that is wrong.
    fn prove(&mut self, amount: u64) -> Outcome<Option<u64>>;
}

/// The scene, whose contenders come first, and the rivals.
pub(crate) struct Joined<'a> {
    pub(crate) name: String,
    pub(crate) scene: Box<dyn Scene + 'a>,
    pub(crate) rivals: Vec<Box<dyn Rival + 'a>>,
}

impl Joined<'_> {
    fn own(&self) -> usize {
        self.scene.contenders().len()
    }

    fn judge(&self, rival: usize, wrong: Option<u64>) -> Outcome<()> {
        match wrong {
            None => Ok(()),
            Some(position) => Err(Trouble::Mismatch {
                case: self.name.clone(),
                contender: self.rivals[rival].contender().name,
                position,
            }),
        }
    }
}

impl Scene for Joined<'_> {
    fn contenders(&self) -> Vec<Contender> {
        let rivals = self.rivals.iter().map(|rival| rival.contender());
        self.scene.contenders().into_iter().chain(rivals).collect()
    }

    fn amounts(&self) -> Amounts {
        self.scene.amounts()
    }

    fn prepare(&mut self, who: usize, amount: u64, salt: u64) -> Outcome<()> {
        match who.checked_sub(self.own()) {
            None => self.scene.prepare(who, amount, salt),
            Some(rival) => {
                // The state of the file is the same for everybody; and whoever spoils its memory last finds that memory in
                // the CPU's cache, which each does for itself.
                self.scene.prepare(0, amount, salt)?;
                self.rivals[rival].prepare(amount, salt)
            }
        }
    }

    fn turn(&mut self, who: usize, amount: u64) -> Outcome<Moved> {
        match who.checked_sub(self.own()) {
            None => self.scene.turn(who, amount),
            Some(rival) => self.rivals[rival].turn(amount),
        }
    }

    fn check(&mut self, who: usize, amount: u64, salt: u64) -> Outcome<()> {
        match who.checked_sub(self.own()) {
            None => self.scene.check(who, amount, salt),
            Some(rival) => {
                let wrong = self.rivals[rival].check(amount, salt)?;
                self.judge(rival, wrong)
            }
        }
    }

    fn prove(&mut self, amount: u64) -> Outcome<()> {
        self.scene.prove(amount)?;
        for rival in 0..self.rivals.len() {
            let wrong = self.rivals[rival].prove(amount)?;
            self.judge(rival, wrong)?;
        }
        Ok(())
    }

    fn remarks(&self) -> Vec<String> {
        self.scene.remarks()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::Role;
    use crate::race;
    use std::cell::RefCell;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    type Diary = RefCell<Vec<String>>;

    struct Home<'a>(&'a Diary);

    impl Scene for Home<'_> {
        fn contenders(&self) -> Vec<Contender> {
            vec![Contender::ours(), Contender::new(Role::Loop, "loop")]
        }
        fn amounts(&self) -> Amounts {
            Amounts {
                least: 1,
                most: 1,
                step: 1,
            }
        }
        fn prepare(&mut self, who: usize, _: u64, _: u64) -> Outcome<()> {
            self.0.borrow_mut().push(format!("prepare {who}"));
            Ok(())
        }
        fn turn(&mut self, who: usize, amount: u64) -> Outcome<Moved> {
            self.0.borrow_mut().push(format!("turn {who}"));
            Ok(Moved::here(amount, 1))
        }
        fn check(&mut self, _: usize, _: u64, _: u64) -> Outcome<()> {
            Ok(())
        }
        fn prove(&mut self, _: u64) -> Outcome<()> {
            Ok(())
        }
    }

    struct Guest<'a>(&'a Diary, Option<u64>);

    impl Rival for Guest<'_> {
        fn contender(&self) -> Contender {
            Contender::new(Role::Fio, "guest")
        }
        fn prepare(&mut self, _: u64, _: u64) -> Outcome<()> {
            self.0.borrow_mut().push("prepare guest".into());
            Ok(())
        }
        fn turn(&mut self, amount: u64) -> Outcome<Moved> {
            self.0.borrow_mut().push("turn guest".into());
            Ok(Moved::here(amount, 1))
        }
        fn check(&mut self, _: u64, _: u64) -> Outcome<Option<u64>> {
            Ok(None)
        }
        fn prove(&mut self, _: u64) -> Outcome<Option<u64>> {
            Ok(self.1)
        }
    }

    fn run(diary: &Diary, wrong: Option<u64>) -> Outcome<usize> {
        let mut joined = Joined {
            name: "case".into(),
            scene: Box::new(Home(diary)),
            rivals: vec![Box::new(Guest(diary, wrong))],
        };
        let stop = AtomicBool::new(false);
        race::run(&mut joined, 1, Duration::ZERO, &stop, &mut |_| {}).map(|turns| turns.len())
    }

    #[test]
    fn a_rival_runs_in_the_same_rounds_and_finds_the_scene_prepared() {
        let diary = Diary::default();
        assert_eq!(run(&diary, None).expect("ran"), 3);
        let diary = diary.into_inner();
        let last = &diary[diary.len() - 7..];
        let wanted = [
            "prepare 0",
            "turn 0",
            "prepare 1",
            "turn 1",
            "prepare 0",
            "prepare guest",
            "turn guest",
        ];
        assert_eq!(last, wanted);
    }

    #[test]
    fn a_rivals_wrong_byte_ends_the_run_and_names_it() {
        let error = run(&Diary::default(), Some(7)).expect_err("wrong");
        assert!(!error.ends_only_the_case());
        assert!(error.to_string().contains("guest"), "{error}");
    }
}
