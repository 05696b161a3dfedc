//! Failures during a fencing, and what is unknown after them.

use std::time::Duration;

use maintenance_lease::protocol::Span;

use super::retry::{RETRY, resume};
use crate::error::{Failure, Kind};
use crate::text::escape;
use crate::words::program::Program;
use crate::words::time::length;

/// The hook for `node` failed; `how` follows "the hook".
pub(crate) fn hook_failed(node: &str, how: &str, output: &str) -> Failure {
    no_proof(node, &format!("the hook {how}"), output, Kind::Other)
}

/// The hook for `node` was interrupted.
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

/// The hook for `node` succeeded, but the node stayed unreachable for as long as it was `waited` for.
pub(crate) fn silent_after_hook(node: &str, waited: Duration, program: &Program) -> Failure {
    let waited = length(Span::from(waited));
    Failure::Hook {
        message: format!(
            "the hook succeeded, but node/{node} is still unreachable after {waited}: it stays fenced"
        ),
        hint: format!("when it is back, run `{program} unfence {node}`"),
        kind: Kind::TimedOut,
    }
}

/// The hook that should have brought `node` back succeeded, but the Node does not exist any more.
pub(crate) fn gone_after_hook(node: &str) -> Failure {
    Failure::Hook {
        message: format!("the hook succeeded, but node/{node} was deleted: it is not in service"),
        hint:
            "to use it again, register it: its fencing record, taint and hold were deleted with it"
                .to_owned(),
        kind: Kind::Other,
    }
}

/// The record of `node` was sent, but its result is unknown at the end of the run. If the proof is a hook,
/// the hook stays recorded on the Node until the fencing record replaces it: `hook` is its id there.
pub(crate) fn record_open(
    node: &str,
    why: &Failure,
    hook: Option<&str>,
    program: &Program,
) -> Failure {
    let again = hook.map_or_else(|| RETRY.to_owned(), resume);
    Failure::OpenWrite {
        message: format!(
            "unknown whether node/{node} was fenced: the write may still take effect ({}); its lock is \
             kept",
            escape(&why.to_string())
        ),
        hint: format!("check with `{program} status {node}`; to continue, {again}"),
        kind: why.kind(None),
    }
}

/// The write that returns `node` to service was sent, but its result is unknown at the end of the run.
pub(crate) fn return_open(node: &str, why: &Failure, program: &Program) -> Failure {
    Failure::OpenWrite {
        message: format!(
            "unknown whether node/{node} was unfenced: the write may still take effect ({})",
            escape(&why.to_string())
        ),
        hint: format!("check with `{program} status {node}`; to continue, {RETRY}"),
        kind: why.kind(None),
    }
}
