//! The handle: everything that a program does with maintenance locks.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, join_all, select};
use futures::stream::BoxStream;
use kube::Client;

use crate::cluster::api::Api;
use crate::cluster::change::{DryRun, Task, acquisition_of};
use crate::cluster::error::ApiError;
use crate::cluster::events::NodeEvent;
use crate::cluster::nodes::NodeRow;
use crate::cluster::patch::Extras;
use crate::cluster::reads::{RowDetail, Seen, Sight};
use crate::cluster::server_time::ServerTime;
use crate::cluster::watch::{LeaseEvent, NodeRowEvent};
use crate::cluster::writes::WriteOptions;
use crate::env::{Env, Machine, nonce};
use crate::lease::NodeLease;
use crate::options::{Acquire, Hold, InvalidOption, Release, Renew, check_duration, check_reason};
use crate::outcome::{Change, Error, Right};
use crate::protocol::identity::{self, InvalidIdentity};
use crate::protocol::{Acquisition, Caller, Instant, Names, Verb};

/// The limit for one request where none is set.
pub const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// A verb goes on, through conflicts and lost answers, for this many times the limit of a request.
const PATIENCE: u32 = 3;

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
/// A `kube::Client` made from a plain `Config` repeats failed requests by itself, for minutes. That
/// breaks nothing here, but it delays every answer: switch it off, as above.
#[derive(Clone)]
pub struct Maintenance {
    api: Api,
    identity: String,
    write_options: WriteOptions,
    dry_run: DryRun,
}

/// Settings of a [`Maintenance`] that most programs leave as they are.
pub struct Builder {
    client: Client,
    identity: String,
    field_manager: String,
    request_timeout: Option<Duration>,
    dry_run: DryRun,
    env: Arc<dyn Env>,
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

    /// The handle.
    ///
    /// # Errors
    /// Where the identity can't be a holder's.
    pub fn build(self) -> Result<Maintenance, InvalidIdentity> {
        identity::validate(&self.identity)?;
        Ok(Maintenance {
            api: Api::new(self.client, self.env, self.request_timeout),
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
    /// Where the identity can't be a holder's, such as one that begins with `kubeadm`.
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
            dry_run: DryRun::None,
            env: Arc::new(Machine),
        }
    }

    /// The identity that it acquires with.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The estimate of the server's time, which every answer improves.
    #[must_use]
    pub fn server_time(&self) -> &ServerTime {
        &self.api.time
    }

    /// Whether a write to the node's Lease was sent whose fate is not known: it may still take
    /// effect. Dropping the future of a verb may leave one, and so does [`Error::Unknown`].
    #[must_use]
    pub fn has_open_write(&self, node: &str) -> bool {
        self.api.open_writes.has(node)
    }

    /// A lease is the caller's where its holder is the caller's identity, or the hold of that
    /// identity.
    #[must_use]
    pub fn is_own(&self, lease: &NodeLease) -> bool {
        lease.holder().is_some_and(|holder| {
            holder == self.identity || holder == identity::hold_identity(&self.identity)
        })
    }

    /// Acquires a node that is free or whose lease expired. One write, no waiting for a holder.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::{Acquire, Error, Maintenance};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "reboot-controller")?;
    /// let options = Acquire::new().reason("new kernel");
    /// let change = maintenance.try_acquire("worker-1", &options).await?;
    /// println!("held until {:?}", change.until());
    ///
    /// // It is somebody's now, and the refusal says whose.
    /// # let bob = Maintenance::new(sandbox.client(), "bob@laptop")?;
    /// match bob.try_acquire("worker-1", &options).await {
    ///     Err(Error::Refused(refused)) => {
    ///         assert_eq!(refused.to_string(), "node/worker-1 is held by reboot-controller");
    ///     }
    ///     other => panic!("{other:?}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Refused`] where somebody holds it: the refusal says who, since when, until when and
    /// why. [`Error::Unknown`] where it can't be learnt in time whether it was acquired.
    ///
    /// # Caveats
    /// Dropping the future may leave a write under way, which may still land.
    pub async fn try_acquire(&self, node: &str, options: &Acquire) -> Result<Change, Error> {
        self.try_acquire_seen(node, options, None).await
    }

    /// As [`try_acquire`](Self::try_acquire), on what was read already.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::{Acquire, Maintenance};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "reboot-controller")?;
    /// let seen = maintenance.see("worker-1", true).await?;
    /// if seen.row.row().is_some_and(|node| node.is_ready()) {
    ///     let change = maintenance.try_acquire_seen("worker-1", &Acquire::new(), Some(seen)).await?;
    ///     assert_eq!(change.lease.as_ref().and_then(|lease| lease.holder()), Some("reboot-controller"));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn try_acquire_seen(
        &self,
        node: &str,
        options: &Acquire,
        seen: Option<Seen>,
    ) -> Result<Change, Error> {
        let duration = check_duration(options.duration)?;
        check_option_reason(options.reason.as_deref())?;
        let mut names = Names::default();
        let verb = Verb::Acquire {
            duration,
            nonce: names.id(&nonce(&*self.api.env)),
            reentry: options.reentry,
            free_only: options.free_only,
        };
        let extras = Extras {
            reason: options.reason.clone(),
            ..Extras::default()
        };
        self.carry_out(node, verb, names, None, extras, seen).await
    }

