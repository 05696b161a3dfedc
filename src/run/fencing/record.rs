//! What is known about a record that this run writes, if an answer may be lost.

use pod_safety::fencing::Record;

use super::{Observed, Written};

/// Whether the record of this run is on the Node.
#[derive(Debug, Default)]
pub(crate) enum Recording {
    /// It is not.
    #[default]
    Absent,
    /// It was sent, and no answer came: it may be there, or still be written.
    Open {
        record: Box<Record>,
        /// The version of the Node that the record was made for.
        version: Option<String>,
    },
    /// It is.
    There,
}

impl Recording {
    /// The state after `record` was sent for the Node in `observed`.
    pub(crate) fn after(self, written: Written, record: Record, observed: &Observed) -> Self {
        match written {
            Written::Yes => Self::There,
            Written::No => self,
            Written::Unknown => Self::Open {
                record: Box::new(record),
                version: version(observed),
            },
        }
    }

    /// The state of a write without an answer, judged by a later read.
    pub(crate) fn judged(self, observed: &Observed) -> Self {
        let Self::Open {
            record,
            version: sent_for,
        } = &self
        else {
            return self;
        };
        let is_there = observed.evidence.signs.record.as_ref().is_some_and(|read| {
            // It may be from an earlier attempt.
            let when = record.when.clone();
            let read = read.clone();
            Record { when, ..read } == **record
        });
        if is_there {
            Self::There
        } else if version(observed) == *sent_for {
            self
        } else {
            // The Node has a newer version without the record, so the server will reject the write.
            Self::Absent
        }
    }

    /// Whether it may still be written.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }

    /// Whether the record is on the Node.
    pub(crate) fn is_there(&self) -> bool {
        matches!(self, Self::There)
    }
}

fn version(observed: &Observed) -> Option<String> {
    observed.evidence.node.metadata.resource_version.clone()
}
