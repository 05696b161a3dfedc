//! The picture at the top of the README: two users want the same node. The plugin really runs, on an in-memory server
//! whose clock does not move during a command.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use chrono::DateTime;
use control_plane::target_dir;
use sandbox::{Node, Sandbox};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::svg::{Entry, Style, Terminal};
use crate::sandbox_cluster::SandboxCluster;

/// 2026-03-10, 15:00 UTC.
const BEGIN: i64 = 1_773_154_800;

/// The second of the minute at which the commands after the first lock begin. It keeps the time left far from the value
/// at which its rounding changes.
const SECOND: i64 = 20;

/// The plugin adds the time that has passed since an answer to the server's clock, and shows whole seconds. A command
/// that takes longer than this may show the next second.
const FAST_ENOUGH: Duration = Duration::from_millis(400);

/// How often to repeat a run in which a command was too slow.
const ATTEMPTS: usize = 20;

const ALICE: &str = "alice";
const BOB: &str = "bob";

/// The picture as SVG.
pub(super) fn render_svg() -> Result<String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    for _ in 0..ATTEMPTS {
        if let Some(entries) = runtime.block_on(record())? {
            let terminals = [ALICE, BOB].map(|holder| Terminal { title: holder });
            return Ok(super::svg::draw(
                "Alice locks a node. Bob is refused, waits, and gets the lock when Alice releases it.",
                &terminals,
                &entries,
            ));
        }
    }
    bail!("this machine is too busy: the commands took too long in {ATTEMPTS} runs")
}

/// The output of both terminals, in the order of time. `None` if a command was too slow.
async fn record() -> Result<Option<Vec<Entry>>> {
    let clock = Arc::new(AtomicI64::new(BEGIN));
    let now = Arc::clone(&clock);
    let sandbox = Sandbox::builder()
        .clock(move || DateTime::from_timestamp(now.load(Ordering::Relaxed), 0).unwrap_or_default())
        .seed(1)
        .build();
    let cluster = SandboxCluster::of(sandbox, Node::small_cluster()).await?;
    let mut recording = Recording {
        cluster,
        clock,
        entries: Vec::new(),
        began: Instant::now(),
        is_slow: false,
    };
    // The first lock also creates the Lease, which the picture does not show.
    recording.run(ALICE, 0, "acquire worker-1 -q", 0).await?;
    recording.run(ALICE, 0, "release worker-1 -q", 0).await?;
    recording.entries.clear();

    let acquire = "acquire worker-1 -m 'new kernel'";
    recording.run(ALICE, 4, acquire, 0).await?;
    let acquire = "acquire worker-1 -m 'disk check'";
    recording.run(BOB, 8, acquire, 3).await?;
    let acquire = "acquire worker-1 -m 'disk check' --wait";
    let waiting = recording.wait(BOB, 9, acquire).await?;
    // The clock does not move here. To the waiting command, a jump would look like a lost answer.
    recording.run(ALICE, 9, "release worker-1", 0).await?;
    recording.end(BOB, waiting).await?;
    Ok((!recording.is_slow).then_some(recording.entries))
}

struct Recording {
    cluster: SandboxCluster,
    clock: Arc<AtomicI64>,
    entries: Vec<Entry>,
    /// When the last command began.
    began: Instant,
    is_slow: bool,
}

/// A command that waits for a lock.
struct Waiting {
    child: Child,
    output: BufReader<tokio::process::ChildStdout>,
}

impl Recording {
    /// Runs a command at `minute`, which ends with this exit code.
    async fn run(&mut self, holder: &str, minute: i64, line: &str, code: i32) -> Result<()> {
        let mut command = self.command(holder, minute, line);
        let output = command.output().await.context("failed to run sh")?;
        self.check_time();
        let text = String::from_utf8(output.stdout)?;
        ensure!(
            output.status.code() == Some(code),
            "`{line}` ended with {}: {text}",
            output.status
        );
        for line in text.lines() {
            self.show(holder, line);
        }
        Ok(())
    }

    /// Starts a command, and waits until the command itself waits for the lock.
    async fn wait(&mut self, holder: &str, minute: i64, line: &str) -> Result<Waiting> {
        let mut command = self.command(holder, minute, line);
        let mut child = command.spawn().context("failed to run sh")?;
        let stdout = child.stdout.take().context("sh has no stdout")?;
        let mut output = BufReader::new(stdout);
        let mut line = String::new();
        while output.read_line(&mut line).await? > 0 {
            self.show(holder, line.trim_end());
            if line.starts_with("waiting") {
                self.check_time();
                return Ok(Waiting { child, output });
            }
            line.clear();
        }
        bail!("the command does not wait")
    }

    /// Reads the rest of the output of a waiting command.
    async fn end(&mut self, holder: &str, mut waiting: Waiting) -> Result<()> {
        let mut lines = waiting.output.lines();
        while let Some(line) = lines.next_line().await? {
            self.show(holder, &line);
        }
        let status = waiting.child.wait().await?;
        self.check_time();
        ensure!(
            status.success(),
            "the command that waited ended with {status}"
        );
        Ok(())
    }

    fn check_time(&mut self) {
        self.is_slow |= self.began.elapsed() > FAST_ENOUGH;
    }

    /// Sets the server's clock, shows the prompt, and returns the command. Everything that it prints goes to stdout.
    fn command(&mut self, holder: &str, minute: i64, line: &str) -> Command {
        self.began = Instant::now();
        let second = if minute > 4 { SECOND } else { 0 };
        self.clock
            .store(BEGIN + 60 * minute + second, Ordering::Relaxed);
        self.entries.push(Entry {
            terminal: usize::from(holder == BOB),
            style: Style::Prompt,
            text: format!("15:{minute:02} $ kubectl maint {line}"),
        });
        let plugin = target_dir().join("debug/kubectl-maint");
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!("exec \"$0\" {line} 2>&1"))
            .arg(plugin)
            .env_clear()
            .env("KUBECONFIG", self.cluster.kubeconfig())
            .env("KUBECTL_MAINT_HOLDER", holder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    fn show(&mut self, holder: &str, line: &str) {
        // The clock of this machine moves, but the server's does not.
        if line.starts_with("Warning: the local clock is ") {
            return;
        }
        self.entries.push(Entry {
            terminal: usize::from(holder == BOB),
            style: match line.split_once(':') {
                Some(("error", _)) => Style::Error,
                Some(("hint", _)) => Style::Hint,
                _ => Style::Output,
            },
            text: line.to_owned(),
        });
    }
}
