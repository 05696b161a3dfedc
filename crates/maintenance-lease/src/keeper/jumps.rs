//! Time that passed without the boot clock: a machine that was paused, seen from inside.

use crate::env::Env;
use crate::protocol::{Clocks, SKEW_BUDGET};

/// Compares the wall clock and the server's time with the boot clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Jumps {
    wall: i64,
    server: i64,
}

impl Jumps {
    pub(super) fn from(env: &dyn Env, clocks: Clocks) -> Self {
        Self {
            wall: env.wall().as_micros() - clocks.boot.as_micros(),
            server: ahead(clocks),
        }
    }

    /// Whether either ran ahead of the boot clock by more than the clock budget since the last time.
    pub(super) fn noticed(&mut self, env: &dyn Env, clocks: Clocks) -> bool {
        let before = std::mem::replace(self, Self::from(env, clocks));
        let budget = SKEW_BUDGET.as_micros();
        self.wall - before.wall > budget || self.server - before.server > budget
    }
}

/// How far the server's time is ahead of the boot clock.
fn ahead(clocks: Clocks) -> i64 {
    clocks.server.latest.as_micros() - clocks.boot.as_micros()
}
