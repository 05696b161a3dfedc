//! Shared by the tests: a caller under test, its events, and processes that must be gone.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, waitpid};
use tempfile::TempDir;

use crate::caller;

/// Longer than any step takes, but short enough to wait for a step that hangs.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// A day in milliseconds, which no test reaches.
pub(crate) const FAR: i64 = 86_400_000;

pub(crate) type Result = std::result::Result<(), Failed>;

macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        pub(crate) fn tests() -> Vec<libtest_mimic::Trial> {
            vec![$(crate::harness::trial(concat!(module_path!(), "::", stringify!($name)), $name)),*]
        }
    };
}
pub(crate) use tests;

pub(crate) fn trial(name: &str, test: fn() -> Result) -> Trial {
    let name = name.split_once("::").map_or(name, |(_, name)| name);
    Trial::test(name, test)
}

/// How to start a caller.
pub(crate) struct Setup {
    grace: i64,
    term: i64,
    kill: i64,
    environment: Vec<OsString>,
    stdin: Option<Stdio>,
    wrapper: Vec<OsString>,
}

/// A caller whose limits no test reaches.
pub(crate) fn unlimited() -> Setup {
    limited(FAR, FAR)
}

/// A caller with limits in milliseconds from its start.
pub(crate) fn limited(term: i64, kill: i64) -> Setup {
    Setup {
        grace: 3_000,
        term,
        kill,
        environment: Vec::new(),
        stdin: None,
        wrapper: Vec::new(),
    }
}

impl Setup {
    pub(crate) fn grace(mut self, grace: i64) -> Self {
        self.grace = grace;
        self
    }

    pub(crate) fn env(mut self, setting: impl AsRef<OsStr>) -> Self {
        self.environment.push(setting.as_ref().to_owned());
        self
    }

    pub(crate) fn stdin(mut self, stdin: impl Into<Stdio>) -> Self {
        self.stdin = Some(stdin.into());
        self
    }

    /// Starts the caller through another program, which must become the caller with `exec`.
    pub(crate) fn by(mut self, wrapper: &[&str]) -> Self {
        self.wrapper = wrapper.iter().map(OsString::from).collect();
        self
    }

    /// Runs a shell script.
    pub(crate) fn sh(self, script: &str) -> Caller {
        self.run(["/bin/sh", "-c", script])
    }

    pub(crate) fn run<T: AsRef<OsStr>>(self, argv: impl IntoIterator<Item = T>) -> Caller {
        let mut caller = self.begin(argv);
        caller.is_answered();
        caller
    }

    /// Starts the caller, and does not wait until it has started the command.
    pub(crate) fn begin<T: AsRef<OsStr>>(self, argv: impl IntoIterator<Item = T>) -> Caller {
        let directory = TempDir::new().expect("a directory");
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).expect("a socket");
        let own = std::env::current_exe().expect("this binary");
        let mut words = self.wrapper;
        words.extend([own.into_os_string(), caller::ARGUMENT.into(), path.into()]);
        words.extend([self.grace, self.term, self.kill].map(|number| number.to_string().into()));
        words.extend(self.environment);
        words.push("--".into());
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .args(argv)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("INHERITED", "from outside")
            .env("REMOVED", "from outside")
            .stdin(self.stdin.unwrap_or_else(Stdio::null))
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("a caller");
        let stdout = child.stdout.take().expect("its stdout");
        readable(&listener);
        let (socket, _) = listener.accept().expect("the caller connects");
        socket
            .set_read_timeout(Some(TIME_LIMIT))
            .expect("a timeout");
        Caller {
            child,
            orders: socket.try_clone().expect("a second handle"),
            events: BufReader::new(socket),
            stdout,
            printed: Vec::new(),
            pid: 0,
            _directory: directory,
        }
    }
}

/// A stream that contains a line that was already read. The caller sends nothing after it.
fn already_read(line: &str) -> UnixStream {
    let (mut ours, theirs) = UnixStream::pair().expect("a pair");
    writeln!(ours, "{line}").expect("written");
    theirs
}

/// A caller under test.
pub(crate) struct Caller {
    child: Child,
    orders: UnixStream,
    events: BufReader<UnixStream>,
    stdout: ChildStdout,
    /// Output that was read and not yet returned.
    printed: Vec<u8>,
    /// The process id of the command; 0 if the caller does not know it.
    pub(crate) pid: i32,
    _directory: TempDir,
}

impl Caller {
    /// The caller's own process id.
    pub(crate) fn own_pid(&self) -> i32 {
        self.child.id().try_into().expect("a process id")
    }

    /// Waits until the caller knows whether its command has started.
    pub(crate) fn is_answered(&mut self) {
        let first = self.event();
        match first.strip_prefix("started ") {
            Some(pid) => self.pid = pid.parse().expect("a process id"),
            None => self.events = BufReader::new(already_read(&first)),
        }
    }

