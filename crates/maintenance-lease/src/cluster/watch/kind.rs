//! The kinds of objects that are watched: where they are, and how they are read.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::cluster::api::{Accept, escape};
use crate::cluster::nodes::{Columns, NodeRow, close_table};
use crate::cluster::reads::{RowDetail, lease_path};
use crate::lease::NodeLease;
use crate::outcome::Right;

/// A kind of objects that can be listed and watched.
pub(super) trait Kind: Send + Sync + 'static {
    type Object: Send;

    /// The array of a list that has the objects.
    const ARRAY: &'static str;
    const ACCEPT: Accept;

    /// The collection, with a query that selects in it, if any.
    fn path(&self) -> String;

    /// The right that it takes to `verb` them.
    fn right(&self, verb: &'static str) -> Right;

    /// Reads an element of a list that has `before` before its array.
    fn element(&mut self, json: &[u8], before: &[u8]) -> Result<Self::Object, String>;

    /// Learns from what surrounds the elements of a list.
    fn listed(&mut self, _envelope: &[u8]) -> Result<(), String> {
        Ok(())
    }

    /// Reads the object of an event.
    fn object(&mut self, json: &[u8]) -> Result<Self::Object, String>;

    fn name(object: &Self::Object) -> &str;
}

/// The maintenance Leases: all, or one node's.
pub(super) struct Leases {
    node: Option<String>,
}

impl Leases {
    pub(super) fn new(node: Option<&str>) -> Self {
        Self {
            node: node.map(ToOwned::to_owned),
        }
    }
}

impl Kind for Leases {
    type Object = NodeLease;
    const ARRAY: &'static str = "items";
    const ACCEPT: Accept = Accept::Json;

    fn path(&self) -> String {
        // A selector by name, since a right on one name covers lists and watches so selected.
        let selector = self.node.as_deref().map_or_else(String::new, by_name);
        format!("{}?{selector}", lease_path(None))
    }

    fn right(&self, verb: &'static str) -> Right {
        Right::on_leases(verb)
    }

    fn element(&mut self, json: &[u8], _: &[u8]) -> Result<NodeLease, String> {
        NodeLease::from_json(json)
    }

    fn object(&mut self, json: &[u8]) -> Result<NodeLease, String> {
        NodeLease::from_json(json)
    }

    fn name(lease: &NodeLease) -> &str {
        lease.node()
    }
}

/// Nodes as rows: all, one, or those that match a label selector.
pub(super) struct Rows {
    query: String,
    columns: Option<Columns>,
}

impl Rows {
    pub(super) fn new(node: Option<&str>, selector: Option<&str>) -> Self {
        let mut query = node.map_or_else(String::new, by_name);
        if let Some(selector) = selector {
            query.push_str(&format!("&labelSelector={}", escape(selector)));
        }
        Self {
            query,
            columns: None,
        }
    }
}

#[derive(Deserialize)]
struct Table<'a> {
    #[serde(borrow)]
    rows: Vec<&'a RawValue>,
}

impl Kind for Rows {
    type Object = NodeRow;
    const ARRAY: &'static str = "rows";
    const ACCEPT: Accept = Accept::Table;

    fn path(&self) -> String {
        format!("/api/v1/nodes?{}{}", RowDetail::Cells.query(), self.query)
    }

    fn right(&self, verb: &'static str) -> Right {
        Right::on_nodes(verb)
    }

    fn element(&mut self, json: &[u8], before: &[u8]) -> Result<NodeRow, String> {
        let columns = match self.columns {
            Some(columns) => columns,
            None => *self.columns.insert(Columns::read(&close_table(before))?),
        };
        columns.row(json)
    }

    /// Also a list without rows says what its columns are.
    fn listed(&mut self, envelope: &[u8]) -> Result<(), String> {
        if self.columns.is_none() {
            self.columns = Some(Columns::read(envelope)?);
        }
        Ok(())
    }

    /// An event has a Table of one row. Only the first of a watch names its columns, be it a
    /// bookmark; they are the list's.
    fn object(&mut self, json: &[u8]) -> Result<NodeRow, String> {
        let columns = self
            .columns
            .ok_or("a watch of rows that were not listed before")?;
        let table: Table<'_> = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        match table.rows[..] {
            [row] => columns.row(row.get().as_bytes()),
            _ => Err("a watched table has not one row".to_owned()),
        }
    }

    fn name(row: &NodeRow) -> &str {
        &row.name
    }
}

fn by_name(name: &str) -> String {
    format!(
        "&fieldSelector={}",
        escape(&format!("metadata.name={name}"))
    )
}
