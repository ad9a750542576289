//! A server's processes: started as a group of their own, found again by a later command, and ended.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::place::{self, Place, end_of};
use super::state::Server;
use crate::process::{self, Done};

/// The processes of one server.
///
/// A process is one of them if its group has the number that was noted at the start and it works in the server's own
/// folder. A number that the system gave to somebody else since then names nobody's process here.
pub(super) struct Group {
    name: String,
    id: u32,
    folder: PathBuf,
    log: PathBuf,
    /// The first process, while the command that started it runs.
    child: Option<Child>,
}

impl Group {
    /// Starts a program that stays in the foreground, in the server's folder and with its output in a log.
    pub(super) fn start(place: &Place, name: &str, mut command: Command) -> Done<Self> {
        let (folder, log) = (place.run(name), place.log(name));
        place::make(&folder)?;
        let child = place
            .logged(name, &mut command)?
            .current_dir(&folder)
            .stdin(Stdio::null())
            // What it forgets to remove goes away with the folder.
            .env("TMPDIR", &folder)
            // What interrupts this command does not reach a server that is to outlive it.
            .process_group(0)
            .spawn()
            .map_err(|why| format!("{name}: {}: {why}", command.get_program().display()))?;
        let group = Self {
            name: name.to_owned(),
            id: child.id(),
            folder,
            log,
            child: Some(child),
        };
        let noted = place::write(&place.groups().join(name), &group.id.to_string());
        if let Err(why) = noted {
            group.end()?;
            return Err(why);
        }
        Ok(group)
    }

    /// Runs a program that ends by itself, soon and well; its last lines are shown where it does not. It is a group, too,
    /// so that it can be found if this command is killed meanwhile.
    pub(super) fn run(place: &Place, name: &str, command: Command) -> Done {
        let mut group = Self::start(place, name, command)?;
        let begin = Instant::now();
        let why = loop {
            match group.ended()? {
                Some(status) if status.success() => {
                    return place::forget(&place.groups().join(name));
                }
                Some(status) => break format!("failed ({status})"),
                None if begin.elapsed() > STEP => break format!("did not end within {STEP:?}"),
                None => thread::sleep(Duration::from_millis(20)),
            }
        };
        group.end()?;
        Err(format!(
            "{name} {why}; its log ends with:\n{}",
            end_of(&group.log)
        ))
    }

    /// Those that were started and not ended yet, by whatever command.
    pub(super) fn all(place: &Place) -> Done<Vec<Self>> {
        let Ok(files) = fs::read_dir(place.groups()) else {
            return Ok(Vec::new());
        };
        let mut groups = Vec::new();
        for file in files.flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            let text = fs::read_to_string(file.path())
                .map_err(|why| format!("{}: {why}", file.path().display()))?;
            // A file that was being written when its command was killed.
            let Ok(id) = text.parse() else { continue };
            groups.push(Self {
                folder: place.run(&name),
                log: place.log(&name),
                name,
                id,
                child: None,
            });
        }
        Ok(groups)
    }

    /// Asks all processes to end, and kills those that are still there after a while. Returns how many there were.
    pub(super) fn end(&self) -> Done<usize> {
        self.end_after(Duration::from_secs(15))
    }

    fn end_after(&self, patience: Duration) -> Done<usize> {
        let members = self.members();
        for (signal, patience) in [("TERM", patience), ("KILL", Duration::from_secs(5))] {
            let begin = Instant::now();
            self.signal(signal);
            while begin.elapsed() < patience {
                if self.members().is_empty() {
                    return Ok(members.len());
                }
                thread::sleep(Duration::from_millis(50));
            }
        }
        Err(format!(
            "{}: processes {:?} do not end; end them by hand",
            self.name,
            self.members()
        ))
    }

    fn signal(&self, signal: &str) {
        let members = self.members();
        if !members.is_empty() {
            // One that is gone by now makes this fail; who is left is asked for again.
            process::answers(
                // The shell's own command: a small system has no other.
                Command::new("sh")
                    .args(["-c", "kill -s \"$@\"", "sh", signal])
                    .args(members.iter().map(u32::to_string)),
            );
        }
    }

    /// Fails with the end of the log if the first process has ended.
    fn alive(&mut self) -> Done {
        match self.ended()? {
            None => Ok(()),
            Some(status) => Err(format!(
                "{} ended by itself ({status}); its log ends with:\n{}",
                self.name,
                end_of(&self.log)
            )),
        }
    }

    fn ended(&mut self) -> Done<Option<ExitStatus>> {
        let child = self.child.as_mut();
        child.map_or(Ok(None), |child| {
            child
                .try_wait()
                .map_err(|why| format!("{}: {why}", self.name))
        })
    }

    fn members(&self) -> Vec<u32> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers.filter(|id| self.has(*id)).collect()
    }

    fn has(&self, process: u32) -> bool {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        alive_in(&stat) == Some(self.id)
            && fs::read_link(format!("/proc/{process}/cwd")).is_ok_and(|at| at == self.folder)
    }
}

