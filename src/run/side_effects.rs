//! Side effects of acquiring locks, reported once for all nodes.

use std::collections::BTreeMap;

use maintenance_lease::{Aside, Change};

use crate::ui::Terminal;
use crate::words::change;

/// The side effects by kind, with the nodes in their order.
#[derive(Debug, Default)]
pub(crate) struct Asides(BTreeMap<Aside, Vec<String>>);

impl Asides {
    /// Records the side effects of `change`.
    pub(crate) fn note(&mut self, change: &Change) {
        for &aside in &change.asides {
            self.0.entry(aside).or_default().push(change.node.clone());
        }
    }

    /// Reports them, those of a dry run with `suffix`. A check that was skipped is a warning.
    pub(crate) fn tell(&self, terminal: &Terminal, suffix: &str) {
        for (&aside, nodes) in &self.0 {
            let text = change::aside(aside, nodes);
            match aside {
                Aside::NodeUnreadable => terminal.warn(text),
                _ => terminal.remark(text + suffix),
            }
        }
    }
}
