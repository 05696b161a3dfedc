//! Decides when a command is asked to end, and when it is killed. It is pure, so that tests can try every
//! order of events.

use crate::Limits;

/// The deadlines of one command. All times are in microseconds of [`boot_clock`].
#[derive(Debug)]
pub(crate) struct Plan {
    limits: Limits,
    grace: i64,
    phase: Phase,
    ask: bool,
    ran_out: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The command runs within its limits.
    Running,
    /// The command has ended and left processes behind. They have until this time, or until the limit if it
    /// is earlier.
    Left { until: i64 },
    /// All processes have been asked to end. This can't be undone: later limits may only shorten the time.
    Ending { kill_at: i64 },
    /// All remaining processes are being killed.
    Killing,
}

/// An action that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// Send TERM to all processes.
    Ask,
    /// Send KILL to all processes, until none is left.
    Kill,
}

impl Plan {
    pub(crate) fn new(limits: Limits, grace: i64) -> Self {
        Self {
            limits,
            grace,
            phase: Phase::Running,
            ask: false,
            ran_out: false,
        }
    }

    pub(crate) fn limits(&mut self, limits: Limits) {
        self.limits = limits;
        if let Phase::Ending { kill_at } = &mut self.phase {
            *kill_at = limits.kill_at.min(*kill_at);
        }
    }

    /// Ends the command now, and kills it at the new limit.
    pub(crate) fn end(&mut self, limits: Limits) {
        self.limits(limits);
        self.ending(limits.kill_at);
    }

    /// Records that the command has ended and that processes that it started still run. Returns true if they
    /// are ended because of this.
    pub(crate) fn left(&mut self, now: i64) -> bool {
        let running = self.phase == Phase::Running;
        if running {
            self.phase = Phase::Left {
                until: now.saturating_add(self.grace),
            };
            self.ask = true;
        }
        running
    }

    /// Ends the command because the caller is gone.
    pub(crate) fn abandon(&mut self, now: i64) {
        self.ending(now.saturating_add(self.grace).min(self.limits.kill_at));
    }

    fn ending(&mut self, kill_at: i64) {
        self.phase = match self.phase {
            Phase::Running => {
                self.ask = true;
                Phase::Ending { kill_at }
            }
            Phase::Left { until } => Phase::Ending {
                kill_at: kill_at.min(until),
            },
            Phase::Ending { kill_at: earlier } => Phase::Ending {
                kill_at: kill_at.min(earlier),
            },
            Phase::Killing => Phase::Killing,
        };
    }

    /// Records that all processes are stopped. At the first limit, the command then gets no time to end,
    /// because it is unknown whether it may run at all.
    pub(crate) fn all_stopped(&mut self, now: i64) {
        if self.phase == Phase::Running && now >= self.limits.term_at {
            self.limits.kill_at = self.limits.kill_at.min(now);
        }
    }

    /// The action that is due now. Each action is returned once.
    pub(crate) fn due(&mut self, now: i64) -> Option<Due> {
        if self.phase == Phase::Running && now >= self.limits.term_at {
            self.ending(self.limits.kill_at);
            self.ran_out = true;
        }
        if now >= self.kill_at() && self.phase != Phase::Killing {
            self.phase = Phase::Killing;
            self.ask = false;
            return Some(Due::Kill);
        }
        std::mem::take(&mut self.ask).then_some(Due::Ask)
    }

    /// Records that the command has ended by itself. If this is noticed after the first limit, nobody knows whether it ended
    /// before.
    pub(crate) fn exited(&mut self, now: i64) {
        self.ran_out |= self.phase == Phase::Running && now >= self.limits.term_at;
    }

    /// Whether the first limit passed while the command was running. Returns true once.
    pub(crate) fn ran_out(&mut self) -> bool {
        std::mem::take(&mut self.ran_out)
    }

    /// Whether no process was asked to end yet.
    pub(crate) fn running(&self) -> bool {
        self.phase == Phase::Running
    }

    pub(crate) fn killing(&self) -> bool {
        self.phase == Phase::Killing
    }

    /// When the next action is due.
    pub(crate) fn next(&self) -> Option<i64> {
        match self.phase {
            Phase::Running => Some(self.limits.term_at.min(self.limits.kill_at)),
            Phase::Left { .. } | Phase::Ending { .. } => Some(self.kill_at()),
            Phase::Killing => None,
        }
    }

