//! What is known of a record that a run writes, where an answer may be lost.

use pod_safety::fencing::Record;

use super::{Look, Written};

/// Whether the record of this run stands on the Node.
#[derive(Debug, Default)]
pub(crate) enum Recording {
    /// It doesn't.
    #[default]
    Absent,
    /// It was sent, and no answer came: it may be there, or come yet.
    Open {
        record: Box<Record>,
        /// The version of the Node that it was made for.
        version: Option<String>,
    },
    /// It does.
    There,
}

impl Recording {
    /// After `record` was sent for the Node that was seen.
    pub(crate) fn after(self, written: Written, record: Record, look: &Look) -> Self {
        match written {
            Written::Yes => Self::There,
            Written::No => self,
            Written::Unknown => Self::Open {
                record: Box::new(record),
                version: version(look),
            },
        }
    }

    /// Judges a write without an answer by what was seen since.
    pub(crate) fn judged(self, look: &Look) -> Self {
        let Self::Open {
            record,
            version: sent_for,
        } = &self
        else {
            return self;
        };
        let is_there = look.evidence.signs.record.as_ref().is_some_and(|read| {
            // It may be one that was sent before the last.
            let when = record.when.clone();
            let read = read.clone();
            Record { when, ..read } == **record
        });
        if is_there {
            Self::There
        } else if version(look) == *sent_for {
            self
        } else {
            // The Node has moved on without it, and so it will be refused.
            Self::Absent
        }
    }

    /// It may come yet.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }

    /// It stands there.
    pub(crate) fn is_there(&self) -> bool {
        matches!(self, Self::There)
    }
}

fn version(look: &Look) -> Option<String> {
    look.evidence.node.metadata.resource_version.clone()
}
