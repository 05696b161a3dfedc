//! A node that several want, what is done to it, and at the end the judgment.

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

/// How long a lease is: short, so that a loss comes soon, and more than a busy machine stands still and the end of a
/// command takes.
pub(crate) const LEASE: Duration = Duration::from_secs(12);

/// One node and its contenders. Dropped in the midst of it, it ends all that it started.
pub(crate) struct Scenario {
    shared: Arc<SharedState>,
    plane: &'static ControlPlane,
    contenders: Vec<Contender>,
    events: Vec<Event>,
    directory: TempDir,
}

impl Scenario {
    /// On a new node. `name` is of this scenario alone.
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

    /// Goes straight to the server, and again after every command.
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

    /// Somebody takes the node, for a command that works until it is ended or told to finish.
    #[track_caller]
    pub(crate) fn begins(&mut self, name: &str, options: ContenderOptions) -> Contender {
        let contender = Contender::start(name, options, &self.shared, true);
        self.contenders.push(contender.clone());
        self.begun(&contender);
        processes::are_seen(&self.shared.mark.1);
        contender
    }

    /// Others want the node too.
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

    /// From now on nothing that `holder` sends in its first run renews its lease.
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

    /// An administrator had the node from then until now.
    pub(crate) fn was_held(&mut self, from: Boot) {
        let until = Boot::now();
        self.events.push(Event::Hold { from, until });
    }

    /// An administrator's command line, which succeeds.
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

    /// Waits until each contender but `holder` has had a turn after now.
    #[track_caller]
    pub(crate) fn others_have_a_turn(&self, holder: &Contender) {
        self.turns(|contender| contender.name != holder.name);
    }

    /// Waits until each contender has had a turn after now.
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

    /// Nobody begins anything new. Fails where a process is left or anything was not as it must be.
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

    /// What the runs said that did not end well.
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

/// The end of a run whose lock was lost.
pub(crate) const LOST: Exit = Exit::Code(5);
/// The end of a run whose command came to its own.
pub(crate) const DONE: Exit = Exit::Code(0);
