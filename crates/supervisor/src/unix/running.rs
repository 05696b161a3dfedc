//! A running command, as its caller sees it.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use boot_clock::now;
use rustix::process::{Pid, Signal as Number, WaitOptions, kill_process_group, waitpid};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::{JoinHandle, spawn_blocking};

use crate::plan::{Due, Plan};
use crate::unix::freeze::Freeze;
use crate::unix::lifeline::Lifeline;
use crate::unix::members::Members;
use crate::unix::ps::{Process, Sent, processes};
use crate::unix::terminal::JobControl;
use crate::{Ended, Event, Exit, Limits, Signal};

/// The pauses between two looks at the processes, in microseconds.
const FIRST_PAUSE: i64 = 10_000;
const LONGEST_PAUSE: i64 = 200_000;

/// How long killed processes may take to disappear. Only those that hang in the kernel take so long.
const SETTLE: i64 = 5_000_000;

/// How long the lifeline may be held by something that can't be found: a helper that this process starts at the same
/// moment as the command has it until the helper ends.
const LIFELINE_SETTLE: i64 = 1_000_000;

/// How long to sleep at most: the runtime's clock stands still while the machine sleeps, and the limits don't.
const LONGEST_SLEEP: i64 = 1_000_000;

/// A command that runs, or has run, within its limits.
///
/// Poll [`Running::next`] all the time: it applies the limits. No other process does: if this one is killed or
/// stopped, nothing ends the command.
///
/// Dropping this before [`Event::Ended`] kills the process group of the command.
#[derive(Debug)]
pub struct Running {
    state: State,
    events: VecDeque<Event>,
}

#[derive(Debug)]
enum State {
    Running(Box<Group>),
    Ended(Ended),
}

impl Running {
    pub(crate) fn new(
        command: Pid,
        plan: Plan,
        job: JobControl,
        lifeline: Lifeline,
    ) -> io::Result<Self> {
        Ok(Self {
            state: State::Running(Box::new(Group {
                id: command,
                plan,
                job,
                lifeline,
                held_until: None,
                children: signal(SignalKind::child())?,
                exited: false,
                members: Members::new(command.as_raw_pid()),
                ask: false,
                give_up_at: None,
                freeze: None,
                look: None,
                look_at: i64::MIN,
                pause: FIRST_PAUSE,
            })),
            events: VecDeque::new(),
        })
    }

    /// A command that was not run.
    pub(crate) fn not_run(exit: Exit) -> Self {
        Self {
            state: State::Ended(Ended::default()),
            events: VecDeque::from([Event::Exited(exit)]),
        }
    }

    fn group(&mut self) -> Option<&mut Group> {
        match &mut self.state {
            State::Running(group) => Some(group),
            State::Ended(_) => None,
        }
    }

    /// Sets new limits, earlier or later ones. If the processes have already been asked to end, later limits
    /// don't give them more time. Doesn't wait.
    pub fn limits(&mut self, limits: Limits) {
        if let Some(group) = self.group() {
            group.plan.limits(limits);
        }
    }

    /// Ends everything: TERM at once, KILL at `limits.kill_at`. Doesn't wait.
    pub fn end(&mut self, limits: Limits) {
        if let Some(group) = self.group() {
            group.plan.end(limits);
        }
    }

    /// Passes a signal on to the command's process group. With CONT the command gets the terminal again, if it
    /// used it and this process has it. Doesn't wait.
    pub fn signal(&mut self, signal: Signal) {
        if let Some(group) = self.group() {
            group.pass_on(signal);
        }
    }

    /// Stops the command and all its descendants until [`Running::thaw`], and reports [`Event::Frozen`] once
    /// all are stopped. Doesn't wait.
    ///
    /// This is not a stop of a job: the terminal keeps its owner. Processes that a user stopped before stay stopped
    /// afterwards. Signals that are passed on in the meantime arrive when the command continues. The limits still
    /// apply: to end the command, it is continued first. A command that is already being ended is not stopped.
    ///
    /// # Caveats
    ///
    /// Processes of another user (`sudo`) continue, and anybody may continue a process that they own.
    pub fn freeze(&mut self) {
        if let Some(group) = self.group()
            && group.freeze.is_none()
            && group.plan.running()
        {
            group.freeze = Some(Freeze::default());
            group.look_soon();
        }
    }

    /// Continues what [`Running::freeze`] stopped. Doesn't wait.
    pub fn thaw(&mut self) {
        let Some(group) = self.group() else { return };
        let Some(freeze) = group.freeze.take() else {
            return;
        };
        let was_complete = freeze.is_complete();
        for signal in freeze.thaw() {
            group.pass_on(signal);
        }
        if was_complete {
            self.events.push_back(Event::Thawed);
        }
    }

