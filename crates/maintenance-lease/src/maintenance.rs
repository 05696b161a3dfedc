//! The handle through which a program uses maintenance locks.

mod fenced_note;
mod managed_fields;
mod reads;
pub(crate) mod verbs;

use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, join_all, select};
use kube::Client;

use crate::cluster::api::Api;
use crate::cluster::change::DryRun;
use crate::cluster::error::ApiError;
use crate::cluster::events::{Event, NodeEvent};
use crate::cluster::requests::Requests;
use crate::cluster::server_time::{OnSuspectedPause, ServerTime};
use crate::cluster::watch::follow::Followers;
use crate::cluster::writes::WriteOptions;
use crate::env::{Env, Machine};
use crate::lease::NodeLease;
use crate::outcome::{Error, Refused};
use crate::protocol::identity::InvalidIdentity;
use crate::protocol::{LockId, Names, check_held};
use crate::repository::Repository;

/// The default limit for one request.
pub const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Gives one holder access to the maintenance locks.
///
/// Cheap to clone; clones share the client and the estimate of the server's time.
///
/// # Usage
/// ```no_run
/// use maintenance_lease::{Acquire, Error, Maintenance, Release};
///
/// # async fn reboot(_: &str) {}
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let mut config = kube::Config::infer().await?;
/// config.default_retry = false;
/// let maintenance = Maintenance::new(config.try_into()?, "reboot-controller")?;
/// match maintenance.try_acquire("worker-1", &Acquire::new().reason("new kernel")).await {
///     Ok(_) => {
///         reboot("worker-1").await;
///         maintenance.release("worker-1", &Release::new()).await?;
///     }
///     Err(Error::Refused(refused)) => println!("skipped: {refused}"),
///     Err(error) => return Err(error.into()),
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Caveats
/// If the work takes longer than a moment, keep the lock renewed: use [`acquire`](Self::acquire), or
/// [`try_acquire`](Self::try_acquire) and [`keep`](Self::keep). Then run the work under
/// [`HeldLease::guard`](crate::HeldLease::guard), which drops it if the lock is lost.
///
/// A `kube::Client` made from a plain `Config` retries failed requests by itself, for minutes. The locks
/// stay correct, but every answer is delayed: switch the retries off, as above.
///
/// Such a client doesn't set `TCP_NODELAY` either, so the first request of each connection may wait 40 ms
/// for an acknowledgement. If you wait for locks that change holders quickly, make the client with a
/// connector that sets it (`kube::client::ConfigExt`).
#[derive(Clone)]
pub struct Maintenance {
    pub(crate) api: Api,
    pub(crate) followers: Followers,
    identity: String,
    pub(crate) write_options: WriteOptions,
    pub(crate) dry_run: DryRun,
}

/// Settings of a [`Maintenance`] that most programs leave as they are.
pub struct Builder {
    client: Client,
    identity: String,
    field_manager: String,
    request_timeout: Option<Duration>,
    repository: Repository,
    dry_run: DryRun,
    env: Arc<dyn Env>,
    on_suspected_pause: OnSuspectedPause,
}

impl Builder {
    /// The field manager of the writes; `maintenance-lease` by default.
    #[must_use]
    pub fn field_manager(mut self, field_manager: impl Into<String>) -> Self {
        self.field_manager = field_manager.into();
        self
    }

    /// The limit for each request; `None`: no limit.
    #[must_use]
    pub fn request_timeout(mut self, limit: Option<Duration>) -> Self {
        self.request_timeout = limit;
        self
    }

    /// Which Leases it works on; the Node Maintenance Leases by default.
    #[must_use]
    pub fn repository(mut self, repository: Repository) -> Self {
        self.repository = repository;
        self
    }

    /// Decide without writing, or write without storing.
    #[must_use]
    pub fn dry_run(mut self, dry_run: DryRun) -> Self {
        self.dry_run = dry_run;
        self
    }

    /// The source of clocks and randomness, for simulations.
    #[must_use]
    pub fn env(mut self, env: Arc<dyn Env>) -> Self {
        self.env = env;
        self
    }

    /// Calls `reconnect` if the machine may have been paused, before the locks are checked. A client that
    /// keeps connections should open new ones, because the old ones may be dead.
    ///
    /// # Caveats
    /// It is called while the clocks are compared, so it must not block or use this handle.
    #[must_use]
    pub fn reconnect(mut self, reconnect: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_suspected_pause = Arc::new(reconnect);
        self
    }

    /// The handle.
    ///
    /// # Errors
    /// If the identity is not valid for a holder.
    pub fn build(self) -> Result<Maintenance, InvalidIdentity> {
        self.repository.check_identity(&self.identity)?;
        Ok(Maintenance {
            followers: Followers::default(),
            api: Api::new(
                self.client,
                self.env,
                self.request_timeout,
                self.repository,
                self.on_suspected_pause,
            ),
            identity: self.identity,
            write_options: WriteOptions {
                field_manager: self.field_manager,
                dry_run: self.dry_run == DryRun::Server,
            },
            dry_run: self.dry_run,
        })
    }
}