    /// Whether an acquisition would be refused on what was seen. Nothing is sent.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::{Acquire, Error, Maintenance};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "reboot-controller")?;
    /// let seen = maintenance.see("worker-1", true).await?;
    /// maintenance.check_acquire(&seen, &Acquire::new())?;
    /// # assert!(maintenance.get("worker-1").await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The refusal.
    pub fn check_acquire(&self, seen: &Seen, options: &Acquire) -> Result<(), Error> {
        let duration = check_duration(options.duration)?;
        let mut names = Names::default();
        let verb = Verb::Acquire {
            duration,
            nonce: names.id("unsent"),
            reentry: options.reentry,
            free_only: options.free_only,
        };
        let caller = self.caller(&mut names);
        self.api.check(&seen.node, verb, caller, seen, &mut names)
    }

    /// Extends the caller's acquisition, also an expired one that nobody took.
    ///
    /// # Usage
    /// ```
    /// use std::time::Duration;
    ///
    /// use maintenance_lease::{Acquire, Maintenance, Renew};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// let acquired = maintenance.try_acquire("worker-1", &Acquire::new()).await?;
    /// let token = acquired.token().expect("it was just acquired");
    ///
    /// let options = Renew::new().duration(Duration::from_secs(3600)).token(token);
    /// let renewed = maintenance.renew("worker-1", &options).await?;
    /// assert!(renewed.until() > acquired.until());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Refused`] where it is no longer the caller's.
    pub async fn renew(&self, node: &str, options: &Renew) -> Result<Change, Error> {
        self.renew_seen(node, options, None).await
    }

    /// As [`renew`](Self::renew), on what was read already.
    ///
    /// # Errors
    /// As there.
    pub async fn renew_seen(
        &self,
        node: &str,
        options: &Renew,
        seen: Option<Seen>,
    ) -> Result<Change, Error> {
        let duration = options.duration.map(check_duration).transpose()?;
        check_option_reason(options.reason.as_deref())?;
        let mut names = Names::default();
        let meant = options.token.as_ref().map(|token| {
            let holder = names.id(&self.identity);
            acquisition_of(token, holder, &mut names)
        });
        let extras = Extras {
            reason: options.reason.clone(),
            ..Extras::default()
        };
        self.carry_out(node, Verb::Renew { duration }, names, meant, extras, seen)
            .await
    }

    /// Gives the caller's acquisition back. A free node is left as it is.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::{Acquire, Done, Maintenance, Release};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// maintenance.try_acquire("worker-1", &Acquire::new()).await?;
    ///
    /// let change = maintenance.release("worker-1", &Release::new()).await?;
    /// assert_eq!(change.done, Done::Released);
    /// // Once more does no harm, which makes it fit for clean-up.
    /// let change = maintenance.release("worker-1", &Release::new()).await?;
    /// assert_eq!(change.done, Done::AlreadyFree);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Refused`] where it is somebody else's.
    pub async fn release(&self, node: &str, options: &Release) -> Result<Change, Error> {
        self.release_seen(node, options, None).await
    }

