//! What comes from outside of the protocol: other tools' annotations, edits by hand, deletions.

use std::time::Duration;

use sandbox::Sandbox;
use serde_json::{Value, json};

use crate::fault::Fault;
use crate::history::{Event, Recorder};

/// Hands that reach past every rule, and meet no faults.
#[derive(Clone)]
pub(crate) struct OutsideWrites {
    pub(crate) sandbox: Sandbox,
    /// The namespace of the Leases.
    pub(crate) namespace: &'static str,
    pub(crate) recorder: Recorder,
}

impl OutsideWrites {
    /// Another tool that can't stop annotating: everybody's writes meet conflicts.
    pub(crate) async fn annotate_repeatedly(&self, node: &str, times: u32, pause: Duration) {
        self.note(format!(
            "another tool annotates {node} {times} times, each {pause:?}"
        ));
        let before = self.recorder.conflicts();
        for beat in 0..times {
            self.edit(node, |lease| {
                lease["metadata"]["annotations"]["other/beat"] = beat.to_string().into();
            });
            tokio::time::sleep(pause).await;
        }
        let met = self.recorder.conflicts() - before;
        if met > 1 {
            let what = format!("{met} writes met conflicts meanwhile");
            self.recorder.struck(Fault::RepeatedConflicts, what);
        }
    }

    /// Somebody shortens the lease by hand.
    pub(crate) fn shorten(&self, node: &str) {
        let done = self.edit(node, |lease| {
            lease["spec"]["leaseDurationSeconds"] = 1.into();
        });
        if done {
            let what = format!("{node}: shortened by hand");
            self.recorder.struck(Fault::HandEdit, what);
        }
    }

    /// Somebody makes another the holder by hand.
    pub(crate) fn usurp(&self, node: &str) {
        let done = self.edit(node, |lease| {
            lease["spec"]["holderIdentity"] = "a-hand".into();
            lease["spec"]["leaseDurationSeconds"] = 3.into();
        });
        if done {
            let what = format!("{node}: another's by hand");
            self.recorder.struck(Fault::HandEdit, what);
        }
    }

    /// The Lease goes.
    pub(crate) fn delete_lease(&self, node: &str) {
        if self.lease(node).is_some() {
            let what = format!("{node}: its Lease is deleted");
            self.recorder.struck(Fault::Deletion, what);
        }
        self.sandbox
            .remove("coordination.k8s.io/v1", "Lease", self.namespace, node);
    }

    /// The Node goes, its Lease with it, and comes back later.
    pub(crate) async fn replace_node(&self, node: &str, absent: Duration) {
        self.note(format!("{node}: the Node is deleted, for {absent:?}"));
        let before = self.uid(node);
        self.sandbox.remove("v1", "Node", "", node);
        tokio::time::sleep(absent).await;
        self.sandbox.put(bare_node(node));
        if before.is_some() && self.uid(node) != before {
            let what = format!("{node}: the Node is back, and its Lease went");
            self.recorder.struck(Fault::NodeReplacement, what);
        } else {
            self.note(format!("{node}: the Node is back"));
        }
    }

    /// The Node is marked for deletion, as a finalizer demands, and replaced after that.
    pub(crate) async fn terminate_node(&self, node: &str, marked: Duration, absent: Duration) {
        if self.sandbox.get("v1", "Node", "", node).is_none() {
            return;
        }
        let mut terminating = bare_node(node);
        let metadata = &mut terminating["metadata"];
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        metadata["deletionGracePeriodSeconds"] = 0.into();
        metadata["finalizers"] = json!(["example.com/drain"]);
        self.sandbox.put(terminating);
        let what = format!("{node}: the Node is marked for deletion, for {marked:?}");
        self.recorder.struck(Fault::NodeTermination, what);
        tokio::time::sleep(marked).await;
        self.replace_node(node, absent).await;
    }

    /// Changes the Lease; `false` where there is none.
    fn edit(&self, node: &str, change: impl FnOnce(&mut Value)) -> bool {
        let Some(mut lease) = self.lease(node) else {
            return false;
        };
        change(&mut lease);
        self.sandbox.put(lease);
        true
    }

    fn uid(&self, node: &str) -> Option<String> {
        let lease = self.lease(node)?;
        lease["metadata"]["uid"].as_str().map(ToOwned::to_owned)
    }

    fn lease(&self, node: &str) -> Option<Value> {
        self.sandbox
            .get("coordination.k8s.io/v1", "Lease", self.namespace, node)
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
