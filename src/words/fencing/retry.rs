//! How to continue a fencing: with the same command, since a hint repeats neither its hook nor its proof.

use pod_safety::fencing::Attempt;

use crate::text::for_shell;
use crate::words::hint_command::{NO_REASON, Program};

/// How to continue.
pub(super) const RETRY: &str = "run the command again";

/// How to continue, if the hook of an earlier run may still be recorded under this id.
pub(crate) fn resume(program: &Program, id: &str) -> String {
    let before = program.place_of_flags();
    format!("{RETRY} with {}{before}", flag(id))
}

/// The option for a command that continues although `hook` may be running, after a space.
pub(crate) fn resuming(hook: &Attempt) -> String {
    format!(" {}", flag(&hook.id))
}

fn flag(id: &str) -> String {
    format!("--resume={}", for_shell(id))
}

/// What to add to the command, to accept the risk `id`. That requires a reason.
pub(super) fn accepting(program: &Program, id: &str) -> String {
    let reason = match program.reason() {
        Some(_) => String::new(),
        None => format!(" -m {NO_REASON}"),
    };
    let before = program.place_of_flags();
    format!("add --accept-risk={id}{reason}{before}")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::app::Cli;

    #[test]
    fn an_accepted_risk_is_no_argument_of_the_hook() {
        let hint = |line: &str| {
            let words = std::iter::once("kubectl-maint").chain(line.split(' '));
            let matches = Cli::command().try_get_matches_from(words);
            accepting(&Program::new(&matches.expect("a line")), "no-owner")
        };
        assert_eq!(
            hint("fence a -- ./hook"),
            "add --accept-risk=no-owner -m WHY before `--`"
        );
        assert_eq!(
            hint("fence a --powered-off=yes -m x --accept-risk=unread"),
            "add --accept-risk=no-owner"
        );
    }
}
