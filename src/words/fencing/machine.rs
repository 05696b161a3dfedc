//! The refusal if the machine behind a node is not the one that was proven to be off.

use pod_safety::fencing::{Machine, Proof};

use super::retry::RETRY;
use crate::text::escape;

/// `node` is another machine than in `proof`, or was restarted; `now` is the current one.
pub(super) fn another(node: &str, proof: &Proof, now: &Machine) -> (String, String) {
    (
        format!(
            "node/{node} was not fenced: it is another machine than the one that was proven to be off, or was restarted \
             since (then: {}; now: {})",
            named(&proof.of),
            named(now)
        ),
        format!("check the machine, then {RETRY}"),
    )
}

/// The node's state after a hook.
pub(super) fn state(isolated: bool) -> &'static str {
    if isolated { "cut off" } else { "off" }
}

fn named(machine: &Machine) -> String {
    let Machine {
        uid,
        boot_id,
        provider_id,
    } = machine;
    escape(&format!(
        "uid {uid}, boot ID \"{boot_id}\", provider ID \"{provider_id}\""
    ))
}
