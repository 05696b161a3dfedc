//! What stands on a Node that was fenced: who did it, why, when and how.

use serde::{Deserialize, Serialize};

/// The annotation on the Node.
pub const ANNOTATION: &str = "kubectl-maint.dev/fenced";

/// A fencing, as recorded on its Node in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Who fenced it.
    pub who: String,
    /// Why, where they said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// When, in RFC 3339.
    pub when: String,
    /// How it is known that nothing runs there any more: the operator's word, or the hook.
    pub how: String,
    /// `status.nodeInfo.bootID` of the Node then: another one means that it was restarted since.
    #[serde(rename = "bootID", default)]
    pub boot_id: String,
    /// The Node's uid then: another one means that it is a new Node.
    pub node_uid: String,
}

impl Record {
    /// Reads the annotation's text; `None` where it is no record of ours.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let record = Record {
            who: "alice@bastion".to_owned(),
            why: None,
            when: "2026-01-02T03:04:05Z".to_owned(),
            how: "powered off".to_owned(),
            boot_id: "b-1".to_owned(),
            node_uid: "u-1".to_owned(),
        };
        let text = serde_json::to_string(&record).expect("it prints");
        assert_eq!(Record::parse(&text), Some(record));
        assert_eq!(Record::parse("yes"), None);
    }
}
