//! States of nodes for the tests of this module.

use maintenance_lease::protocol::{Instant, Now, Span};

use super::{AcceptedRisks, FencingEvidence, Lock, Refusal, Step};
use crate::facts::{Nodes, Zone};
use crate::fencing::Attempt;
use crate::fencing::machine::Machine;
use crate::fencing::record::Proof;
use crate::fencing::record::{How, Record, Since};
use crate::known::Known;
use crate::node_health::{Heartbeat, NodeState, Ready, Status};
use crate::taint::{NoExecute, OutOfService};

pub(super) const NOW: Instant = Instant::from_micros(1_000_000_000);

pub(super) fn ago(seconds: u32) -> Known<Option<Heartbeat>> {
    Known::Yes(Some((NOW - Span::seconds(seconds)).into()))
}

pub(super) fn zone(unreachable: usize, all: usize) -> Zone {
    Zone {
        name: Some("a".to_owned()),
        nodes: Nodes { all, unreachable },
        others: Nodes::default(),
    }
}

pub(super) fn machine(uid: &str, boot_id: &str) -> Machine {
    Machine {
        uid: uid.to_owned(),
        boot_id: boot_id.to_owned(),
        provider_id: String::new(),
    }
}

/// An unreachable node that is locked, with a proof that it is off.
pub(super) fn unreachable() -> FencingEvidence {
    FencingEvidence {
        state: NodeState {
            ready: Some(Ready {
                status: Status::Unknown,
                since: None,
            }),
            heartbeat: ago(90),
            ..NodeState::default()
        },
        machine: machine("u", "b"),
        zone: Known::Yes(zone(1, 3)),
        remediation: Known::Yes(None),
        lock: Lock::Callers,
        is_lost: false,
        is_suspect: false,
        has_stopped_reporting: false,
        hook: None,
        proof: Some(Proof {
            how: How::PoweredOff(String::new()),
            of: machine("u", "b"),
        }),
        is_recorded: false,
        no_owner: Vec::new(),
    }
}

/// The hook of another run.
pub(super) fn hook() -> Attempt {
    Attempt {
        id: "n".to_owned(),
        who: "bob".to_owned(),
        program: "hook".to_owned(),
        since: NOW,
        until: NOW,
    }
}

pub(super) fn evicting() -> OutOfService {
    OutOfService::Evicting(NoExecute {
        key: String::new(),
        value: String::new(),
        added: None,
    })
}

pub(super) fn fenced() -> FencingEvidence {
    let mut evidence = unreachable();
    evidence.state.out_of_service = evicting();
    evidence.state.record = Some(Record::example());
    evidence.state.since = Some(Since::SameBoot);
    evidence
}

/// Makes `machine` the machine of the Node and of the proof.
pub(super) fn is_now(evidence: &mut FencingEvidence, machine: Machine) {
    if let Some(proof) = &mut evidence.proof {
        proof.of = machine.clone();
    }
    let record = evidence.state.record.as_ref();
    evidence.state.since = record.map(|record| record.since(&machine));
    evidence.machine = machine;
}

pub(super) fn next(change: impl FnOnce(&mut FencingEvidence)) -> Result<Step, Refusal> {
    let mut evidence = unreachable();
    change(&mut evidence);
    evidence.next(Now::at(NOW), AcceptedRisks::default())
}
