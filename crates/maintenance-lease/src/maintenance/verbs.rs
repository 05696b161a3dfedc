//! The verbs. Each makes one task of the change that a caller wants, and the write loop executes it.

use std::time::Duration;

use super::Maintenance;
use crate::cluster::change::{Running, Task};
use crate::cluster::patch::WriteDetails;
use crate::cluster::reads::NodeAndLease;
use crate::env::nonce;
use crate::lease::NodeLease;
use crate::notes::ELECTION;
use crate::options::{
    Acquire, Hold, InvalidOption, Release, Renew, Unfinished, check_duration, check_reason,
    check_ticket,
};
use crate::outcome::{Change, Error};
use crate::protocol::{Acquisition, Caller, Candidacy, Id, LockId, Names, Verb, Version, breaks};
use crate::target::Target;

/// A verb retries after conflicts and lost answers for this many times the limit of one request.
const CONFLICT_TIMEOUT: u32 = 3;

impl Maintenance {
    /// Acquires the lock of a node that is free or expired. Sends one write and does not wait for a
    /// holder. As every verb, it takes the name of the node, or [what was read](Self::read) of it, which it
    /// does not read again.
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
    /// [`Error::Refused`] if somebody holds it: the refusal has the holder, the reason, the start and the
    /// expiry. [`Error::Unknown`] if it can't be determined in time whether the lock was acquired.
    ///
    /// # Caveats
    /// Dropping this future may leave a write under way ([`has_open_write`](Self::has_open_write)). It
    /// may still take effect; the lease then expires by itself.
    pub async fn try_acquire(
        &self,
        node: impl Into<Target>,
        options: &Acquire,
    ) -> Result<Change, Error> {
        self.carry_out(node.into(), self.plan_acquire(options)?)
            .await
    }

    /// Whether an acquisition would be refused, judging from what was read. Sends nothing.
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
    /// let seen = maintenance.read("worker-1", true).await?;
    /// maintenance.check_acquire(&seen, &Acquire::new())?;
    /// # assert!(maintenance.get("worker-1").await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The refusal.
    pub fn check_acquire(&self, seen: &NodeAndLease, options: &Acquire) -> Result<(), Error> {
        let duration = check_duration(options.duration)?;
        let mut names = Names::default();
        let verb = acquire_verb(options, duration, names.id("unsent"));
        let caller = self.caller(&mut names);
        self.api
            .check(&seen.node, verb, caller, None, seen, &mut names)?;
        self.api.check_finished(seen, &options.unfinished)
    }

