//! Explains why a pod, a claim or a namespace is stuck. Pure: the objects are arguments.

pub mod budget;
pub mod claim;
mod code;
pub mod finalizer;
pub mod missing;
pub mod namespace;
pub mod pod;
mod taint_eviction;
pub mod waiting;

use maintenance_lease::protocol::Instant;

pub use self::budget::Eviction;
pub use self::claim::{ClaimEvidence, diagnose_claim};
pub use self::code::{StuckCode, StuckState};
pub use self::finalizer::Finalizer;
pub use self::missing::{MissingEvidence, diagnose_missing};
pub use self::namespace::{NamespaceEvidence, diagnose_namespace};
pub use self::pod::{PodEvidence, diagnose_pod};
use crate::known::{Known, Why};
use crate::node_health::Health;

/// The explanation of an object that may be stuck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// Its state.
    pub state: State,
    /// The node of the pod, if the object is a pod with a node.
    pub node: Option<String>,
    /// The pod was force-deleted already, or its kubelet has ended it: only finalizers keep the object.
    pub forced: bool,
    /// Why it is stuck, most important reason first. Empty if nothing blocks it.
    pub reasons: Vec<Reason>,
    /// Its controller, such as `StatefulSet/web`, if it cannot replace the pod before the pod is gone.
    pub waiting_owner: Option<String>,
    /// What could not be read.
    pub unread: Vec<Unread>,
}

/// The state of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There is no such object.
    Missing,
    /// A pod without a node, or one whose containers have not all started.
    Pending,
    /// A pod whose containers were started.
    Running,
    /// A pod that has ended by itself.
    Finished,
    /// A claim that has its volume.
    Bound,
    /// A claim whose volume no longer exists.
    Lost,
    /// A namespace that is not being deleted.
    Active,
    /// It is being deleted, and its grace period has not ended.
    Ending {
        /// The end of its grace period.
        until: Instant,
    },
    /// It is being deleted, and should be gone by now.
    Terminating {
        /// The end of its grace period, or the time when its deletion was requested.
        since: Instant,
    },
    /// It has ended or was never on a node, and only finalizers keep the object.
    Finalizing {
        /// The time when its deletion was requested, or the end of its grace period.
        since: Instant,
    },
}

