//! A running command, as its caller sees it.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use boot_clock::now;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal as Number, WaitOptions, kill_process_group, test_kill_process_group, waitpid,
};
use tokio::sync::oneshot;

use crate::job_control::JobControl;
use crate::plan::{Due, Plan};
use crate::unix::freeze::Freeze;
use crate::unix::inherited_pipe::InheritedPipe;
use crate::unix::job::Job;
use crate::unix::members::Members;
use crate::unix::ps::{Process, Sent, scan};
use crate::{Ended, Event, Exit, Limits, Signal};

/// The pauses between two lists of the processes, in microseconds.
const FIRST_PAUSE: i64 = 10_000;
const LONGEST_PAUSE: i64 = 200_000;

/// How long killed processes may take to disappear. Only those that hang in the kernel take so long.
const SETTLE: i64 = 5_000_000;

/// How long to wait until the inherited pipe closes if no process is found. A child that was started at the same moment
/// may have inherited it.
const PIPE_SETTLE: i64 = 1_000_000;

/// How long a list of the processes may take.
const SCAN_TIMEOUT: i64 = 2_000_000;

/// How long TERM or KILL for the group waits for such a list. A process whose parent the signal ends could not be found
/// afterwards. Before KILL, the group is stopped meanwhile.
const PATIENCE: i64 = 200_000;

/// How long before a limit the processes are listed. Those found then are known, even if their parents end before the
/// limit, or if the system is too slow to list them at the limit.
const AHEAD: i64 = 2_000_000;

