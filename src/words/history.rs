//! How a lock ended, in words.

use maintenance_lease::Ending;

use super::holder_name::of_node;

pub(crate) const NOTHING_RECORDED: &str = "No locks are recorded";

/// Somebody has the lock.
pub(crate) const CURRENT: &str = "current";

/// Another client wrote something else there.
pub(crate) const UNREADABLE: &str = "<unreadable>";

/// How it ended, and by whom if not its holder.
pub(crate) fn ending(end: Ending, by: Option<&str>) -> String {
    let how = match end {
        Ending::Released => "released",
        Ending::Expired => "expired",
        Ending::Replaced => "replaced",
        Ending::TakenOver => "taken over",
    };
    match by {
        Some(by) => format!("{how} by {}", of_node(by)),
        None => how.to_owned(),
    }
}
