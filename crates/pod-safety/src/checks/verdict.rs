//! The result of a check.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::bugs::{self, Bug};
use crate::known::Why;
use crate::words::few;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[schemars(rename = "RiskLevel")]
pub enum Level {
    /// Nothing is at risk.
    Ok,
    /// Worth knowing.
    Info,
    /// It could not be checked. The risk `unread` must be accepted.
    Unread,
    /// A guarantee may be lost, which must be accepted.
    Risk,
    /// It is refused, unless it is overridden by its id.
    Blocker,
}

/// The id that accepts all findings that could not be checked.
pub const UNREAD: &str = "unread";

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The id of the check.
    pub id: &'static str,
    /// The severity of the finding.
    pub level: Level,
    /// The finding as text for people. If several pods have the same finding, the texts are equal.
    pub words: String,
    /// The objects that the finding is about, such as controllers or volumes.
    pub names: Vec<String>,
    /// A blocker that can't be overridden.
    pub is_final: bool,
}

impl Verdict {
    fn new(id: &'static str, level: Level, words: impl Into<String>) -> Self {
        Self {
            id,
            level,
            words: words.into(),
            names: Vec::new(),
            is_final: false,
        }
    }

    pub(crate) fn ok(id: &'static str, words: impl Into<String>) -> Self {
        Self::new(id, Level::Ok, words)
    }

    pub(crate) fn info(id: &'static str, words: impl Into<String>) -> Self {
        Self::new(id, Level::Info, words)
    }

    pub(super) fn risk(id: &'static str, words: impl Into<String>) -> Self {
        Self::new(id, Level::Risk, words)
    }

    pub(super) fn blocker(id: &'static str, words: impl Into<String>) -> Self {
        Self::new(id, Level::Blocker, words)
    }

    /// A blocker that can't be overridden.
    pub(super) fn final_blocker(id: &'static str, words: impl Into<String>) -> Self {
        Self {
            is_final: true,
            ..Self::blocker(id, words)
        }
    }

    pub(super) fn unread(id: &'static str, what: &str, why: &Why) -> Self {
        let level = match bugs::active(Bug::UnreadIsOk) {
            true => Level::Ok,
            false => Level::Unread,
        };
        Self::new(id, level, format!("unknown {what}: {why}"))
    }

    /// As [`unread`](Self::unread), but the text begins with what is `known`.
    pub(super) fn unread_beside(id: &'static str, known: &str, what: &str, why: &Why) -> Self {
        let unread = Self::unread(id, what, why);
        let words = format!("{known}; {}", unread.words);
        Self { words, ..unread }
    }

    /// The same finding, about the objects with these names.
    pub(super) fn of<T: ToString>(self, names: impl IntoIterator<Item = T>) -> Self {
        let names = names.into_iter().map(|name| name.to_string());
        Self {
            names: names.collect(),
            ..self
        }
    }

    /// The id that accepts it as a risk; `None` if it needs no acceptance, or cannot be accepted.
    #[must_use]
    pub fn accepted_as(&self) -> Option<&'static str> {
        match self.level {
            Level::Ok | Level::Info | Level::Blocker => None,
            Level::Unread => Some(UNREAD),
            Level::Risk => Some(self.id),
        }
    }

    /// Lowers a risk to an info.
    pub(super) fn lower(&mut self) {
        if self.level == Level::Risk {
            self.level = Level::Info;
            self.words
                .push_str("; not a risk now, because the node was fenced");
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.names[..] {
            [] => f.write_str(&self.words),
            names => write!(f, "{}: {}", self.words, few(names)),
        }
    }
}
