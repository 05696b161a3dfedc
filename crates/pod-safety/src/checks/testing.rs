//! Facts for the tests of the checks.

use k8s_openapi::api::core::v1::ObjectReference;
use maintenance_lease::protocol::Instant;

use crate::facts::{Owner, PodConditions, PodSnapshot, PresentNode, Promise, Siblings};
use crate::fencing::Record;
use crate::known::{Known, Why};
use crate::node_health::NodeState;

/// The current time in the tests.
pub(super) const NOW: Instant = Instant::from_micros(1_000_000_000);

/// A fact that the user may not read.
pub(super) fn forbidden<T>() -> Known<T> {
    Known::Unknown(Why::Forbidden("read it".to_owned()))
}

/// A pod that was deleted long ago and is still terminating.
pub(super) fn pod() -> PodSnapshot {
    PodSnapshot {
        namespace: "shop".to_owned(),
        name: "web-0".to_owned(),
        uid: "u-1".to_owned(),
        version: "7".to_owned(),
        node: "worker-1".to_owned(),
        mirror: false,
        ends: Some(Instant::from_micros(0)),
        grace: 30,
        finalizers: Vec::new(),
        job_waits: false,
        resource_claims: Vec::new(),
        disrupted: false,
        conditions: PodConditions::default(),
    }
}

/// A pod that was never scheduled to a node.
pub(super) fn unplaced() -> PodSnapshot {
    PodSnapshot {
        node: String::new(),
        ..pod()
    }
}

/// A Node without a Ready condition and without a heartbeat.
pub(super) fn there() -> PresentNode {
    PresentNode {
        uid: "n-1".to_owned(),
        version: "7".to_owned(),
        finalizers: Vec::new(),
        deleting: false,
        volumes: Vec::new(),
        taints: Vec::new(),
        state: NodeState {
            heartbeat: Known::Yes(None),
            ..NodeState::default()
        },
    }
}

/// The record of a fencing of that Node.
pub(super) fn record() -> Record {
    Record {
        who: "alice@bastion".to_owned(),
        ..Record::example()
    }
}

/// A pod's controller.
pub(super) fn controlled(promise: Known<Promise>, siblings: Option<Known<Siblings>>) -> Owner {
    Owner::Controller {
        what: "StatefulSet/web".to_owned(),
        promise,
        siblings,
        reference: Box::new(ObjectReference::default()),
    }
}
