//! The options of each verb. Invalid ones are refused before anything is sent.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::lease::NodeLease;
use crate::protocol::{LONGEST_SECONDS, LockId};

/// The default length of an acquisition: 30 minutes.
pub const DEFAULT_DURATION: Duration = Duration::from_secs(30 * 60);

/// The longest acquisition: an hour (KEP-1411).
pub const LONGEST_DURATION: Duration = Duration::from_secs(LONGEST_SECONDS as u64);

/// The longest reason, in bytes.
pub const LONGEST_REASON: usize = 1024;

/// An invalid option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOption {
    /// A length that is not a whole number of seconds from 1 s to 1 h.
    #[error("a duration must be a whole number of seconds from 1s to 1h")]
    Duration(Duration),
    /// A reason longer than [`LONGEST_REASON`].
    #[error("a reason must not be longer than {LONGEST_REASON} bytes; this one has {0}")]
    Reason(usize),
    /// A ticket that is empty, longer than [`LONGEST_TICKET`], or has control characters.
    #[error("a ticket must have 1 to {LONGEST_TICKET} bytes, and no control characters")]
    Ticket,
    /// A hold without a reason.
    #[error("a hold needs a reason")]
    NoReason,
    /// An election on a Lease that locks a node.
    #[error("the Lease of a node cannot be used for leader election")]
    ElectionOnANode,
    /// A hold of something other than a node.
    #[error("only nodes can be put on hold")]
    HoldOfNoNode,
    /// Nothing was acquired, so there is nothing to keep.
    #[error("nothing was acquired, so there is nothing to renew")]
    NothingToKeep,
    /// The duration leaves no time to renew before the work has to stop.
    #[error("a lease of {duration}s is too short to be renewed in time: use at least {shortest}s")]
    TooShort {
        /// The requested duration in seconds.
        duration: u32,
        /// The shortest duration that is possible, in seconds.
        shortest: u32,
    },
    /// No duration leaves time to renew before the work has to stop.
    #[error(
        "stopping the work in time takes a lease of at least {shortest}s, but the longest lease is 1h"
    )]
    NoneLongEnough {
        /// The shortest duration that would be long enough, in seconds.
        shortest: u32,
    },
}

/// Checks the length of an acquisition.
///
/// # Errors
/// If it is not a whole number of seconds, under a second, or over [`LONGEST_DURATION`].
pub fn check_duration(duration: Duration) -> Result<u32, InvalidOption> {
    let whole = duration.subsec_nanos() == 0;
    match u32::try_from(duration.as_secs()) {
        Ok(seconds) if whole && seconds >= 1 && duration <= LONGEST_DURATION => Ok(seconds),
        _ => Err(InvalidOption::Duration(duration)),
    }
}

/// Checks a reason.
///
/// # Errors
/// If it is longer than [`LONGEST_REASON`].
pub fn check_reason(reason: &str) -> Result<(), InvalidOption> {
    if reason.len() > LONGEST_REASON {
        return Err(InvalidOption::Reason(reason.len()));
    }
    Ok(())
}

/// The longest ticket, in bytes.
pub const LONGEST_TICKET: usize = 256;

/// Checks a ticket.
///
/// # Errors
/// If it is empty, is longer than [`LONGEST_TICKET`], or has control characters.
pub fn check_ticket(ticket: &str) -> Result<(), InvalidOption> {
    let is_valid = (1..=LONGEST_TICKET).contains(&ticket.len())
        && !ticket.trim().is_empty()
        && !ticket.contains(char::is_control);
    is_valid.then_some(()).ok_or(InvalidOption::Ticket)
}

/// How to acquire.
#[derive(Clone, Debug)]
#[must_use]
pub struct Acquire {
    pub(crate) duration: Duration,
    pub(crate) reason: Option<String>,
    pub(crate) ticket: Option<String>,
    pub(crate) keys: Option<String>,
    pub(crate) reentry: bool,
    pub(crate) unfinished: Unfinished,
}

/// Which expired leases of Nodes that are not ready, or cordoned, may be acquired.
#[derive(Clone, Debug, Default)]
pub(crate) enum Unfinished {
    /// All.
    #[default]
    Any,
    /// Only these: somebody has seen what their holders left.
    Only(Vec<NodeLease>),
}

impl Default for Acquire {
    fn default() -> Self {
        Self::new()
    }
}

