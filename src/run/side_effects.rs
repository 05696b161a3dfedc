//! Side effects of acquiring locks, reported once for all nodes.

use std::collections::BTreeMap;

use maintenance_lease::{Change, SideEffect};

use crate::ui::Terminal;
use crate::words::change;

/// The side effects by kind, with the nodes in their order.
#[derive(Debug, Default)]
pub(crate) struct SideEffects(BTreeMap<SideEffect, Vec<String>>);

impl SideEffects {
    /// Records the side effects of `change`.
    pub(crate) fn add(&mut self, change: &Change) {
        for &side_effect in &change.side_effects {
            self.0
                .entry(side_effect)
                .or_default()
                .push(change.node.clone());
        }
    }

    /// Reports them, those of a dry run with `suffix`. A check that was skipped is a warning.
    pub(crate) fn print(&self, terminal: &Terminal, suffix: &str) {
        for (&side_effect, nodes) in &self.0 {
            let text = change::side_effect(side_effect, nodes);
            match side_effect {
                SideEffect::NodeUnreadable => terminal.warn(text),
                _ => terminal.remark(text + suffix),
            }
        }
    }
}
