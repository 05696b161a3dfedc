//! Items of the nodes of a command that failed before it began with any of them.

use crate::output::format::Format;
use crate::output::item::{Item, NodeList};
use crate::output::item_error::ItemError;
use crate::output::print;
use crate::run::session::Session;

/// Prints an item for each of `nodes`, all with the same error. Without nodes, there is nothing to print.
///
/// # Errors
/// If they can't be printed.
pub(crate) fn print_failed(
    session: &Session<'_>,
    nodes: &[String],
    error: &ItemError,
    format: Format,
) -> anyhow::Result<()> {
    if nodes.is_empty() {
        return Ok(());
    }
    let items = nodes.iter().map(|node| Item::skipped(node, error.clone()));
    if let Some(text) = print::data(&NodeList::new(items.collect()), format)? {
        session.terminal.data(text);
    }
    Ok(())
}
