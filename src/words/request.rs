//! The request that a message is about.

use maintenance_lease::protocol::Now;

use super::hint_command::Program;
use crate::error::Verb;

/// A request for locks, and its time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestContext<'a> {
    pub(crate) verb: Verb,
    /// The caller's identity.
    pub(crate) caller: &'a str,
    /// How this program was run.
    pub(crate) program: &'a Program,
    pub(crate) now: Now,
    /// Whether the caller already waited, until the timeout.
    pub(crate) waited: bool,
}
