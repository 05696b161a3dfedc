//! Nodes as the rows that kubectl prints, never as whole objects.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// A Node, as far as a maintenance lock needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// Its name.
    pub name: String,
    /// kubectl's status text, such as `Ready,SchedulingDisabled`.
    pub status: String,
    /// Its uid; empty if the row was requested without metadata.
    pub uid: String,
    /// It is being deleted.
    pub deleting: bool,
    /// Its labels; empty if the row was requested without metadata.
    pub labels: BTreeMap<String, String>,
    /// It has the record of a fencing; false if the row was requested without metadata.
    pub fenced: bool,
}

impl NodeRow {
    /// The kubelet reports that it is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.status.split(',').any(|word| word == "Ready")
    }

    /// No new pods are placed on it: kubectl's `cordon`.
    #[must_use]
    pub fn is_cordoned(&self) -> bool {
        self.status
            .split(',')
            .any(|word| word == "SchedulingDisabled")
    }
}

/// How much of each Node a list of rows contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowDetail {
    /// Name and status.
    Cells,
    /// Also uid, deletion and labels.
    Metadata,
}

impl RowDetail {
    pub(crate) fn query(self) -> &'static str {
        match self {
            Self::Cells => "includeObject=None",
            Self::Metadata => "includeObject=Metadata",
        }
    }
}

/// The positions of the columns that we read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns {
    name: usize,
    status: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Definitions {
    #[serde(default)]
    column_definitions: Vec<Definition>,
}

#[derive(Deserialize)]
struct Definition {
    name: String,
}

#[derive(Deserialize)]
struct Row {
    cells: Vec<serde_json::Value>,
    #[serde(default)]
    object: Option<Partial>,
}

#[derive(Deserialize)]
struct Partial {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    deletion_timestamp: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: Annotations,
}

#[derive(Default, Deserialize)]
struct Annotations {
    #[serde(rename = "kubectl-maint.dev/fenced")]
    fenced: Option<IgnoredAny>,
}

impl Columns {
    /// Reads the column definitions of a Table. Its rows may be missing.
    pub(crate) fn read(table: &[u8]) -> Result<Self, String> {
        let table: Definitions =
            serde_json::from_slice(table).map_err(|error| error.to_string())?;
        let position = |wanted: &str| {
            table
                .column_definitions
                .iter()
                .position(|column| column.name == wanted)
                .ok_or_else(|| format!("the table of nodes has no column {wanted}"))
        };
        Ok(Self {
            name: position("Name")?,
            status: position("Status")?,
        })
    }

    /// Reads one row.
    pub(crate) fn row(self, json: &[u8]) -> Result<NodeRow, String> {
        let row: Row = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let cell = |index: usize| {
            row.cells
                .get(index)
                .and_then(|cell| cell.as_str())
                .map(ToOwned::to_owned)
                .ok_or_else(|| "a row of nodes lacks a cell".to_owned())
        };
        let (name, status) = (cell(self.name)?, cell(self.status)?);
        let metadata = row.object.map(|object| object.metadata).unwrap_or_default();
        Ok(NodeRow {
            name,
            status,
            uid: metadata.uid,
            deleting: metadata.deletion_timestamp.is_some(),
            labels: metadata.labels,
            fenced: metadata.annotations.fenced.is_some(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::items::close;

    #[test]
    fn rows_are_read_by_the_names_of_their_columns() {
        let open = br#"{"kind":"Table","columnDefinitions":[{"name":"Age"},{"name":"Name"},{"name":"Status"}],"rows":["#;
        let columns = Columns::read(&close(open)).expect("columns");
        let row = columns
            .row(
                br#"{"cells":["5m","worker-1","NotReady,SchedulingDisabled"],
                "object":{"metadata":{"uid":"u","labels":{"pool":"gpu"},
                "annotations":{"kubectl-maint.dev/fenced":"{}"},
                "deletionTimestamp":"2026-01-01T00:00:00Z"}}}"#,
            )
            .expect("a row");
        assert_eq!(row.name, "worker-1");
        assert!(!row.is_ready());
        assert!(row.is_cordoned());
        assert!(row.deleting);
        assert_eq!(row.uid, "u");
        assert_eq!(row.labels["pool"], "gpu");
        assert!(row.fenced);
    }

    #[test]
    fn a_table_of_something_else_is_an_error() {
        assert!(Columns::read(br#"{"columnDefinitions":[{"name":"Holder"}]}"#).is_err());
    }
}
