//! What is stuck around nodes, as a table and as data.

mod item;
mod record;
#[cfg(test)]
mod tests;

use crate::layout::table::{GAP, with_words};
use maintenance_lease::protocol::Now;
use pod_safety::stuck::Stuck;

use self::item::{Item, items};
pub(crate) use self::record::{StuckList, list};
use crate::text::escape;
use crate::words::cells::text;
use crate::words::stuck as words;

/// Which columns are shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Show more columns.
    pub(crate) wide: bool,
    pub(crate) headers: bool,
    /// The width to fit into if the output is a terminal.
    pub(crate) fit: Option<usize>,
}

/// The columns before the last one, which has the state.
const HEADERS: [&str; 4] = ["NAMESPACE", "NAME", "NODE", "OWNER"];

const STATE: &str = "STATE";

/// The cells of a row, and the state.
fn row(item: Item<'_>, now: Now) -> ([String; 4], String) {
    let (namespace, node, owner, state) = match item {
        Item::Pod(pod) | Item::Waiting(pod) => (
            Some(&pod.namespace),
            pod.found.node.as_ref(),
            pod.owner.as_ref(),
            words::pod(pod, now),
        ),
        Item::Volume(volume) => (
            None,
            Some(&volume.attachment.node),
            Some(&volume.attachment.name),
            words::orphan(volume),
        ),
    };
    let shown = |name: Option<&String>| text(name.map(String::as_str));
    let cells = [
        shown(namespace),
        escape(&item.shown()),
        shown(node),
        shown(owner),
    ];
    (cells, state)
}

/// The table; `None` if nothing is stuck. Nothing is cut: names are typed again, and the state is what the
/// reader asked for.
pub(crate) fn table(stuck: &Stuck, layout: Layout, now: Now) -> Option<String> {
    let columns = if layout.wide { 4 } else { 3 };
    let mut rows: Vec<(Vec<String>, String)> = items(stuck)
        .map(|item| {
            let (cells, state) = row(item, now);
            (cells[..columns].to_vec(), state)
        })
        .collect();
    if rows.is_empty() {
        return None;
    }
    if layout.headers {
        let headers = HEADERS[..columns].iter().map(|&header| header.to_owned());
        rows.insert(0, (headers.collect(), STATE.to_owned()));
    }
    Some(with_words(rows, &[], GAP, layout.fit))
}
