//! Which faults a world really met, so that nobody trusts worlds in which nothing went wrong.

use std::fmt::Write as _;
use std::ops::AddAssign;

use crate::history::{CallOutcome, Entry, Event, Freeze, OpId, RequestFault};

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An answer took over a tenth of a second.
    Delay,
    /// A request never got there.
    LostRequest,
    /// A request arrived long after its sender had timed out.
    LateRequest,
    /// An answer did not come back.
    LostAnswer,
    /// A change of a Lease was committed, and its author was not told.
    CommitThenDrop,
    /// A request was refused on the way: too many, or a server that is away.
    Refusal,
    /// Something on the way answered with an error of its own what had been carried out.
    FalseError,
    /// A watch held an event back.
    WatchStall,
    /// A watch broke off.
    WatchCut,
    /// A watch began at a version that was no longer known (410).
    TooOld,
    /// A watch said something again, after what came later.
    RepeatedEvent,
    /// The API server restarted.
    ApiRestart,
    /// A restart ended a request on its way.
    CutRequest,
    /// Another tool's writes made conflicts of a client's, again and again.
    RepeatedConflicts,
    /// A client's wall clock was further off than clocks may be apart.
    ClockOffset,
    /// A client's clocks ran too fast or too slowly.
    Drift,
    /// A client's wall clock was stepped.
    ClockStep,
    /// API servers' clocks were apart.
    ServerClocks,
    /// The processes of a machine were stopped.
    Stop,
    /// A machine slept.
    Suspend,
    /// A virtual machine stood still, and its boot clock with it.
    Pause,
    /// A process ended without a word.
    Crash,
    /// Somebody changed a Lease by hand.
    HandEdit,
    /// A Lease was deleted.
    Deletion,
    /// A Node was deleted together with its Lease, and made again.
    NodeReplacement,
    /// An administrator ended another's acquisition.
    AdminBreak,
    /// A policy of the cluster shortened what was asked for.
    ShortenedLease,
    /// Something on the way answered with a 404 page of its own.
    MissingPage,
    /// Something on the way answered with a page of its own, as a success.
    LoginPage,
    /// A proxy sent a write again, so its author got a conflict with its own write.
    RepeatedWrite,
    /// An answer was cut short, as if it were complete.
    Truncation,
    /// A list was cut short, as if it were complete.
    TruncatedList,
    /// An API server's clock was stepped back.
    ServerStep,
    /// A virtual machine stood still, and all of its clocks with it.
    Halt,
    /// A machine stood still while an answer was on its way to it.
    FreezeAtAnswer,
    /// A client lacks the right to watch.
    NoWatch,
}

