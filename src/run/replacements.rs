//! What replaces pods that were removed, and whether it runs.

use pod_safety::cluster::{AfterDeletion, Following, Reader, Removed};
use pod_safety::outcome::Outcome;
use pod_safety::why::Reason;

use crate::error::is_forbidden;

/// What became of a pod, and what its replacement waits for.
pub(crate) async fn became(reader: &Reader, removed: &Removed, following: &Following) -> Outcome {
    let pod = &removed.pod;
    match reader.after_deletion(removed, following).await {
        Ok(AfterDeletion::Gone) if removed.is_expected => Outcome::Unreplaced {
            reasons: waits_for(reader, &pod.namespace, &pod.name).await,
        },
        Ok(AfterDeletion::Gone | AfterDeletion::Unwanted) => Outcome::Deleted,
        Ok(AfterDeletion::Held { finalizers }) => Outcome::Held { finalizers },
        Ok(AfterDeletion::Replaced(replacement)) => Outcome::Replaced {
            reasons: match replacement.is_back {
                true => Vec::new(),
                false => waits_for(reader, &pod.namespace, &replacement.name).await,
            },
            replacement,
        },
        // Without permission to read other pods, report only this one.
        Err(error) if is_forbidden(&error) && !removed.is_expected => Outcome::Deleted,
        Err(error) => Outcome::Unseen {
            error: error.to_string(),
        },
    }
}

/// Why a pod of this name does not run yet, as far as it can be read.
async fn waits_for(reader: &Reader, namespace: &str, name: &str) -> Vec<Reason> {
    let found = reader.why_pod(namespace, name).await;
    let mut reasons = found
        .ok()
        .flatten()
        .map_or(Vec::new(), |found| found.reasons);
    // The outcome says this already.
    reasons.retain(|reason| !matches!(reason, Reason::NotCreatedYet { .. }));
    reasons
}
