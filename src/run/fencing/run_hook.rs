//! Runs a hook under the supervisor, to end all of its processes whatever happens to it or to us.

use std::io::{self, ErrorKind, PipeReader, Read as _};
use std::pin::pin;
use std::time::Duration;

use anyhow::Context as _;
use futures::future::OptionFuture;
use maintenance_lease::env::{Env as _, Machine};
use maintenance_lease::protocol::BootInstant;
use supervisor::{Command, Event, Exit, Limits, Signal, Signals};
use tokio::sync::mpsc::{Receiver, channel};

use crate::error::HookEnd;
use crate::run::interruption::LAST_CHANCE;
use crate::ui::Terminal;
use crate::words::fencing::{HOOK_NOT_RUN, HOOK_STILL_RUNNING, PROCESSES_LEFT, hook_not_followed};

/// The time between TERM and KILL for a hook and its processes.
pub(super) const GRACE: Duration = Duration::from_secs(10);

/// How many bytes of the end of its output are kept.
pub(crate) const KEPT_OUTPUT: usize = 1024;

/// How long to read on after all of its processes have ended.
const DRAIN: Duration = Duration::from_millis(500);

/// The signals that ask a program to end.
const ENDING: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];

/// How a hook ended.
pub(super) struct Ended {
    /// How it failed.
    pub(super) failed: Option<HookEnd>,
    /// Somebody interrupted it. At a terminal, Ctrl-C reaches the hook directly.
    pub(super) is_interrupted: bool,
    /// The end of its output.
    pub(super) output: String,
}

/// Runs `command` until `limit` after `begun` at most, and prints its output. The command gets the signals of this
/// process. The first one that asks it to end gives it [`GRACE`]; a second one ends it, with all of its processes.
///
/// # Errors
/// If it can't be run.
pub(super) async fn run(
    terminal: &Terminal,
    command: Command,
    begun: BootInstant,
    limit: Duration,
) -> anyhow::Result<Ended> {
    let mut signals = Signals::new().context(HOOK_NOT_RUN)?;
    let (reader, writer) = std::io::pipe().context(HOOK_NOT_RUN)?;
    let mut output = Output {
        chunks: chunks_of(reader).context(HOOK_NOT_RUN)?,
        terminal,
        kept: Vec::new(),
        is_over: false,
    };
    let planned = limits(begun, limit, GRACE);
    let mut running = command
        .output(writer)
        .grace(GRACE)
        .start(planned)
        .await
        .context(HOOK_NOT_RUN)?;
    let mut exit = None;
    let mut is_late = false;
    let mut is_asked_to_end = false;
    let mut notice = pin!(None);
    let left = loop {
        tokio::select! {
            biased;
            signal = signals.next() => {
                if !ENDING.contains(&signal) {
                    running.signal(signal);
                } else if std::mem::replace(&mut is_asked_to_end, true) {
                    running.end(limits(Machine.boot(), Duration::ZERO, LAST_CHANCE));
                } else {
                    running.signal(signal);
                    let interrupted =
                        limits(Machine.boot(), GRACE - LAST_CHANCE, LAST_CHANCE);
                    running.limits(Limits {
                        term_at: planned.term_at.min(interrupted.term_at),
                        kill_at: planned.kill_at.min(interrupted.kill_at),
                    });
                    notice.set(Some(tokio::time::sleep(LAST_CHANCE)));
                }
            }
            Some(()) = OptionFuture::from(notice.as_mut().as_pin_mut()) => {
                terminal.remark(HOOK_STILL_RUNNING);
                notice.set(None);
            }
            event = running.next() => match event {
                Ok(Event::Stopped(_)) => {
                    running.suspend(|| ());
                }
                Ok(Event::OutOfTime) => is_late = true,
                Ok(Event::Exited(how)) => exit = Some(how),
                Ok(Event::Ended { unkillable }) => break unkillable,
                Ok(_) => {}
                Err(error) => {
                    terminal.error(&hook_not_followed(&error));
                    break 1;
                }
            },
            () = output.more(), if !output.is_over => {}
        }
    };
    output.drain().await;
    if left > 0 {
        terminal.warn(PROCESSES_LEFT);
    }
    // A shell reports a program that was ended by SIGINT like this.
    let interrupted = Exit::Signal(Signal::INT).code();
    let is_interrupted = !is_late && exit.is_some_and(|exit| exit.code() == interrupted);
    let failed = match exit {
        _ if is_late => Some(HookEnd::TimedOut(limit)),
        Some(Exit::Code(0)) => None,
        Some(exit) => Some(HookEnd::Exited(exit)),
        None => Some(HookEnd::Unknown),
    };
    Ok(Ended {
        failed,
        is_interrupted,
        output: output.end(),
    })
}

/// TERM `term` after `begun`, and KILL `grace` after that.
fn limits(begun: BootInstant, term: Duration, grace: Duration) -> Limits {
    let micros = |length: Duration| i64::try_from(length.as_micros()).unwrap_or(i64::MAX);
    let term_at = begun.as_micros().saturating_add(micros(term));
    Limits {
        term_at,
        kill_at: term_at.saturating_add(micros(grace)),
    }
}

/// What can be read from `pipe`, piece by piece. It is read by a thread, because not every system can wait for a pipe
/// otherwise. If a process that could not be ended keeps the pipe open, the thread lasts as long as this process.
fn chunks_of(mut pipe: PipeReader) -> io::Result<Receiver<Vec<u8>>> {
    let (sender, receiver) = channel(1);
    std::thread::Builder::new().spawn(move || {
        let mut buffer = [0; 4096];
        loop {
            match pipe.read(&mut buffer) {
                Ok(count @ 1..) if sender.blocking_send(buffer[..count].to_vec()).is_ok() => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => break,
            }
        }
    })?;
    Ok(receiver)
}

/// The output of a hook.
struct Output<'a> {
    chunks: Receiver<Vec<u8>>,
    terminal: &'a Terminal,
    kept: Vec<u8>,
    is_over: bool,
}

impl Output<'_> {
    /// Waits for more output and prints it. Dropping the future loses nothing.
    async fn more(&mut self) {
        let Some(chunk) = self.chunks.recv().await else {
            self.is_over = true;
            return;
        };
        self.terminal.pass_on(&chunk);
        self.kept.extend_from_slice(&chunk);
        let surplus = self.kept.len().saturating_sub(KEPT_OUTPUT);
        self.kept.drain(..surplus);
    }

    async fn drain(&mut self) {
        let draining = async {
            while !self.is_over {
                self.more().await;
            }
        };
        // A process that could not be ended may keep the pipe open.
        let _ = tokio::time::timeout(DRAIN, draining).await;
    }

    /// The end of the output, as text.
    fn end(self) -> String {
        String::from_utf8_lossy(&self.kept).trim().to_owned()
    }
}
