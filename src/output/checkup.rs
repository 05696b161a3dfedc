//! What `doctor` found, in words and as data.

use crate::layout::table::with_words;
use schemars::JsonSchema;
use serde::Serialize;

use super::data::{ApiVersion, List, ListEntry, kind};
use crate::words::doctor;
use crate::words::doctor::finding::{Check, Finding, Level};
use crate::words::hint_command::Program;

/// The results of all checks.
pub(crate) type CheckupList = List<kind::CheckupList, Checkup>;

/// The result of a check.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Checkup {
    api_version: ApiVersion,
    kind: kind::Checkup,
    /// What was checked.
    check: Check,
    level: Level,
    /// For people; may change.
    message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Checkup {
    pub(crate) fn new(check: Check, found: &Finding, program: &Program) -> Self {
        let (level, message, hint) = doctor::lines(found, program);
        Self {
            api_version: ApiVersion::V2,
            kind: kind::Checkup::Checkup,
            check,
            level,
            message,
            hint,
        }
    }

    pub(crate) fn is_ok(&self) -> bool {
        self.level == Level::Ok
    }

    pub(crate) fn is_problem(&self) -> bool {
        self.level == Level::Problem
    }
}

/// What was found, and below it what to do, within `width` columns.
pub(crate) fn text(checkups: &[&Checkup], width: Option<usize>) -> String {
    let rows = checkups.iter().map(|one| {
        let found = [Some(&one.message), one.hint.as_ref()];
        let found: Vec<&str> = found.into_iter().flatten().map(String::as_str).collect();
        let cells = vec![one.level.name().to_owned(), one.check.name().to_owned()];
        (cells, found.join("\n"))
    });
    with_words(rows, &[7, 13], "  ", width)
}

impl ListEntry for Checkup {
    fn name(&self) -> Option<String> {
        Some(format!("check/{:?}", self.check))
    }
}
