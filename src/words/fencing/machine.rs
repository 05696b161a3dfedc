//! What was made sure of on another machine than the one that is there by now.

use pod_safety::fencing::{How, Machine, Proof};

use crate::error::Failure;
use crate::text::escape;
use crate::words::program::Program;

/// `node` is another machine than the one of `proof`, or was started since: the one of `now`.
pub(super) fn another(node: &str, proof: &Proof, now: &Machine, program: &Program) -> Failure {
    let then = &proof.of;
    let one = match proof.how {
        How::PoweredOff(_) => "the one that you gave your word for",
        How::Hook { .. } => "the one that the hook was run for",
    };
    let to_see = format!("to see: {program} status {node} -o wide");
    let (message, hint) = match then.uid == now.uid {
        true => (
            format!(
                "node/{node} tells of another boot than {one}: this one is not recorded as fenced \
                 (then: {}; now: {})",
                boot(then),
                boot(now)
            ),
            match proof.how {
                How::PoweredOff(_) => format!("{to_see}; where it is off: the same again"),
                How::Hook { .. } => format!("{to_see}; to fence it: the same again"),
            },
        ),
        false => (
            format!(
                "node/{node} is another machine than {one}: this one is not recorded as fenced \
                 (then: {}; now: {})",
                named(then),
                named(now)
            ),
            match proof.how {
                How::PoweredOff(_) => {
                    format!("{to_see}; where this one, too, is off: the same again")
                }
                How::Hook { isolated, .. } => format!(
                    "by the hook's word the one before is {}; {to_see}; to fence this one, too: the \
                     same again",
                    state(isolated)
                ),
            },
        ),
    };
    Failure::Unsafe { message, hint }
}

/// What a hook makes of a node.
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
