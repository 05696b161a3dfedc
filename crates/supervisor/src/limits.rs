//! The two instants by which a command must have ended.

use serde::{Deserialize, Serialize};

/// Until when a command may run: instants in microseconds of `CLOCK_BOOTTIME`, the clock that goes
/// on while the machine sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// From then on the command and all that came of it are asked to end (TERM).
    pub term_at: i64,
    /// From then on whatever is left is killed.
    pub kill_at: i64,
}

impl Limits {
    /// No limit at all.
    pub const NONE: Self = Self {
        term_at: i64::MAX,
        kill_at: i64::MAX,
    };
}