impl Acquire {
    /// The default: for [`DEFAULT_DURATION`], without a reason, and only if the lock is free or expired.
    pub fn new() -> Self {
        Self {
            duration: DEFAULT_DURATION,
            reason: None,
            ticket: None,
            keys: None,
            reentry: false,
            unfinished: Unfinished::Any,
        }
    }

    /// The duration: a whole number of seconds from 1 s to 1 h.
    pub fn duration(mut self, duration: Duration) -> Self {
        self.duration = duration;
        self
    }

    /// The reason, shown to everybody who sees the lock: at most [`LONGEST_REASON`] bytes.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// The URL or the id of the ticket that says more, shown with the reason: at most [`LONGEST_TICKET`] bytes.
    pub fn ticket(mut self, ticket: impl Into<String>) -> Self {
        self.ticket = Some(ticket.into());
        self
    }

    /// What the lock asks of its Node, as words that are separated by commas: [`HELD_LABEL`](crate::HELD_LABEL),
    /// [`CORDON`](crate::CORDON), and those of the program that sets them. With [`reentry`](Self::reentry), a lock that is
    /// renewed gets them too. A lock that replaces another one also keeps its cordon.
    pub fn keys(mut self, keys: impl Into<String>) -> Self {
        self.keys = Some(keys.into());
        self
    }

    /// Accepts a lock that the same identity already holds, and renews it.
    ///
    /// # Caveats
    /// The holder may be a colleague on a shared account. If you work under a lock that existed before,
    /// do not release it.
    pub fn reentry(mut self, reentry: bool) -> Self {
        self.reentry = reentry;
        self
    }

    /// Refuses an expired lease if the Node is not ready, or cordoned
    /// ([`Unfinished`](crate::protocol::Refusal::Unfinished)). The acquisitions in `except` may be
    /// replaced: somebody has seen what their holders left.
    ///
    /// # Caveats
    /// Without permission to read Nodes, nothing is refused.
    pub fn refuse_unfinished(mut self, except: impl IntoIterator<Item = NodeLease>) -> Self {
        self.unfinished = Unfinished::Only(except.into_iter().collect());
        self
    }
}

/// How to renew.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Renew {
    pub(crate) duration: Option<Duration>,
    pub(crate) added: Option<Duration>,
    pub(crate) reason: Option<String>,
    pub(crate) lock_id: Option<LockId>,
}

impl Renew {
    /// The default: for the length of the acquisition, and at most 1 h.
    pub fn new() -> Self {
        Self::default()
    }

    /// The duration from now: a whole number of seconds from 1 s to 1 h. If the lease already expires
    /// later, that expiry stays.
    pub fn duration(mut self, duration: Duration) -> Self {
        self.duration = Some(duration);
        self
    }

    /// Adds a whole number of seconds, from 1 s to 1 h, to what is left when the Lease is first read. It is
    /// added only once, even if an answer is lost. If another renewal takes effect at the same time, the
    /// later of the two ends counts. Refused if the lock would then last longer than 1 h. Used instead of [`duration`](Self::duration).
    pub fn added(mut self, added: Duration) -> Self {
        self.added = Some(added);
        self
    }

    /// Replaces the reason.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Renews only this acquisition.
    pub fn lock_id(mut self, lock_id: LockId) -> Self {
        self.lock_id = Some(lock_id);
        self
    }
}

/// How to release.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Release {
    pub(crate) reason: Option<String>,
    pub(crate) lock_id: Option<LockId>,
}

impl Release {
    /// The default: any acquisition of the caller.
    pub fn new() -> Self {
        Self::default()
    }

    /// Leaves a note for the next person who looks at the lock.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Releases only this acquisition.
    pub fn lock_id(mut self, lock_id: LockId) -> Self {
        self.lock_id = Some(lock_id);
        self
    }
}

/// How to hold as an administrator.
#[derive(Clone, Debug)]
#[must_use]
pub struct Hold {
    pub(crate) reason: String,
    pub(crate) ticket: Option<String>,
    pub(crate) until: Option<DateTime<Utc>>,
    pub(crate) purpose: Option<String>,
    pub(crate) keys: Option<String>,
    pub(crate) unfinished: Unfinished,
    pub(crate) take_over: Vec<NodeLease>,
}