    /// The process id of the supervisor.
    pub(crate) fn supervisor(&self) -> i32 {
        parent(self.pid.unsigned_abs())
    }

    /// The next event as the caller prints it; empty if the caller is gone.
    pub(crate) fn event(&mut self) -> String {
        let mut line = String::new();
        self.events.read_line(&mut line).expect("an event in time");
        line.trim_end().to_owned()
    }

    /// Waits for the end. Returns all events until then in one line.
    pub(crate) fn events(&mut self) -> String {
        let mut events = Vec::new();
        loop {
            match self.event() {
                event if event.is_empty() => return events.join(", "),
                event => events.push(event),
            }
        }
    }

    /// Sets new limits, in milliseconds from now, and waits until the caller has forwarded them.
    pub(crate) fn limits(&mut self, term: i64, kill: i64) {
        self.order(&format!("limits {term} {kill}"));
        assert_eq!(self.event(), "limited");
    }

    pub(crate) fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").expect("the caller listens");
    }

    /// The next line that the command prints.
    pub(crate) fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.printed.iter().position(|&byte| byte == b'\n') {
                let line = self.printed.drain(..=end).collect();
                return String::from_utf8(line).expect("text").trim_end().to_owned();
            }
            assert!(self.read(), "stdout has ended");
        }
    }

    /// Reads more of the output. Returns false at the end.
    fn read(&mut self) -> bool {
        readable(&self.stdout);
        let mut bytes = [0; 4096];
        let count = self.stdout.read(&mut bytes).expect("stdout");
        self.printed.extend_from_slice(&bytes[..count]);
        count > 0
    }

    /// The process whose pid is on the next line.
    pub(crate) fn process(&mut self) -> Process {
        Process::new(self.line().parse().expect("a process id"))
    }

    /// The rest of the output. Its end shows that no process has stdout open any more: not the command, its
    /// descendants, the supervisor or the caller.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        while self.read() {}
        std::mem::take(&mut self.printed)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(self.own_pid(), signal);
    }

    /// Waits until the caller has stopped.
    pub(crate) fn has_stopped(&self) {
        let pid = Pid::from_raw(self.own_pid());
        let (_, status) = waitpid(pid, WaitOptions::UNTRACED)
            .expect("a child")
            .expect("a status");
        assert!(status.stopped());
    }

    /// Waits until the caller has ended.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        Process::new(self.own_pid()).is_gone();
        self.child.wait().expect("it was waited for")
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        // A failed test leaves no processes behind, because the supervisor ends what its caller leaves.
        let _result = self.child.kill();
        let _status = self.child.wait();
    }
}

/// The parent of a process.
pub(crate) fn parent(pid: u32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let (_, rest) = stat.rsplit_once(')').expect("a name");
    let parent = rest.split_ascii_whitespace().nth(1).expect("a parent");
    parent.parse().expect("a process id")
}

/// The child of process `pid`, if it has only one.
pub(crate) fn only_child(pid: i32) -> Option<i32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    children.expect("it lives").trim().parse().ok()
}

/// Whether the process is stopped.
pub(crate) fn is_stopped(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let (_, rest) = stat.rsplit_once(')').expect("a name");
    rest.split_ascii_whitespace().next() == Some("T")
}

pub(crate) fn send(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).expect("a process id"), signal).expect("it is there");
}

/// One process, never a later one with the same pid.
pub(crate) struct Process {
    descriptor: OwnedFd,
}

impl Process {
    pub(crate) fn new(pid: i32) -> Self {
        let number = Pid::from_raw(pid).expect("a process id");
        let descriptor = pidfd_open(number, PidfdFlags::empty()).expect("it lives");
        Self { descriptor }
    }

    /// Waits until the process has ended.
    pub(crate) fn is_gone(&self) {
        readable(&self.descriptor);
    }

    /// Whether the process has not ended.
    pub(crate) fn lives(&self) -> bool {
        let mut files = [PollFd::new(&self.descriptor, PollFlags::IN)];
        poll(&mut files, Some(&Timespec::default())).expect("a poll") == 0
    }
}

/// Waits until `limit` milliseconds have passed. A limit that was set before this call has then passed.
pub(crate) fn is_past(limit: u64) {
    let set = Instant::now();
    while set.elapsed() <= Duration::from_millis(limit) {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until there is something to read.
fn readable(file: &impl AsFd) {
    let timeout = Timespec {
        tv_sec: TIME_LIMIT.as_secs().try_into().expect("a short time"),
        tv_nsec: 0,
    };
    let mut files = [PollFd::new(file, PollFlags::IN)];
    let ready = poll(&mut files, Some(&timeout)).expect("a poll");
    assert_ne!(ready, 0, "nothing happened in {TIME_LIMIT:?}");
}
