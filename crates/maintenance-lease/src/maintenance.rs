//! The handle: everything that a program does with maintenance locks begins here.

mod mark;
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
use crate::cluster::server_time::{OnDoubt, ServerTime};
use crate::cluster::writes::WriteOptions;
use crate::env::{Env, Machine};
use crate::lease::NodeLease;
use crate::protocol::identity::InvalidIdentity;
use crate::repository::Repository;

/// The limit for one request where none is set.
pub const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Maintenance locks, as one holder sees them.
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
/// A process that does something for longer than a moment keeps what it acquired:
/// [`acquire`](Self::acquire), or [`try_acquire`](Self::try_acquire) and [`keep`](Self::keep), and
/// then [`HeldLease::guard`](crate::HeldLease::guard), which drops the work where the lock is lost.
///
/// A `kube::Client` made from a plain `Config` repeats failed requests by itself, for minutes. That
/// breaks nothing here, but it delays every answer: switch it off, as above.
///
/// Such a client doesn't set `TCP_NODELAY` either, so that the first request of each connection may
/// wait 40 ms for an acknowledgement. Who waits for locks that change hands quickly makes the client
/// with a connector that sets it (`kube::client::ConfigExt`).
#[derive(Clone)]
pub struct Maintenance {
    pub(crate) api: Api,
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
    on_doubt: OnDoubt,
}

impl Builder {
    /// The field manager that writes are marked with; `maintenance-lease` where none is set.
    #[must_use]
    pub fn field_manager(mut self, field_manager: impl Into<String>) -> Self {
        self.field_manager = field_manager.into();
        self
    }

    /// The limit for each request; `None`: as long as it takes.
    #[must_use]
    pub fn request_timeout(mut self, limit: Option<Duration>) -> Self {
        self.request_timeout = limit;
        self
    }

    /// Which Leases it works on; the Node Maintenance Leases where nothing is said.
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

    /// The machine that gives clocks and randomness, for simulations.
    #[must_use]
    pub fn env(mut self, env: Arc<dyn Env>) -> Self {
        self.env = env;
        self
    }

    /// Calls `reconnect` when the machine may have been paused, before the locks are checked: a client that
    /// keeps connections should open new ones, since the old ones may be dead.
    ///
    /// # Caveats
    /// It is called while the clocks are compared, so it must not block, nor use this handle.
    #[must_use]
    pub fn reconnect(mut self, reconnect: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_doubt = Arc::new(reconnect);
        self
    }

    /// The handle.
    ///
    /// # Errors
    /// Where the identity can't be a holder's.
    pub fn build(self) -> Result<Maintenance, InvalidIdentity> {
        self.repository.check_identity(&self.identity)?;
        Ok(Maintenance {
            api: Api::new(
                self.client,
                self.env,
                self.request_timeout,
                self.repository,
                self.on_doubt,
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
    /// A handle for a holder `identity`, which should name one process or person: what the same
    /// identity holds counts as one's own.
    ///
    /// # Errors
    /// Where the identity can't be a holder's of Nodes, such as one that begins with `kubeadm`.
    pub fn new(client: Client, identity: impl Into<String>) -> Result<Self, InvalidIdentity> {
        Self::builder(client, identity).build()
    }

    /// A handle with other settings than usual.
    pub fn builder(client: Client, identity: impl Into<String>) -> Builder {
        Builder {
            client,
            identity: identity.into(),
            field_manager: "maintenance-lease".to_owned(),
            request_timeout: Some(DEFAULT_REQUEST_TIMEOUT),
            repository: Repository::default(),
            dry_run: DryRun::None,
            env: Arc::new(Machine),
            on_doubt: Arc::new(|| ()),
        }
    }

    /// The same handle for another holder: client and estimate of the server's time are shared.
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

    /// The identity that it acquires with.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Which Leases it works on.
    pub fn repository(&self) -> &Repository {
        &self.api.repository
    }

    /// The estimate of the server's time, which every answer improves.
    #[must_use]
    pub fn server_time(&self) -> &ServerTime {
        &self.api.time
    }

    /// The way that its requests go, for requests about other things.
    #[must_use]
    pub fn requests(&self) -> &Requests {
        &self.api.requests
    }

    /// Whether a write to the node's Lease was sent whose fate is not known: it may still take
    /// effect. Dropping the future of a verb may leave one, and so does
    /// [`Error::Unknown`](crate::Error::Unknown). A later verb of this handle, or of its clones, that
    /// sees the Lease changed since settles it, unless the write landed and still stands.
    #[must_use]
    pub fn has_open_write(&self, node: &str) -> bool {
        self.api.open_writes.has(node)
    }

    /// A lease is the caller's where its holder is the caller's identity, or the hold of that
    /// identity.
    #[must_use]
    pub fn is_own(&self, lease: &NodeLease) -> bool {
        lease.holder().is_some_and(|holder| {
            holder == self.identity || holder == self.repository().hold_identity(&self.identity)
        })
    }

    /// Leaves events on their Nodes, all at once, for at most `limit`. Returns the first that
    /// failed, if any; a limit that passed counts as failed.
    ///
    /// # Usage
    /// ```
    /// use std::time::Duration;
    ///
    /// use maintenance_lease::{Maintenance, NodeEvent, Sight};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// if let Sight::Row(node) = maintenance.see_node("worker-1").await? {
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
    /// Dropping this future gives up on the events that were not answered for; they may still be
    /// stored.
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
