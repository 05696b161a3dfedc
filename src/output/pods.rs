//! What is stuck around nodes, as a table and as data.

mod item;
mod record;
#[cfg(test)]
mod tests;

use maintenance_lease::protocol::Now;
use pod_safety::stranded::Stranded;

use self::item::{Item, items};
pub(crate) use self::record::{StrandedList, list};
use super::grid::{Column, Grid};
use crate::text::{escape, hanging};
use crate::words::cells::text;
use crate::words::stranded as words;

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

/// If less of a terminal's line is left for the state, it has a line of its own.
const LEAST: usize = 24;

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
            words::orphan(volume).to_owned(),
        ),
        Item::Namespace(namespace) => (None, None, None, words::blocked(namespace, now)),
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
pub(crate) fn table(stranded: &Stranded, layout: Layout, now: Now) -> Option<String> {
    let columns = if layout.wide { 4 } else { 3 };
    let rows = items(stranded).map(|item| row(item, now));
    let (cells, mut states): (Vec<_>, Vec<String>) = rows.unzip();
    if states.is_empty() {
        return None;
    }
    if layout.headers {
        states.insert(0, STATE.to_owned());
    }
    let headers = HEADERS[..columns].iter().map(|&one| Column::whole(one));
    let cells = cells.into_iter().map(|cells| cells[..columns].to_vec());
    let heads = Grid::new(headers.collect(), layout.headers, None).rows(cells);
    let longest = heads.iter().map(|head| head.chars().count()).max()?;
    let is_narrow = layout.fit.is_some_and(|fit| fit < longest + 3 + LEAST);
    let lines = heads.iter().zip(states).map(|(head, state)| {
        if is_narrow {
            format!("{head}\n{}", hanging("    ", &state, layout.fit))
        } else {
            hanging(&format!("{head:longest$}   "), &state, layout.fit)
        }
    });
    Some(lines.collect::<Vec<_>>().join("\n"))
}
