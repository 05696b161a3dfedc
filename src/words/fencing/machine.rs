//! The refusal if the machine behind a node is not the one that was proven to be off.

use pod_safety::fencing::{How, Machine, Proof};

use super::retry::RETRY;
use crate::text::escape;

/// `node` is another machine than in `proof`, or was restarted; `now` is the current one.
pub(super) fn another(node: &str, proof: &Proof, now: &Machine) -> (String, String) {
    let then = &proof.of;
    let since = match proof.how {
        How::PoweredOff(_) => "since you confirmed that it was off",
        How::Hook { .. } => "since the hook started",
    };
    match then.uid == now.uid {
        true => (
            format!(
                "node/{node} was not fenced: its boot ID has changed {since} (then: {}; now: {})",
                boot(then),
                boot(now)
            ),
            match proof.how {
                How::PoweredOff(_) => format!("if it is off now, {RETRY}"),
                How::Hook { .. } => format!("to run the hook again and fence it, {RETRY}"),
            },
        ),
        false => (
            format!(
                "node/{node} was not fenced: another machine has taken its name {since} (then: {}; now: {})",
                named(then),
                named(now)
            ),
            match proof.how {
                How::PoweredOff(_) => format!("if the new machine is off too, {RETRY}"),
                How::Hook { isolated, .. } => format!(
                    "the earlier machine should be {} now; to fence the new one too, {RETRY}",
                    state(isolated)
                ),
            },
        ),
    }
}

/// The node's state after a hook.
pub(super) fn state(isolated: bool) -> &'static str {
    if isolated { "cut off" } else { "off" }
}

fn boot(machine: &Machine) -> String {
    match &*machine.boot_id {
        "" => "no boot ID".to_owned(),
        id => format!("boot ID {}", escape(id)),
    }
}

fn named(machine: &Machine) -> String {
    let provided = match &*machine.provider_id {
        "" => String::new(),
        id => format!(", {}", escape(id)),
    };
    format!("uid {}, {}{provided}", escape(&machine.uid), boot(machine))
}
