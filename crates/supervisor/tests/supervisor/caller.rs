//! A caller that runs a command, reports its events on a socket, and receives orders there.

use std::ffi::{OsStr, OsString};
use std::future::pending;
use std::os::unix::ffi::OsStrExt;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use supervisor::{Command, Event, Exit, Limits, Running, Signal, Signals};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::signal::unix::{SignalKind, signal};

use crate::harness::{parent, send};

pub(crate) const ARGUMENT: &str = "caller";

/// Arguments: `caller SOCKET|- GRACE_MS TERM_MS KILL_MS NAME=VALUE… -- COMMAND…`. A NAME without a value is
/// removed.
pub(crate) fn main() -> ExitCode {
    tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .expect("a runtime")
        .block_on(call())
}

async fn call() -> ExitCode {
    let mut arguments = std::env::args_os().skip(2);
    let socket = arguments.next().expect("a socket");
    let mut number = || -> i64 {
        let text = arguments.next().expect("a number");
        text.to_str()
            .and_then(|text| text.parse().ok())
            .expect("a number")
    };
    let (grace, term, kill) = (number(), number(), number());
    let environment: Vec<OsString> = arguments.by_ref().take_while(|word| word != "--").collect();
    let mut command = Command::new(arguments.collect())
        .grace(Duration::from_millis(grace.try_into().expect("a grace")));
    for setting in &environment {
        let bytes = setting.as_bytes();
        command = match bytes.iter().position(|&byte| byte == b'=') {
            Some(at) => command.env(
                OsStr::from_bytes(&bytes[..at]),
                OsStr::from_bytes(&bytes[at + 1..]),
            ),
            None => command.env_remove(setting),
        };
    }
    // A test on a terminal reads what it needs from the terminal.
    let on_terminal = socket == "-";
    let (stream, _quiet) = if on_terminal {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        (ours, Some(theirs))
    } else {
        let stream = UnixStream::connect(socket).await;
        (stream.expect("the test listens"), None)
    };
    let (orders, mut events) = stream.into_split();
    let mut orders = BufReader::new(orders).lines();
    let mut signals = Signals::new().expect("signals");
    let again = command.clone();
    let mut running = match command.start(limits(term, kill)).await {
        Ok(running) => running,
        Err(error) => {
            say(&mut events, format!("error {error}")).await;
            return ExitCode::FAILURE;
        }
    };
    let pid = running.pid().unwrap_or_default();
    say(&mut events, format!("started {pid}")).await;
    let mut ended = None;
    let mut reaping = pin!(supervisor::reap_orphans());
    let mut orphan = tokio::spawn(pending());
    loop {
        tokio::select! {
            event = running.next() => {
                let event = event.expect("an event");
                say(&mut events, format!("{event:?}")).await;
                match event {
                    Event::Exited(exit) => ended = Some(exit),
                    Event::Stopped(_) => drop(running.suspend(|| ())),
                    Event::Ended { .. } => return ExitCode::from(ended.map_or(99, Exit::code)),
                    _ => {}
                }
            }
            // A test on a terminal cannot send orders on the socket, so it sends signals.
            signal = signals.next() => match signal {
                Signal::USR1 if on_terminal => running.freeze(),
                Signal::USR2 if on_terminal => running.thaw(),
                signal => running.signal(signal),
            },
            impossible = &mut reaping => match impossible.expect("orphans") {},
            line = &mut orphan => {
                say(&mut events, line.expect("no panic")).await;
                orphan = tokio::spawn(pending());
            }
            order = orders.next_line() => match order.expect("an order").as_deref() {
                Some("again") => {
                    let error = again.clone().start(limits(term, kill)).await.expect_err("one at a time");
                    say(&mut events, format!("error {error}")).await;
                }
                Some("orphan") => orphan = tokio::spawn(create_orphan()),
                Some("drop") => {
                    drop(running);
                    say(&mut events, "dropped".to_owned()).await;
                    return pending().await;
                }
                Some("freeze") => running.freeze(),
                Some("thaw") => running.thaw(),
                Some("lose") => send(parent(pid), rustix::process::Signal::KILL),
                Some(order) => {
                    if apply_order(&mut running, order) {
                        say(&mut events, "limited".to_owned()).await;
                    }
                }
                None => return ExitCode::from(98),
            }
        }
    }
}

async fn say(events: &mut OwnedWriteHalf, mut line: String) {
    line.push('\n');
    let written = events.write_all(line.as_bytes()).await;
    written.expect("the test listens");
}

/// Only for a caller in its own container: starts children until an orphan that one of them left is gone.
/// Then only this process, the supervisor and the command remain.
async fn create_orphan() -> String {
    let mut ends = signal(SignalKind::child()).expect("a signal");
    let mut script = "setsid sh -c : & exit 7";
    loop {
        let mut child = std::process::Command::new("sh")
            .args(["-c", script])
            .spawn()
            .expect("a child");
        let status = loop {
            match child.try_wait().expect("its status is not taken away") {
                Some(status) => break status,
                None => ends.recv().await,
            };
        };
        let processes = std::fs::read_dir("/proc")
            .expect("processes")
            .filter(|entry| {
                let name = entry.as_ref().expect("a name").file_name();
                name.to_string_lossy().parse::<u32>().is_ok()
            });
        if processes.count() == 3 {
            return format!("own child {:?}, no zombie left", status.code());
        }
        script = "exit 7";
    }
}

/// Handles the orders `limits TERM_MS KILL_MS`, which is answered, and `end TERM_MS KILL_MS`. Returns whether
/// to answer.
fn apply_order(running: &mut Running, order: &str) -> bool {
    let words: Vec<&str> = order.split(' ').collect();
    let number = |at: usize| words[at].parse().expect("a number");
    let limits = limits(number(1), number(2));
    match words[0] {
        "limits" => running.limits(limits),
        "end" => running.end(limits),
        other => panic!("no such order: {other}"),
    }
    words[0] == "limits"
}

/// Limits in milliseconds from now.
fn limits(term: i64, kill: i64) -> Limits {
    let now = clock_gettime(ClockId::Boottime);
    let now = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
    Limits {
        term_at: now + term * 1_000,
        kill_at: now + kill * 1_000,
    }
}
