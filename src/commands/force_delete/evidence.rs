//! The Events that keep the evidence.

use futures::FutureExt as _;
use futures::future::join_all;
use k8s_openapi::api::core::v1::ObjectReference;
use maintenance_lease::Event;
use pod_safety::Known;
use pod_safety::facts::Owner;

use super::context::Run;
use super::deleted::Deleted;
use crate::run::events;
use crate::words::event;

impl Run<'_> {
    /// Writes an Event for each deleted object, in parallel: on the pod's controller if there is one, else
    /// on the node.
    pub(super) async fn leave_events(&self, deleted: &[Deleted]) {
        let caller = self.session.locks.identity();
        let why = self.args.message.as_deref().unwrap_or_default();
        let deleted = deleted.iter().filter(|one| one.outcome.was_deleted());
        let posting = join_all(deleted.map(|one| async {
            let regarding = regarding(one);
            let note = event::force_deletion(caller, why, &one.report, &one.along, &one.outcome);
            let event = Event {
                regarding: &regarding,
                reason: "ForceDeleted",
                note: &note,
                warning: true,
                reporter: "force-delete",
                instance: caller,
            };
            self.reader.requests().post_event(&event).await
        }));
        let posting = posting.map(|posted| posted.into_iter().find_map(Result::err));
        events::wait_for(self.session.terminal, posting).await;
    }
}

/// The object of the Event: what recreates the pod, else its node.
fn regarding(one: &Deleted) -> ObjectReference {
    let target = &one.report.target;
    let of_node = |name: &str, uid: &str| ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Node".to_owned()),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    };
    let Some(facts) = &one.facts else {
        return of_node(&target.name, &target.uid);
    };
    match (&facts.owner, &facts.node.node) {
        (Owner::Controller { reference, .. }, _) => (**reference).clone(),
        (_, Known::Yes(Some(node))) => of_node(&facts.pod.node, &node.uid),
        _ => ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Pod".to_owned()),
            namespace: target.namespace.clone(),
            name: Some(target.name.clone()),
            uid: Some(target.uid.clone()),
            ..ObjectReference::default()
        },
    }
}