/// How long to sleep at most: the runtime's clock stands still while the machine sleeps, and the limits don't.
const LONGEST_SLEEP: i64 = 200_000;

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
        pipe: InheritedPipe,
        children: tokio::signal::unix::Signal,
    ) -> Self {
        Self {
            state: State::Running(Box::new(Group {
                id: command,
                plan,
                job,
                pipe,
                open_until: None,
                children,
                exited: false,
                members: Members::new(command.as_raw_pid()),
                pending: None,
                give_up_at: None,
                freeze: None,
                scan: None,
                scan_until: i64::MAX,
                next_scan_at: i64::MIN,
                pause: FIRST_PAUSE,
            })),
            events: VecDeque::new(),
        }
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

    /// The command's process id; `None` if everything has ended.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        match &self.state {
            State::Running(group) => Some(group.id.as_raw_pid().unsigned_abs()),
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
            group.scan_soon();
        }
    }

    /// Continues what [`Running::freeze`] stopped. Doesn't wait.
    pub fn thaw(&mut self) {
        let Some(group) = self.group() else { return };
        let Some(freeze) = group.freeze.take() else {
            return;
        };
        let was_complete = freeze.is_complete();
        if freeze.is_of_group() {
            group.send(Number::CONT);
        }
        group.scan_soon();
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
    /// again. True if this process was stopped meanwhile; `announce` is called right before that.
    ///
    /// A command that somebody stopped by itself (`kill -STOP`), without the terminal being involved, is left
    /// as it is. If no shell could continue this process, the command is continued at once.
    ///
    /// # Caveats
    ///
    /// While this process is stopped, nothing applies the limits. They are applied when it continues.
    pub fn suspend(&mut self, announce: impl FnOnce()) -> bool {
        let Some(group) = self.group() else {
            return false;
        };
        let (continues, suspended) = group.job.suspend(Job::own_is_controlled, announce);
        if continues && !group.is_late() {
            group.pass_on(Signal::CONT);
        }
        suspended
    }

    /// The next event. After [`Event::Ended`] it is returned again. Dropping the future loses nothing.
    ///
    /// # Errors
    ///
    /// If waiting for the command fails. Then drop this.
    pub async fn next(&mut self) -> io::Result<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            let group = match &mut self.state {
                State::Running(group) => group,
                State::Ended(over) => return Ok(Event::Ended(*over)),
            };
            let mut over = group.apply_due(&mut self.events)?;
            if over.is_none() && self.events.is_empty() {
                over = group.wait(&mut self.events).await;
            }
            if let Some(over) = over {
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
    pipe: InheritedPipe,
    /// When to report an open pipe although no process is found.
    open_until: Option<i64>,
    children: tokio::signal::unix::Signal,
    /// The command was waited for. Its group keeps the number as long as there is a process in it.
    exited: bool,
    members: Members,
    /// What must be sent to the members.
    pending: Option<Pending>,
    /// When to stop waiting for killed processes.
    give_up_at: Option<i64>,
    freeze: Option<Freeze>,
    scan: Option<oneshot::Receiver<io::Result<Vec<Process>>>>,
    /// When to stop waiting for it.
    scan_until: i64,
    next_scan_at: i64,
    pause: i64,
}

/// Signals for the members, which are sent once the processes are listed.
#[derive(Debug)]
struct Pending {
    signals: &'static [Number],
    /// When the group gets them in any case; `None`: it has got them.
    group_at: Option<i64>,
}

impl Group {
    /// Does what is due now.
    fn apply_due(&mut self, events: &mut VecDeque<Event>) -> io::Result<Option<Ended>> {
        self.reap(events)?;
        let now = now();
        if self.freeze.is_some() {
            self.plan.all_stopped(now);
        }
        let due = self.plan.due(now);
        if self.plan.ran_out() {
            events.push_back(Event::OutOfTime);
        }
        if let Some(due) = due {
            self.freeze = None;
            let signals: &[Number] = match due {
                // A stopped process cannot handle TERM.
                Due::Ask => &[Number::TERM, Number::CONT],
                Due::Kill => {
                    self.give_up_at = Some(now.saturating_add(SETTLE));
                    // From now on it does nothing more, and its children can still be found.
                    self.send(Number::STOP);
                    &[Number::KILL]
                }
            };
            self.pending = Some(Pending {
                signals,
                group_at: Some(now.saturating_add(PATIENCE)),
            });
            self.scan_soon();
        }
        if let Some(pending) = &mut self.pending
            && pending.group_at.is_some_and(|at| now >= at)
        {
            pending.group_at = None;
            let signals = pending.signals;
            self.send_all(signals);
        }
        if self.give_up_at.is_some_and(|at| now >= at) {
            return Ok(Some(Self::over(1)));
        }
        if self.scan.is_some() && now >= self.scan_until {
            self.scan = None;
            return Ok(self.scan_failed(events));
        }
        if self.scan.is_none() && self.needs_scan() && now >= self.next_scan_at {
            self.next_scan_at = now.saturating_add(self.pause);
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
            self.scan_until = now.saturating_add(SCAN_TIMEOUT);
            self.scan = Some(scan());
        }
        Ok(None)
    }

    /// Whether it must be known which processes there are.
    fn needs_scan(&self) -> bool {
        let must_stop = self.freeze.as_ref().is_some_and(|it| !it.is_complete());
        let is_close = self.ahead_at().is_some_and(|at| now() >= at);
        self.exited || self.pending.is_some() || self.plan.killing() || must_stop || is_close
    }

    /// From when on the processes are listed because a limit is close.
    fn ahead_at(&self) -> Option<i64> {
        Some(self.plan.next()?.saturating_sub(AHEAD))
    }

    /// Lists the processes as they are from now on.
    fn scan_soon(&mut self) {
        self.scan = None;
        self.next_scan_at = i64::MIN;
        self.pause = FIRST_PAUSE;
    }

    /// Waits until something happens or is due.
    async fn wait(&mut self, events: &mut VecDeque<Event>) -> Option<Ended> {
        let next_scan_at = (self.scan.is_none() && self.needs_scan()).then_some(self.next_scan_at);
        let scan_until = self.scan.is_some().then_some(self.scan_until);
        let group_at = self.pending.as_ref().and_then(|pending| pending.group_at);
        let deadlines = [
            self.plan.next(),
            self.ahead_at().filter(|at| *at > now()),
            self.give_up_at,
            next_scan_at,
            scan_until,
            group_at,
        ];
        let next = deadlines.into_iter().flatten().min().unwrap_or(i64::MAX);
        let left = next.saturating_sub(now()).clamp(0, LONGEST_SLEEP);
        let scanned = async {
            match &mut self.scan {
                Some(scan) => scan.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _child = self.children.recv() => None,
            scanned = scanned => {
                self.scan = None;
                let scanned = scanned.map_err(io::Error::other).flatten();
                self.scanned(scanned, events)
            }
            () = tokio::time::sleep(Duration::from_micros(left.unsigned_abs())) => None,
        }
    }

    /// Handles a new list of the processes: kills the members, sends them TERM, or stops them.
    fn scanned(
        &mut self,
        processes: io::Result<Vec<Process>>,
        events: &mut VecDeque<Event>,
    ) -> Option<Ended> {
        let Ok(processes) = processes else {
            return self.scan_failed(events);
        };
        let members = self.members.among(&processes, self.exited);
        if !members.is_empty() {
            self.open_until = None;
        }
        let pending = self.pending.take();
        if self.plan.killing() {
            return self.kill(&members, events);
        }
        if let Some(pending) = pending {
            let outside = |process: &&Process| !self.members.is_in_group(process);
            for process in members.iter().filter(outside) {
                process.send(pending.signals);
            }
            if pending.group_at.is_some() {
                self.send_all(pending.signals);
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
        let sent = members.iter().map(|process| process.send(&[Number::KILL]));
        let refused = sent.filter(|sent| *sent == Sent::Refused).count();
        self.send(Number::KILL);
        if members.is_empty() {
            return match self.exited {
                true => self.none_left(events),
                false => None,
            };
        }
        (refused == members.len()).then(|| Self::over(refused))
    }

    /// The processes could not be listed. The group can be tested without a list.
    fn scan_failed(&mut self, events: &mut VecDeque<Event>) -> Option<Ended> {
        if let Some(pending) = self.pending.take()
            && pending.group_at.is_some()
        {
            self.send_all(pending.signals);
        }
        if self.plan.killing() {
            self.send(Number::KILL);
        }
        if let Some(freeze) = &mut self.freeze
            && freeze.stop_group()
        {
            self.send(Number::STOP);
            events.push_back(Event::Frozen);
        }
        if !self.exited {
            return None;
        }
        let is_empty =
            !self.members.has_group() || test_kill_process_group(self.id) == Err(Errno::SRCH);
        if is_empty {
            return self.none_left(events);
        }
        if self.plan.left(now()) {
            events.push_back(Event::Left(1));
        }
        None
    }

    /// The result, if `left` are still there.
    fn over(left: usize) -> Ended {
        Ended {
            killed: 0,
            unkillable: left,
        }
    }

    /// The result when no process is found: at once if nothing has the pipe open, otherwise after [`PIPE_SETTLE`].
    fn none_left(&mut self, events: &mut VecDeque<Event>) -> Option<Ended> {
        if !self.pipe.has_writer() {
            return Some(Self::over(0));
        }
        let now = now();
        let until = *self
            .open_until
            .get_or_insert(now.saturating_add(PIPE_SETTLE));
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
                let exit = Exit::of(status);
                self.exited = true;
                self.job.ended(Some(exit));
                self.scan_soon();
                events.push_back(Event::Exited(exit));
            }
        }
        Ok(())
    }

    fn stopped(&mut self, signal: Signal, events: &mut VecDeque<Event>) {
        // Such a stop was not caused by the user.
        if (self.freeze.is_some() || self.plan.killing()) && signal == Signal::STOP {
            return;
        }
        if self.job.stopped(signal) {
            events.push_back(Event::Stopped(signal));
        } else {
            self.pass_on(Signal::CONT);
        }
    }

    fn pass_on(&mut self, signal: Signal) {
        self.job.forwards(signal);
        let freeze = self.freeze.as_mut();
        // What is being killed must not continue.
        let is_over = self.exited || self.plan.killing();
        if is_over || freeze.is_some_and(|freeze| freeze.holds_back(signal)) {
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

    fn send_all(&self, signals: &[Number]) {
        for signal in signals {
            self.send(*signal);
        }
    }

    fn send(&self, signal: Number) {
        if self.members.has_group() {
            // It has ended, or belongs to another user: the next scan shows it.
            let _result = kill_process_group(self.id, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.send(Number::KILL);
        if !self.exited {
            let _result = waitpid(Some(self.id), WaitOptions::NOHANG);
        }
        self.job.ended(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unix::ps::processes;
    use crate::unix::start::start;
    use crate::{Command, Terminal};

    /// A process that `ps` did not show for a moment must not be reported as one that has left its group.
    #[tokio::test]
    async fn an_open_pipe_is_reported_a_second_after_the_last_process() {
        let command = Command::new(["/bin/sleep", "60"].map(Into::into).to_vec());
        let mut running =
            start(&command.terminal(Terminal::Keep), Limits::NONE).expect("a command");
        let group = running.group().expect("it runs");
        let listed = processes(Duration::from_secs(30)).expect("ps");
        let command = listed
            .into_iter()
            .find(|it| it.id.pid == group.id.as_raw_pid());
        let command = vec![command.expect("the command")];
        let mut events = VecDeque::new();
        let mut list = |group: &mut Group, processes: &[Process]| {
            group.scanned(Ok(processes.to_vec()), &mut events)
        };

        group.exited = true;
        assert_eq!(list(group, &command), None);
        assert_eq!(list(group, &[]), None);
        group.open_until = Some(now());
        assert_eq!(list(group, &command), None);
        assert_eq!(list(group, &[]), None);
        group.open_until = Some(now());
        assert_eq!(list(group, &[]), Some(Group::over(1)));

        command[0].send(&[Number::KILL]);
        waitpid(Some(group.id), WaitOptions::empty()).expect("its end");
        assert_eq!(events.pop_back(), Some(Event::LeftGroup));
    }
}
