//! Which faults a world really met, so that nobody trusts worlds in which nothing went wrong.

use std::fmt::Write as _;
use std::ops::AddAssign;

use crate::fault::Fault;
use crate::history::{CallOutcome, Entry, Event, Freeze, OpId, RequestFault};

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