    /// As [`release`](Self::release), on what was read already.
    ///
    /// # Errors
    /// As there.
    pub async fn release_seen(
        &self,
        node: &str,
        options: &Release,
        seen: Option<Seen>,
    ) -> Result<Change, Error> {
        check_option_reason(options.reason.as_deref())?;
        let mut names = Names::default();
        let meant = options.token.as_ref().map(|token| {
            let holder = names.id(&self.identity);
            acquisition_of(token, holder, &mut names)
        });
        let extras = Extras {
            reason: options.reason.clone(),
            ..Extras::default()
        };
        self.carry_out(node, Verb::Release, names, meant, extras, seen)
            .await
    }

    /// Breaks another's acquisition: the one in `confirmed`, which somebody has looked at, and no
    /// other.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::{Acquire, Maintenance, Release};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// # let bob = Maintenance::new(sandbox.client(), "bob@laptop")?;
    /// # bob.try_acquire("worker-1", &Acquire::new()).await?;
    /// if let Some(lease) = maintenance.get("worker-1").await? {
    ///     // Show it to somebody who can say that its holder is gone, and only then:
    ///     let options = Release::new().reason("bob is on a plane");
    ///     maintenance.force_release(&lease, &options).await?;
    /// }
    /// # let lease = maintenance.get("worker-1").await?.expect("a Lease");
    /// # assert_eq!((lease.holder(), lease.last_holder()), (None, Some("bob@laptop")));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Refused`] where another acquisition stands there by now, or it is a hold.
    ///
    /// # Caveats
    /// The old holder may still act, until the end that the Lease stated or until it notices.
    pub async fn force_release(
        &self,
        confirmed: &NodeLease,
        options: &Release,
    ) -> Result<Change, Error> {
        check_option_reason(options.reason.as_deref())?;
        let mut names = Names::default();
        let meant = confirmed.reduced(&mut names).acquisition();
        let extras = Extras {
            reason: options.reason.clone(),
            ..Extras::default()
        };
        let seen = seen_lease(confirmed);
        self.carry_out(
            confirmed.node(),
            Verb::ForceRelease,
            names,
            meant,
            extras,
            Some(seen),
        )
        .await
    }

    /// Holds a node as an administrator, until [`unhold`](Self::unhold).
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::{Hold, Maintenance};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// let change = maintenance.hold("worker-1", &Hold::new("waiting for a disk")).await?;
    /// let lease = change.lease.expect("it was just made");
    /// assert_eq!(lease.holder(), Some("kubeadm:alice@bastion"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Refused`] where somebody else holds it.
    pub async fn hold(&self, node: &str, options: &Hold) -> Result<Change, Error> {
        self.hold_seen(node, options, None, None).await
    }

