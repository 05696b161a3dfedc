//! The two instants by which a command must have ended.

use serde::{Deserialize, Serialize};

/// How long a command may run: instants in microseconds of [`boot_clock`], the clock that also runs while the machine
/// sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// When the command and all its descendants are asked to end (TERM).
    pub term_at: i64,
    /// When all remaining processes are killed.
    pub kill_at: i64,
}

impl Limits {
    /// No limit at all.
    pub const NONE: Self = Self {
        term_at: i64::MAX,
        kill_at: i64::MAX,
    };
}