/// For a step, which takes seconds.
const STEP: Duration = Duration::from_secs(60);

/// The group of a process by what `/proc/N/stat` says; none for one that has ended and was not waited for.
fn alive_in(stat: &str) -> Option<u32> {
    // The name of the program, in brackets, may hold spaces and brackets itself.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(1)?.parse().ok()
}

/// One server or several that the same processes are, on their way.
pub(super) struct Starting {
    groups: Vec<Group>,
    servers: Vec<Server>,
    begin: Instant,
}

impl Starting {
    pub(super) fn new(groups: Vec<Group>, servers: Vec<Server>) -> Self {
        Self {
            groups,
            servers,
            begin: Instant::now(),
        }
    }

    /// Waits until each of them answers as [`super::check`] wants.
    pub(super) fn wait(mut self, limit: Duration) -> Done<Vec<Server>> {
        for server in &self.servers {
            while let Err(why) = super::check(server) {
                for group in &mut self.groups {
                    group.alive()?;
                }
                if self.begin.elapsed() > limit {
                    let logs: Vec<_> = self.groups.iter().map(|group| end_of(&group.log)).collect();
                    return Err(format!(
                        "{} did not answer within {} s: {why}; its log ends with:\n{}",
                        server.name(),
                        limit.as_secs(),
                        logs.join("\n")
                    ));
                }
                thread::sleep(Duration::from_millis(100));
            }
            println!(
                "servers: {} answers, {:.1} s after its start",
                server.name(),
                self.begin.elapsed().as_secs_f64()
            );
        }
        Ok(self.servers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_a_process_is_read_behind_its_name() {
        assert_eq!(alive_in("7 (a) b) (c) S 1 42 9 0 -1\n"), Some(42));
        assert_eq!(alive_in("7 (nginx) Z 1 42 9 0 -1\n"), None);
        assert_eq!(alive_in(""), None);
    }

    #[test]
    fn a_group_ends_with_all_its_processes_and_no_other() {
        let program = std::env::current_exe().unwrap();
        let folder = program.with_extension(std::process::id().to_string());
        let place = Place::at(&folder).unwrap();
        place.prepare().unwrap();
        let mut command = Command::new("sh");
        // The second one does not listen to the first signal.
        command.args([
            "-c",
            "(trap '' TERM; echo ready; sleep 60; sleep 60) & sleep 60",
        ]);
        let group = Group::start(&place, "sleeper", command).unwrap();
        while end_of(&place.log("sleeper")) != "ready" {
            thread::sleep(Duration::from_millis(10));
        }
        let mut bystander = Command::new("sleep").arg("60").spawn().unwrap();
        let found = Group::all(&place).unwrap();
        assert_eq!(found.len(), 1);
        assert!(group.members().len() >= 2);
        assert!(found[0].end_after(Duration::from_millis(200)).unwrap() >= 2);
        assert!(group.members().is_empty());
        assert!(
            bystander.try_wait().unwrap().is_none(),
            "the bystander lives"
        );
        bystander.kill().unwrap();
        bystander.wait().unwrap();
        place::remove(&folder).unwrap();
    }
}