    /// As [`hold`](Self::hold), on what was read already, and from the holder of `confirmed`, if
    /// any: that very acquisition and no other is taken over.
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
    /// let hold = Hold::new("it is on fire");
    /// let change = maintenance.hold_seen("worker-1", &hold, lease.as_ref(), None).await?;
    /// assert_eq!(change.before.as_ref().and_then(|lease| lease.holder()), Some("bob@laptop"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there, and [`Error::Refused`] where another acquisition than the confirmed one stands
    /// there by now.
    pub async fn hold_seen(
        &self,
        node: &str,
        options: &Hold,
        confirmed: Option<&NodeLease>,
        seen: Option<Seen>,
    ) -> Result<Change, Error> {
        if options.reason.is_empty() {
            return Err(InvalidOption::NoReason.into());
        }
        check_option_reason(Some(&options.reason))?;
        let mut names = Names::default();
        let meant = confirmed.and_then(|lease| lease.reduced(&mut names).acquisition());
        let verb = Verb::Hold {
            nonce: names.id(&nonce(&*self.api.env)),
            take_over: meant.is_some(),
        };
        let extras = Extras {
            reason: Some(options.reason.clone()),
            hold_until: options
                .until
                .map(|until| until.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)),
            hold: true,
            node_uid: None,
        };
        self.carry_out(node, verb, names, meant, extras, seen).await
    }

    /// Ends the caller's own hold.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::{Done, Hold, Maintenance};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// maintenance.hold("worker-1", &Hold::new("waiting for a disk")).await?;
    ///
    /// let change = maintenance.unhold("worker-1").await?;
    /// assert_eq!(change.done, Done::Released);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Refused`] where it is another's hold, or no hold.
    pub async fn unhold(&self, node: &str) -> Result<Change, Error> {
        self.unhold_seen(node, None, None).await
    }

    /// As [`unhold`](Self::unhold), on what was read already; another's hold where it is
    /// `confirmed`: that very one and no other.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::{Done, Hold, Maintenance};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// # let bob = Maintenance::new(sandbox.client(), "bob@laptop")?;
    /// # bob.hold("worker-1", &Hold::new("waiting for a disk")).await?;
    /// let lease = maintenance.get("worker-1").await?;
    /// // Somebody has looked at the hold and wants it ended, whoever made it.
    /// let change = maintenance.unhold_seen("worker-1", lease.as_ref(), None).await?;
    /// assert_eq!(change.done, Done::Released);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As there.
    pub async fn unhold_seen(
        &self,
        node: &str,
        confirmed: Option<&NodeLease>,
        seen: Option<Seen>,
    ) -> Result<Change, Error> {
        let mut names = Names::default();
        let meant = confirmed.and_then(|lease| lease.reduced(&mut names).acquisition());
        let verb = Verb::Unhold {
            another: meant.is_some(),
        };
        self.carry_out(node, verb, names, meant, Extras::default(), seen)
            .await
    }

    /// The node's Lease; `None` where there is none, which means that the node is free.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::protocol::State;
    /// use maintenance_lease::{Acquire, Maintenance};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// assert!(maintenance.get("worker-1").await?.is_none());
    ///
    /// maintenance.try_acquire("worker-1", &Acquire::new().reason("new kernel")).await?;
    /// let lease = maintenance.get("worker-1").await?.expect("it was just made");
    /// assert_eq!(lease.reason(), Some("new kernel"));
    /// let now = maintenance.server_time().now();
    /// assert!(matches!(lease.state(now), State::Held { .. }));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Where it can't be read.
    pub async fn get(&self, node: &str) -> Result<Option<NodeLease>, Error> {
        self.api
            .lease(node)
            .await
            .map_err(|error| Right::on_leases("get").explain(error))
    }

    /// All maintenance Leases by node.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::{Acquire, Maintenance};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// # maintenance.try_acquire("worker-1", &Acquire::new()).await?;
    /// for (node, lease) in maintenance.list().await? {
    ///     println!("{node}: {}", lease.holder().unwrap_or("free"));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Where they can't be listed.
    pub async fn list(&self) -> Result<HashMap<String, NodeLease>, Error> {
        self.api
            .leases()
            .await
            .map_err(|error| Right::on_leases("list").explain(error))
    }

    /// The node's Lease and, where `with_node`, its row: two requests side by side.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::Maintenance;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// let seen = maintenance.see("worker-1", true).await?;
    /// assert!(seen.lease.is_none());
    /// assert_eq!(seen.row.row().map(|node| node.status.as_str()), Some("Ready"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Where the Lease can't be read, or the Node for another cause than a missing right.
    pub async fn see(&self, node: &str, with_node: bool) -> Result<Seen, Error> {
        self.api
            .see(node, with_node)
            .await
            .map_err(|error| Right::on_leases("get").explain(error))
    }

    /// The Node's row.
    ///
    /// # Errors
    /// Where it can't be read for another cause than a missing right.
    pub async fn see_node(&self, node: &str) -> Result<Sight, Error> {
        Ok(self.api.node_row(node).await?)
    }

    /// The rows of the Nodes that match `selector`, in the server's order.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::{Maintenance, RowDetail};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let maintenance = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// # sandbox.add_node(sandbox::Node::named("worker-2").label("pool", "spot").cordoned());
    /// let nodes = maintenance.nodes(Some("pool=spot"), RowDetail::Cells).await?;
    /// assert_eq!(nodes[0].name, "worker-2");
    /// assert!(nodes[0].is_cordoned());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Where they can't be listed.
    pub async fn nodes(
        &self,
        selector: Option<&str>,
        detail: RowDetail,
    ) -> Result<Vec<NodeRow>, Error> {
        self.api
            .node_rows(selector, detail)
            .await
            .map_err(|error| Right::on_nodes("list").explain(error))
    }

    /// When each node's kubelet last renewed its heartbeat, by node.
    ///
    /// # Errors
    /// Where the heartbeats can't be listed.
    pub async fn heartbeats(&self) -> Result<HashMap<String, Instant>, ApiError> {
        self.api.heartbeats().await
    }

    /// When the node's kubelet last renewed its heartbeat; `None` where it has none.
    ///
    /// # Errors
    /// Where the heartbeat can't be read.
    pub async fn heartbeat(&self, node: &str) -> Result<Option<Instant>, ApiError> {
        self.api.heartbeat(node).await
    }

    /// The maintenance Leases, or that of `node` alone, and every change of them: a list first, or
    /// nothing but what follows the resource version `from`. What was cut or has become too old is
    /// resumed, with another list where needed, so that nothing is missed.
    ///
    /// # Usage
    /// ```no_run
    /// use futures::StreamExt as _;
    /// use maintenance_lease::{Error, LeaseEvent, Maintenance};
    ///
    /// # async fn example(maintenance: Maintenance) -> Result<(), Error> {
    /// let mut events = maintenance.watch_leases(Some("worker-1"), None);
    /// while let Some(event) = events.next().await {
    ///     match event? {
    ///         LeaseEvent::Listed(leases) => println!("{} to begin with", leases.len()),
    ///         LeaseEvent::Changed(lease) => println!("holder: {:?}", lease.holder()),
    ///         LeaseEvent::Deleted(lease) => println!("gone: {}", lease.node()),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The stream does not end: after an error, its next item is the result of trying again, after a
    /// pause. Errors that no trying again mends, such as a missing right, come again and again.
    ///
    /// # Caveats
    /// An event shows what was true once. Act on it only by a write on its resource version.
    pub fn watch_leases(
        &self,
        node: Option<&str>,
        from: Option<u64>,
    ) -> BoxStream<'static, Result<LeaseEvent, Error>> {
        self.api.watch_leases(node, from)
    }

    /// The rows of the Nodes, or of `node` alone, or of those that match `selector`, and every
    /// change of them, as [`watch_leases`](Self::watch_leases) has it. One that does not match any
    /// longer counts as deleted. The rows are without metadata.
    ///
    /// # Errors
    /// As there.
    pub fn watch_nodes(
        &self,
        node: Option<&str>,
        selector: Option<&str>,
    ) -> BoxStream<'static, Result<NodeRowEvent, Error>> {
        self.api.watch_nodes(node, selector)
    }

    /// Leaves events on their Nodes, all at once, for at most `limit`. Returns the first that
    /// failed, if any; a limit that passed counts as failed.
    pub async fn post_events(&self, events: &[NodeEvent], limit: Duration) -> Option<ApiError> {
        let posts = join_all(events.iter().map(|event| {
            let suffix = nonce(&*self.api.env);
            async move {
                self.api
                    .post_event(
                        event,
                        &self.write_options.field_manager,
                        &self.identity,
                        &suffix,
                    )
                    .await
            }
        }));
        match select(posts, self.api.env.sleep(limit)).await {
            Either::Left((posted, _)) => posted.into_iter().find_map(Result::err),
            Either::Right(_) => Some(ApiError::TimedOut(limit)),
        }
    }

    fn caller(&self, names: &mut Names) -> Caller {
        Caller {
            identity: names.id(&self.identity),
            hold_identity: names.id(&identity::hold_identity(&self.identity)),
        }
    }

    async fn carry_out(
        &self,
        node: &str,
        verb: Verb,
        mut names: Names,
        meant: Option<Acquisition>,
        extras: Extras,
        seen: Option<Seen>,
    ) -> Result<Change, Error> {
        let caller = self.caller(&mut names);
        self.api
            .change(Task {
                node,
                verb,
                caller,
                names,
                meant,
                extras,
                seen,
                row: None,
                write_options: &self.write_options,
                dry_run: self.dry_run,
                patience: self.api.limit.map(|limit| limit * PATIENCE),
            })
            .await
    }
}

/// A Lease that was read, for verbs that don't look at the Node.
fn seen_lease(lease: &NodeLease) -> Seen {
    Seen {
        node: lease.node().to_owned(),
        row: Sight::Unread,
        lease: Some(lease.clone()),
    }
}

fn check_option_reason(reason: Option<&str>) -> Result<(), Error> {
    Ok(check_reason(reason.unwrap_or_default())?)
}
