//! The supervisor: starts the command, enforces its limits, and ends the command and all its descendants.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use boot_clock::now;
use nix::sys::signal::{SigSet, Signal as Number, killpg};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus, getpid, set_child_subreaper, wait};
use tokio::signal::unix::{SignalKind, signal};

use crate::linux::alarm::Alarm;
use crate::linux::channel::{Channel, receive_file};
use crate::linux::children::Children;
use crate::linux::command_processes::{CommandProcesses, RootProcess};
use crate::linux::freeze::Freeze;
use crate::linux::launch;
use crate::linux::message::{Order, Start, SupervisorReport};
use crate::plan::{Due, Plan};
use crate::{Exit, Signal};

/// The hidden first argument that makes a process a supervisor.
pub(crate) const ARGUMENT: &str = "__supervise";

/// The process name of the supervisor. It differs from the caller's, so that `killall` with the caller's name
/// does not hit both.
pub(crate) const NAME: &str = "supervisor";

/// How many children are reaped before the limits are checked again. A command that forks endlessly must not
/// keep the supervisor from ending it.
const REAPED_AT_ONCE: usize = 1_000;

/// Runs the supervisor until no process of the command is left.
pub(crate) fn supervise() -> io::Result<()> {
    rustix::thread::set_name(&std::ffi::CString::new(NAME)?)?;
    // Requests to end the command go to the caller, so the supervisor blocks all signals. The command gets an
    // empty mask again.
    let mut blocked = SigSet::all();
    blocked.remove(Number::SIGCHLD);
    blocked.thread_set_mask()?;
    set_child_subreaper(Some(getpid()))?;
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let stdin = receive_file(&socket)?;
    tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?
        .block_on(async {
            let mut channel = Channel::new(socket)?;
            match channel.receive().await {
                Some(Order::Start(order)) => run(channel, order, stdin).await,
                _ => Ok(()),
            }
        })
}

async fn run(mut channel: Channel, order: Start, stdin: OwnedFd) -> io::Result<()> {
    // Listens to SIGCHLD. If the parent of the caller ignored it, children would be reaped automatically and
    // their exit codes lost.
    let mut children = signal(SignalKind::child())?;
    let mut alarm = Alarm::new()?;
    let mut plan = Plan::new(order.limits, order.grace);
    if plan.due(now()).is_some() {
        channel.send(&SupervisorReport::TooLate);
        return Ok(());
    }
    let command = match start(&order, stdin) {
        Ok(pid) => pid,
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error());
            channel.send(&SupervisorReport::Failed { errno });
            return Ok(());
        }
    };
    channel.send(&SupervisorReport::Started {
        pid: command.as_raw_pid(),
    });
    let mut supervisor = Supervisor {
        channel,
        plan,
        command: Some(command),
        processes: CommandProcesses::new(RootProcess::Supervisor),
        freeze: None,
    };
    loop {
        if let Some(unkillable) = supervisor.turn()? {
            supervisor
                .channel
                .send(&SupervisorReport::Ended(unkillable));
            return Ok(());
        }
        alarm.set(supervisor.next())?;
        tokio::select! {
            biased;
            order = supervisor.channel.receive(), if !supervisor.channel.ended() => {
                if let Some(order) = order {
                    supervisor.handle_order(&order);
                }
            }
            _child = children.recv() => {}
            fired = alarm.fired() => fired?,
        }
    }
}

/// Starts the stage that becomes the command.
fn start(order: &Start, stdin: OwnedFd) -> io::Result<Pid> {
    let mut stage = Command::new("/proc/self/exe");
    stage
        .args(launch::arguments(order.foreground))
        .args::<_, &OsString>(&order.argv)
        .stdin(Stdio::from(stdin))
        .process_group(0);
    let child = stage.spawn()?;
    Ok(Pid::from_child(&child))
}

struct Supervisor {
    channel: Channel,
    plan: Plan,
    /// `None` once the command was reaped. Its pid and group number may then belong to other processes.
    command: Option<Pid>,
    processes: CommandProcesses,
    /// Set while all processes are to be stopped.
    freeze: Option<Freeze>,
}

