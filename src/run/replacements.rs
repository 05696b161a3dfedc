//! What replaces pods that were removed, and whether it runs.

use std::time::Duration;

use futures::future::join_all;
use pod_safety::Removed;
use pod_safety::cluster::Reader;
use pod_safety::outcome::Outcome;
use pod_safety::why::Reason;

/// What became of pods within `limit`, or until it is `interrupted`, and what their replacements wait for.
pub(crate) async fn outcomes(
    reader: &Reader,
    removed: &[Removed],
    limit: Duration,
    interrupted: impl Future<Output = ()>,
) -> Vec<Outcome> {
    let outcomes = reader.outcomes(removed, limit, interrupted).await;
    let explaining = { removed.iter().zip(outcomes) }.map(|(removed, mut outcome)| async {
        match &mut outcome {
            Outcome::Unreplaced { reasons } => {
                *reasons = waits_for(reader, &removed.namespace, &removed.name).await;
            }
            Outcome::Replaced {
                replacement,
                reasons,
            } if !replacement.is_back => {
                *reasons = waits_for(reader, &removed.namespace, &replacement.name).await;
            }
            _ => {}
        }
        outcome
    });
    join_all(explaining).await
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
