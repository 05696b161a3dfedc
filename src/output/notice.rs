//! The messages for a webhook, as JSON.

use serde::Serialize;

use super::data::Time;

/// What happened to the locks of some nodes. The `text` alone is a message for chats such as Slack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Notice {
    pub(crate) text: String,
    pub(crate) event: Event,
    pub(crate) nodes: Vec<String>,
    /// Who holds the nodes now, or ended the lock of another.
    pub(crate) holder: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) api_user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) previous_holder: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ticket: Option<String>,
    /// The expected end of a hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expected_until: Option<Time>,
    /// The URL of the API server.
    pub(crate) server: String,
    /// The kubeconfig context of the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) context: Option<String>,
}

/// What happened, the less serious first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) enum Event {
    #[default]
    Hold,
    Overdue,
    Takeover,
}

impl Notice {
    /// Those that differ only in their nodes as one.
    pub(crate) fn merged(notices: Vec<Self>) -> Vec<Self> {
        let mut merged: Vec<Self> = Vec::new();
        for notice in notices {
            let mut earlier = merged.iter_mut();
            let same = earlier.find(|it| {
                let nodes = notice.nodes.clone();
                Self {
                    nodes,
                    ..(**it).clone()
                } == notice
            });
            match same {
                Some(same) => same.nodes.extend(notice.nodes),
                None => merged.push(notice),
            }
        }
        merged
    }

    /// The body of the request. The text begins with the nodes.
    pub(crate) fn body(&self) -> Vec<u8> {
        let text = for_slack(&format!("{}: {}", self.nodes.join(", "), self.text));
        let body = Self {
            text,
            ..self.clone()
        };
        serde_json::to_vec(&body).unwrap_or_default()
    }
}

/// Slack takes these characters for links and mentions.
fn for_slack(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn notices_that_differ_only_in_their_nodes_are_one_message() {
        let notice = |node: &str, text: &str| Notice {
            text: text.to_owned(),
            nodes: vec![node.to_owned()],
            holder: "alice".to_owned(),
            server: "https://api".to_owned(),
            ..Notice::default()
        };
        let notices = vec![
            notice("a", "<!channel> & co"),
            notice("b", "other"),
            notice("c", "<!channel> & co"),
        ];
        let merged = Notice::merged(notices);
        let bodies = merged.iter().map(|notice| {
            let body: Value = serde_json::from_slice(&notice.body()).expect("JSON");
            body
        });
        let expected = |text: &str, nodes: &[&str]| json!({"text": text, "event": "Hold", "nodes": nodes, "holder": "alice", "server": "https://api"});
        assert_eq!(
            bodies.collect::<Vec<_>>(),
            [
                expected("a, c: &lt;!channel&gt; &amp; co", &["a", "c"]),
                expected("b: other", &["b"]),
            ]
        );
    }
}
