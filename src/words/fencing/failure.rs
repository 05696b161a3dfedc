//! What goes wrong on the way of a fencing, and what is not known then.

use std::time::Duration;

use maintenance_lease::protocol::Span;

use crate::error::{Failure, Kind};
use crate::text::escape;
use crate::words::program::Program;
use crate::words::time::length;

/// A hook for `node` did not succeed: `how`, behind "the hook".
pub(crate) fn hook_failed(node: &str, how: &str, output: &str) -> Failure {
    no_proof(node, &format!("the hook {how}"), output, Kind::Other)
}

/// A hook for `node` was interrupted.
pub(crate) fn hook_interrupted(node: &str, output: &str) -> Failure {
    no_proof(node, "interrupted", output, Kind::Interrupted)
}

fn no_proof(node: &str, what: &str, output: &str, kind: Kind) -> Failure {
    let output = match output.is_empty() {
        true => "it printed nothing",
        false => "its output is above",
    };
    Failure::Hook {
        message: format!("{what}: nothing was changed in the cluster"),
        hint: format!("check node/{node}: what the hook did is unknown; {output}"),
        kind,
    }
}

/// A hook for `node` succeeded, and nobody heard of the node for as long as it was `waited` for.
pub(crate) fn silent_after_hook(node: &str, waited: Duration, program: &Program) -> Failure {
    let waited = length(Span::from(waited));
    Failure::Hook {
        message: format!(
            "the hook succeeded, but node/{node} is still unreachable after {waited}: it stays fenced"
        ),
        hint: format!("when it is back: {program} unfence {node}"),
        kind: Kind::TimedOut,
    }
}

/// A hook for `node` succeeded that was to bring it back, and there is no such Node any more.
pub(crate) fn gone_after_hook(node: &str) -> Failure {
    Failure::Hook {
        message: format!("the hook succeeded, but node/{node} was deleted: it is not in service"),
        hint:
            "to use it again, register it: its fencing record, taint and hold were deleted with it"
                .to_owned(),
        kind: Kind::Other,
    }
}

/// The record of `node` was sent, and it is not known what became of it when the run ended. Where it rests on
/// a hook, the announcement of that stays until the record takes it away.
pub(crate) fn record_open(node: &str, why: &Failure, by_hook: bool, program: &Program) -> Failure {
    let flag = if by_hook { "--resume" } else { "" };
    Failure::OpenWrite {
        message: format!(
            "unknown whether node/{node} was fenced: the write may still take effect ({}); its lock is \
             kept",
            escape(&why.to_string())
        ),
        hint: format!(
            "to check: {program} status {node}; to continue: {}",
            program.whole(node, flag)
        ),
        kind: why.kind(None),
    }
}

/// `node` was to be taken back into service, and it is not known what became of it when the run ended.
pub(crate) fn return_open(node: &str, why: &Failure, program: &Program) -> Failure {
    Failure::OpenWrite {
        message: format!(
            "unknown whether node/{node} was unfenced: the write may still take effect ({})",
            escape(&why.to_string())
        ),
        hint: format!(
            "to check: {program} status {node}; to continue: {}",
            program.whole(node, "")
        ),
        kind: why.kind(None),
    }
}
