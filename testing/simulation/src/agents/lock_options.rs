//! Options of locks whose details the history knows.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use maintenance_lease::{Acquire, Hold};

use super::agent::Agent;
use crate::history::Details;
use crate::time::EPOCH;

/// A reason, and sometimes more.
pub(super) fn some_details(agent: &mut Agent, holds: bool) -> Details {
    let rng = &mut agent.rng;
    let number = rng.u16(..);
    let detail = |what: &str| Some(Arc::<str>::from(format!("{what} {number}")));
    Details {
        reason: detail("reason"),
        ticket: detail("ticket").filter(|_| rng.bool()),
        purpose: detail("purpose").filter(|_| !holds && rng.u8(..4) == 0),
        hold_until: (holds && rng.bool()).then(|| until(number)),
    }
}

/// In so many minutes from the beginning of the world.
fn until(minutes: u16) -> Arc<str> {
    let micros = EPOCH + i64::from(minutes) * 60_000_000;
    let until = DateTime::from_timestamp_micros(micros).unwrap_or_default();
    until.to_rfc3339_opts(SecondsFormat::Secs, true).into()
}

/// An acquisition that writes `details`.
pub(super) fn acquire(seconds: u32, details: &Details) -> Acquire {
    let mut options = Acquire::new().duration(Duration::from_secs(seconds.into()));
    if let Some(reason) = &details.reason {
        options = options.reason(&**reason);
    }
    if let Some(ticket) = &details.ticket {
        options = options.ticket(&**ticket);
    }
    if let Some(purpose) = &details.purpose {
        options = options.purpose(&**purpose);
    }
    options
}

/// A hold that writes `details`.
pub(super) fn hold(details: &Details) -> Hold {
    let mut options = Hold::new(details.reason.as_deref().unwrap_or_default());
    if let Some(ticket) = &details.ticket {
        options = options.ticket(&**ticket);
    }
    let until = details.hold_until.as_deref();
    if let Some(until) = until.and_then(|until| DateTime::parse_from_rfc3339(until).ok()) {
        options = options.until(until.with_timezone(&Utc));
    }
    options
}
