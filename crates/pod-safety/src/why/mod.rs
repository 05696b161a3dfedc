//! Why a pod, a claim or a namespace is stuck: what was read in, reasons out.

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

/// What is known of an object that may be stuck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// Its state.
    pub state: State,
    /// The node of a pod.
    pub node: Option<String>,
    /// Why it is stuck, the most important reason first. Empty if nothing blocks it.
    pub reasons: Vec<Reason>,
    /// What waits for it.
    pub blocks: Vec<Blocked>,
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
    /// It has ended, and only finalizers keep the object.
    Finalizing {
        /// The time when its deletion was requested, or the end of its grace period.
        since: Instant,
    },
}

/// A reason why an object is stuck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its grace period has not ended.
    Grace {
        /// The end.
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
    /// A taint of its node evicts it at about this time.
    Evicted {
        /// That time. It may have passed.
        at: Instant,
    },
    /// It tolerates the taints of its node without a limit.
    NeverEvicted,
    /// No taint of its node evicts it.
    Unevicted,
    /// The grace period is over, and these containers still run: the kubelet could not end them.
    Containers {
        /// The node.
        node: String,
        /// Their names.
        names: Vec<String>,
    },
    /// Its containers have ended, and the kubelet has not finished: it unmounts its volumes first.
    Unmount {
        /// The node.
        node: String,
        /// The claims of the pod.
        claims: Vec<String>,
    },
    /// The kubelet has not reported that it ended.
    Unconfirmed {
        /// The node.
        node: String,
    },
    /// Somebody must agree before the object is removed.
    Finalizer(Finalizer),
    /// The scheduler finds no node for it, in its own words.
    Unschedulable {
        /// What the scheduler wrote.
        message: String,
    },
    /// The scheduler ignores it because of its scheduling gates.
    Gated {
        /// Which.
        gates: Vec<String>,
    },
    /// No scheduler has reported on it yet.
    NoScheduler {
        /// The scheduler that it names.
        scheduler: String,
    },
    /// A volume can be used on other nodes only, and none of them takes pods now.
    VolumeAffinity {
        /// The claim.
        claim: String,
        /// The PersistentVolume.
        volume: String,
        /// The nodes where the volume can be used; `true`: it is not ready, `false`: it is cordoned.
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
        /// Its detach was requested.
        detaching: bool,
    },
    /// A volume can't be attached, in the driver's own words.
    AttachFailed {
        /// The PersistentVolume.
        volume: String,
        /// What the driver wrote.
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
    /// The claim's volume no longer exists.
    VolumeLost {
        /// The PersistentVolume.
        volume: String,
    },
    /// The claim names a volume that it was never bound to, and that does not exist.
    VolumeMissing {
        /// The PersistentVolume.
        volume: String,
    },
    /// A container does not start, or does not stay up, in the kubelet's words.
    Container {
        /// Its name.
        name: String,
        /// Such as `ImagePullBackOff`.
        reason: String,
        /// What the kubelet wrote; may be empty.
        message: String,
    },
    /// The eviction API, and therefore `kubectl drain`, would refuse to evict it.
    Eviction(Eviction),
    /// Pods use the claim.
    UsedBy {
        /// Those that have a node.
        pods: Vec<User>,
    },
    /// The claim's volume is made for the node of the first pod that uses it.
    FirstConsumer {
        /// The pods that use it and have no node yet.
        pods: Vec<String>,
    },
    /// The claim's storage class does not exist.
    NoClass {
        /// Its name.
        class: String,
    },
    /// No volume fits, and no provisioner creates one.
    NoVolume,
    /// The volume that the claim names is bound to another claim.
    VolumeTaken {
        /// The PersistentVolume.
        volume: String,
        /// The other claim, as `NAMESPACE/NAME`.
        by: String,
    },
    /// A provisioner has not created the volume.
    Provisioning {
        /// Which.
        provisioner: String,
    },
    /// The namespace controller could not find or delete some of the content, in its own words.
    Content {
        /// What the controller wrote.
        message: String,
    },
    /// Objects of a kind are left in the namespace.
    Left {
        /// The kind, as kubectl takes it, such as `widgets.example.com`.
        resource: String,
        /// How many.
        count: u64,
        /// Their names, if they can be explained.
        names: Vec<String>,
    },
    /// Objects in the namespace are kept by a finalizer.
    ContentFinalizer {
        /// The finalizer.
        finalizer: Finalizer,
        /// How many objects have it.
        count: u64,
    },
    /// The namespace controller has reported nothing yet.
    Unreported,
    /// The namespace controller has reported that nothing is left, and nothing was found.
    NothingReported,
    /// A StatefulSet has no pod of this number.
    OutsideSet {
        /// The set, as `StatefulSet/web`.
        owner: String,
        /// Its first number.
        first: i32,
        /// How many pods it has.
        replicas: usize,
    },
    /// A StatefulSet creates it only after an earlier pod is ready.
    InOrder {
        /// The set.
        owner: String,
        /// The first pod that is not ready.
        pod: String,
    },
    /// Its controller could not create it, in the server's words: for example, because of a quota.
    NotCreated {
        /// The controller.
        owner: String,
        /// What the server answered.
        message: String,
    },
    /// Its controller has not created it yet.
    NotCreatedYet {
        /// The controller.
        owner: String,
    },
    /// The newest warning about it, if nothing else explains its state.
    Event {
        /// Such as `FailedKillPod`.
        reason: String,
        /// In its author's words.
        message: String,
        /// When it last happened.
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

/// What waits for an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// Its controller, which can't replace it before it is gone.
    Replacement {
        /// As `StatefulSet/web`.
        owner: String,
    },
    /// Its namespace, which is being deleted.
    Namespace {
        /// Its name.
        name: String,
        /// Since when.
        since: Instant,
    },
}

/// What could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// In words, such as `nodes`.
    pub what: &'static str,
    /// Why not.
    pub why: Why,
}

impl Diagnosis {
    /// For an object in this state, without reasons so far.
    fn new(state: State) -> Self {
        Self {
            state,
            node: None,
            reasons: Vec::new(),
            blocks: Vec::new(),
            unread: Vec::new(),
        }
    }

    fn push(&mut self, reason: Reason) {
        self.reasons.push(reason);
    }

    fn extend(&mut self, reasons: impl IntoIterator<Item = Reason>) {
        self.reasons.extend(reasons);
    }

    /// The fact, if it is known. Otherwise, records that it could not be read, if it was requested.
    fn known<'a, T>(&mut self, what: &'static str, fact: &'a Known<T>) -> Option<&'a T> {
        Unread::note(&mut self.unread, what, fact);
        fact.value()
    }
}

impl Unread {
    /// Records once that a fact could not be read, if it was requested.
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