    /// Stops this process if its stopped command requires that, and lets both continue together, as a shell
    /// expects of a job. Call it at [`Event::Stopped`]. It returns after this process was continued, for
    /// example by `fg` or `bg`, and then continues the command too, with the terminal if this process has it
    /// again. True if this process was stopped meanwhile.
    ///
    /// A command that somebody stopped by itself (`kill -STOP`), without the terminal being involved, is left
    /// as it is. If no shell could continue this process, the command is continued at once.
    ///
    /// # Caveats
    ///
    /// While this process is stopped, nothing applies the limits. They are applied when it continues.
    pub fn suspend(&mut self) -> bool {
        let Some(group) = self.group() else {
            return false;
        };
        let (continues, suspended) = group.job.suspend();
        if continues && !group.is_late() {
            group.pass_on(Signal::CONT);
        }
        suspended
    }

    /// Whether [`Running::suspend`] would stop this process now.
    #[must_use]
    pub fn suspends(&self) -> bool {
        match &self.state {
            State::Running(group) => group.job.suspends(),
            State::Ended(_) => false,
        }
    }

    /// The next event. After [`Event::Ended`] it is returned again. Dropping the future loses nothing.
    ///
    /// # Errors
    ///
    /// Only if the system refuses a wait. Drop this then.
    pub async fn next(&mut self) -> io::Result<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            let group = match &mut self.state {
                State::Running(group) => group,
                State::Ended(over) => return Ok(Event::Ended(*over)),
            };
            let mut over = group.turn(&mut self.events)?;
            if over.is_none() && self.events.is_empty() {
                over = group.wait(&mut self.events).await;
            }
            if let Some(over) = over {
                group.job.ended(None);
                self.state = State::Ended(over);
            }
        }
    }
}

/// The process group of a command, and what descends from it.
#[derive(Debug)]
struct Group {
    /// The process id of the command, and the number of its group.
    id: Pid,
    plan: Plan,
    job: JobControl,
    lifeline: Lifeline,
    /// When something that holds the lifeline is reported, although nothing is found.
    held_until: Option<i64>,
    children: tokio::signal::unix::Signal,
    /// The command was waited for. Its group keeps the number as long as there is a process in it.
    exited: bool,
    members: Members,
    /// Those outside of the group have to be asked to end.
    ask: bool,
    /// When to stop waiting for killed processes.
    give_up_at: Option<i64>,
    freeze: Option<Freeze>,
    look: Option<JoinHandle<io::Result<Vec<Process>>>>,
    look_at: i64,
    pause: i64,
}

impl Group {
    /// Does what is due now.
    fn turn(&mut self, events: &mut VecDeque<Event>) -> io::Result<Option<Ended>> {
        self.reap(events)?;
        let now = now();
        if self.freeze.is_some() {
            self.plan.stands_still(now);
        }
        let due = self.plan.due(now);
        if self.plan.ran_out() {
            events.push_back(Event::OutOfTime);
        }
        match due {
            // The group first: nothing may delay its end.
            Some(Due::Ask) => {
                // A process that is asked to end must run for that.
                self.freeze = None;
                self.send(Number::TERM);
                self.send(Number::CONT);
                self.ask = true;
                self.look_soon();
            }
            Some(Due::Kill) => {
                self.freeze = None;
                self.give_up_at = Some(now.saturating_add(SETTLE));
                self.send(Number::KILL);
                self.look_soon();
            }
            None => {}
        }
        if self.give_up_at.is_some_and(|at| now >= at) {
            return Ok(Some(Self::over(1)));
        }
        if self.look.is_none() && self.must_look() && now >= self.look_at {
            self.look_at = now.saturating_add(self.pause);
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
            // It may hang, and the limits must not wait for it.
            self.look = Some(spawn_blocking(processes));
        }
        Ok(None)
    }

    /// Whether it must be known which processes there are.
    fn must_look(&self) -> bool {
        let must_stop = self.freeze.as_ref().is_some_and(|it| !it.is_complete());
        self.exited || self.ask || self.plan.killing() || must_stop
    }

    fn look_soon(&mut self) {
        self.look_at = i64::MIN;
        self.pause = FIRST_PAUSE;
    }