    /// Whether ending `lease` with `by` is a takeover, which must be confirmed.
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::{Acquire, Maintenance, TakeOver};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let alice = Maintenance::new(sandbox.client(), "alice@bastion")?;
    /// # let bob = Maintenance::new(sandbox.client(), "bob@laptop")?;
    /// # bob.try_acquire("worker-1", &Acquire::new()).await?;
    /// let lease = alice.get("worker-1").await?.expect("bob has acquired it");
    /// assert!(alice.takes_over(&lease, TakeOver::Release));
    /// assert!(!bob.takes_over(&lease, TakeOver::Release));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn takes_over(&self, lease: &NodeLease, by: TakeOver) -> bool {
        let mut names = Names::default();
        let verb = match by {
            TakeOver::Release => Verb::ForceRelease,
            TakeOver::Hold => Verb::Hold {
                nonce: names.id("unsent"),
                take_over: true,
            },
            TakeOver::Unhold => Verb::Unhold { another: true },
        };
        let caller = self.caller(&mut names);
        let now = self.server_time().now();
        breaks(verb, caller, &lease.reduced(&mut names), now)
    }

    /// Whether a hold would be refused, judging from what was read. Sends nothing.
    pub(crate) fn check_hold(&self, seen: &NodeAndLease, options: &Hold) -> Result<(), Error> {
        let Plan {
            verb,
            mut names,
            named_acquisition,
            ..
        } = self.plan_hold(options, &seen.node)?;
        let caller = self.caller(&mut names);
        self.api.check(
            &seen.node,
            verb,
            caller,
            named_acquisition,
            seen,
            &mut names,
        )?;
        self.api.check_finished(seen, &options.unfinished)
    }

    /// Whether there is a leader to wait for.
    pub(crate) fn check_elect(&self, seen: &NodeAndLease, duration: Duration) -> Result<(), Error> {
        let mut plan = self.plan_election(duration, None)?;
        let caller = self.caller(&mut plan.names);
        self.api
            .check(&seen.node, plan.verb, caller, None, seen, &mut plan.names)
    }

    /// Extends the caller's acquisition. This also works if it has expired and nobody else has acquired
    /// it.
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
    /// let lock_id = acquired.lock_id().expect("it was just acquired");
    ///
    /// let options = Renew::new().duration(Duration::from_secs(3600)).lock_id(lock_id);
    /// let renewed = maintenance.renew("worker-1", &options).await?;
    /// assert!(renewed.until() > acquired.until());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Refused`] if it is no longer the caller's.
    ///
    /// # Caveats
    /// Dropping this future may leave a write under way ([`has_open_write`](Self::has_open_write)), which
    /// may still take effect.
    pub async fn renew(&self, node: impl Into<Target>, options: &Renew) -> Result<Change, Error> {
        let duration = options.duration.map(check_duration).transpose()?;
        let verb = match options.added {
            Some(added) => Verb::Extend {
                by: check_duration(added)?,
                end: None,
            },
            None => Verb::Renew { duration },
        };
        check_option_reason(options.reason.as_deref())?;
        let mut names = Names::default();
        let named_acquisition = self.named_acquisition(options.lock_id.as_ref(), &mut names);
        let extras = WriteDetails::because(options.reason.as_deref());
        let plan = Plan::new(verb, names, named_acquisition, extras);
        self.carry_out(node.into(), plan).await
    }

    /// Releases the caller's acquisition. Does nothing if the node is free.
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
    /// [`Error::Refused`] if it is somebody else's.
    ///
    /// # Caveats
    /// Dropping this future may leave a write under way ([`has_open_write`](Self::has_open_write)), which
    /// may still take effect.
    pub async fn release(
        &self,
        node: impl Into<Target>,
        options: &Release,
    ) -> Result<Change, Error> {
        check_option_reason(options.reason.as_deref())?;
        let mut names = Names::default();
        let named_acquisition = self.named_acquisition(options.lock_id.as_ref(), &mut names);
        let extras = WriteDetails::because(options.reason.as_deref());
        let plan = Plan::new(Verb::Release, names, named_acquisition, extras);
        self.carry_out(node.into(), plan).await
    }

    /// Releases somebody else's acquisition by force. Only the one in `confirmed` is released, which a
    /// person has checked.
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
    /// [`Error::Refused`] if another acquisition has replaced it, or if it is a hold.
    ///
    /// # Caveats
    /// The old holder may still act until it notices, or until the expiry that the Lease stated. Dropping
    /// this future may leave a write under way ([`has_open_write`](Self::has_open_write)), which may
    /// still take effect.
    pub async fn force_release(
        &self,
        confirmed: &NodeLease,
        options: &Release,
    ) -> Result<Change, Error> {
        check_option_reason(options.reason.as_deref())?;
        let mut names = Names::default();
        let named_acquisition = confirmed.reduced(&mut names).acquisition();
        let extras = WriteDetails {
            released_by: Some(self.identity.clone()),
            takes_over: true,
            ..WriteDetails::because(options.reason.as_deref())
        };
        let plan = Plan::new(Verb::ForceRelease, names, named_acquisition, extras);
        self.carry_out(confirmed.clone().into(), plan).await
    }

    /// Holds a node as an administrator. A hold does not expire; it lasts until [`unhold`](Self::unhold).
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
    /// [`Error::Refused`] if somebody else holds it.
    ///
    /// # Caveats
    /// Dropping this future may leave a write under way ([`has_open_write`](Self::has_open_write)). It
    /// may still take effect; that hold stays until somebody ends it.
    pub async fn hold(&self, node: impl Into<Target>, options: &Hold) -> Result<Change, Error> {
        let target = node.into();
        let plan = self.plan_hold(options, &target.node)?;
        self.carry_out(target, plan).await
    }

    /// Ends the caller's own hold. Ends somebody else's only if it is the `confirmed` one, which a person has
    /// checked.
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
    /// let change = maintenance.unhold("worker-1", None).await?;
    /// assert_eq!(change.done, Done::Released);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Refused`] if it is somebody else's hold, or not a hold.
    ///
    /// # Caveats
    /// Dropping this future may leave a write under way ([`has_open_write`](Self::has_open_write)), which
    /// may still take effect.
    pub async fn unhold(
        &self,
        node: impl Into<Target>,
        confirmed: Option<&NodeLease>,
    ) -> Result<Change, Error> {
        let mut names = Names::default();
        let named_acquisition = confirmed.and_then(|lease| lease.reduced(&mut names).acquisition());
        let verb = Verb::Unhold {
            another: named_acquisition.is_some(),
        };
        let is_own = confirmed.is_none_or(|lease| self.is_own(lease));
        let extras = WriteDetails {
            released_by: (!is_own).then(|| self.identity.clone()),
            takes_over: !is_own,
            ..WriteDetails::default()
        };
        let plan = Plan::new(verb, names, named_acquisition, extras);
        self.carry_out(node.into(), plan).await
    }

    pub(crate) fn caller(&self, names: &mut Names) -> Caller {
        Caller {
            identity: names.id(&self.identity),
            hold_identity: names.id(&self.repository().hold_identity(&self.identity)),
        }
    }

    /// The caller's acquisition that `lock_id` names.
    fn named_acquisition(
        &self,
        lock_id: Option<&LockId>,
        names: &mut Names,
    ) -> Option<Acquisition> {
        lock_id.map(|lock_id| Acquisition {
            uid: names.id(lock_id.uid()),
            holder: names.id(&self.identity),
            transitions: lock_id.transitions(),
            nonce: Some(names.id(lock_id.nonce())),
        })
    }

    /// What an acquisition does after its options were checked.
    pub(crate) fn plan_acquire(&self, options: &Acquire) -> Result<Plan, InvalidOption> {
        let duration = check_duration(options.duration)?;
        check_reason(options.reason.as_deref().unwrap_or_default())?;
        options.ticket.as_deref().map_or(Ok(()), check_ticket)?;
        let mut names = Names::default();
        let verb = acquire_verb(options, duration, names.id(&nonce(&*self.api.env)));
        let extras = WriteDetails {
            ticket: options.ticket.clone(),
            keys: options.keys.clone(),
            ..WriteDetails::because(options.reason.as_deref())
        };
        let plan = Plan::new(verb, names, None, extras);
        Ok(plan.with_unfinished(&options.unfinished))
    }

    /// What a candidate does. If there is a leader, the Lease is taken only on the version `unchanged`.
    pub(crate) fn plan_election(
        &self,
        duration: Duration,
        unchanged: Option<Version>,
    ) -> Result<Plan, InvalidOption> {
        let mut names = Names::default();
        let verb = Verb::Elect(Candidacy {
            duration: check_duration(duration)?,
            nonce: names.id(&nonce(&*self.api.env)),
            unchanged,
        });
        let extras = WriteDetails {
            purpose: Some(ELECTION.to_owned()),
            ..WriteDetails::default()
        };
        Ok(Plan::new(verb, names, None, extras))
    }

    /// What a hold of `node` does after its options were checked.
    pub(crate) fn plan_hold(&self, options: &Hold, node: &str) -> Result<Plan, InvalidOption> {
        if !self.repository().locks_nodes() {
            return Err(InvalidOption::HoldOfNoNode);
        }
        if options.reason.is_empty() {
            return Err(InvalidOption::NoReason);
        }
        check_reason(&options.reason)?;
        options.ticket.as_deref().map_or(Ok(()), check_ticket)?;
        let mut names = Names::default();
        let confirmed = options.take_over.iter().find(|lease| lease.node() == node);
        let named_acquisition = confirmed.and_then(|lease| lease.reduced(&mut names).acquisition());
        let verb = Verb::Hold {
            nonce: names.id(&nonce(&*self.api.env)),
            take_over: named_acquisition.is_some(),
        };
        let extras = WriteDetails {
            reason: Some(options.reason.clone()),
            ticket: options.ticket.clone(),
            hold_until: options
                .until
                .map(|until| until.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)),
            purpose: options.purpose.clone(),
            keys: options.keys.clone(),
            hold: true,
            takes_over: named_acquisition.is_some(),
            ..WriteDetails::default()
        };
        let plan = Plan::new(verb, names, named_acquisition, extras);
        Ok(plan.with_unfinished(&options.unfinished))
    }

    /// Changes the node's Lease as `plan` says.
    ///
    /// # Errors
    /// Those of the change; [`Error::Contended`] also if a race was lost and the plan ends after one.
    pub(crate) async fn carry_out(&self, target: Target, plan: Plan) -> Result<Change, Error> {
        let mut running = Running::new(&self.api, self.task(&target.node, plan));
        let lease = running.read(target.seen).await?;
        let change = running.resume(lease).await?;
        change.ok_or_else(|| running.contended())
    }

    /// The task that applies `plan` to a node's Lease.
    pub(crate) fn task(&self, node: &str, mut plan: Plan) -> Task {
        let caller = self.caller(&mut plan.names);
        let time_limit = self
            .api
            .limit
            .map(|limit| limit.saturating_mul(CONFLICT_TIMEOUT));
        Task {
            node: node.to_owned(),
            verb: plan.verb,
            caller,
            names: plan.names,
            named_acquisition: plan.named_acquisition,
            extras: plan.extras,
            unfinished: plan.unfinished,
            write_options: self.write_options.clone(),
            dry_run: self.dry_run,
            time_limit: time_limit.filter(|_| !plan.once),
            once: plan.once,
        }
    }
}

