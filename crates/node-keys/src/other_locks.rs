//! The locks that other tools have for themselves. Pure.

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use maintenance_lease::protocol::{Instant, Now};
use serde_json::Value;

/// The lock of kured for one node, which it takes before it drains and reboots the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KuredLock {
    /// The node.
    pub node: String,
    /// Since when, if kured says it.
    pub since: Option<Instant>,
}

/// The locks in kured's annotation `weave.works/kured-node-lock` that have not expired at `now`. What is not in kured's form
/// is no lock.
#[must_use]
pub fn kured_locks(annotation: &str, now: Now) -> Vec<KuredLock> {
    let annotation: Value = serde_json::from_str(annotation).unwrap_or_default();
    // With a concurrency of 1, kured writes one lock; otherwise a list.
    let locks = match annotation["locks"].as_array() {
        Some(locks) => &locks[..],
        None => std::slice::from_ref(&annotation),
    };
    locks
        .iter()
        .filter_map(|lock| current_lock(lock, now))
        .collect()
}

fn current_lock(lock: &Value, now: Now) -> Option<KuredLock> {
    let node = lock["nodeID"].as_str()?.to_owned();
    let created: Option<Timestamp> = lock["created"].as_str().and_then(|time| time.parse().ok());
    // In nanoseconds; without it, the lock does not expire.
    let lasts = lock["TTL"].as_i64().filter(|nanos| *nanos > 0);
    let end = created
        .zip(lasts)
        .and_then(|(created, nanos)| created.checked_add(SignedDuration::from_nanos(nanos)).ok());
    let is_over = end.is_some_and(|end| instant(end) < now.earliest);
    let since = created.map(instant);
    (!is_over).then_some(KuredLock { node, since })
}

fn instant(time: Timestamp) -> Instant {
    Instant::from_micros(time.as_microsecond())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_kureds_lock_are_read_until_they_expire() {
        let noon = Instant::from_micros(1_772_366_400_000_000);
        let names = |annotation: &str| {
            let locks = kured_locks(annotation, Now::at(noon)).into_iter();
            locks.map(|lock| lock.node).collect::<Vec<_>>()
        };
        let lock = |node: &str, ttl: i64| {
            let metadata = r#""metadata":{"unschedulable":false}"#;
            format!(
                r#"{{"nodeID":"{node}",{metadata},"created":"2026-03-01T11:50:00Z","TTL":{ttl}}}"#
            )
        };
        assert_eq!(names(&lock("w1", 0)), ["w1"]);
        let minutes = |minutes: i64| minutes * 60 * 1_000_000_000;
        assert_eq!(names(&lock("w1", minutes(11))), ["w1"]);
        assert_eq!(names(&lock("w1", minutes(9))), [""; 0]);
        let both = format!(
            r#"{{"maxOwners":2,"locks":[{},{}]}}"#,
            lock("w1", 0),
            lock("w2", 0)
        );
        assert_eq!(names(&both), ["w1", "w2"]);
        for none in ["", "{}", "null", r#"{"maxOwners":2,"locks":[]}"#] {
            assert_eq!(names(none), [""; 0], "{none}");
        }
        let since = kured_locks(&lock("w1", 0), Now::at(noon))[0].since;
        assert_eq!(since, Some(Instant::from_micros(1_772_365_800_000_000)));
    }
}