    /// Waits until something happens or is due.
    async fn wait(&mut self, events: &mut VecDeque<Event>) -> Option<Ended> {
        let look_at = (self.look.is_none() && self.must_look()).then_some(self.look_at);
        let dates = [self.plan.next(), self.give_up_at, look_at];
        let next = dates.into_iter().flatten().min().unwrap_or(i64::MAX);
        let left = next.saturating_sub(now()).clamp(0, LONGEST_SLEEP);
        let seen = async {
            match &mut self.look {
                Some(look) => look.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _child = self.children.recv() => None,
            seen = seen => {
                self.look = None;
                let seen = seen.map_err(io::Error::other).flatten();
                self.seen(seen, events)
            }
            () = tokio::time::sleep(Duration::from_micros(left.unsigned_abs())) => None,
        }
    }

    /// Does with the processes what has to be done with them.
    fn seen(
        &mut self,
        processes: io::Result<Vec<Process>>,
        events: &mut VecDeque<Event>,
    ) -> Option<Ended> {
        let Ok(processes) = processes else {
            return self.unseen(events);
        };
        let members = self.members.among(&processes);
        if self.plan.killing() {
            return self.kill(&members, events);
        }
        if std::mem::take(&mut self.ask) {
            let outside = |process: &&Process| process.group != self.id.as_raw_pid();
            for process in members.iter().filter(outside) {
                process.send(&[Number::TERM, Number::CONT]);
            }
        }
        if let Some(freeze) = &mut self.freeze
            && freeze.stop(&members)
        {
            events.push_back(Event::Frozen);
        }
        if !self.exited {
            return None;
        }
        if members.is_empty() {
            return self.none_left(events);
        }
        if self.plan.left(now()) {
            events.push_back(Event::Left(members.len()));
        }
        None
    }

    /// Kills all that are left, and returns the result once none is left, or none that can be killed.
    fn kill(&mut self, members: &[Process], events: &mut VecDeque<Event>) -> Option<Ended> {
        self.send(Number::KILL);
        let sent = members.iter().map(|process| process.send(&[Number::KILL]));
        let refused = sent.filter(|sent| *sent == Sent::Refused).count();
        if members.is_empty() {
            return match self.exited {
                true => self.none_left(events),
                false => None,
            };
        }
        (refused == members.len()).then(|| Self::over(refused))
    }

    /// There is no list of the processes. The group itself is known without one.
    fn unseen(&mut self, events: &mut VecDeque<Event>) -> Option<Ended> {
        self.ask = false;
        if self.plan.killing() {
            self.send(Number::KILL);
        }
        let is_empty = rustix::process::test_kill_process_group(self.id).is_err();
        match self.exited && is_empty {
            true => self.none_left(events),
            false => None,
        }
    }

    /// The result, if `left` are still there.
    fn over(left: usize) -> Ended {
        Ended {
            killed: 0,
            unkillable: left,
        }
    }

    /// The result, if none can be found any more, and it is clear whether one is left.
    fn none_left(&mut self, events: &mut VecDeque<Event>) -> Option<Ended> {
        if !self.lifeline.is_held() {
            return Some(Self::over(0));
        }
        let now = now();
        let until = *self
            .held_until
            .get_or_insert(now.saturating_add(LIFELINE_SETTLE));
        if now < until {
            return None;
        }
        events.push_back(Event::LeftGroup);
        Some(Self::over(1))
    }

    /// Records what happened to the command.
    fn reap(&mut self, events: &mut VecDeque<Event>) -> io::Result<()> {
        let options = WaitOptions::NOHANG | WaitOptions::UNTRACED | WaitOptions::CONTINUED;
        while !self.exited
            && let Some((_, status)) = waitpid(Some(self.id), options)?
        {
            if let Some(signal) = status.stopping_signal() {
                self.stopped(Signal(signal), events);
            } else if status.continued() {
                if self.job.continued() {
                    events.push_back(Event::Continued);
                }
            } else {
                let exit = match (status.terminating_signal(), status.exit_status()) {
                    (Some(signal), _) => Exit::Signal(Signal(signal)),
                    (None, code) => {
                        Exit::Code(u8::try_from(code.unwrap_or_default()).unwrap_or(u8::MAX))
                    }
                };
                self.exited = true;
                self.job.ended(Some(exit));
                self.look_soon();
                events.push_back(Event::Exited(exit));
            }
        }
        Ok(())
    }

    fn stopped(&mut self, signal: Signal, events: &mut VecDeque<Event>) {
        // This stop was caused by the freeze.
        if self.freeze.is_some() && signal == Signal::STOP {
            return;
        }
        if self.job.stopped(signal) {
            events.push_back(Event::Stopped(signal));
        } else {
            self.send(Number::CONT);
        }
    }

    fn pass_on(&mut self, signal: Signal) {
        self.job.forwards(signal);
        let freeze = self.freeze.as_mut();
        if self.exited || freeze.is_some_and(|freeze| freeze.holds_back(signal)) {
            return;
        }
        if let Some(number) = Number::from_named_raw(signal.0) {
            self.send(number);
        }
    }

    /// Whether the limits have passed, so that the command must not be continued before it is asked to end.
    fn is_late(&self) -> bool {
        self.plan.next().is_some_and(|at| now() >= at)
    }

    fn send(&self, signal: Number) {
        // It has ended, or belongs to another user: the next look shows it.
        let _result = kill_process_group(self.id, signal);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.exited {
            self.send(Number::KILL);
            let _result = waitpid(Some(self.id), WaitOptions::NOHANG);
        }
        self.job.ended(None);
    }
}
