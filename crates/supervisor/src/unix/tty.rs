//! Which process group has the terminal.

use std::fs::File;
use std::io;

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use rustix::process::Pid;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};

/// The terminal of this session, regardless of stdin.
pub(crate) const CONTROLLING: &str = "/dev/tty";

/// Makes `group` the foreground group, which reads from the terminal and gets the signals of its keys.
pub(crate) fn set_foreground(tty: &File, group: Pid) -> io::Result<()> {
    while_ttou_blocked(|| tcsetpgrp(tty, group))
}

/// Runs `call` with SIGTTOU blocked. From the background, such a call would stop this process. The signal is
/// blocked only during the call, because children inherit the mask.
fn while_ttou_blocked(call: impl FnOnce() -> rustix::io::Result<()>) -> io::Result<()> {
    let ttou = SigSet::from(Signal::SIGTTOU);
    let before = ttou.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let result = call();
    before.thread_set_mask()?;
    Ok(result?)
}

/// The terminal of this process and its command.
#[derive(Debug)]
pub(crate) struct Tty {
    device: File,
    own_group: Pid,
    /// The settings of the terminal when this process had it.
    modes: Termios,
    /// Whether the command has it, or will take it before it starts.
    pub(crate) given: bool,
}

impl Tty {
    /// Opens the terminal; `None` if there is none, or if this process's group was created outside this
    /// container.
    pub(crate) fn open() -> Option<Self> {
        let device = File::open(CONTROLLING).ok()?;
        let modes = tcgetattr(&device).ok()?;
        Some(Self {
            device,
            modes,
            own_group: Pid::from_raw(nix::unistd::getpgrp().as_raw())?,
            given: false,
        })
    }

    /// Whether this process's group has it.
    pub(crate) fn is_ours(&self) -> bool {
        tcgetpgrp(&self.device).is_ok_and(|group| group == self.own_group)
    }

    /// Whether this process has given it to the command.
    pub(crate) fn is_given(&self) -> bool {
        self.given
    }

    /// Gives it to the command's group. Returns false if neither this process nor the command has it.
    pub(crate) fn give(&mut self, group: Pid) -> bool {
        if self.is_ours() && set_foreground(&self.device, group).is_ok() {
            self.given = true;
        }
        self.given
    }

    /// Takes it back from the command.
    pub(crate) fn take_back(&mut self) {
        if std::mem::take(&mut self.given) {
            // This fails if the terminal was hung up. Then no process has it.
            let _result = set_foreground(&self.device, self.own_group);
        }
    }

    /// Restores its settings, because a command that was ended by a signal could not do so itself.
    pub(crate) fn restore(&self) {
        let _result =
            while_ttou_blocked(|| tcsetattr(&self.device, OptionalActions::Drain, &self.modes));
    }
}
