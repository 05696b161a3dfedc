//! A node, and a machine on which runbooks run.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use control_plane::{Binary, ControlPlane, NodeSpec};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;

use crate::inherited;
use crate::namespace::shared_with_namespace;

/// The directory of the runbooks.
pub(crate) const RUNBOOKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/runbooks");
const STAND_IN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/runbooks/stand-in.sh");
const PLAYED: [&str; 5] = ["kubectl", "ssh", "systemctl", "apt-get", "logger"];

/// The node of a test, in its first boot, and a directory for all other files.
pub(crate) struct TestMachine {
    plane: &'static ControlPlane,
    pub(crate) node: String,
    directory: TempDir,
}

/// A run of a runbook that has not started.
pub(crate) struct Runbook {
    command: Command,
    stdin: String,
}

/// A run in progress.
pub(crate) struct Running {
    child: Child,
    stderr: BufReader<ChildStderr>,
    heard: String,
    stopped: Option<Stopped>,
}

/// A step that was stopped and does not continue.
#[derive(Clone, Copy)]
pub(crate) struct Stopped {
    /// The program that the runbook called.
    pub(crate) program: Pid,
    /// The shell that called it.
    pub(crate) caller: Pid,
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// `None` if it was killed.
    pub(crate) code: Option<i32>,
}

impl TestMachine {
    pub(crate) fn new(name: &str) -> Self {
        inherited::catch_what_is_ignored();
        let plane = shared_with_namespace();
        let directory = tempfile::tempdir().expect("a directory");
        let machine = Self {
            plane,
            node: format!("node-{name}"),
            directory,
        };
        std::fs::create_dir(machine.path("bin")).expect("a directory");
        for name in PLAYED {
            symlink(STAND_IN, machine.path("bin").join(name)).expect("a link");
        }
        let plugin = env!("CARGO_BIN_EXE_kubectl-maint");
        symlink(plugin, machine.path("bin/kubectl-maint")).expect("a link");
        for file in ["boots", "boot-id"] {
            std::fs::write(machine.path(file), "boot-1\n").expect("a file");
        }
        plane
            .create_nodes(&[NodeSpec::ready(&machine.node)])
            .expect("a new node");
        let status = json!({"status": {"nodeInfo": {"bootID": "boot-1"}}});
        machine.patch_status(&status.to_string());
        machine
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// A runbook for the node, in an environment with only the variables that it needs.
    pub(crate) fn runbook(&self, name: &str) -> Runbook {
        self.script(name).arg(&self.node)
    }

    /// A runbook without a node as argument, because it works on its own machine.
    pub(crate) fn script(&self, name: &str) -> Runbook {
        self.program(&Path::new(RUNBOOKS).join(name))
    }

    /// Any other program, run like a runbook.
    pub(crate) fn program(&self, program: &Path) -> Runbook {
        let kubectl = Binary::Kubectl.locate().expect("kubectl was built");
        let mut command = Command::new(program);
        command
            .env_clear()
            .env(
                "PATH",
                format!("{}:/usr/bin:/bin", self.path("bin").display()),
            )
            .env("HOME", self.directory.path())
            .env("USER", "alice")
            .env("KUBECONFIG", self.plane.admin_kubeconfig())
            .env("KUBECTL", kubectl)
            .env("STAGE", self.directory.path())
            .env("TESTS", std::process::id().to_string())
            .env("NODE", &self.node);
        Runbook {
            command,
            stdin: String::new(),
        }
    }

    /// Runs kubectl as the administrator, independently of the runbook.
    #[track_caller]
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        self.plane.kubectl(arguments).expect("kubectl succeeds")
    }

    /// kubectl as the administrator, independently of the runbook.
    pub(crate) fn kubectl_command(&self) -> Command {
        self.plane.kubectl_command().expect("kubectl was built")
    }

    /// Runs the plugin as `holder`, independently of the runbook.
    pub(crate) fn maint(&self, holder: &str, arguments: &[&str]) -> Run {
        let output = Command::new(env!("CARGO_BIN_EXE_kubectl-maint"))
            .env_clear()
            .env("KUBECONFIG", self.plane.admin_kubeconfig())
            .env("KUBECTL_MAINT_HOLDER", holder)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .expect("the plugin was built");
        Run {
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            code: output.status.code(),
        }
    }

    /// The state of the lock and the node, as in `status`.
    #[track_caller]
    pub(crate) fn status(&self) -> String {
        let run = self.maint("anybody", &["status", &self.node, "--no-headers"]);
        assert_eq!(run.code, Some(0), "{run:?}");
        let row = run.stdout.lines().next().expect("a row");
        let cells: Vec<&str> = row.split("   ").map(str::trim).collect();
        let cells: Vec<&str> = cells.into_iter().filter(|cell| !cell.is_empty()).collect();
        match cells[..] {
            // Whether the kubelet reports is left out.
            [_, state, .., node] => format!("{state} {}", node.replace(" (reporting)", "")),
            _ => panic!("{row}"),
        }
    }