impl Maintenance {
    /// Creates a handle for a holder. The `identity` should name one process or person, because all locks
    /// of the same identity count as your own.
    ///
    /// # Errors
    /// If the identity is not valid for a holder of node locks, such as one that begins with `kubeadm`.
    pub fn new(client: Client, identity: impl Into<String>) -> Result<Self, InvalidIdentity> {
        Self::builder(client, identity).build()
    }

    /// A builder for a handle with other settings than the defaults.
    pub fn builder(client: Client, identity: impl Into<String>) -> Builder {
        Builder {
            client,
            identity: identity.into(),
            field_manager: "maintenance-lease".to_owned(),
            request_timeout: Some(DEFAULT_REQUEST_TIMEOUT),
            repository: Repository::default(),
            dry_run: DryRun::None,
            env: Arc::new(Machine),
            on_suspected_pause: Arc::new(|| ()),
        }
    }

    /// The same handle for another holder. Both share the client and the estimate of the server's time.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn as_holder(&self, identity: impl Into<String>) -> Result<Self, InvalidIdentity> {
        let identity = identity.into();
        self.repository().check_identity(&identity)?;
        Ok(Self {
            identity,
            ..self.clone()
        })
    }

    /// The same handle for dry runs: the server checks each write and stores nothing.
    #[must_use]
    pub fn in_dry_run(&self) -> Self {
        let mut handle = self.clone();
        handle.write_options.dry_run = true;
        handle.dry_run = DryRun::Server;
        handle
    }

    /// Whether the verbs of this handle store nothing.
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        self.dry_run != DryRun::None
    }

    /// The identity of the holder.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Which Leases it works on.
    pub fn repository(&self) -> &Repository {
        &self.api.repository
    }

    /// The estimate of the server's time. Every answer improves it.
    #[must_use]
    pub fn server_time(&self) -> &ServerTime {
        &self.api.time
    }

    /// Sends requests the same way as this handle, for requests about other objects.
    #[must_use]
    pub fn requests(&self) -> &Requests {
        &self.api.requests
    }

    /// Whether a write to the node's Lease was sent and its outcome is unknown: it may still take effect.
    /// Dropping the future of a verb may leave such a write, and so may
    /// [`Error::Unknown`](crate::Error::Unknown). A later verb of this handle, or of a clone, clears this
    /// if it sees that the Lease has changed since. It stays set while the write itself is the latest
    /// change.
    #[must_use]
    pub fn has_open_write(&self, node: &str) -> bool {
        self.api.open_writes.has(node)
    }

    /// A lease is the caller's if its holder is the caller's identity, or the hold of that identity.
    #[must_use]
    pub fn is_own(&self, lease: &NodeLease) -> bool {
        lease.is_held_by(&self.identity)
    }

    /// Whether the acquisition with this lock id still holds `lease`, for work that goes on only if it does. It counts
    /// until the end that the Lease states: others wait some seconds more, for clock skew.
    ///
    /// # Errors
    /// Why it is not held.
    pub fn check_held(&self, lease: &NodeLease, id: &LockId) -> Result<(), Error> {
        let is_meant = lease.lock_id().as_ref() == Some(id);
        let reduced = lease.reduced(&mut Names::default());
        let checked = check_held(&reduced, is_meant, self.server_time().now());
        checked.map_err(|(refusal, state)| {
            Error::Refused(Box::new(Refused {
                subject: self.repository().subject(),
                node: lease.node().to_owned(),
                refusal,
                lease: Some(lease.clone()),
                state,
            }))
        })
    }

    /// The same for a caller that retries by itself: every request is sent once.
    pub(crate) fn once(&self) -> Self {
        Self {
            api: self.api.once(),
            ..self.clone()
        }
    }

    /// Posts events on their Nodes in parallel, for at most `limit`. Returns the first that failed, if
    /// any; an event that is not posted within the limit counts as failed.
    ///
    /// # Usage
    /// ```
    /// use std::time::Duration;
    ///
    /// use maintenance_lease::{Maintenance, NodeEvent, NodeLookup};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// if let NodeLookup::Row(node) = maintenance.node("worker-1").await? {
    ///     let event = NodeEvent {
    ///         node: node.name,
    ///         uid: node.uid,
    ///         reason: "MaintenanceHold",
    ///         message: "alice holds it: its fan is loud".to_owned(),
    ///         warning: false,
    ///     };
    ///     // An Event is worth two seconds, and no failure.
    ///     if let Some(error) = maintenance.post_events(&[event], Duration::from_secs(2)).await {
    ///         println!("no Event: {error}");
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Caveats
    /// Dropping this future abandons the answers that have not arrived. Those events may still be stored.
    pub async fn post_events(&self, events: &[NodeEvent], limit: Duration) -> Option<ApiError> {
        let posts = join_all(events.iter().map(async |event| {
            let posted = Event {
                regarding: &event.regarding(),
                reason: event.reason,
                note: &event.message,
                warning: event.warning,
                reporter: &self.write_options.field_manager,
                instance: &self.identity,
            };
            self.api.post_event(&posted).await
        }));
        match select(posts, self.api.env.sleep(limit)).await {
            Either::Left((posted, _)) => posted.into_iter().find_map(Result::err),
            Either::Right(_) => Some(ApiError::TimedOut(limit)),
        }
    }
}