    fn kill_at(&self) -> i64 {
        match self.phase {
            Phase::Running | Phase::Killing => self.limits.kill_at,
            Phase::Left { until } => until.min(self.limits.kill_at),
            Phase::Ending { kill_at } => kill_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        term_at: 100,
        kill_at: 200,
    };

    fn plan() -> Plan {
        Plan::new(LIMITS, 50)
    }

    #[test]
    fn asks_once_at_the_first_limit_and_kills_at_the_second() {
        let mut plan = plan();
        assert_eq!((plan.due(99), plan.next()), (None, Some(100)));
        assert!(!plan.ran_out());
        assert_eq!((plan.due(100), plan.next()), (Some(Due::Ask), Some(200)));
        assert!(plan.ran_out());
        assert!(!plan.ran_out(), "that is said once");
        assert_eq!(plan.due(199), None);
        assert_eq!((plan.due(200), plan.next()), (Some(Due::Kill), None));
        assert_eq!(plan.due(201), None);
        assert!(plan.killing());
    }

    #[test]
    fn waking_after_both_limits_kills_at_once() {
        let mut plan = plan();
        assert_eq!(plan.due(200), Some(Due::Kill));
        assert!(plan.ran_out());
    }

    #[test]
    fn a_command_that_is_found_to_have_ended_after_the_first_limit_ran_out() {
        for (now, ran_out) in [(99, false), (100, true)] {
            let mut plan = plan();
            plan.exited(now);
            assert_eq!(plan.ran_out(), ran_out, "at {now}");
        }
        let mut asked_to_end = plan();
        asked_to_end.ending(LIMITS.kill_at);
        asked_to_end.exited(100);
        assert!(!asked_to_end.ran_out());
    }

    #[test]
    fn a_renewal_moves_the_limits_until_it_was_asked_to_end() {
        let mut plan = plan();
        plan.limits(Limits {
            term_at: 300,
            kill_at: 400,
        });
        assert_eq!((plan.due(200), plan.next()), (None, Some(300)));
        assert_eq!(plan.due(300), Some(Due::Ask));
        plan.limits(Limits {
            term_at: 500,
            kill_at: 600,
        });
        assert_eq!(plan.next(), Some(400));
        plan.limits(Limits {
            term_at: 0,
            kill_at: 350,
        });
        assert_eq!(plan.next(), Some(350));
    }

    #[test]
    fn ending_asks_at_once_and_kills_at_the_given_limit() {
        let mut plan = plan();
        plan.end(Limits {
            term_at: 0,
            kill_at: 150,
        });
        assert_eq!((plan.due(10), plan.next()), (Some(Due::Ask), Some(150)));
        plan.end(Limits {
            term_at: 0,
            kill_at: 190,
        });
        assert_eq!((plan.due(10), plan.next()), (None, Some(150)));
        assert_eq!((plan.due(150), plan.ran_out()), (Some(Due::Kill), false));
    }

    #[test]
    fn orphans_get_the_grace_while_renewals_continue() {
        let mut plan = plan();
        assert!(plan.left(170));
        assert!(!plan.left(180));
        assert_eq!((plan.due(170), plan.next()), (Some(Due::Ask), Some(200)));
        plan.limits(Limits {
            term_at: 300,
            kill_at: 400,
        });
        assert_eq!((plan.due(219), plan.next()), (None, Some(220)));
        assert_eq!(plan.due(220), Some(Due::Kill));
    }

    #[test]
    fn stopped_processes_are_killed_at_the_first_limit() {
        let mut plan = plan();
        plan.all_stopped(99);
        assert_eq!(plan.due(99), None);
        plan.all_stopped(100);
        assert_eq!(plan.due(100), Some(Due::Kill));
        assert!(plan.ran_out());
    }

    #[test]
    fn a_caller_that_is_gone_leaves_the_grace_but_no_more_than_the_limit() {
        let mut early = plan();
        early.abandon(20);
        assert_eq!((early.due(20), early.next()), (Some(Due::Ask), Some(70)));
        let mut late = plan();
        late.abandon(180);
        assert_eq!((late.due(180), late.next()), (Some(Due::Ask), Some(200)));
    }

    #[test]
    fn limits_at_the_end_of_time_overflow_nothing() {
        let mut plan = Plan::new(
            Limits {
                term_at: i64::MAX,
                kill_at: i64::MAX,
            },
            i64::MAX,
        );
        plan.abandon(5);
        assert_eq!((plan.due(5), plan.next()), (Some(Due::Ask), Some(i64::MAX)));
    }
}
