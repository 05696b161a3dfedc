//! Nodes and their locks as a table for people, as `kubectl get` prints one.

mod table;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use self::table::{Line, Rows, Table};
pub(crate) use self::view::{Heartbeat, View};
