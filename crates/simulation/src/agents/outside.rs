//! What comes from outside of the protocol: other tools' annotations, edits by hand, deletions.

use std::time::Duration;

use sandbox::Sandbox;
use serde_json::{Value, json};

use crate::history::{Event, Recorder};

/// Hands that reach past every rule, and meet no faults.
#[derive(Clone)]
pub(crate) struct Outside {
    pub(crate) sandbox: Sandbox,
    /// Where the Leases are.
    pub(crate) namespace: &'static str,
    pub(crate) recorder: Recorder,
}

impl Outside {
    /// Another tool that can't stop annotating: everybody's writes meet conflicts.
    pub(crate) async fn storm(&self, node: &str, times: u32, pause: Duration) {
        self.note(format!(
            "another tool annotates {node} {times} times, each {pause:?}"
        ));
        for beat in 0..times {
            self.edit(node, |lease| {
                lease["metadata"]["annotations"]["other/beat"] = beat.to_string().into();
            });
            tokio::time::sleep(pause).await;
        }
    }

    /// Somebody shortens the lease by hand.
    pub(crate) fn shorten(&self, node: &str) {
        self.note(format!("{node}: shortened by hand"));
        self.edit(node, |lease| {
            lease["spec"]["leaseDurationSeconds"] = 1.into();
        });
    }

    /// Somebody makes another the holder by hand.
    pub(crate) fn usurp(&self, node: &str) {
        self.note(format!("{node}: another's by hand"));
        self.edit(node, |lease| {
            lease["spec"]["holderIdentity"] = "a-hand".into();
            lease["spec"]["leaseDurationSeconds"] = 3.into();
        });
    }

    /// The Lease goes.
    pub(crate) fn delete_lease(&self, node: &str) {
        self.note(format!("{node}: its Lease is deleted"));
        self.sandbox
            .remove("coordination.k8s.io/v1", "Lease", self.namespace, node);
    }

    /// The Node goes, its Lease with it, and comes back later.
    pub(crate) async fn replace_node(&self, node: &str, absent: Duration) {
        self.note(format!("{node}: the Node is deleted, for {absent:?}"));
        self.sandbox.remove("v1", "Node", "", node);
        tokio::time::sleep(absent).await;
        self.note(format!("{node}: the Node is back"));
        self.sandbox.put(bare_node(node));
    }

    /// Changes the Lease, if there is one.
    fn edit(&self, node: &str, change: impl FnOnce(&mut Value)) {
        if let Some(mut lease) =
            self.sandbox
                .get("coordination.k8s.io/v1", "Lease", self.namespace, node)
        {
            change(&mut lease);
            self.sandbox.put(lease);
        }
    }

    fn note(&self, text: String) {
        self.recorder.record(Event::Note(text));
    }
}

/// A Node with no more than the protocol looks at.
pub(crate) fn bare_node(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    })
}
