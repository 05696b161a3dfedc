//! The outcome of a fencing as data: the versioned shape of `-o json` and `-o yaml`, which `docs/json.md`
//! documents.

use pod_safety::fencing::{Record, Remains};
use serde::Serialize;

use crate::error::Failure;
use crate::output::format::Format;
use crate::output::item::API_VERSION;
use crate::output::print;

/// A node that was fenced or unfenced.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fencing<'a> {
    api_version: &'static str,
    kind: &'static str,
    node: &'a str,
    /// A dry run: nothing was done, this is the expected result.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
    /// Whether the node is out of service by our record.
    fenced: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<&'a Record>,
    /// Pods that stay, as NAMESPACE/NAME.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    tolerating: &'a [String],
    /// What still has to be removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<Left<'a>>,
}

/// What still has to be removed from a node.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Left<'a> {
    /// As NAMESPACE/NAME.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pods: &'a [String],
    /// Of these pods, the ones that are kept by finalizers.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    held_by_finalizers: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    volume_attachments: &'a [String],
}

impl<'a> Fencing<'a> {
    /// A fenced node on which only `remains` is left.
    pub(crate) fn fenced(node: &'a str, record: &'a Record, remains: &'a Remains) -> Self {
        Self {
            fenced: true,
            record: Some(record),
            tolerating: &remains.tolerating,
            left: (!remains.is_over()).then_some(Left {
                pods: &remains.pods,
                held_by_finalizers: &remains.finalized,
                volume_attachments: &remains.attachments,
            }),
            ..Self::unfenced(node)
        }
    }

    /// A node that is back in service.
    pub(crate) fn unfenced(node: &'a str) -> Self {
        Self {
            api_version: API_VERSION,
            kind: "Fencing",
            node,
            dry_run: false,
            fenced: false,
            record: None,
            tolerating: &[],
            left: None,
        }
    }

    /// The same for a dry run: the expected result.
    pub(crate) fn in_dry_run(self, dry_run: bool) -> Self {
        Self { dry_run, ..self }
    }

    /// The outcome in the requested format; `None` if that is words.
    ///
    /// # Errors
    /// If it can't be serialized.
    pub(crate) fn print(&self, format: Format) -> Result<Option<String>, Failure> {
        Ok(match format {
            Format::Text | Format::Wide | Format::LockId => None,
            Format::Name => Some(format!("node/{}", self.node)),
            Format::Json => Some(print::json(self)?),
            Format::Yaml => Some(print::yaml(self)?),
            Format::Template(template) => print::template(template, self)?,
        })
    }
}
