//! Finalizers: which controller removes them, and when.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

/// A finalizer, and the controller that removes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finalizer {
    /// Its name.
    pub name: String,
    /// The controller that removes it, if the finalizer is one of Kubernetes' own.
    pub owner: Option<Owner>,
    /// The field manager that added it, if the object records that.
    pub manager: Option<String>,
}

/// A controller of Kubernetes that has its own finalizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its name.
    pub who: &'static str,
    /// When it removes the finalizer.
    pub when: &'static str,
}

/// The finalizer that keeps a claim while pods use it (`PVCProtectionFinalizer`).
pub(super) const PVC_PROTECTION: &str = "kubernetes.io/pvc-protection";

/// The finalizers of Kubernetes, each with its controller and the condition for its removal.
const OWNERS: [(&str, Owner); 7] = [
    (
        PVC_PROTECTION,
        Owner {
            who: "the PVC protection controller",
            when: "no pod uses the claim",
        },
    ),
    (
        "kubernetes.io/pv-protection",
        Owner {
            who: "the PV protection controller",
            when: "the volume is not bound to a claim",
        },
    ),
    (
        "batch.kubernetes.io/job-tracking",
        Owner {
            who: "the Job controller",
            when: "the pod is in phase Succeeded or Failed and was counted",
        },
    ),
    (
        "foregroundDeletion",
        Owner {
            who: "the garbage collector",
            when: "the objects that it owns are gone",
        },
    ),
    (
        "orphan",
        Owner {
            who: "the garbage collector",
            when: "the objects that it owned are released",
        },
    ),
    (
        "resource.kubernetes.io/delete-protection",
        Owner {
            who: "the resource claim controller",
            when: "no pod uses the claim",
        },
    ),
    (
        "service.kubernetes.io/load-balancer-cleanup",
        Owner {
            who: "the cloud's service controller",
            when: "the load balancer is gone",
        },
    ),
];

impl Finalizer {
    /// The finalizer with this name, on an object with this metadata.
    #[must_use]
    pub fn on(object: &ObjectMeta, name: &str) -> Self {
        Self {
            manager: manager(object, name),
            ..Self::named(name)
        }
    }

    /// The finalizer with this name, on objects that were not read.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let owner = OWNERS.iter().find(|(known, _)| *known == name);
        Self {
            name: name.to_owned(),
            owner: owner.map(|(_, owner)| *owner),
            manager: None,
        }
    }

    /// All finalizers of an object.
    pub(super) fn all(object: &ObjectMeta) -> impl Iterator<Item = Self> + '_ {
        let names = object.finalizers.iter().flatten();
        names.map(|name| Self::on(object, name))
    }
}

/// The field manager that added a finalizer. If the API server itself added it, no manager is recorded.
fn manager(object: &ObjectMeta, name: &str) -> Option<String> {
    let key = format!("v:{}", Value::from(name));
    let entries = object.managed_fields.iter().flatten();
    let mut owning = entries.filter(|entry| {
        let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
        let finalizers = fields.map(|fields| &fields["f:metadata"]["f:finalizers"]);
        finalizers.is_some_and(|finalizers| finalizers.get(&key).is_some())
    });
    owning.next()?.manager.clone()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_object_records_who_added_it() {
        let object: ObjectMeta = serde_json::from_value(json!({
            "finalizers": ["example.com/backup", "kubernetes.io/pvc-protection"],
            "managedFields": [
                {"manager": "kubectl", "fieldsV1": {"f:metadata": {"f:labels": {}}}},
                {"manager": "backup-operator", "fieldsV1": {"f:metadata": {"f:finalizers":
                    {".": {}, "v:\"example.com/backup\"": {}}}}},
            ],
        }))
        .expect("metadata");
        let all: Vec<Finalizer> = Finalizer::all(&object).collect();
        assert_eq!(all[0].manager.as_deref(), Some("backup-operator"));
        assert_eq!(all[0].owner, None);
        assert_eq!(all[1].manager, None);
        let owner = all[1].owner.expect("it is known");
        assert_eq!(owner.when, "no pod uses the claim");
    }
}
