//! The result of a deletion whose response was lost, derived from a later read of its object. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::cluster::{Deletion, DeletionRequest};

/// The object of a deletion, as a later read shows it.
#[derive(Clone, Debug)]
pub struct ReadLater {
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// Whether it has been deleted; for a pod, whether it has been force-deleted.
    pub is_deleted: bool,
}

/// The result of `request`; `None` if it may still take effect. `read` is `None` if the object is gone.
#[must_use]
pub fn settled(request: DeletionRequest<'_>, read: Option<ReadLater>) -> Option<Deletion> {
    let Some(read) = read.filter(|read| read.metadata.uid.as_deref() == Some(request.uid)) else {
        return Some(Deletion::Done);
    };
    if read.is_deleted {
        return Some(Deletion::Held {
            finalizers: read.metadata.finalizers.unwrap_or_default(),
        });
    }
    // A request for another version can't take effect any more.
    let version = request.version?;
    let is_outdated = read.metadata.resource_version.as_deref() != Some(version);
    is_outdated.then_some(Deletion::Changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(uid: &str, version: &str, is_deleted: bool) -> Option<ReadLater> {
        let metadata = ObjectMeta {
            uid: Some(uid.to_owned()),
            resource_version: Some(version.to_owned()),
            finalizers: is_deleted.then(|| vec!["x/y".to_owned()]),
            ..ObjectMeta::default()
        };
        Some(ReadLater {
            metadata,
            is_deleted,
        })
    }

    #[test]
    fn only_another_version_or_the_end_of_the_object_settles_a_lost_deletion() {
        let of_version = |version| {
            move |read| {
                let request = DeletionRequest {
                    uid: "u-1",
                    version,
                    grace: Some(0),
                };
                settled(request, read)
            }
        };
        let (bound, unbound) = (of_version(Some("7")), of_version(None));
        let held = || {
            Some(Deletion::Held {
                finalizers: vec!["x/y".to_owned()],
            })
        };
        assert_eq!(bound(None), Some(Deletion::Done));
        assert_eq!(bound(read("u-2", "9", false)), Some(Deletion::Done));
        assert_eq!(bound(read("u-1", "9", true)), held());
        assert_eq!(unbound(read("u-1", "9", true)), held());
        assert_eq!(bound(read("u-1", "9", false)), Some(Deletion::Changed));
        // The request may still arrive at the server.
        assert_eq!(bound(read("u-1", "7", false)), None);
        assert_eq!(unbound(read("u-1", "9", false)), None);
    }
}
