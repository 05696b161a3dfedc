//! Warnings for names of earlier releases.

use crate::error::Deprecated;
use crate::text::escape;

/// The old name, and the new one.
pub(crate) fn warning(deprecated: Deprecated) -> String {
    let (old, new) = match deprecated {
        Deprecated::Risk { old, new } => {
            return format!(
                "--accept-risk={} is deprecated: use --accept-risk={new}",
                escape(&old)
            );
        }
        Deprecated::LockIdAsToken => ("--token for a lock id", "--lock-id"),
        Deprecated::TokenFormat => ("-o token", "-o lock-id"),
        Deprecated::Override => ("--override", "--accept-risk"),
        Deprecated::Confirm => ("--confirm", "--accept-risk"),
        Deprecated::UntilOfHold => ("--until of hold", "--expect-until"),
        Deprecated::Locked => ("--locked", "--state=locked,expired,on-hold"),
        Deprecated::WaitFor { old, new } => {
            return format!("--for={old} is deprecated: use --for={new}");
        }
        Deprecated::Variable { old, new } => (old, new),
    };
    format!("{old} is deprecated: use {new}")
}
