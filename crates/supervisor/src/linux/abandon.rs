//! How the supervisor ends the command if its caller is gone.

use crate::plan::Plan;

impl Plan {
    /// Ends the command because the caller is gone.
    pub(super) fn abandon(&mut self, now: i64) {
        self.ending(now.saturating_add(self.grace).min(self.limits.kill_at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;
    use crate::plan::Due;

    fn plan() -> Plan {
        let limits = Limits {
            term_at: 100,
            kill_at: 200,
        };
        Plan::new(limits, 50)
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
        let mut plan = Plan::new(Limits::NONE, i64::MAX);
        plan.abandon(5);
        assert_eq!((plan.due(5), plan.next()), (Some(Due::Ask), Some(i64::MAX)));
    }
}
