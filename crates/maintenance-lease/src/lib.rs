//! One lock per Kubernetes node that everybody can see, wait for and respect: the Node
//! Maintenance Lease of KEP-1411, for controllers and for `kubectl maint`.
//!
//! A maintenance lock is a `coordination.k8s.io` Lease in namespace [`NAMESPACE`], named as the
//! node. [`Maintenance`] acquires, renews and releases such locks; [`protocol`] has the rules.
//!
//! On other Leases ([`Repository`]) it gives the same to applications: named locks, and
//! [`LeaderElection`] together with processes that use client-go.
//!
//! # In a controller
//!
//! [`Maintenance::acquire`] waits for a lock, takes it and keeps it renewed. Work runs under
//! [`HeldLease::guard`], which drops it where the lock is lost, and [`HeldLease::release`] gives the
//! lock back. [`Maintenance::acquire_all`] does the same for several locks, all or none.
//! What must not wait is [`Maintenance::try_acquire`] and [`Maintenance::keep`];
//! [`Maintenance::follow`] tells every change of some locks, and [`Maintenance::follow_all`] of all.
//!
//! # Cancellation
//!
//! Every future may be dropped at any time, and says what that leaves behind. None blocks its
//! thread, and none holds anything that others wait for. A dropped read leaves nothing. A dropped
//! write may still land, since the server may have it already: [`Maintenance::has_open_write`] says
//! so, and the next verb on that lock sees what became of it. What was acquired that way runs out by
//! itself.
//!
//! # Runtime
//!
//! Futures and streams are polled within a tokio runtime that has its timers and I/O enabled, as
//! `#[tokio::main]` makes it; and so is [`Maintenance::keep`] called, which starts a task. Outside
//! any runtime nothing is sent: that is [`ApiError::NoRuntime`].
//!
//! # Panics
//!
//! Where a system has no source of randomness: acquisitions are told apart by what nobody can guess,
//! and nothing may stand in for it ([`Machine`](env::Machine)). And, in tokio, where a runtime's timers
//! or I/O are not enabled.
//!
//! # The guarantee
//!
//! No two clients that follow these rules believe that they hold a node at the same time, as long as
//! their estimates of the server's time differ by less than [`protocol::SKEW_BUDGET`], and unless
//! the lock was broken on purpose or from outside.

#![warn(missing_docs)]
#![cfg_attr(
    not(test),
    warn(
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

mod any_lease;
#[cfg(feature = "seeded-bugs")]
pub mod bugs;
#[cfg(not(feature = "seeded-bugs"))]
mod bugs;
mod cluster;
mod election;
pub mod env;
mod follow;
mod keeper;
mod lease;
mod maintenance;
mod notes;
mod options;
mod outcome;
pub mod protocol;
mod repository;
mod set;
mod waiting;

pub use any_lease::{AnyLease, Candidate, HEARTBEATS, Realm};
pub use cluster::change::DryRun;
pub use cluster::error::{ApiError, Status};
pub use cluster::events::{Event, NodeEvent, shortened};
pub use cluster::nodes::NodeRow;
pub use cluster::reads::{RowDetail, Seen, Sight};
pub use cluster::requests::{Accept, Call, Requests, escape};
pub use cluster::server_time::{ClockWarning, ServerTime, ServerTimeLayer, ServerTimeService};
pub use cluster::watch::{NodeRowEvent, WatchEvent};
pub use election::{DEFAULT_LEASE_DURATION, LeaderElection};
pub use follow::{Followed, Follower};
pub use keeper::{Guarded, HeldLease, Keep, Lost, LostBy, Standing};
pub use lease::NodeLease;
pub use maintenance::{Builder, DEFAULT_REQUEST_TIMEOUT, Maintenance};
pub use notes::ANNOTATION_PREFIX;
pub use options::{
    Acquire, DEFAULT_DURATION, Hold, InvalidOption, LONGEST_DURATION, LONGEST_REASON, Release,
    Renew, check_duration, check_reason,
};
pub use outcome::{Aside, Change, Done, Error, Refused, Right};
pub use repository::{NAMESPACE, Repository, Subject};
pub use set::{HeldSet, SetError, SetOptions, SetOutcome, SetProgress, Target};
pub use waiting::{Blocked, Progress};

/// The examples of docs/library.md, which are compiled as they stand there.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct LibraryPage;
