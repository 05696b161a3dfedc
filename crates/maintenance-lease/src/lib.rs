//! A lock per Kubernetes node that everybody can see, wait for and respect: the Node Maintenance Lease of
//! KEP-1411, for controllers and for `kubectl maint`.
//!
//! A maintenance lock is a `coordination.k8s.io` Lease in the namespace [`NAMESPACE`] with the name of
//! the node. [`Maintenance`] acquires, renews and releases these locks; [`protocol`] has the rules.
//!
//! With other Leases ([`Repository`]), applications get the same: named locks, and [`LeaderElection`]
//! that works together with client-go.
//!
//! # In a controller
//!
//! [`Maintenance::acquire`] waits for a lock, acquires it and keeps it renewed. Run the work under
//! [`HeldLease::guard`], which drops it if the lock is lost, and end with [`HeldLease::release`].
//! To acquire without waiting, use [`Maintenance::try_acquire`] and [`Maintenance::keep`]. For several locks,
//! all or none, use [`Maintenance::lock_all`] and keep each. [`Maintenance::follow`] reports every change of
//! some locks, [`Maintenance::follow_all`] of all locks.
//!
//! # Cancellation
//!
//! You can drop any future at any time; its documentation says what happens then. No future blocks its
//! thread or holds anything that others wait for. A dropped read has no effect. A dropped write may still
//! take effect, because the server may have received it: [`Maintenance::has_open_write`] then returns
//! true, and the next verb on that lock finds out the result. A lock that was acquired this way expires
//! by itself.
//!
//! # Runtime
//!
//! Poll futures and streams in a tokio runtime with timers and I/O enabled, such as the one of
//! `#[tokio::main]`. Call [`Maintenance::keep`] there too, because it starts a task. Outside a runtime
//! nothing is sent, and the error is [`ApiError::NoRuntime`].
//!
//! # Panics
//!
//! If the system has no source of randomness: every acquisition needs an id that nobody can guess, and
//! there is no substitute ([`Machine`](env::Machine)). Tokio panics if the timers or the I/O of the
//! runtime are not enabled.
//!
//! # The guarantee
//!
//! No two clients that follow these rules believe that they hold a node at the same time. This requires
//! that their estimates of the server's time differ by less than [`protocol::SKEW_BUDGET`]. The
//! exceptions are a lock that was taken over on purpose and a Lease that was changed by other tools.

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
mod history;
mod keeper;
mod lease;
mod maintenance;
mod notes;
mod options;
mod outcome;
pub mod protocol;
mod purpose;
mod repository;
mod set;
mod target;
mod text;
mod waiting;

pub use any_lease::{AnyLease, Candidate, HEARTBEATS, LeaseScope};
pub use cluster::call::{Accept, Call};
pub use cluster::change::DryRun;
pub use cluster::error::{ApiError, Status};
pub use cluster::events::{Event, NodeEvent};
pub use cluster::lists::Listed;
pub use cluster::nodes::{NodeRow, RowDetail};
pub use cluster::reads::{NodeAndLease, NodeLookup};
pub use cluster::requests::{Requests, escape};
pub use cluster::server_time::{ClockWarning, ServerTime};
pub use cluster::waiters::Waiter;
pub use cluster::watch::{NodeRowEvent, WatchEvent};
pub use election::{DEFAULT_LEASE_DURATION, LeaderElection};
pub use follow::{Followed, Follower};
pub use history::{Ending, PastLock, UnreadableHistory};
pub use keeper::{Guarded, HeldLease, HeldState, Keep, Lost, LostBy};
pub use lease::NodeLease;
pub use maintenance::verbs::TakeOver;
pub use maintenance::{Builder, DEFAULT_REQUEST_TIMEOUT, Maintenance};
pub use notes::{ANNOTATION_PREFIX, CORDON, HELD_LABEL, KEPT_CORDON};
pub use options::{
    Acquire, DEFAULT_DURATION, Hold, InvalidOption, LONGEST_DURATION, LONGEST_REASON,
    LONGEST_TICKET, Release, Renew, check_duration, check_reason, check_ticket,
};
pub use outcome::{Change, Done, Error, Refused, Right, SideEffect};
pub use purpose::{LeasePurpose, MEDIK8S_LEASES};
pub use repository::{NAMESPACE, Repository, Subject};
pub use set::{SetError, SetOptions, SetOutcome, SetProgress};
pub use target::Target;
pub use text::{is_object_name, shortened};
pub use waiting::{Blocked, Progress};

/// The examples of docs/library.md, compiled as they are.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct LibraryPage;
