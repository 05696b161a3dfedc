//! Time that passed without the boot clock: a machine that was paused, seen from inside.

use crate::cluster::server_time::ServerTime;
use crate::env::Env;
use crate::protocol::SKEW_BUDGET;

/// How far the wall clock may run ahead of the boot clock, in microseconds. They are slewed alike and
/// come apart by steps alone. It is little, because a holder believes for that much too long, at the
/// cost of the clock budget.
const STEP: i64 = 100_000;

/// How the wall clock and the server's time stood to the boot clock; pauses that are too short to be
/// noticed one by one add up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jumps {
    wall: i64,
    /// `None` before anything was heard of the server.
    server: Option<i64>,
}

impl Jumps {
    /// As they stand now.
    pub(crate) fn from(env: &dyn Env, time: &ServerTime) -> Self {
        Self {
            wall: wall_ahead(env).1,
            server: time.ahead_of_boot(),
        }
    }

    /// Whether either ran ahead of the boot clock since: the one by more than a step, the other by
    /// more than the clock budget.
    pub(crate) fn noticed(&mut self, env: &dyn Env, time: &ServerTime) -> bool {
        let (at_least, at_most) = wall_ahead(env);
        let server = time.ahead_of_boot();
        let ran_ahead = self.server.zip(server).map_or(0, |(then, now)| now - then);
        if at_least - self.wall > STEP || ran_ahead > SKEW_BUDGET.as_micros() {
            *self = Self {
                wall: at_most,
                server,
            };
            return true;
        }
        self.wall = self.wall.min(at_most);
        self.server = self.server.into_iter().chain(server).min();
        false
    }
}

/// How far the wall clock is ahead of the boot clock, at least and at most: who is stopped between
/// the readings must not take that for a jump.
fn wall_ahead(env: &dyn Env) -> (i64, i64) {
    let before = env.boot().as_micros();
    let wall = env.wall().as_micros();
    (wall - env.boot().as_micros(), wall - before)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::{HeaderMap, header};

    use super::*;
    use crate::env::testing::Paused;

    fn machine() -> (Arc<Paused>, ServerTime) {
        let machine = Arc::new(Paused::default());
        (machine.clone(), ServerTime::new(machine))
    }

    #[test]
    fn short_pauses_add_up_until_they_are_noticed() {
        let (machine, time) = machine();
        let mut jumps = Jumps::from(&*machine, &time);
        let noticed: Vec<bool> = (1..=4)
            .map(|pauses| {
                machine.set_ahead(pauses * 40_000);
                jumps.noticed(&*machine, &time)
            })
            .collect();
        assert_eq!(noticed, [false, false, true, false]);
    }

    #[test]
    fn a_step_back_does_not_hide_a_pause_after_it() {
        let (machine, time) = machine();
        let mut jumps = Jumps::from(&*machine, &time);
        machine.set_ahead(-9_000_000);
        assert!(!jumps.noticed(&*machine, &time));
        machine.set_ahead(-5_000_000);
        assert!(jumps.noticed(&*machine, &time));
    }

    #[test]
    fn the_first_word_of_the_server_is_no_jump() {
        let (machine, time) = machine();
        let mut jumps = Jumps::from(&*machine, &time);
        let mut headers = HeaderMap::new();
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        headers.insert(header::DATE, date.parse().expect("a header value"));
        time.observe(machine.boot(), machine.boot(), &headers);
        assert!(!jumps.noticed(&*machine, &time));
    }
}
