//! What is stranded on unhealthy nodes, in words and as data.

mod item;
mod record;
#[cfg(test)]
mod tests;

use maintenance_lease::protocol::Now;
use pod_safety::Known;
use pod_safety::node::Health;
use pod_safety::stranded::{Fate, Orphan, Stranded, StrandedPod, StrandedVolume};
use pod_safety::words::few;

use self::item::{Item, items};
pub(crate) use self::record::{StrandedList, list};
use super::grid::{Column, Grid};
use super::status::{none, text};
use crate::text::escape;
use crate::words::time::{remaining, span};

/// Which columns are shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Show more columns.
    pub(crate) wide: bool,
    pub(crate) headers: bool,
    /// The width to fit into if the output is a terminal.
    pub(crate) fit: Option<usize>,
}

const HEADERS: [&str; 5] = ["NAMESPACE", "NAME", "NODE", "STATE", "OWNER"];

/// The cells of a row.
fn row(item: Item<'_>, now: Now) -> [String; 5] {
    let (namespace, node, state, owner) = match item {
        Item::Pod(StrandedPod { pod, health, fate }) => (
            Some(&pod.sight.namespace),
            Some(&pod.sight.node),
            fate_words(fate, health, now),
            pod.owner.as_ref(),
        ),
        Item::Volume(volume) => (
            None,
            Some(&volume.attachment.node),
            orphan_words(volume),
            volume.attachment.volume.as_ref(),
        ),
        Item::Namespace(namespace) => {
            let s = if namespace.pods == 1 { "" } else { "s" };
            let age = span(now.latest - namespace.since);
            let state = format!("Terminating {age}, blocked by {} pod{s}", namespace.pods);
            (None, None, state, None)
        }
    };
    let shown = |name: Option<&String>| text(name.map(String::as_str));
    [
        shown(namespace),
        escape(&item.name()),
        shown(node),
        state,
        owner.map_or_else(none, |owner| escape(owner)),
    ]
}

/// The node's health, which precedes the fate of a pod.
fn node_word(health: &Health) -> &'static str {
    match health {
        Health::Gone => "NodeGone",
        Health::Restarted { .. } => "NodeFenced",
        Health::KubeletAlive { .. } => "NodeKubeletAlive",
        Health::Unreachable { .. } => "NodeUnreachable",
        Health::NotReady { reporting: true } => "NodeNotReady",
        _ => "NodeDown",
    }
}

fn fate_words(fate: &Fate, health: &Health, now: Now) -> String {
    let node = node_word(health);
    match fate {
        Fate::Ending { until } => {
            format!(
                "Terminating, {} of grace left",
                remaining(*until - now.earliest)
            )
        }
        Fate::Terminating { since, name_held } => {
            let held = if *name_held { ", name held" } else { "" };
            format!("Terminating +{}{held}", span(now.latest - *since))
        }
        Fate::HeldByFinalizer { finalizers } => {
            format!("Held by finalizer {}", escape(&few(finalizers)))
        }
        Fate::Evicted { at } if *at <= now.earliest => {
            format!("{node}, eviction due {} ago", span(now.earliest - *at))
        }
        Fate::Evicted { at } => format!("{node}, eviction in {}", span(*at - now.earliest)),
        Fate::NeverEvicted => format!("{node}, never evicted"),
        Fate::Unevicted => format!("{node}, not being evicted yet"),
        Fate::Collected => format!("{node}, deleted by PodGC soon"),
    }
}

fn orphan_words(volume: &StrandedVolume) -> String {
    let why = match volume.orphan {
        Orphan::NodeGone => "its node is gone",
        Orphan::Detaching => "waits to be detached",
        Orphan::Unused => "no pod there uses it",
    };
    format!("Orphan, {why}")
}

/// The table; `None` if nothing is stranded.
pub(crate) fn table(stranded: &Stranded, layout: Layout, now: Now) -> Option<String> {
    let columns = if layout.wide { 5 } else { 4 };
    // Nothing is cut: names are typed again, and the fate of a pod is what the reader asked for.
    let headers = HEADERS[..columns]
        .iter()
        .map(|&header| Column::whole(header));
    let rows = items(stranded).map(|item| row(item, now)[..columns].to_vec());
    let mut rows = rows.peekable();
    rows.peek()?;
    let lines = Grid::new(headers.collect(), layout.headers, layout.fit).rows(rows);
    Some(lines.join("\n"))
}

/// The totals, such as `2 unhealthy nodes: 3 pods, 1 orphaned volume`.
pub(crate) fn summary(stranded: &Stranded) -> String {
    if stranded.nodes.is_empty() {
        return "all nodes are healthy: nothing is stranded".to_owned();
    }
    let count = |count: usize, word: &str| {
        let s = if count == 1 { "" } else { "s" };
        format!("{count} {word}{s}")
    };
    let mut parts = vec![count(stranded.pods.len(), "pod")];
    for (known, word) in [
        (stranded.volumes.yes().map(Vec::len), "orphaned volume"),
        (stranded.namespaces.yes().map(Vec::len), "blocked namespace"),
    ] {
        parts.extend(
            known
                .filter(|&known| known > 0)
                .map(|known| count(known, word)),
        );
    }
    let nodes = count(stranded.nodes.len(), "unhealthy node");
    format!("{nodes}: {}", parts.join(", "))
}

/// What could not be read, one per line.
pub(crate) fn unknown(stranded: &Stranded) -> Vec<String> {
    let why = |what: &str, why: Option<&pod_safety::Why>| {
        why.map(|why| format!("{what} unknown: {}", escape(&why.to_string())))
    };
    let of_volumes = match &stranded.volumes {
        Known::Unknown(why) => Some(why),
        Known::Yes(_) => None,
    };
    let of_namespaces = match &stranded.namespaces {
        Known::Unknown(why) => Some(why),
        Known::Yes(_) => None,
    };
    [
        why("orphaned volumes", of_volumes),
        why("blocked namespaces", of_namespaces),
    ]
    .into_iter()
    .flatten()
    .collect()
}
