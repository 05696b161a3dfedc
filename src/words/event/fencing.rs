//! The Events of a fencing.

use pod_safety::fencing::Record;

use crate::text::escape;
use crate::words::fencing::{fenced, record_line};

/// `node` was fenced; `replaced` is the record that the new one replaced.
pub(crate) fn fencing(node: &str, record: &Record, replaced: Option<&Record>) -> String {
    let before = replaced.map(|replaced| format!(" (before: {})", record_line(replaced)));
    format!(
        "{}{}{}",
        fenced(node, record, false),
        because(record.why.as_deref()),
        before.unwrap_or_default()
    )
}

/// A node was unfenced by `caller`, `without_restart` if nothing proves that it was restarted.
pub(crate) fn unfencing(caller: &str, without_restart: bool, why: Option<&str>) -> String {
    let how = match without_restart {
        true => " without proof of a restart",
        false => "",
    };
    format!("{} unfenced the node{how}{}", escape(caller), because(why))
}

fn because(why: Option<&str>) -> String {
    let why = why.map(|why| format!(": \"{}\"", escape(why)));
    why.unwrap_or_default()
}
