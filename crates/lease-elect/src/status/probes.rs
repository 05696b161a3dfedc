//! The responses to probes: success or failure, with the reason.

use maintenance_lease::protocol::{BootInstant, Span};

use crate::election_state::{ElectionSnapshot, Role};

/// How long a daemon may run after the end of its leadership before the probe fails.
const LATE: Span = Span::seconds(5);

type Verdict = Result<&'static str, &'static str>;

/// Whether this process works correctly. Problems of the API server are no reason to restart it.
pub(super) fn health(facts: &ElectionSnapshot, now: BootInstant) -> Verdict {
    match facts.deadline {
        Some(deadline) if now > deadline.plus(LATE) => {
            Err("leadership has ended, but the daemon is still running")
        }
        _ => Ok("alive"),
    }
}

/// Whether this process leads, or would lead as soon as no other process does.
pub(super) fn readiness(facts: &ElectionSnapshot, now: BootInstant) -> Verdict {
    match facts.role {
        Role::Starting => Err("the lease was not seen yet"),
        Role::Standby if facts.is_unwatched => Err("the lease can't be watched"),
        Role::Standby => Ok("standing by"),
        Role::Leader | Role::Ending => leader(facts, now),
    }
}

/// Whether this process leads.
pub(super) fn leader(facts: &ElectionSnapshot, now: BootInstant) -> Verdict {
    match (facts.role, facts.deadline) {
        (Role::Leader, Some(deadline)) if now < deadline => Ok("leading"),
        (Role::Leader, _) => Err("leadership has ended"),
        (Role::Starting | Role::Standby, _) => Err("another leads"),
        (Role::Ending, _) => Err("the daemon is ending"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u32) -> BootInstant {
        BootInstant::from_micros(Span::seconds(seconds).as_micros())
    }

    fn facts(role: Role) -> ElectionSnapshot {
        ElectionSnapshot {
            role,
            deadline: Some(at(100)),
            ..ElectionSnapshot::default()
        }
    }

    #[test]
    fn a_lead_that_ran_out_is_none() {
        assert!(leader(&facts(Role::Leader), at(99)).is_ok());
        assert!(leader(&facts(Role::Leader), at(100)).is_err());
        assert!(readiness(&facts(Role::Leader), at(100)).is_err());
    }

    #[test]
    fn a_daemon_that_should_have_ended_is_unhealthy() {
        assert!(health(&facts(Role::Ending), at(105)).is_ok());
        assert!(health(&facts(Role::Ending), at(106)).is_err());
        assert!(health(&ElectionSnapshot::default(), at(106)).is_ok());
    }

    #[test]
    fn a_standby_that_sees_nothing_is_alive_and_not_ready() {
        let blind = ElectionSnapshot {
            role: Role::Standby,
            is_unwatched: true,
            ..ElectionSnapshot::default()
        };
        assert!(health(&blind, at(1)).is_ok());
        assert!(readiness(&blind, at(1)).is_err());
    }
}