/// A reason why an object is stuck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The grace period of the pod has not ended.
    Grace {
        /// The end of the grace period.
        until: Instant,
        /// The containers with a `preStop` hook, which runs within the grace period.
        pre_stop: Vec<String>,
    },
    /// Its node has a problem.
    Node {
        /// The node.
        name: String,
        /// Its health.
        health: Health,
    },
    /// A taint of its node evicts it.
    Evicted {
        /// The approximate time of the eviction. It may have passed.
        at: Instant,
    },
    /// It tolerates the taints of its node without a time limit.
    NeverEvicted,
    /// No taint of its node evicts it.
    Unevicted,
    /// The grace period has ended, and these containers still run because the kubelet could not stop them.
    Containers {
        /// The node.
        node: String,
        /// Their names.
        names: Vec<String>,
    },
    /// None of its containers runs, but the kubelet has not reported that the pod ended. It may still stop the
    /// sandbox, remove its network, or release devices.
    Stopping {
        /// The node.
        node: String,
        /// At least one container was started.
        started: bool,
    },
    /// It has ended, but the kubelet must still unmount its volumes.
    Unmount {
        /// The node.
        node: String,
        /// The claims of the pod.
        claims: Vec<String>,
    },
    /// The kubelet has not reported that the pod ended.
    Unconfirmed {
        /// The node.
        node: String,
    },
    /// It has no node. The pod garbage collector fails and deletes such pods that are being deleted.
    Collected,
    /// A controller must remove this finalizer before the object is removed.
    Finalizer(Finalizer),
    /// The scheduler finds no node for it.
    Unschedulable {
        /// The scheduler's message.
        message: String,
    },
    /// The scheduler ignores it because of its scheduling gates.
    Gated {
        /// The scheduling gates.
        gates: Vec<String>,
    },
    /// No scheduler has reported on it yet.
    NoScheduler {
        /// The scheduler in the pod's spec.
        scheduler: String,
    },
    /// A volume can be used on other nodes only, and none of them accepts pods now.
    VolumeAffinity {
        /// The claim.
        claim: String,
        /// The PersistentVolume.
        volume: String,
        /// The nodes on which the volume can be used. `true`: the node is not ready; `false`: it is cordoned.
        nodes: Vec<(String, bool)>,
    },
    /// A volume for one node at a time is attached to another node.
    MultiAttach {
        /// The claim.
        claim: String,
        /// The PersistentVolume.
        volume: String,
        /// The other node.
        node: String,
        /// The health of that node, if it is known.
        health: Option<Health>,
        /// The pods of the namespace that use the claim there.
        pods: Vec<String>,
        /// The volume is being detached from that node.
        detaching: bool,
    },
    /// A volume can't be attached.
    AttachFailed {
        /// The PersistentVolume.
        volume: String,
        /// The driver's message.
        message: String,
    },
    /// It needs a claim that does not exist.
    ClaimMissing {
        /// The claim.
        claim: String,
    },
    /// It needs a claim that has no volume yet.
    ClaimUnbound {
        /// The claim.
        claim: String,
    },
    /// It needs a claim that is being deleted.
    ClaimEnding {
        /// The claim.
        claim: String,
    },
    /// The claim's volume does not exist.
    VolumeMissing {
        /// The PersistentVolume.
        volume: String,
    },
    /// A container does not start or does not keep running.
    Container {
        /// Its name.
        name: String,
        /// The kubelet's reason, such as `ImagePullBackOff`.
        reason: String,
        /// The kubelet's message; may be empty.
        message: String,
    },
    /// The eviction API, and therefore `kubectl drain`, would refuse to evict it.
    Eviction(Eviction),
    /// Pods still use the claim.
    UsedBy {
        /// The pods that use it and have a node.
        pods: Vec<User>,
    },
    /// The claim's volume will be created for the node of the first pod that uses the claim.
    FirstConsumer {
        /// The pods that use it.
        pods: Vec<String>,
    },
    /// The claim's storage class does not exist.
    NoClass {
        /// Its name.
        class: String,
    },
    /// No volume fits the claim, and no storage class creates one.
    NoVolume,
    /// The volume that the claim names is bound to another claim.
    VolumeTaken {
        /// The PersistentVolume.
        volume: String,
        /// The other claim, as `NAMESPACE/NAME`.
        by: String,
    },
    /// A provisioner has not created the volume yet.
    Provisioning {
        /// The provisioner.
        provisioner: String,
    },
    /// The namespace controller could not find or delete some of the content.
    Content {
        /// The controller's message.
        message: String,
        /// An API group could not be discovered, for example because its API service is down.
        undiscovered: bool,
    },
    /// Objects of a kind are left in the namespace.
    Left {
        /// The resource as kubectl accepts it, such as `widgets.example.com`.
        resource: String,
        /// The number of objects.
        count: u64,
        /// The names of the objects, for kinds that can be explained.
        names: Vec<String>,
    },
    /// Objects in the namespace are kept by a finalizer.
    ContentFinalizer {
        /// The finalizer.
        finalizer: Finalizer,
        /// The number of objects that have it.
        count: u64,
    },
    /// The namespace controller has reported nothing yet.
    Unreported,
    /// The namespace controller has reported that nothing is left, and no remaining object was found.
    NothingReported,
    /// The pod's StatefulSet is being deleted, so it creates no pods.
    SetEnding {
        /// The set, as `StatefulSet/web`.
        owner: String,
    },
    /// The pod's ordinal is outside the range of its StatefulSet.
    OutsideSet {
        /// The set, as `StatefulSet/web`.
        owner: String,
        /// The first ordinal of the set.
        first: i32,
        /// The number of replicas.
        replicas: usize,
    },
    /// A StatefulSet creates the pod only once an earlier pod is ready.
    InOrder {
        /// The set.
        owner: String,
        /// The first earlier pod that is not ready.
        pod: String,
    },
    /// The controller could not create the pod, for example because of a quota.
    NotCreated {
        /// The controller.
        owner: String,
        /// The server's message.
        message: String,
    },
    /// The controller has not created the pod yet.
    NotCreatedYet {
        /// The controller.
        owner: String,
    },
    /// The newest warning about it, if nothing else explains its state.
    Event {
        /// The reason, such as `FailedKillPod`.
        reason: String,
        /// The message of the Event.
        message: String,
        /// When it last occurred.
        at: Option<Instant>,
    },
}

/// A pod that uses a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Its name.
    pub name: String,
    /// It has ended by itself.
    pub finished: bool,
}

/// A fact that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// The objects that could not be read, such as `nodes`.
    pub what: &'static str,
    /// Why they could not be read.
    pub why: Why,
}

impl Diagnosis {
    /// A diagnosis for an object in this state, without reasons.
    fn new(state: State) -> Self {
        Self {
            state,
            node: None,
            forced: false,
            reasons: Vec::new(),
            waiting_owner: None,
            unread: Vec::new(),
        }
    }

    fn push(&mut self, reason: Reason) {
        self.reasons.push(reason);
    }

    fn extend(&mut self, reasons: impl IntoIterator<Item = Reason>) {
        self.reasons.extend(reasons);
    }

    /// Returns the fact, if it is known. Otherwise, if the fact was requested, records that it could not be
    /// read.
    fn known<'a, T>(&mut self, what: &'static str, fact: &'a Known<T>) -> Option<&'a T> {
        Unread::note(&mut self.unread, what, fact);
        fact.value()
    }
}

impl Unread {
    /// Records that a requested fact could not be read. Records each fact only once.
    pub(crate) fn note<T>(unread: &mut Vec<Self>, what: &'static str, fact: &Known<T>) {
        if let Known::Unknown(why) = fact
            && *why != Why::NotRead
            && !unread.iter().any(|one| one.what == what)
        {
            unread.push(Self {
                what,
                why: why.clone(),
            });
        }
    }
}