impl Supervisor {
    /// Does what is due now. Returns the number of remaining processes once there is nothing to wait for.
    fn turn(&mut self) -> io::Result<Option<usize>> {
        while let Some(order) = self.channel.received() {
            self.handle_order(&order);
        }
        if self.channel.ended() {
            self.plan.abandon(now());
        }
        if self.reap()? {
            return Ok(Some(0));
        }
        if self.command.is_none() {
            self.left()?;
        }
        let now = now();
        if self.freeze.is_some() {
            self.plan.all_stopped(now);
        }
        let due = self.plan.due(now);
        self.report_out_of_time();
        match due {
            Some(Due::Ask) => {
                // A process must run to handle TERM.
                self.freeze = None;
                self.processes.ask();
            }
            Some(Due::Kill) => self.channel.send(&SupervisorReport::Killing),
            None => self.stop(now)?,
        }
        if self.plan.killing() && self.processes.check_at().is_none_or(|at| now >= at) {
            return Ok(self.processes.kill(now));
        }
        Ok(None)
    }

    /// When there is something to do even without an event.
    fn next(&self) -> Option<i64> {
        if self.plan.killing() {
            return self.processes.check_at();
        }
        let check = self.freeze.as_ref().map(Freeze::check_at);
        self.plan.next().into_iter().chain(check).min()
    }

    fn handle_order(&mut self, order: &Order) {
        match order {
            Order::Limits(limits) => self.plan.limits(*limits),
            Order::End(limits) => self.plan.end(*limits),
            Order::Signal(signal) => {
                let freeze = self.freeze.as_mut();
                if !freeze.is_some_and(|freeze| freeze.holds_back(*signal)) {
                    self.forward(*signal);
                }
            }
            Order::Freeze => {
                if self.freeze.is_none() && self.plan.running() {
                    self.freeze = Some(Freeze::new(now()));
                }
            }
            Order::Thaw => self.thaw(),
            Order::Start(_) => {}
        }
    }

    /// Stops the processes that should be stopped and are still running.
    fn stop(&mut self, now: i64) -> io::Result<()> {
        if let Some(freeze) = &mut self.freeze
            && now >= freeze.check_at()
            && freeze.stop(&self.processes.members()?, now)
        {
            self.channel.send(&SupervisorReport::Frozen);
        }
        Ok(())
    }

    fn thaw(&mut self) {
        let Some(freeze) = self.freeze.take() else {
            return;
        };
        let was_complete = freeze.is_complete();
        let members = self.processes.members().unwrap_or_default();
        for signal in freeze.thaw(&members) {
            self.forward(signal);
        }
        if was_complete {
            self.channel.send(&SupervisorReport::Thawed);
        }
    }

    fn forward(&self, Signal(number): Signal) {
        if let Some(group) = self.command
            && let Ok(number) = Number::try_from(number)
        {
            // The group has ended or belongs to another user, so there is nothing to forward to.
            let _result = killpg(nix::unistd::Pid::from_raw(group.as_raw_pid()), number);
        }
    }

    /// Records what happened to the children. Returns true once there are none. This process adopts every
    /// orphan, so then no descendant is left either.
    fn reap(&mut self) -> io::Result<bool> {
        let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
        for _ in 0..REAPED_AT_ONCE {
            match wait(options) {
                Ok(Some((pid, status))) if Some(pid) == self.command => self.command_is(status),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return Ok(false),
                Err(Errno::CHILD) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }

    fn command_is(&mut self, status: WaitStatus) {
        if status.stopped() {
            let signal = Signal(status.stopping_signal().unwrap_or_default());
            // The supervisor itself caused this stop.
            if !(self.freeze.is_some() && signal == Signal::STOP) {
                self.channel.send(&SupervisorReport::Stopped(signal));
            }
        } else {
            self.plan.exited(now());
            self.report_out_of_time();
            self.channel
                .send(&SupervisorReport::Exited(Exit::of(status)));
            self.command = None;
        }
    }

    fn report_out_of_time(&mut self) {
        if self.plan.ran_out() {
            self.channel.send(&SupervisorReport::OutOfTime);
        }
    }

    /// Handles processes that still run after the command has ended.
    fn left(&mut self) -> io::Result<()> {
        if self.plan.left(now()) {
            let seen = self.processes.members()?.len();
            let hidden = seen == 0 && Children::now() == Children::Alive;
            let count = if hidden { 1 } else { seen };
            if count > 0 {
                self.channel.send(&SupervisorReport::Left(count));
            }
        }
        Ok(())
    }
}
