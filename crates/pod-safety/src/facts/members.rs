//! Which members of StatefulSets are ready.

use k8s_openapi::api::core::v1::Pod;
use maintenance_lease::protocol::{Instant, Now, Span};

use super::pod::{condition, is_true, phase};
use crate::wire::instant;

/// A member of a StatefulSet that is running and ready, and not being deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyMember {
    /// Its name.
    pub name: String,
    /// Since when it is ready, if it is known.
    pub since: Option<Instant>,
}

impl ReadyMember {
    /// The member, if it is ready. Its condition counts and not its containers: if its node is unreachable, the
    /// control plane changes only the condition.
    pub(crate) fn of(pod: &Pod) -> Option<Self> {
        let ready = condition(pod, "Ready").filter(|one| is_true(one))?;
        let is_running = phase(pod) == "Running" && pod.metadata.deletion_timestamp.is_none();
        is_running.then(|| Self {
            name: pod.metadata.name.clone().unwrap_or_default(),
            since: ready.last_transition_time.as_ref().map(instant),
        })
    }

    /// Whether it has been ready for `minReadySeconds`.
    pub(super) fn is_available(&self, min_ready: Span, now: Now) -> bool {
        let since = self.since;
        min_ready == Span::ZERO || since.is_some_and(|since| since + min_ready <= now.latest)
    }
}