impl Fault {
    /// Every kind, and how a table calls it.
    pub const ALL: [(Self, &'static str); 36] = [
        (Self::Delay, "answers delayed"),
        (Self::LostRequest, "requests lost"),
        (Self::LateRequest, "requests that came late"),
        (Self::LostAnswer, "answers lost"),
        (Self::CommitThenDrop, "commits whose answer was lost"),
        (Self::Refusal, "requests refused on the way"),
        (Self::FalseError, "errors for what was carried out"),
        (Self::WatchStall, "watch events held back"),
        (Self::WatchCut, "watches cut off"),
        (Self::TooOld, "watches too old (410)"),
        (Self::RepeatedEvent, "watch events repeated"),
        (Self::ApiRestart, "API server restarts"),
        (Self::CutRequest, "requests cut by a restart"),
        (Self::RepeatedConflicts, "repeated conflicts"),
        (Self::ClockOffset, "clocks off by over 3 s"),
        (Self::Drift, "clocks that drift"),
        (Self::ClockStep, "clocks stepped"),
        (Self::ServerClocks, "API servers' clocks apart"),
        (Self::Stop, "processes stopped"),
        (Self::Suspend, "machines suspended"),
        (Self::Pause, "machines paused"),
        (Self::Crash, "processes crashed"),
        (Self::HandEdit, "Leases edited by hand"),
        (Self::Deletion, "Leases deleted"),
        (Self::NodeReplacement, "Nodes replaced"),
        (Self::AdminBreak, "locks broken by administrators"),
        (Self::ShortenedLease, "leases shortened by a policy"),
        (Self::MissingPage, "pages that say 404"),
        (Self::LoginPage, "pages that say 200"),
        (Self::RepeatedWrite, "writes sent again on the way"),
        (Self::Truncation, "answers cut short"),
        (Self::TruncatedList, "lists cut short"),
        (Self::ServerStep, "API servers' clocks stepped back"),
        (Self::Halt, "machines halted with all clocks"),
        (Self::FreezeAtAnswer, "machines stopped before an answer"),
        (Self::NoWatch, "clients that may not watch"),
    ];
}

/// How often each fault struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultCounts([u64; Fault::ALL.len()]);

impl Default for FaultCounts {
    fn default() -> Self {
        Self([0; Fault::ALL.len()])
    }
}

impl FaultCounts {
    /// Those of a history, until all faults end.
    #[must_use]
    pub fn of(history: &[Entry]) -> Self {
        let mut faults = Self::default();
        let mut breaking: Vec<OpId> = Vec::new();
        let mut committed = Vec::new();
        for Entry { event, .. } in history {
            match event {
                // What ends then is ended by the world itself.
                Event::Healed => break,
                Event::Struck { fault, .. } => faults.count(*fault),
                Event::Froze { how, .. } => faults.count(match how {
                    Freeze::Stopped => Fault::Stop,
                    Freeze::Suspended => Fault::Suspend,
                    Freeze::Paused => Fault::Pause,
                    Freeze::Halted => Fault::Halt,
                }),
                Event::Crashed { .. } => faults.count(Fault::Crash),
                Event::Stepped { .. } => faults.count(Fault::ClockStep),
                Event::Served {
                    request,
                    wrote: Some(_),
                    ..
                } => committed.push(*request),
                Event::RequestFailed { request, fault } => {
                    // Whose answer is cut short gets one all the same.
                    let is_commit =
                        *fault != RequestFault::Truncated && committed.contains(request);
                    faults.count(match fault {
                        RequestFault::Lost => Fault::LostRequest,
                        RequestFault::Late => Fault::LateRequest,
                        RequestFault::AnswerLost => Fault::LostAnswer,
                        RequestFault::Refused(_) => Fault::Refusal,
                        RequestFault::AnsweredInstead(_) => Fault::FalseError,
                        RequestFault::Cut => Fault::CutRequest,
                        RequestFault::Page(404) => Fault::MissingPage,
                        RequestFault::Page(_) => Fault::LoginPage,
                        RequestFault::Repeated => Fault::RepeatedWrite,
                        RequestFault::Truncated => Fault::Truncation,
                    });
                    if is_commit {
                        faults.count(Fault::CommitThenDrop);
                    }
                }
                Event::Called { op, call, .. } if call.is_break() => breaking.push(*op),
                Event::Returned {
                    op,
                    ending: CallOutcome::Acquired { .. } | CallOutcome::Released { .. },
                } if breaking.contains(op) => faults.count(Fault::AdminBreak),
                _ => {}
            }
        }
        faults
    }

    /// How often this one did.
    #[must_use]
    pub fn number(&self, fault: Fault) -> u64 {
        self.0[fault as usize]
    }

    /// Those that never did.
    pub fn missing(&self) -> impl Iterator<Item = Fault> {
        let all = Fault::ALL.into_iter().map(|(fault, _)| fault);
        all.filter(|&fault| self.number(fault) == 0)
    }

    /// A line each.
    #[must_use]
    pub fn table(&self) -> String {
        Fault::ALL
            .iter()
            .fold(String::new(), |mut text, (fault, name)| {
                let _ = writeln!(text, "{:>12}  {name}", self.number(*fault));
                text
            })
    }

    fn count(&mut self, fault: Fault) {
        self.0[fault as usize] += 1;
    }
}

impl AddAssign for FaultCounts {
    fn add_assign(&mut self, others: Self) {
        for (count, other) in self.0.iter_mut().zip(others.0) {
            *count += other;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_place() {
        for (place, (fault, _)) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(fault as usize, place, "{fault:?}");
        }
    }
}
