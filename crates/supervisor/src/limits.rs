//! The two times by which a command must have ended.

use serde::{Deserialize, Serialize};

/// How long a command may run. Both limits are in microseconds of [`boot_clock`], which also runs while the
/// machine sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// When the command and all its descendants are asked to end (TERM).
    pub term_at: i64,
    /// When all remaining processes are killed.
    pub kill_at: i64,
}
