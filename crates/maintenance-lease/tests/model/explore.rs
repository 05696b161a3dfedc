//! The exploration itself, and what it tells.

use std::fmt;
use std::io::Write as _;
use std::time::Instant as Stopwatch;

use stateright::{Checker, Expectation, HasDiscoveries, Model as _, Path};

use crate::bounds::{Action, Bounds, State};

/// What came of an exploration.
pub(crate) struct Explored {
    pub(crate) states: usize,
    /// The properties that do not hold, each with a way there.
    pub(crate) failures: Vec<(&'static str, Path<State, Action>)>,
    /// What should be possible and is not.
    pub(crate) impossible: Vec<&'static str>,
}

/// Explores all that can be reached, up to the first failure, and says how much that was.
pub(crate) fn explore(name: &str, bounds: Bounds) -> Explored {
    let begun = Stopwatch::now();
    let checker = bounds
        .checker()
        .threads(2)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let states = checker.unique_state_count();
    tell(format_args!(
        "model: {name}: {states} states, the furthest {} actions away, in {} s",
        checker.max_depth(),
        begun.elapsed().as_secs()
    ));
    let mut discoveries = checker.discoveries();
    let (mut failures, mut impossible) = (Vec::new(), Vec::new());
    for property in bounds.properties() {
        match (property.expectation, discoveries.remove(property.name)) {
            (Expectation::Always, Some(path)) => failures.push((property.name, path)),
            (Expectation::Sometimes, None) => impossible.push(property.name),
            _ => {}
        }
    }
    Explored {
        states,
        failures,
        impossible,
    }
}

/// Prints a message for the person who runs the tests. The test harness hides the normal output of tests
/// that pass.
pub(crate) fn tell(what: fmt::Arguments<'_>) {
    let _nobody_reads = writeln!(std::io::stderr(), "{what}");
}

/// A way to some state, a line an action, with the time at which it happens.
pub(crate) fn story(bounds: &Bounds, path: &Path<State, Action>) -> String {
    let mut seconds = 0;
    let mut lines = Vec::new();
    for (state, action) in path.clone().into_vec() {
        let believers: Vec<usize> = state.world.believers().collect();
        let Some(action) = action else {
            lines.push(format!("{seconds:>3} s  these believe: {believers:?}"));
            break;
        };
        if action == Action::Tick {
            seconds += bounds.tick;
        } else {
            lines.push(format!("{seconds:>3} s  {action:?}"));
        }
    }
    lines.join("\n")
}