/// How somebody else's lock can be ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeOver {
    /// By a [forced release](Maintenance::force_release).
    Release,
    /// By a [hold](Hold::take_over) in its place.
    Hold,
    /// By the [end](Maintenance::unhold) of a hold.
    Unhold,
}

/// What is to be done to a Lease.
pub(crate) struct Plan {
    pub(crate) verb: Verb,
    pub(crate) names: Names,
    pub(crate) named_acquisition: Option<Acquisition>,
    pub(crate) extras: WriteDetails,
    pub(crate) unfinished: Unfinished,
    /// A lost race ends it; after any other failure it continues until the result is decided.
    pub(crate) once: bool,
}

impl Plan {
    pub(crate) fn new(
        verb: Verb,
        names: Names,
        named_acquisition: Option<Acquisition>,
        extras: WriteDetails,
    ) -> Self {
        Self {
            verb,
            names,
            named_acquisition,
            extras,
            unfinished: Unfinished::Any,
            once: false,
        }
    }

    /// The same, for these expired leases only.
    fn with_unfinished(self, unfinished: &Unfinished) -> Self {
        let unfinished = unfinished.clone();
        Self { unfinished, ..self }
    }
}

fn acquire_verb(options: &Acquire, duration: u32, nonce: Id) -> Verb {
    Verb::Acquire {
        duration,
        nonce,
        reentry: options.reentry,
    }
}

fn check_option_reason(reason: Option<&str>) -> Result<(), Error> {
    Ok(check_reason(reason.unwrap_or_default())?)
}
