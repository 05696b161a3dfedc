//! What a caller may say of each verb, and what is refused before anything is sent.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::protocol::LockId;

/// The length of an acquisition where none is given: 30 minutes.
pub const DEFAULT_DURATION: Duration = Duration::from_secs(30 * 60);

/// The longest acquisition: an hour (KEP-1411).
pub const LONGEST_DURATION: Duration = Duration::from_secs(3600);

/// The longest reason, in bytes.
pub const LONGEST_REASON: usize = 1024;

/// An option that can't be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOption {
    /// A length that is no whole number of seconds from 1 s to 1 h.
    #[error("a duration must be a whole number of seconds from 1s to 1h")]
    Duration(Duration),
    /// A reason over [`LONGEST_REASON`].
    #[error("a reason must not be longer than {LONGEST_REASON} bytes; this one has {0}")]
    Reason(usize),
    /// A hold without a reason.
    #[error("a hold needs a reason")]
    NoReason,
    /// An election of whose lock a node is.
    #[error("leaders are not elected on the Leases of nodes")]
    ElectionOnANode,
    /// A hold of what is no node.
    #[error("only nodes are held by administrators")]
    HoldOfNoNode,
    /// Nothing was acquired that could be kept.
    #[error("nothing was acquired that could be kept")]
    NothingToKeep,
    /// The duration leaves no time to renew it before the work has to stop.
    #[error("a lease of {duration}s can't be kept: it takes at least {shortest}s")]
    TooShort {
        /// What was asked for, in seconds.
        duration: u32,
        /// The shortest that can be, in seconds.
        shortest: u32,
    },
    /// No duration leaves time to renew it before the work has to stop.
    #[error(
        "it takes a lease of at least {shortest}s for its work to be stopped in time, and none is longer than 1h"
    )]
    NoneLongEnough {
        /// The shortest that would do, in seconds.
        shortest: u32,
    },
}

/// Checks the length of an acquisition.
///
/// # Errors
/// Where it is no whole number of seconds, under a second, or over [`LONGEST_DURATION`].
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
/// Where it is longer than [`LONGEST_REASON`].
pub fn check_reason(reason: &str) -> Result<(), InvalidOption> {
    if reason.len() > LONGEST_REASON {
        return Err(InvalidOption::Reason(reason.len()));
    }
    Ok(())
}

/// How to acquire.
#[derive(Clone, Debug)]
#[must_use]
pub struct Acquire {
    pub(crate) duration: Duration,
    pub(crate) reason: Option<String>,
    pub(crate) reentry: bool,
    pub(crate) free_only: bool,
}

impl Default for Acquire {
    fn default() -> Self {
        Self::new()
    }
}

impl Acquire {
    /// For [`DEFAULT_DURATION`], without a reason, where it is free or expired.
    pub fn new() -> Self {
        Self {
            duration: DEFAULT_DURATION,
            reason: None,
            reentry: false,
            free_only: false,
        }
    }

    /// For how long: a whole number of seconds from 1 s to 1 h.
    pub fn duration(mut self, duration: Duration) -> Self {
        self.duration = duration;
        self
    }

    /// Why, for everybody who meets the lock: at most [`LONGEST_REASON`] bytes.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Accept a node that the same identity holds already, as a renewal of that acquisition.
    ///
    /// # Caveats
    /// That may be a colleague on a shared account. Who works under a lock that was there before
    /// must leave it as found.
    pub fn reentry(mut self, reentry: bool) -> Self {
        self.reentry = reentry;
        self
    }

    /// Refuse an expired lease, which means that somebody did not finish.
    pub fn free_only(mut self, free_only: bool) -> Self {
        self.free_only = free_only;
        self
    }
}

/// How to renew.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Renew {
    pub(crate) duration: Option<Duration>,
    pub(crate) reason: Option<String>,
    pub(crate) lock_id: Option<LockId>,
}

impl Renew {
    /// For as long again as it was acquired for, and for 1 h at most.
    pub fn new() -> Self {
        Self::default()
    }

    /// For how long from now: a whole number of seconds from 1 s to 1 h. An end that lies later
    /// already stays.
    pub fn duration(mut self, duration: Duration) -> Self {
        self.duration = Some(duration);
        self
    }

    /// Replaces the reason.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Demands that very acquisition.
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
    /// The caller's own, whichever acquisition it is.
    pub fn new() -> Self {
        Self::default()
    }

    /// Leaves a word behind, for who looks next.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Demands that very acquisition.
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
    pub(crate) until: Option<DateTime<Utc>>,
    pub(crate) purpose: Option<String>,
}

impl Hold {
    /// A hold for `reason`, which everybody who meets it is shown.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            until: None,
            purpose: None,
        }
    }

    /// What a new hold is for, where a program has to know it again, also after a crash: unlike the
    /// reason, nobody writes it by hand. An own hold that is there keeps its own, and only a hold for
    /// the same purpose changes it: another is refused as [`OwnHold`](crate::protocol::Refusal::OwnHold).
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

    /// When it is meant to be over. Advisory: a hold is overdue then, and never ends by itself.
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
    fn reasons_are_up_to_a_kibibyte() {
        assert_eq!(check_reason(&"x".repeat(1024)), Ok(()));
        assert_eq!(
            check_reason(&"x".repeat(1025)),
            Err(InvalidOption::Reason(1025))
        );
    }
}
