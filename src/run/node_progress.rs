//! How many nodes are done so far, in one line on a terminal that is updated in place.

use std::cell::Cell;
use std::future::pending;
use std::time::{Duration, Instant};

use crate::error::Verb;
use crate::ui::Terminal;
use crate::words::waiting::{self, SetWait};

/// The shortest time between two updates, to keep the line readable. What is over sooner is not counted at all.
const SHORTEST: Duration = Duration::from_millis(100);

/// The line. Dropping this removes it.
pub(crate) struct NodeProgress<'a> {
    terminal: &'a Terminal,
    verb: Verb,
    /// When it was last updated.
    shown: Cell<Instant>,
    /// The count that is not shown yet: how many nodes are done, and how many were refused or failed.
    next: Cell<Option<(SetWait, usize)>>,
}

impl<'a> NodeProgress<'a> {
    pub(super) fn new(terminal: &'a Terminal, verb: Verb) -> Self {
        Self {
            terminal,
            verb,
            shown: Cell::new(Instant::now()),
            next: Cell::new(None),
        }
    }

    /// Shows how many nodes of `set` are done, and how many were refused or failed; now, or when it is
    /// [due](Self::due). A single node is not counted.
    pub(super) fn update(&self, set: SetWait, failed: usize) {
        if set.all < 2 {
            return;
        }
        self.next.set(Some((set, failed)));
        if self.shown.get().elapsed() >= SHORTEST {
            self.show();
        }
    }

    /// Completes when a count should be shown that came too soon after another; never if there is none.
    pub(super) async fn due(&self) {
        match self.next.get() {
            Some(_) if self.terminal.shows_live() => {
                tokio::time::sleep(SHORTEST.saturating_sub(self.shown.get().elapsed())).await;
            }
            _ => pending().await,
        }
    }

    /// Shows the newest count.
    pub(super) fn show(&self) {
        if let Some((set, failed)) = self.next.take() {
            self.shown.set(Instant::now());
            let line = waiting::count(self.verb, set, failed);
            let finished = set.taken + failed;
            self.terminal.live_count(finished, set.all, &line);
        }
    }
}

impl Drop for NodeProgress<'_> {
    fn drop(&mut self) {
        self.terminal.end_live();
    }
}
