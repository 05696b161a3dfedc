//! How to continue a fencing: with the same command, since a hint repeats neither its hook nor its proof.

use crate::text::for_shell;
use crate::words::hint_command::{NO_REASON, Program};

/// How to continue.
pub(super) const RETRY: &str = "run the same command again";

/// How to continue, if the hook of an earlier run may still be recorded under this id.
pub(crate) fn resume(id: &str) -> String {
    format!("{RETRY} with --resume={}", for_shell(id))
}

/// What to add to the command, to accept the risk `id`. That requires a reason.
pub(super) fn accepting(program: &Program, id: &str) -> String {
    let reason = match program.reason() {
        Some(_) => String::new(),
        None => format!(" -m \"{NO_REASON}\""),
    };
    format!("add --accept-risk={id}{reason}")
}
