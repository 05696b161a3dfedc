//! One run of the program, in an empty environment.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use control_plane::Binary;
use rustix::process::{Pid, Signal, kill_process};

use super::cluster::Cluster;
use super::eventually;

/// How to start a candidate. Its daemon writes `begin NAME PID` to the journal, and `end NAME` if it is asked
/// to end. At its start, it also writes the name of every daemon that began earlier and still runs.
pub(crate) struct Setup {
    wrapper: Vec<OsString>,
    words: Vec<OsString>,
    name: String,
    journal: OsString,
    kubeconfig: OsString,
    on_term: String,
}

/// A running candidate.
pub(crate) struct Candidate {
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
}

impl Setup {
    pub(super) fn new(cluster: &Cluster, kubeconfig: &Path, name: &str) -> Self {
        Self {
            wrapper: Vec::new(),
            words: vec![cluster.lease.clone().into()],
            name: name.to_owned(),
            journal: cluster.journal.path().into(),
            kubeconfig: kubeconfig.into(),
            on_term: "echo end $NAME >> $JOURNAL; exit 0".to_owned(),
        }
    }

    /// Adds options.
    pub(crate) fn with(mut self, words: &[&str]) -> Self {
        self.words.extend(words.iter().map(OsString::from));
        self
    }

    /// A lease of 12 s, of which the daemon has 1 s to end. It is short because tests wait for it to expire,
    /// but longer than a busy machine stalls.
    pub(crate) fn short(self) -> Self {
        self.with(&["--lease-duration=12s", "--missed-renewals=1", "--grace=1s"])
    }

    /// As [`short`](Self::short), but with a lease of 4 s, as the candidates of client-go have.
    pub(crate) fn with_the_duration_of_client_go(self) -> Self {
        self.with(&["--lease-duration=4s", "--missed-renewals=1", "--grace=1s"])
    }

    /// Sets another script that the daemon runs on TERM.
    pub(crate) fn on_term(mut self, script: &str) -> Self {
        script.clone_into(&mut self.on_term);
        self
    }

    /// Starts the candidate through another program.
    pub(crate) fn by(mut self, wrapper: &[&str]) -> Self {
        self.wrapper = wrapper.iter().map(OsString::from).collect();
        self
    }

    /// Starts the candidate with a daemon that runs until it is ended.
    pub(crate) fn start(self) -> Candidate {
        let script = format!(
            "trap '{}' TERM
             while read what who pid; do
                 [ $what = begin ] && kill -0 $pid 2>/dev/null && echo overlaps $who >> $JOURNAL
             done < $JOURNAL
             echo begin $NAME $$ >> $JOURNAL
             while :; do sleep 1 & wait $!; done",
            self.on_term
        );
        self.run(&["/bin/sh", "-c", &script])
    }

    /// Starts a candidate of client-go instead. It has a lease of 4 s, and no daemon: it writes to the
    /// journal itself.
    pub(crate) fn of_client_go(self) -> Candidate {
        let program = Binary::Candidate.locate().expect("it was built");
        let words = [
            program.into(),
            self.words[0].clone(),
            self.name.clone().into(),
        ];
        self.launch(&words)
    }

    /// Starts the candidate with this daemon.
    pub(crate) fn run(mut self, daemon: &[&str]) -> Candidate {
        let words: Vec<OsString> = self
            .wrapper
            .drain(..)
            .chain([env!("CARGO_BIN_EXE_lease-elect").into()])
            .chain(self.words.drain(..))
            .chain(["--".into()])
            .chain(daemon.iter().map(OsString::from))
            .collect();
        self.launch(&words)
    }

    fn launch(self, words: &[OsString]) -> Candidate {
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env("KUBECONFIG", self.kubeconfig)
            .env("NAME", self.name)
            .env("JOURNAL", self.journal)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a candidate");
        let stderr = BufReader::new(child.stderr.take().expect("its stderr"));
        let log = Arc::new(Mutex::new(Vec::new()));
        let of_thread = Arc::clone(&log);
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                of_thread.lock().expect("no panic").push(line);
            }
        });
        Candidate { child, log }
    }
}

impl Candidate {
    pub(crate) fn pid(&self) -> i32 {
        self.child.id().try_into().expect("a process id")
    }

    /// The lines that it has printed so far.
    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lock().expect("no panic").clone()
    }

    /// Waits for a line that contains this text, and returns it.
    pub(crate) fn says(&self, text: &str) -> String {
        let what = format!("{text:?} of process {}", self.pid());
        eventually(&what, || {
            self.log().into_iter().find(|line| line.contains(text))
        })
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    /// Waits for its end, and returns its exit code.
    pub(crate) fn code(&mut self) -> Option<i32> {
        let what = format!("the end of process {}", self.pid());
        let status = eventually(&what, || self.child.try_wait().expect("a child"));
        status.code()
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        if thread::panicking() {
            let log = self.log().join("\n");
            let _ = writeln!(std::io::stderr(), "process {} said:\n{log}", self.pid());
        }
        // Its supervisor ends the remaining processes.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn send(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).expect("a process id"), signal).expect("it is there");
}