    /// The steps so far, one per line, with placeholders for names. Reads with kubectl are left out.
    pub(crate) fn steps(&self) -> String {
        let directory = self.directory.path().to_string_lossy().into_owned();
        self.read("steps")
            .lines()
            .filter(|step| !step.starts_with("kubectl get "))
            .map(|step| {
                let words = step.split(' ').map(|word| match word {
                    _ if is_lock_id(word) => "ID",
                    _ if word.ends_with("/bash") => "bash",
                    _ => word,
                });
                let step = words.collect::<Vec<_>>().join(" ");
                step.replace(RUNBOOKS, "docs/runbooks")
                    .replace(&directory, "STAGE")
                    .replace(&self.node, "NODE")
            })
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Whether `step`, a program and some of its arguments, was run.
    pub(crate) fn did(&self, step: &str) -> bool {
        let (program, words) = step.split_once(' ').expect("a program and words");
        let steps = self.steps();
        let mut steps = steps.lines().filter_map(|step| step.strip_prefix(program));
        steps.any(|step| format!("{step} ").contains(&format!(" {words} ")))
    }

    /// Deletes the record of the steps so far.
    pub(crate) fn forget_steps(&self) {
        std::fs::remove_file(self.path("steps")).expect("something was done");
    }

    /// The kubelet reports the node as Ready again.
    pub(crate) fn becomes_ready(&self) {
        self.patch_status(
            r#"{"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}}"#,
        );
    }

    /// Makes the node's lock expire an hour and a half ago.
    pub(crate) fn lease_runs_out(&self) {
        let then = chrono::Utc::now() - chrono::TimeDelta::minutes(150);
        let then = then.to_rfc3339_opts(chrono::SecondsFormat::Micros, true);
        let patch = json!({"spec": {"acquireTime": then, "renewTime": then}}).to_string();
        self.kubectl(&[
            "patch",
            "lease",
            &self.node,
            "--namespace=kube-node-maintenance",
            "--type=merge",
            "--patch",
            &patch,
        ]);
    }

    fn patch_status(&self, patch: &str) {
        let arguments = ["patch", "node", &self.node, "--subresource=status"];
        self.kubectl(&[&arguments[..], &["--patch", patch]].concat());
    }
}

impl Runbook {
    pub(crate) fn arg(mut self, argument: &str) -> Self {
        self.command.arg(argument);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn stdin(mut self, text: &str) -> Self {
        text.clone_into(&mut self.stdin);
        self
    }

    /// The command that would be run, for tests that give it a terminal.
    pub(crate) fn command(self) -> Command {
        self.command
    }

    pub(crate) fn run(self) -> Run {
        self.start().ends()
    }

    #[track_caller]
    pub(crate) fn succeeds(self) -> Run {
        let run = self.run();
        assert_eq!(run.code, Some(0), "{run:?}");
        run
    }

    pub(crate) fn start(mut self) -> Running {
        let mut child = self
            .command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the runbook can be run");
        let mut stdin = child.stdin.take().expect("a pipe");
        // A runbook may end without reading this.
        let _ = stdin.write_all(self.stdin.as_bytes());
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        Running {
            child,
            stderr,
            heard: String::new(),
            stopped: None,
        }
    }

    /// Starts it, and waits until `step`, a program and some of its arguments, has begun. That program stops there.
    pub(crate) fn stops_at(self, step: &str) -> (Running, Stopped) {
        let mut running = self.env("STOP_AT", step).start();
        let ids = running.hears("stopped: ");
        let (program, caller) = ids.split_once(" of ").expect("two process ids");
        let stopped = Stopped {
            program: pid(program),
            caller: pid(caller),
        };
        running.stopped = Some(stopped);
        (running, stopped)
    }
}

impl Running {
    /// Waits for a line on stderr that begins with `beginning`, and returns the rest of it.
    #[track_caller]
    pub(crate) fn hears(&mut self, beginning: &str) -> String {
        loop {
            let mut line = String::new();
            let read = self.stderr.read_line(&mut line).expect("a pipe");
            assert_ne!(read, 0, "it ended before {beginning:?}: {}", self.heard);
            self.heard.push_str(&line);
            if let Some(rest) = line.strip_prefix(beginning) {
                return rest.trim().to_owned();
            }
        }
    }

    /// The first process: the shell of the runbook, or the program that replaced it.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits until all of its processes have ended, which is when stderr is closed.
    pub(crate) fn ends(mut self) -> Run {
        self.stderr.read_to_string(&mut self.heard).expect("text");
        let mut stdout = String::new();
        let mut pipe = self.child.stdout.take().expect("a pipe");
        pipe.read_to_string(&mut stdout).expect("text");
        self.stopped = None;
        Run {
            stdout,
            stderr: std::mem::take(&mut self.heard),
            code: self.child.wait().expect("it is our child").code(),
        }
    }
}

impl Drop for Running {
    /// Kills the stopped program, to leave no process behind if the test fails.
    fn drop(&mut self) {
        if let Some(stopped) = self.stopped {
            kill(stopped.program);
        }
    }
}

/// Kills a process, as `kill -9` does.
pub(crate) fn kill(process: Pid) {
    // It may have ended by itself.
    let _ = kill_process(process, Signal::KILL);
}

fn pid(text: &str) -> Pid {
    let number = text.parse().expect("a number");
    Pid::from_raw(number).expect("a process id")
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("output is UTF-8")
}

/// Whether a word is a lock id: uid, transitions and nonce.
fn is_lock_id(word: &str) -> bool {
    let parts: Vec<&str> = word.split('.').collect();
    matches!(parts[..], [uid, transitions, _] if uid.len() == 36 && transitions.parse::<u32>().is_ok())
}