impl Hold {
    /// A hold with a `reason`, which is shown to everybody who sees it.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            ticket: None,
            until: None,
            purpose: None,
            keys: None,
            unfinished: Unfinished::Any,
            take_over: Vec::new(),
        }
    }

    /// As [`Acquire::ticket`].
    pub fn ticket(mut self, ticket: impl Into<String>) -> Self {
        self.ticket = Some(ticket.into());
        self
    }

    /// As [`Acquire::refuse_unfinished`].
    pub fn refuse_unfinished(mut self, except: impl IntoIterator<Item = NodeLease>) -> Self {
        self.unfinished = Unfinished::Only(except.into_iter().collect());
        self
    }

    /// Takes over these acquisitions of others, and no others: a person has checked them. Replaces an own one by a new one.
    /// In a set, what was taken over stays on hold, also if the rest of the set fails: its holder may still be working
    /// there.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::{Acquire, Hold, Maintenance};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// # let bob = Maintenance::new(sandbox.client(), "bob@laptop")?;
    /// # bob.try_acquire("worker-1", &Acquire::new()).await?;
    /// let lease = maintenance.get("worker-1").await?;
    /// // Somebody has looked at the lease and wants it taken over.
    /// let hold = Hold::new("it is on fire").take_over(lease);
    /// let change = maintenance.hold("worker-1", &hold).await?;
    /// assert_eq!(change.before.as_ref().and_then(|lease| lease.holder()), Some("bob@laptop"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn take_over(mut self, confirmed: impl IntoIterator<Item = NodeLease>) -> Self {
        self.take_over = confirmed.into_iter().collect();
        self
    }

    /// The purpose of a new hold, for a program that has to recognize it later, even after a crash.
    /// Unlike the reason, it is never written by hand. An existing hold of yours keeps its purpose. Only
    /// a hold for the same purpose can change it; any other is refused as
    /// [`OwnHold`](crate::protocol::Refusal::OwnHold).
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::protocol::Refusal;
    /// use maintenance_lease::{Error, Hold, Maintenance};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "replacer")?;
    /// let mine = Hold::new("its disk is being replaced").purpose("disks");
    /// maintenance.hold("worker-1", &mine).await?;
    ///
    /// // Run again after a crash, it finds its hold.
    /// let change = maintenance.hold("worker-1", &mine).await?;
    /// assert_eq!(change.lease.as_ref().and_then(|lease| lease.purpose()), Some("disks"));
    /// // Nobody changes it by the way who goes by the same name.
    /// let refused = maintenance.hold("worker-1", &Hold::new("rack moves")).await;
    /// assert!(matches!(refused, Err(Error::Refused(it)) if it.refusal == Refusal::OwnHold));
    /// # Ok(())
    /// # }
    /// ```
    pub fn purpose(mut self, purpose: impl Into<String>) -> Self {
        self.purpose = Some(purpose.into());
        self
    }

    /// As [`Acquire::keys`]. A hold of yours gets them too.
    pub fn keys(mut self, keys: impl Into<String>) -> Self {
        self.keys = Some(keys.into());
        self
    }

    /// The planned end of the hold. It is advisory: after it the hold is shown as overdue, and it never
    /// ends by itself.
    pub fn until(mut self, until: DateTime<Utc>) -> Self {
        self.until = Some(until);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_whole_seconds_up_to_an_hour() {
        assert_eq!(check_duration(Duration::from_secs(1)), Ok(1));
        assert_eq!(check_duration(Duration::from_secs(3600)), Ok(3600));
        for bad in [
            Duration::ZERO,
            Duration::from_millis(500),
            Duration::from_millis(1500),
            Duration::from_secs(3601),
            Duration::from_secs(u64::MAX),
        ] {
            assert_eq!(check_duration(bad), Err(InvalidOption::Duration(bad)));
        }
    }

    #[test]
    fn a_ticket_is_short_and_visible() {
        for ticket in ["OPS-7", "https://tickets.example/7?x=y", &"x".repeat(256)] {
            assert_eq!(check_ticket(ticket), Ok(()));
        }
        for ticket in ["", " ", "a\nb", &"x".repeat(257)] {
            assert_eq!(
                check_ticket(ticket),
                Err(InvalidOption::Ticket),
                "{ticket:?}"
            );
        }
    }

    #[test]
    fn reasons_are_up_to_a_kibibyte() {
        assert_eq!(check_reason(&"x".repeat(1024)), Ok(()));
        assert_eq!(
            check_reason(&"x".repeat(1025)),
            Err(InvalidOption::Reason(1025))
        );
    }
}
