//! What clients of all kinds have in common: calls, and what the history notes of them.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use maintenance_lease::env::Env as _;
use maintenance_lease::protocol::Refusal;
use maintenance_lease::{
    Acquire, Change, Done, Error, HeldLease, Keep, LeaderElection, LostBy, Maintenance, NodeLease,
    Repository, SideEffect,
};

use crate::history::{
    Acquisition, BeliefEnd, BeliefId, Call, CallOutcome, ClientId, Event, OpId, Recorder,
};
use crate::machine::Machine;
use crate::network::Network;
use crate::plan::{ClientKind, SHARED_ACCOUNT};

/// One process of a client.
pub(crate) struct Agent {
    pub(crate) client: ClientId,
    pub(crate) client_kind: ClientKind,
    pub(crate) machine: Machine,
    pub(crate) recorder: Recorder,
    pub(crate) maintenance: Maintenance,
    pub(crate) nodes: Vec<Arc<str>>,
    /// The longest duration that it asks for, in seconds.
    pub(crate) longest: u32,
    /// It stands for election instead of locking nodes.
    pub(crate) elects: bool,
    /// Others say that they are who it says it is: what is its own goes by lock_id.
    pub(crate) shares_account: bool,
    pub(crate) rng: Rng,
}

/// What an agent is made from, whenever it is started.
pub(crate) struct AgentConfig<'a> {
    pub(crate) client: ClientId,
    pub(crate) client_kind: ClientKind,
    pub(crate) identity: &'a str,
    pub(crate) may_watch: bool,
    pub(crate) machine: &'a Machine,
    pub(crate) recorder: &'a Recorder,
    pub(crate) network: &'a Network,
    pub(crate) nodes: &'a [Arc<str>],
    pub(crate) longest: u32,
    pub(crate) elects: bool,
    pub(crate) request_timeout: Duration,
    pub(crate) seed: u64,
}

impl Agent {
    pub(crate) fn begin(beginning: &AgentConfig<'_>) -> Self {
        let mut rng = Rng::with_seed(beginning.seed);
        beginning.recorder.record(Event::Lives {
            client: beginning.client,
            identity: beginning.identity.into(),
        });
        let machine = beginning.machine.clone();
        let wire = beginning.network.wire(
            beginning.client,
            machine.clone(),
            beginning.may_watch,
            rng.u64(..),
        );
        let client = kube::Client::new(wire, "default");
        let maintenance = Maintenance::builder(client, beginning.identity)
            .request_timeout(Some(beginning.request_timeout))
            .repository(repository(beginning.elects))
            .env(Arc::new(machine.clone()))
            .build()
            .expect("identities are well-formed");
        Self {
            client: beginning.client,
            client_kind: beginning.client_kind,
            machine,
            recorder: beginning.recorder.clone(),
            maintenance,
            nodes: beginning.nodes.to_vec(),
            longest: beginning.longest,
            elects: beginning.elects,
            shares_account: beginning.identity == SHARED_ACCOUNT,
            rng,
        }
    }

    /// Keeps what was acquired, for work that takes `stop` to end.
    pub(super) async fn keep(&self, acquired: &Change, stop: Duration) -> Result<HeldLease, Error> {
        let keep = Keep::new().stop(stop);
        self.maintenance.keep(acquired, &keep).await
    }

    /// Notes what it knows of the server's time.
    pub(super) fn tell_time(&self) {
        let now = self.maintenance.server_time().now();
        self.recorder.record(Event::Knows {
            client: self.client,
            earliest: now.earliest.as_micros(),
            latest: now.bounded.then_some(now.latest.as_micros()),
        });
    }

    /// Waits until the node is its own, or until it leads.
    pub(super) async fn wait_for(&self, node: &str, seconds: u32) -> Result<Change, Error> {
        let duration = Duration::from_secs(seconds.into());
        if self.elects {
            let election = LeaderElection::new(self.maintenance.clone(), node)?;
            election.lease_duration(duration).campaign(|_| ()).await
        } else {
            let options = Acquire::new().duration(duration);
            self.maintenance
                .acquire_when_free(node, &options, |_| ())
                .await
        }
    }

    /// What that is called.
    pub(super) fn waiting(&self, seconds: u32) -> Call {
        match self.elects {
            true => Call::Campaign(seconds),
            false => Call::Acquire(seconds),
        }
    }

    pub(super) fn some_node(&mut self) -> Arc<str> {
        let node = self.rng.usize(..self.nodes.len());
        self.nodes[node].clone()
    }

