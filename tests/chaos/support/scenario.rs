//! A scenario: contenders for one node, the faults, and the check of the history at the end.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use std::{fs, thread};

use control_plane::{ControlPlane, NodeSpec};
use tempfile::TempDir;

use super::contender::{Contender, ContenderOptions, SharedState};
use super::shared_cluster::Access;
use super::tcp_proxy::TcpProxy;
use super::tls_proxy::TlsProxy;
use super::{TIME_LIMIT, processes};
use crate::checker::violations;
use crate::history::{Boot, Event, Exit, History};

/// The duration of a lease. It is short, so that a loss comes soon. It is longer than a busy machine stalls and a
/// command takes to end.
pub(crate) const LEASE: Duration = Duration::from_secs(12);

/// One node and its contenders. If it is dropped early, all its processes are killed.
pub(crate) struct Scenario {
    shared: Arc<SharedState>,
    plane: &'static ControlPlane,
    contenders: Vec<Contender>,
    events: Vec<Event>,
    directory: TempDir,
}

impl Scenario {
    /// A scenario on a new node. `name` is unique.
    pub(crate) fn new(access: &Access, name: &str) -> Self {
        let plane = access.plane();
        let directory = tempfile::Builder::new()
            .prefix("chaos-")
            .tempdir()
            .expect("a directory");
        let work = directory.path().join("work.sh");
        fs::write(work, include_str!("work.sh")).expect("a file");
        let mark = directory.path().display().to_string();
        let mark = (processes::MARK.to_owned(), mark);
        let shared = SharedState::new(name, directory.path().to_owned(), mark);
        fs::write(shared.journal(), "").expect("a file");
        let scenario = Self {
            shared,
            plane,
            contenders: Vec::new(),
            events: Vec::new(),
            directory,
        };
        scenario.create_node();
        scenario
    }

    pub(crate) fn node(&self) -> &str {
        &self.shared.node
    }

    pub(crate) fn create_node(&self) {
        let node = NodeSpec::ready(self.node());
        self.plane.create_nodes(&[node]).expect("a node");
    }

    /// Connects directly to the server, and runs one command after another.
    pub(crate) fn usual(&self) -> ContenderOptions {
        ContenderOptions {
            kubeconfig: self.plane.admin_kubeconfig().to_owned(),
            lease: LEASE,
            variables: Vec::new(),
            signs: 4,
            once: false,
        }
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn link(&self) -> TcpProxy {
        TcpProxy::new(self.plane, self.directory.path())
    }

    pub(crate) fn proxy(&self, ahead: i64) -> TlsProxy {
        TlsProxy::ahead(self.plane, self.directory.path(), ahead)
    }

    /// Starts a contender with a long command, and waits until that command has begun.
    #[track_caller]
    pub(crate) fn begins(&mut self, name: &str, options: ContenderOptions) -> Contender {
        let contender = Contender::start(name, options, &self.shared, true);
        self.contenders.push(contender.clone());
        self.begun(&contender);
        processes::are_seen(&self.shared.mark.1);
        contender
    }

    /// Starts more contenders for the node.
    pub(crate) fn joined_by(&mut self, names: &[&str]) {
        for name in names {
            self.joins(name, self.usual());
        }
    }

    pub(crate) fn joins(&mut self, name: &str, options: ContenderOptions) -> Contender {
        let contender = Contender::start(name, options, &self.shared, false);
        self.contenders.push(contender.clone());
        contender
    }

    #[track_caller]
    fn begun(&self, contender: &Contender) {
        let line = format!("begin {} ", contender.first_run());
        let deadline = Instant::now() + TIME_LIMIT;
        while !self.shared.read_journal().contains(&line) {
            assert!(Instant::now() < deadline, "timed out waiting for {line}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// From now on, no renewal of `holder`'s first run reaches the server.
    pub(crate) fn is_cut_off(&mut self, holder: &Contender) {
        self.events.push(Event::CutOff {
            run: holder.first_run(),
            at: Boot::now(),
            duration: holder.options.lease,
        });
    }

    /// Takes the lock of `holder`'s first run away.
    pub(crate) fn breaks<T>(&mut self, holder: &Contender, how: impl FnOnce(&Self) -> T) -> T {
        let from = Boot::now();
        let done = how(self);
        self.events.push(Event::Broken {
            run: holder.first_run(),
            from,
            until: Boot::now(),
            duration: holder.options.lease,
        });
        done
    }

    /// An administrator held the node from `from` until now.
    pub(crate) fn was_held(&mut self, from: Boot) {
        let until = Boot::now();
        self.events.push(Event::Hold { from, until });
    }

    /// Runs a command as an administrator, and expects success.
    #[track_caller]
    pub(crate) fn admin(&self, arguments: &[&str]) {
        let output = Command::new(env!("CARGO_BIN_EXE_kubectl-maint"))
            .env_clear()
            .env("HOME", self.directory.path())
            .env("KUBECONFIG", self.plane.admin_kubeconfig())
            .env("KUBECTL_MAINT_HOLDER", "admin@office")
            .args(arguments)
            .output()
            .expect("it was built");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
    }

    /// Waits until each contender except `holder` has run a command after now.
    #[track_caller]
    pub(crate) fn others_have_a_turn(&self, holder: &Contender) {
        self.turns(|contender| contender.name != holder.name);
    }

    /// Waits until each contender has run a command after now.
    #[track_caller]
    pub(crate) fn all_have_a_turn(&self) {
        self.turns(|_| true);
    }

    #[track_caller]
    fn turns(&self, of: impl Fn(&Contender) -> bool) {
        let now = Boot::now();
        for contender in self.contenders.iter().filter(|contender| of(contender)) {
            contender.works_after(now);
        }
    }

    /// Stops the contenders, and checks the history. Fails if a process is left or the guarantee was violated.
    #[track_caller]
    pub(crate) fn ends(mut self) -> History {
        self.shared.is_over.store(true, Ordering::Relaxed);
        let runs = self.shared.runs();
        processes::all_end(&self.shared.mark.1);
        let mut history = History {
            runs,
            events: std::mem::take(&mut self.events),
        };
        history
            .read(&self.shared.read_journal())
            .expect("a journal of theirs");
        let found = violations(&history);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert!(found.is_empty(), "{found:#?} in\n{history}");
        history
    }

    /// The output of all runs, except those that ended well.
    fn logs(&self) -> String {
        let files = fs::read_dir(self.directory.path()).into_iter().flatten();
        let logs = files.flatten().map(|entry| entry.path());
        let logs = logs.filter(|path| path.extension().is_some_and(|kind| kind == "log"));
        let shown = logs.filter_map(|path| {
            let text = fs::read_to_string(&path).ok()?;
            let is_ill = text.contains("error") || text.contains("warning");
            is_ill.then(|| format!("-- {}\n{text}", path.display()))
        });
        shown.collect()
    }
}

impl Drop for Scenario {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if thread::panicking() {
            use std::io::Write as _;
            // A closed stderr is no reason to fail.
            let _ = writeln!(std::io::stderr(), "{}", self.logs());
        }
        for contender in &self.contenders {
            contender.is_killed();
        }
    }
}

/// The exit code of a run whose lock was lost.
pub(crate) const LOST: Exit = Exit::Code(5);
/// The exit code of a run whose command ran to its end.
pub(crate) const DONE: Exit = Exit::Code(0);
