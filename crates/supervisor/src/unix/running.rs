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

/// How long killed processes may take to disappear, in microseconds. Only processes that hang in the kernel
/// take this long.
const SETTLE: i64 = 5_000_000;

/// How long to wait until the inherited pipe closes if no process is found, in microseconds. A child that
/// this process started at the same moment may have inherited it.
const PIPE_SETTLE: i64 = 1_000_000;

/// How long listing the processes may take, in microseconds.
const SCAN_TIMEOUT: i64 = 2_000_000;

/// How long TERM or KILL for the group waits for a list of the processes, in microseconds. A process whose
/// parent is ended by the signal could not be found afterwards. Before KILL, the group is stopped during this
/// time.
const PATIENCE: i64 = 200_000;

/// How long before a limit the processes are listed, in microseconds. Processes found then are known, even if
/// their parents end before the limit, or the system is too slow to list them at the limit.
const AHEAD: i64 = 2_000_000;

/// The maximum sleep, in microseconds. While the machine sleeps, the runtime's clock stands still, but the
/// limits do not.
const LONGEST_SLEEP: i64 = 200_000;

/// A running or ended command, with its limits.
///
/// Keep polling [`Running::next`], because it applies the limits. No other process does: if this process is
/// killed or stopped, nothing ends the command.
///
/// If you drop this before [`Event::Ended`], the process group of the command is killed.
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

    /// The state of a command that was not run.
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

    /// The command's process id; `None` if all processes have ended.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        match &self.state {
            State::Running(group) => Some(group.id.as_raw_pid().unsigned_abs()),
            State::Ended(_) => None,
        }
    }

    /// Sets new limits, which may be earlier or later. Later limits do not give more time to processes that
    /// have already been asked to end. Does not wait.
    pub fn limits(&mut self, limits: Limits) {
        if let Some(group) = self.group() {
            group.plan.limits(limits);
        }
    }

    /// Ends all processes: TERM at once, KILL at `limits.kill_at`. Does not wait.
    pub fn end(&mut self, limits: Limits) {
        if let Some(group) = self.group() {
            group.plan.end(limits);
        }
    }

    /// Forwards a signal to the command's process group. With CONT, the command gets the terminal again, if
    /// it used the terminal and this process has it. Does not wait.
    pub fn signal(&mut self, signal: Signal) {
        if let Some(group) = self.group() {
            group.pass_on(signal);
        }
    }

    /// Stops the command and all its descendants until [`Running::thaw`]. Reports [`Event::Frozen`] once all
    /// are stopped. Does not wait.
    ///
    /// This is not a stop of a job: the terminal keeps its owner. Processes that a user stopped before stay
    /// stopped afterwards. Signals that are forwarded in the meantime arrive when the command continues. The
    /// limits still apply: to end the command, it is first continued. A command that is already being ended
    /// is not stopped.
    ///
    /// # Caveats
    ///
    /// Processes of another user (`sudo`) continue, and anyone may continue a process that they own.
    pub fn freeze(&mut self) {
        if let Some(group) = self.group()
            && group.freeze.is_none()
            && group.plan.running()
        {
            group.freeze = Some(Freeze::default());
            group.scan_soon();
        }
    }

    /// Continues the processes that [`Running::freeze`] stopped. Does not wait.
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

    /// Stops this process if its stopped command requires that, so that both continue together, as a shell
    /// expects of a job. Call it at [`Event::Stopped`]. It returns after this process was continued, for
    /// example by `fg` or `bg`. It then continues the command too, with the terminal if this process has it
    /// again. Returns true if this process was stopped; `announce` is called right before that.
    ///
    /// If somebody stopped only the command (`kill -STOP`) and the terminal is not involved, the command
    /// stays stopped. If no shell could continue this process, the command is continued at once.
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

    /// The next event. [`Event::Ended`] is returned again by every later call. Dropping the future loses
    /// nothing.
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

/// The process group of a command, and its descendants.
#[derive(Debug)]
struct Group {
    /// The process id of the command, which is also the number of its group.
    id: Pid,
    plan: Plan,
    job: JobControl,
    pipe: InheritedPipe,
    /// When to report an open pipe although no process is found.
    open_until: Option<i64>,
    children: tokio::signal::unix::Signal,
    /// The command was waited for. Its group keeps the number for as long as it contains a process.
    exited: bool,
    members: Members,
    /// Signals that must be sent to the members.
    pending: Option<Pending>,
    /// When to stop waiting for killed processes.
    give_up_at: Option<i64>,
    freeze: Option<Freeze>,
    scan: Option<oneshot::Receiver<io::Result<Vec<Process>>>>,
    /// When to stop waiting for the scan.
    scan_until: i64,
    next_scan_at: i64,
    pause: i64,
}

/// Signals for the members. They are sent once the processes are listed.
#[derive(Debug)]
struct Pending {
    signals: &'static [Number],
    /// When to send them to the group even without a list; `None` if the group has received them.
    group_at: Option<i64>,
}

impl Group {
    /// Does what is due now. Returns the result when all processes have ended.
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
                    // A stopped command does nothing more, and its children can still be found.
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

    /// Whether the processes must be listed.
    fn needs_scan(&self) -> bool {
        let must_stop = self.freeze.as_ref().is_some_and(|it| !it.is_complete());
        let is_close = self.ahead_at().is_some_and(|at| now() >= at);
        self.exited || self.pending.is_some() || self.plan.killing() || must_stop || is_close
    }

    /// When to start listing the processes because a limit is close.
    fn ahead_at(&self) -> Option<i64> {
        Some(self.plan.next()?.saturating_sub(AHEAD))
    }

    /// Starts a new list of the processes at once, and discards a running one.
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

    /// Handles a new list of the processes: kills the members, sends them the pending signals, or stops them.
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

    /// Kills the remaining members. Returns the result once no process is left, or none that can be killed.
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

    /// Handles a list that failed. The group can be tested without a list.
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

    /// The result, if `left` processes still run.
    fn over(left: usize) -> Ended {
        Ended {
            killed: 0,
            unkillable: left,
        }
    }

    /// The result if no process is found. It is returned at once if no process has the pipe open, otherwise
    /// after [`PIPE_SETTLE`].
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
                self.plan.exited(now());
                if self.plan.ran_out() {
                    events.push_back(Event::OutOfTime);
                }
                events.push_back(Event::Exited(exit));
            }
        }
        Ok(())
    }

    fn stopped(&mut self, signal: Signal, events: &mut VecDeque<Event>) {
        // This process caused this stop, not the user.
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
        // A command that is being killed must not continue.
        let is_over = self.exited || self.plan.killing();
        if is_over || freeze.is_some_and(|freeze| freeze.holds_back(signal)) {
            return;
        }
        if let Some(number) = Number::from_named_raw(signal.0) {
            self.send(number);
        }
    }

    /// Whether a limit has passed. The command must then not be continued before it is asked to end.
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
            // The group has ended or belongs to another user. The next scan shows this.
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

    /// A process that `ps` briefly did not show must not be reported as having left its group.
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