    /// Does nothing for a while.
    pub(super) async fn idle(&mut self, millis: std::ops::Range<u64>) {
        let length = Duration::from_millis(self.rng.u64(millis));
        self.machine.sleep(length).await;
    }

    /// Makes a call, and notes how it ends.
    pub(super) async fn call<F>(
        &self,
        node: &Arc<str>,
        call: Call,
        work: F,
    ) -> Result<Change, Error>
    where
        F: Future<Output = Result<Change, Error>>,
    {
        let op = self.called(node, call);
        let result = work.await;
        self.machine.set_op(None);
        self.returned(op, &result);
        result
    }

    pub(super) fn called(&self, node: &Arc<str>, call: Call) -> OpId {
        let op = self.recorder.next_op();
        self.machine.set_op(Some(op));
        self.recorder.record(Event::Called {
            op,
            client: self.client,
            node: node.clone(),
            call,
        });
        op
    }

    pub(super) fn returned(&self, op: OpId, result: &Result<Change, Error>) {
        let ending = match result {
            Ok(change) => ending(change),
            // It took effect, and its Lease may still show it.
            Err(Error::Lost(lost)) if lost.by == LostBy::Expiry => {
                CallOutcome::Unknown(lost.to_string())
            }
            Err(error) => failure(error),
        };
        self.recorder.record(Event::Returned { op, ending });
        self.tell_time();
    }

    /// Believes what an acquisition or renewal allows.
    pub(super) fn believe(&self, change: &Change) -> Option<Belief> {
        let deadline = change.deadline?;
        let acquisition = acquisition(change.lease.as_ref()?)?;
        let belief = self.recorder.next_belief();
        self.recorder.record(Event::Believes {
            belief,
            client: self.client,
            node: change.node.as_str().into(),
            acquisition,
            ends: BeliefEnd::Deadline(self.machine.truth_at(deadline)),
        });
        Some(Belief {
            id: belief,
            recorder: self.recorder.clone(),
        })
    }
}

/// A belief that ends at its deadline, or before.
pub(super) struct Belief {
    pub(super) id: BeliefId,
    pub(super) recorder: Recorder,
}

impl Belief {
    pub(super) fn acts(&self) {
        self.recorder.record(Event::Acts { belief: self.id });
    }

    pub(super) fn ends(self, why: &'static str) {
        self.recorder.record(Event::Ceases {
            belief: self.id,
            why,
        });
    }
}

/// The repository of the Leases: those of the nodes, or an application's.
fn repository(elects: bool) -> Repository {
    match elects {
        true => Repository::new("default"),
        false => Repository::default(),
    }
}

pub(super) fn failure(error: &Error) -> CallOutcome {
    match error {
        Error::Unknown { .. } => CallOutcome::Unknown(error.to_string()),
        Error::Refused(refused) if refused.refusal == Refusal::HeldByCaller => {
            CallOutcome::HeldByCaller(error.to_string())
        }
        _ => CallOutcome::Refused(error.to_string()),
    }
}

pub(super) fn ending(change: &Change) -> CallOutcome {
    let settled = change.side_effects.contains(&SideEffect::AnswerLost);
    let acquired = || change.lease.as_ref().and_then(acquisition);
    match (change.done, acquired()) {
        (Done::Acquired, Some(acquisition)) => CallOutcome::Acquired {
            acquisition,
            fencing: change.fencing.unwrap_or_default(),
            settled,
        },
        (Done::Renewed, Some(acquisition)) => CallOutcome::Renewed {
            acquisition,
            renewed: change
                .lease
                .as_ref()
                .and_then(NodeLease::renewed)
                .map_or(0, |renewed| renewed.timestamp_micros()),
        },
        (Done::Acquired | Done::Renewed, None) => {
            CallOutcome::Unknown("held, it says, by nobody".to_owned())
        }
        (Done::Released, _) => CallOutcome::Released { settled },
        (Done::AlreadyHeld | Done::AlreadyFree, _) => CallOutcome::Nothing,
    }
}

/// The acquisition that stands in a Lease, as the history names it.
pub(super) fn acquisition(lease: &NodeLease) -> Option<Acquisition> {
    Some(Acquisition {
        uid: lease.uid().into(),
        holder: lease.holder()?.into(),
        transitions: lease.transitions(),
        nonce: lease.lock_id().map(|lock_id| lock_id.nonce().into()),
    })
}

/// Whether the library says that it is no longer the caller's.
pub(super) fn is_lost(error: &Error) -> bool {
    matches!(
        error,
        Error::Refused(refused) if matches!(
            refused.refusal,
            Refusal::ChangedHands | Refusal::NotHeld | Refusal::NotHolder | Refusal::Deleting
        )
    )
}
