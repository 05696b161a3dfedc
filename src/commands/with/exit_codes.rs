//! The exit code of `with`: that of its command, or one that says why the command has none.

use supervisor::under_lease::CommandOutcome;

use super::args::WithArgs;
use crate::exit::Code;

/// The exit codes that the caller chose.
#[derive(Clone, Copy, Debug)]
pub(super) struct Codes {
    /// Instead of those for a node that somebody else holds.
    conflict: Option<Code>,
    lost: Code,
}

impl Codes {
    pub(super) fn new(args: &WithArgs) -> Self {
        Self {
            conflict: args.conflict_exit_code.map(Code::other),
            lost: Code::other(args.lost_exit_code),
        }
    }

    /// The code for a failure of `with` itself, for which another verb would exit with `code`.
    pub(super) fn of_failure(self, code: Code) -> Code {
        match code {
            Code::HELD | Code::TIMED_OUT => self.conflict.unwrap_or(code),
            Code::LOST => self.lost,
            Code::INTERRUPTED | Code::UNSAFE | Code::NOT_FOUND | Code::NOT_EXECUTABLE => code,
            _ => Code::WRAPPER,
        }
    }

    /// The code for a command that has run.
    pub(super) fn of_command(self, outcome: &CommandOutcome, is_lost: bool) -> Code {
        Code::other(outcome.code(is_lost, self.lost.number()))
    }
}
