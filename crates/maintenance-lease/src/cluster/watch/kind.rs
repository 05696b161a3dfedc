//! The kinds of objects that are watched: their paths, and how to read them.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::cluster::call::Accept;
use crate::cluster::items::close;
use crate::cluster::nodes::{Columns, NodeRow, RowDetail};
use crate::cluster::requests::escape;
use crate::lease::NodeLease;
use crate::outcome::Right;
use crate::repository::{Repository, by_name};

/// A kind of objects that can be listed and watched.
pub(super) trait Kind: Send + Sync + 'static {
    type Object: Send;

    const ACCEPT: Accept;

    /// The path of the collection.
    fn collection(&self) -> String;

    /// The selection: parameters of the query.
    fn selection(&self) -> Vec<String>;

    /// The right to `verb` them.
    fn right(&self, verb: &'static str) -> Right;

    /// Reads an element of a list; `before` is the part of the list before its array.
    fn element(&mut self, json: &[u8], before: &[u8]) -> Result<Self::Object, String>;

    /// Reads the part of a list outside its elements.
    fn listed(&mut self, _envelope: &[u8]) -> Result<(), String> {
        Ok(())
    }

    /// Reads the object of an event.
    fn object(&mut self, json: &[u8]) -> Result<Self::Object, String>;

    fn name(object: &Self::Object) -> &str;
}

/// The Leases of a repository: all, or one node's.
pub(super) struct Leases {
    repository: Arc<Repository>,
    node: Option<String>,
}

impl Leases {
    pub(super) fn new(repository: Arc<Repository>, node: Option<&str>) -> Self {
        Self {
            repository,
            node: node.map(ToOwned::to_owned),
        }
    }
}

impl Kind for Leases {
    type Object = NodeLease;
    const ACCEPT: Accept = Accept::Json;

    fn collection(&self) -> String {
        self.repository.path(None)
    }

    fn selection(&self) -> Vec<String> {
        self.repository.selection(self.node.as_deref())
    }

    fn right(&self, verb: &'static str) -> Right {
        Right::on_leases(verb, &self.repository)
    }

    fn element(&mut self, json: &[u8], _: &[u8]) -> Result<NodeLease, String> {
        NodeLease::from_json(json, &self.repository)
    }

    fn object(&mut self, json: &[u8]) -> Result<NodeLease, String> {
        NodeLease::from_json(json, &self.repository)
    }

    fn name(lease: &NodeLease) -> &str {
        lease.node()
    }
}

/// Nodes as rows: all, one, or those that match a label selector.
pub(super) struct Rows {
    selection: Vec<String>,
    columns: Option<Columns>,
}

impl Rows {
    pub(super) fn new(node: Option<&str>, selector: Option<&str>, detail: RowDetail) -> Self {
        let by_labels = |selector| format!("labelSelector={}", escape(selector));
        Self {
            selection: std::iter::once(detail.query().to_owned())
                .chain(node.map(by_name))
                .chain(selector.map(by_labels))
                .collect(),
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
    const ACCEPT: Accept = Accept::Table;

    fn collection(&self) -> String {
        "/api/v1/nodes".to_owned()
    }

    fn selection(&self) -> Vec<String> {
        self.selection.clone()
    }

    fn right(&self, verb: &'static str) -> Right {
        Right::on_nodes(verb)
    }

    fn element(&mut self, json: &[u8], before: &[u8]) -> Result<NodeRow, String> {
        let columns = match self.columns {
            Some(columns) => columns,
            None => *self.columns.insert(Columns::read(&close(before))?),
        };
        columns.row(json)
    }

    /// A list without rows also defines the columns.
    fn listed(&mut self, envelope: &[u8]) -> Result<(), String> {
        if self.columns.is_none() {
            self.columns = Some(Columns::read(envelope)?);
        }
        Ok(())
    }

    /// An event has a Table with one row. Only the first event of a watch names the columns, even if it is a
    /// bookmark; they are the same as the list's.
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
