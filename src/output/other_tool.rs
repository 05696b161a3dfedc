//! What another tool does to a node, as data.

use other_tools::Finding;
use schemars::JsonSchema;
use serde::Serialize;

use super::data::Time;

/// What another tool does to a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OtherTool {
    /// What it does, such as `KuredReboots`. Values may be added.
    activity: String,
    /// The key on the Node that shows it, or the field.
    key: String,
    /// Since when, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Time>,
    /// A name or a state that the tool wrote there.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

impl OtherTool {
    pub(super) fn of(finding: &Finding) -> Self {
        Self {
            activity: format!("{:?}", finding.activity),
            key: finding.key.clone(),
            since: finding.since.and_then(Time::of),
            detail: finding.detail.clone(),
        }
    }
}
