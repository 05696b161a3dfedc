//! What is known about a record that this run writes, if an answer may be lost.

use super::record::Record;

/// The result of a write to the Node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is done.
    Yes,
    /// The Node has changed or is gone: read it again.
    No,
    /// The answer was lost: read the Node again. The write may also take effect later.
    Unknown,
}

/// Whether the record of this run is on the Node.
#[derive(Debug, Default)]
pub enum Recording {
    /// It is not.
    #[default]
    Absent,
    /// It was sent, and no answer came: it may be there, or still be written.
    Open {
        /// The record.
        record: Box<Record>,
        /// The version of the Node that the record was made for.
        version: String,
    },
    /// It is.
    Present,
}

impl Recording {
    /// The state after `record` was sent for `version` of the Node.
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

    /// The state of a write without an answer, judged by a later read of the Node: its record and its
    /// version.
    #[must_use]
    pub fn judged(self, read: Option<&Record>, now: &str) -> Self {
        let Self::Open { record, version } = &self else {
            return self;
        };
        let is_there = read.is_some_and(|read| {
            // It may be from an earlier attempt.
            let when = record.when.clone();
            let read = read.clone();
            // As text, because times are written in whole seconds.
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

    /// Whether it may still be written.
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
