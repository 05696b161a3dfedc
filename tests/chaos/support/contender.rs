//! A contender for the lock of a node: it runs `with` repeatedly.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::TIME_LIMIT;
use crate::history::{Boot, Exit, History, Run};

/// The pause after a run that did not get the lock.
const PAUSE: Duration = Duration::from_millis(200);
/// The pause after a run that did, which gives others a chance: the lock goes to the first client that acquires it,
/// without a queue.
const REST: Duration = Duration::from_secs(1);

/// The options of a contender.
#[derive(Clone, Debug)]
pub(crate) struct ContenderOptions {
    pub(crate) kubeconfig: PathBuf,
    pub(crate) lease: Duration,
    /// More variables of its environment.
    pub(crate) variables: Vec<(String, String)>,
    /// How many lines a command writes before it ends.
    pub(crate) signs: u32,
    /// Whether it runs only one command.
    pub(crate) once: bool,
}

/// The state that all contenders of a scenario share.
#[derive(Debug)]
pub(super) struct SharedState {
    pub(super) node: String,
    pub(super) directory: PathBuf,
    /// A variable in the environment of all their processes.
    pub(super) mark: (String, String),
    pub(super) is_over: AtomicBool,
    records: Mutex<Records>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Records {
    runs: Vec<Run>,
    /// The number of contenders that are still running.
    at_it: usize,
}

/// A contender that runs in its own thread.
#[derive(Clone, Debug)]
pub(crate) struct Contender {
    pub(crate) name: String,
    pub(crate) options: ContenderOptions,
    shared: Arc<SharedState>,
    current: Arc<Mutex<Option<Child>>>,
}

impl SharedState {
    pub(super) fn new(node: &str, directory: PathBuf, mark: (String, String)) -> Arc<Self> {
        Arc::new(Self {
            node: node.to_owned(),
            directory,
            mark,
            is_over: AtomicBool::new(false),
            records: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    pub(super) fn journal(&self) -> PathBuf {
        self.directory.join("journal")
    }

    pub(super) fn read_journal(&self) -> String {
        fs::read_to_string(self.journal()).expect("a file")
    }

    fn change(&self, change: impl FnOnce(&mut Records)) {
        change(&mut self.records.lock().expect("no panic under this lock"));
        self.changed.notify_all();
    }

    /// Waits until `find` returns something.
    #[track_caller]
    fn wait<T>(&self, what: &str, find: impl Fn(&Records) -> Option<T>) -> T {
        let records = self.records.lock().expect("no panic under this lock");
        let (records, _) = self
            .changed
            .wait_timeout_while(records, TIME_LIMIT, |records| find(records).is_none())
            .expect("no panic under this lock");
        if let Some(found) = find(&records) {
            return found;
        }
        let ended = History {
            runs: records.runs.clone(),
            events: Vec::new(),
        };
        drop(records);
        let journal = self.read_journal();
        let journal = journal.lines().filter(|line| !line.starts_with("alive"));
        let journal: Vec<&str> = journal.collect();
        panic!("timed out waiting for {what}\n{ended}{journal:#?}")
    }

    /// Waits until all contenders have ended, and returns their runs.
    #[track_caller]
    pub(super) fn runs(&self) -> Vec<Run> {
        self.wait("the end of all contenders", |records| {
            (records.at_it == 0).then(|| records.runs.clone())
        })
    }
}

impl Contender {
    /// Starts a contender. If `is_long`, its first command runs until the test lets it finish.
    pub(super) fn start(
        name: &str,
        options: ContenderOptions,
        shared: &Arc<SharedState>,
        is_long: bool,
    ) -> Self {
        let contender = Self {
            name: name.to_owned(),
            options,
            shared: Arc::clone(shared),
            current: Arc::default(),
        };
        shared.change(|records| records.at_it += 1);
        let at_work = contender.clone();
        std::thread::spawn(move || {
            at_work.work(is_long);
            at_work.shared.change(|records| records.at_it -= 1);
        });
        contender
    }

    /// The name of its first run.
    pub(crate) fn first_run(&self) -> String {
        format!("{}.1", self.name)
    }

    fn work(&self, is_long: bool) {
        for number in 1.. {
            let length = match number {
                1 if is_long => "long".to_owned(),
                _ => self.options.signs.to_string(),
            };
            let exit = self.run(&format!("{}.{number}", self.name), &length);
            if self.options.once || self.shared.is_over.load(Ordering::Relaxed) {
                return;
            }
            std::thread::sleep(match exit {
                Exit::Code(0) => REST,
                _ => PAUSE,
            });
        }
    }

    fn run(&self, name: &str, length: &str) -> Exit {
        let started = Boot::now();
        let child = self.command(name, length).spawn().expect("it was built");
        let pid = Pid::from_child(&child);
        *self.current.lock().expect("no panic under this lock") = Some(child);
        // The child is not reaped yet. Until it is removed from `current`, its process id must not be reused, because
        // `signal` may send to it.
        waitid(
            WaitId::Pid(pid),
            WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
        )
        .expect("it is a child of ours");
        let child = self
            .current
            .lock()
            .expect("no panic under this lock")
            .take();
        let status = child.map(|mut child| child.wait().expect("it has ended"));
        let exit = status.map_or(Exit::Killed, exit);
        let run = Run {
            name: name.to_owned(),
            lease: self.options.lease,
            exit,
            started,
            returned: Boot::now(),
            work: None,
        };
        self.shared.change(|records| records.runs.push(run));
        exit
    }

    fn command(&self, name: &str, length: &str) -> Command {
        let file = |name: String| self.shared.directory.join(name);
        let log = File::create(file(format!("{name}.log"))).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-maint"));
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", &self.shared.directory)
            .env("KUBECONFIG", &self.options.kubeconfig)
            .env("KUBECTL_MAINT_HOLDER", format!("{}@chaos", self.name))
            .env(&self.shared.mark.0, &self.shared.mark.1)
            .env("CHAOS_RUN", name)
            .env("CHAOS_JOURNAL", self.shared.journal())
            .env("CHAOS_FINISH", self.finish(name))
            .envs(self.options.variables.iter().cloned())
            .args(["with", &self.shared.node, "--wait"])
            .arg(format!(
                "--lease-duration={}s",
                self.options.lease.as_secs()
            ))
            .args(["--grace=1s", "--request-timeout=2s"])
            .args(["-m", name, "--", "/bin/sh"])
            .arg(file("work.sh".to_owned()))
            .arg(length)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log);
        command
    }

    fn finish(&self, run: &str) -> PathBuf {
        self.shared.directory.join(format!("{run}.finish"))
    }

    /// Lets its long command finish.
    pub(crate) fn finishes(&self) {
        File::create(self.finish(&self.first_run())).expect("a file");
    }

    /// Waits for the end of its first run.
    #[track_caller]
    pub(crate) fn first_exit(&self) -> Exit {
        let first = self.first_run();
        self.shared.wait("the end of a first run", |records| {
            let run = records.runs.iter().find(|run| run.name == first)?;
            Some(run.exit)
        })
    }

    /// Waits until one of its commands has written something after `since`.
    #[track_caller]
    pub(super) fn works_after(&self, since: Boot) {
        let prefix = format!("{}.", self.name);
        self.shared
            .wait(&format!("the turn of {}", self.name), |records| {
                let mut own = records
                    .runs
                    .iter()
                    .filter(|run| run.name.starts_with(&prefix));
                own.find(|run| run.exit == Exit::Code(0) && run.returned > since)
                    .map(drop)
            });
    }

    /// Sends a signal to its `with`, if one is running.
    pub(crate) fn signal(&self, signal: Signal) {
        let current = self.current.lock().expect("no panic under this lock");
        if let Some(child) = current.as_ref() {
            // A child is not reaped while this lock is held.
            kill_process(Pid::from_child(child), signal).expect("it is a child of ours");
        }
    }

    /// Stops its `with` by SIGSTOP, and waits until the process is stopped.
    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
        let current = self.current.lock().expect("no panic under this lock");
        if let Some(child) = current.as_ref() {
            let changes = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            waitid(WaitId::Pid(Pid::from_child(child)), changes).expect("it is a child of ours");
        }
    }

    pub(crate) fn goes_on(&self) {
        self.signal(Signal::CONT);
    }

    /// Kills only the supervisor of its command.
    #[track_caller]
    pub(crate) fn loses_its_supervisor(&self) {
        let current = self.current.lock().expect("no panic under this lock");
        let child = current.as_ref().expect("it is at work");
        let path = format!("/proc/{0}/task/{0}/children", child.id());
        let children = fs::read_to_string(path).expect("it runs");
        let supervisor = children.trim().parse().ok().and_then(Pid::from_raw);
        let supervisor = supervisor.unwrap_or_else(|| panic!("one child: {children}"));
        kill_process(supervisor, Signal::KILL).expect("it lives");
    }

    /// The output of its first run.
    pub(crate) fn first_log(&self) -> String {
        let log = self
            .shared
            .directory
            .join(format!("{}.log", self.first_run()));
        fs::read_to_string(log).expect("a file")
    }

    pub(crate) fn is_killed(&self) {
        self.signal(Signal::KILL);
    }
}

fn exit(status: ExitStatus) -> Exit {
    match status.signal() {
        Some(9) => Exit::Killed,
        Some(signal) => Exit::Code(128 + signal),
        None => Exit::Code(status.code().expect("it ended by itself")),
    }
}
