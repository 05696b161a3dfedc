//! Whether the record that this run sent is on the Node, even if the response was lost.

use super::record::Record;

/// The result of a write to the Node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The write was applied.
    Yes,
    /// The write was refused, because the Node has changed or is gone. Read it again.
    No,
    /// The response was lost. Read the Node again; the write may also take effect later.
    Unknown,
}

/// Whether the record of this run is on the Node.
#[derive(Debug, Default)]
pub enum Recording {
    /// It is not on the Node.
    #[default]
    Absent,
    /// It was sent, and no response came. It may be on the Node, or may still be written.
    Open {
        /// The record.
        record: Box<Record>,
        /// The resource version of the Node that the write was based on.
        version: String,
    },
    /// It is on the Node.
    Present,
}

impl Recording {
    /// The state after `record` was sent for the `version` of the Node.
    #[must_use]
    pub fn after(self, written: Written, record: Record, version: &str) -> Self {
        match written {
            Written::Yes => Self::Present,
            Written::No => self,
            Written::Unknown => Self::Open {
                record: Box::new(record),
                version: version.to_owned(),
            },
        }
    }

    /// The state of a write without a response, judged by a later read of the Node: `read` is its record and
    /// `now` its resource version.
    #[must_use]
    pub fn judged(self, read: Option<&Record>, now: &str) -> Self {
        let Self::Open { record, version } = &self else {
            return self;
        };
        let is_there = read.is_some_and(|read| {
            // The record may be from an earlier attempt of this run.
            let when = record.when.clone();
            let read = read.clone();
            // Compared as text, because times are written in whole seconds.
            Record { when, ..read }.print() == record.print()
        });
        if is_there {
            Self::Present
        } else if now == version {
            self
        } else {
            // The Node has a newer version without the record, so the server will reject the write.
            Self::Absent
        }
    }

    /// Whether the record may still be written.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }

    /// Whether the record is on the Node.
    #[must_use]
    pub fn is_there(&self) -> bool {
        matches!(self, Self::Present)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(who: &str, when: &str) -> Record {
        Record {
            who: who.to_owned(),
            when: when.to_owned(),
            ..Record::example()
        }
    }

    #[test]
    fn a_record_without_an_answer_is_judged_by_what_is_there_later() {
        let sent = || Recording::Absent.after(Written::Unknown, record("alice", "2"), "7");
        assert!(sent().is_open());
        assert!(
            sent().judged(None, "7").is_open(),
            "it may still be written"
        );
        let rejected = sent().judged(None, "8");
        assert!(!rejected.is_open() && !rejected.is_there());
        for (there, is_ours) in [(record("alice", "1"), true), (record("bob", "2"), false)] {
            let judged = sent().judged(Some(&there), "8");
            assert_eq!(judged.is_there(), is_ours, "{there:?}");
        }
        assert!(
            Recording::Absent
                .after(Written::Yes, record("alice", "2"), "7")
                .is_there()
        );
    }
}
