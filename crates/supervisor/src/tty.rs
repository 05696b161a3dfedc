//! Who has the terminal.

use std::fs::File;
use std::io;

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use rustix::process::Pid;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};

/// The terminal of this session, whatever stdin is.
pub(crate) const CONTROLLING: &str = "/dev/tty";

/// Makes `group` the one that reads from the terminal and gets the signals of its keys.
pub(crate) fn set_foreground(tty: &File, group: Pid) -> io::Result<()> {
    while_ttou_blocked(|| tcsetpgrp(tty, group))
}

/// From the background, such a call stops a process unless SIGTTOU is blocked: only during the call, because
/// children inherit the mask.
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
    /// Its settings when this process had it.
    modes: Termios,
    /// Whether the command has it, or takes it before it starts.
    pub(crate) given: bool,
}

impl Tty {
    /// `None` if there is no terminal, or if this process's group has no number there.
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

    /// Whether it is the command's by our doing.
    pub(crate) fn is_given(&self) -> bool {
        self.given
    }

    /// Gives it to the command's group. False if this process does not have it.
    pub(crate) fn give(&mut self, group: Pid) -> bool {
        if self.is_ours() && set_foreground(&self.device, group).is_ok() {
            self.given = true;
        }
        self.given
    }

    /// Takes it back from the command.
    pub(crate) fn take_back(&mut self) {
        if std::mem::take(&mut self.given) {
            // It may have been hung up: then nobody has it.
            let _result = set_foreground(&self.device, self.own_group);
        }
    }

    /// Restores its settings: a command that was ended by a signal could not do so itself.
    pub(crate) fn restore(&self) {
        let _result =
            while_ttou_blocked(|| tcsetattr(&self.device, OptionalActions::Drain, &self.modes));
    }
}
