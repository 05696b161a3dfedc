//! Runs a command on this machine, and ends it with its descendants by a deadline.
//!
//! The guarantees depend on the operating system:
//!
//! | | Linux | macOS | Windows |
//! | --- | --- | --- | --- |
//! | what enforces the deadline | the supervisor, a process of its own | the caller | the caller |
//! | what is ended | all descendants | the process group | the job object: all descendants |
//! | asked to end first (TERM) | yes | yes | no: killed at the first limit |
//! | the caller is killed | the command is ended | **the command continues** | the command is killed |
//! | the caller is stopped | the command is ended by the deadline | **not until the caller continues** | **not until the caller continues** |
//! | can be frozen ([`Running::freeze`]) | yes | **no** | **no** |
//!
//! # Linux
//!
//! Three processes take part:
//!
//! - the *caller*, which knows how long the command may run and updates the limits after every renewal;
//! - the *supervisor*, its child: the same binary, started again, with no network and no other task than to
//!   enforce the deadline. It receives orders over a socket. If the socket is closed, the caller has died;
//! - the *command*, the supervisor's child, in its own process group.
//!
//! Caller and supervisor are child sub-reapers: if a process loses its parent, the supervisor adopts it. So
//! the tree below the supervisor in `/proc` contains all descendants of the command, in any process group or
//! session.
//!
//! If the supervisor is killed, the kernel kills the command, and the caller adopts and ends the rest. If
//! *both* are killed at once, the command itself still dies, but its descendants do not. The command does not
//! die either if it runs with other rights (`sudo`). If both are stopped, no process enforces the deadline
//! until one of them continues.
//!
//! Neither can signal processes of another user (`sudo`). Such processes are counted and reported, even if
//! `/proc` hides them (`hidepid`).
//!
//! # macOS and Windows
//!
//! On macOS, the command is a process group. A process that leaves the group, such as a daemon or a job of an interactive
//! shell, is not found and continues.
//!
//! On Windows, the command runs in a job object, which no process can leave. Windows kills the job object when the caller
//! ends. Console events such as Ctrl-C reach the command directly.
//!
//! # Example
//!
//! ```no_run
//! # async fn example(renewed: supervisor::Limits) -> Result<(), Box<dyn std::error::Error>> {
//! use supervisor::{Command, Event, Signals};
//!
//! let mut signals = Signals::new()?;
//! let command = Command::new(vec!["ssh".into(), "worker-1".into()]).env("MAINT_NODE", "worker-1");
//! let mut running = command.start(renewed).await?;
//! let mut exit = None;
//! let unkillable = loop {
//!     tokio::select! {
//!         event = running.next() => match event? {
//!             Event::Exited(how) => exit = Some(how),
//!             Event::Stopped(_) => drop(running.suspend(|| ())),
//!             Event::Ended { unkillable } => break unkillable,
//!             _ => {}
//!         },
//!         signal = signals.next() => running.signal(signal),
//!         // After a renewal: running.limits(…); after a loss: running.end(…).
//!     }
//! };
//! assert_eq!(unkillable, 0, "only then nothing of it runs any more");
//! # Ok(())
//! # }
//! ```
//!
//! A process that uses this library calls [`entry`] first in `main`, and runs one command at a time. Call
//! [`check`] before you lock anything for a command: it returns whether commands can be run.
#![warn(missing_docs)]

mod command;
mod error;
mod event;
mod exit;
mod limits;
mod not_run;
#[cfg_attr(
    not(target_os = "linux"),
    allow(
        dead_code,
        reason = "only Linux can freeze a command and lose its caller"
    )
)]
mod plan;
mod program;
pub mod under_lease;

// Only this file, `program.rs` and the folders of systems select code by operating system. On Linux, `elsewhere/` is compiled only for tests.

#[cfg(any(test, not(target_os = "linux")))]
#[cfg_attr(
    target_os = "linux",
    allow(dead_code, unreachable_pub, reason = "on Linux, only its tests use it")
)]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(unix)]
mod unix;

pub use command::Command;
pub use error::StartError;
pub use event::Event;
pub use exit::{Exit, Signal};
pub use limits::Limits;
pub use program::find_program;

#[cfg(windows)]
use elsewhere::signal_numbers;
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{Running, check, entry, kill_tree};
#[cfg(windows)]
pub use elsewhere::{Signals, termination};
#[cfg(target_os = "linux")]
pub use linux::{Running, check, entry, kill_tree, reap_orphans};
#[cfg(unix)]
use unix::signal_numbers;
#[cfg(unix)]
pub use unix::signals::{Ignored, Signals, termination};
