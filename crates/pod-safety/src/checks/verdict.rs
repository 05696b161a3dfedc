//! How a check ends.

use crate::known::Why;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing is given up.
    Ok,
    /// Worth knowing.
    Warn,
    /// It could not be read; it has to be confirmed.
    Unknown,
    /// A guarantee is given up; it has to be confirmed.
    Confirm,
    /// It is refused, but for an override.
    Refuse,
}

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The name of the check, as `--accept-risk` takes it.
    pub id: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What it found, for people.
    pub words: String,
    /// A refusal that no override lifts.
    pub is_final: bool,
}

impl Verdict {
    fn new(id: &'static str, level: Level, words: impl Into<String>) -> Self {
        Self {
            id,
            level,
            words: words.into(),
            is_final: false,
        }
    }

    pub(crate) fn ok(id: &'static str, words: impl Into<String>) -> Self {
        Self::new(id, Level::Ok, words)
    }

    pub(crate) fn warn(id: &'static str, words: impl Into<String>) -> Self {
        Self::new(id, Level::Warn, words)
    }

    pub(super) fn confirm(id: &'static str, words: impl Into<String>) -> Self {
        Self::new(id, Level::Confirm, words)
    }

    pub(super) fn refuse(id: &'static str, words: impl Into<String>) -> Self {
        Self::new(id, Level::Refuse, words)
    }

    /// A refusal that no override lifts.
    pub(super) fn refuse_for_good(id: &'static str, words: impl Into<String>) -> Self {
        Self {
            is_final: true,
            ..Self::refuse(id, words)
        }
    }

    pub(super) fn unknown(id: &'static str, what: &str, why: &Why) -> Self {
        Self::new(id, Level::Unknown, format!("{what}: {why}"))
    }

    /// What would be given up is only worth a warning.
    pub(super) fn lower(&mut self) {
        if self.level == Level::Confirm {
            self.level = Level::Warn;
            self.words.push_str(" (the node was fenced)");
        }
    }
}
