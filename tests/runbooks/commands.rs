//! The commands in the README and docs/tasks.md, on a cluster like that of `cargo xtask try --shell`.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use control_plane::Binary;
use rustix::process::{Pid, Signal, kill_process};
use sandbox::{Node, Sandbox};

use crate::inherited;

const README: &str = include_str!("../../README.md");
const TASKS: &str = include_str!("../../docs/tasks.md");

/// A line of a page.
struct Line {
    command: &'static str,
    comment: &'static str,
}

/// All lines, in their order.
fn lines() -> Vec<Line> {
    let (_, rest) = README.split_once("\n## Quick start\n").expect("a section");
    let (quick_start, _) = rest.split_once("\n## ").expect("its end");
    let blocks = [quick_start, TASKS]
        .into_iter()
        .flat_map(|page| page.split("```sh\n").skip(1));
    let commands = blocks.map(|block| block.split_once("```").expect("its end").0);
    let lines = commands
        .flat_map(str::lines)
        .filter(|line| !line.is_empty());
    let lines = lines.map(|line| {
        let (command, comment) = line.split_once(" # ").unwrap_or((line, ""));
        Line { command, comment }
    });
    lines.collect()
}

/// The output of a run, and its exit code as a shell shows it. A command that would not end is interrupted after its
/// first line.
fn ends(mut child: Child, interrupt: bool) -> (String, Option<i32>) {
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut said = String::new();
    if interrupt {
        stdout.read_line(&mut said).expect("text");
        let pid = Pid::from_child(&child);
        kill_process(pid, Signal::INT).expect("it runs");
    }
    stdout.read_to_string(&mut said).expect("text");
    let output = child.wait_with_output().expect("an end");
    said.push_str(&String::from_utf8(output.stderr).expect("text"));
    let signal = output.status.signal().map(|signal| 128 + signal);
    (said, output.status.code().or(signal))
}

#[test]
fn they_all_work_in_their_order() {
    inherited::catch_what_is_ignored();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let sandbox = Sandbox::new();
    sandbox.put(serde_json::json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-node-maintenance"},
    }));
    for node in Node::small_cluster() {
        sandbox.add_node(node);
    }
    let serving = runtime.block_on(sandbox.serve("127.0.0.1:0"));
    let serving = serving.expect("a free port");
    let home = tempfile::tempdir().expect("a directory");
    let kubeconfig = home.path().join("kubeconfig");
    std::fs::write(&kubeconfig, sandbox.kubeconfig(&serving.url)).expect("a file");
    let kubectl = Binary::Kubectl.locate().expect("kubectl was built");
    let directory = |program: &Path| program.parent().expect("a directory").display().to_string();
    let path = [
        directory(Path::new(env!("CARGO_BIN_EXE_kubectl-maint"))),
        directory(&kubectl),
        "/usr/bin:/bin".to_owned(),
    ]
    .join(":");

    // Lines that need another machine are left out. Lines that ask for a confirmation get `--yes`.
    let lines: Vec<Line> = lines();
    let here = lines.iter().filter(|line| !line.command.contains("ssh "));
    let mut tried = 0;
    for Line { command, comment } in here {
        let asks = comment.contains("asks you to confirm");
        let yes = if asks { "--yes" } else { "" };
        let goes_on = command.contains("status -w");
        // `status -w` may print no rows, but always prints on stderr how many nodes it left out.
        let all = if goes_on { "2>&1" } else { "" };
        let child = Command::new("/bin/sh")
            .args(["-c", &format!("exec {command} {yes} {all}")])
            .env_clear()
            .env("PATH", &path)
            .env("HOME", home.path())
            .env("USER", "alice")
            .env("KUBECONFIG", &kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a shell");
        let (said, code) = ends(child, goes_on);
        let expected = if goes_on { 130 } else { 0 };
        assert_eq!(code, Some(expected), "{command}\n{said}");
        let warns = said.contains("Warning: ") || said.contains("error: ");
        assert_eq!(warns, asks, "{command}\n{said}");
        tried += 1;
    }
    assert!(tried > 10, "the pages have more to try");
}
