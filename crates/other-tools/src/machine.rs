//! The Machine that a Node belongs to, in Cluster API or OpenShift: where it is, what is done to it, and what a lock writes
//! on it. Pure.
//!
//! Each [`MachineApi`] belongs to an entry of the table of opt-outs.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use maintenance_lease::protocol::Instant;
use maintenance_lease::{BREAKS, escape};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::findings::{Activity, Finding};
use crate::node_keys::{LOCK_ID, annotation, is_only_ours, own_entry};

/// An API of Machines.
#[derive(Debug, PartialEq, Eq)]
pub struct MachineApi {
    /// The tool, as `--opt-outs` names it.
    pub tool: &'static str,
    /// The resource, as kubectl names it.
    pub resource: &'static str,
    /// The versions to try, newest first.
    pub(crate) versions: &'static [&'static str],
    /// The annotations on a Node that name its Machine.
    names: Names,
    /// The annotations that are opt-outs by their presence.
    annotations: &'static [(&'static str, AnnotationValue)],
    /// Whether a list in its `spec` has hooks before the drain.
    has_lifecycle_hooks: bool,
}

/// How the annotations of a Node name its Machine.
#[derive(Debug, PartialEq, Eq)]
enum Names {
    /// One has the name, and another one the namespace.
    Two {
        name: &'static str,
        namespace: &'static str,
    },
    /// One has `NAMESPACE/NAME`.
    One(&'static str),
}

/// The value of an annotation. The tools read only whether it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnnotationValue {
    True,
    /// Who blocks the Machine.
    Owner,
}

/// How our hooks are called.
const HOOK: &str = "kubectl-maint";

/// Cluster API: a MachineHealthCheck skips the Machine, and its deletion waits before the drain.
pub(crate) const CLUSTER_API: MachineApi = MachineApi {
    tool: "cluster-api",
    resource: "machines.cluster.x-k8s.io",
    versions: &["cluster.x-k8s.io/v1beta2", "cluster.x-k8s.io/v1beta1"],
    names: Names::Two {
        name: "cluster.x-k8s.io/machine",
        namespace: "cluster.x-k8s.io/cluster-namespace",
    },
    annotations: &[
        ("cluster.x-k8s.io/skip-remediation", AnnotationValue::True),
        (
            "pre-drain.delete.hook.machine.cluster.x-k8s.io/kubectl-maint",
            AnnotationValue::Owner,
        ),
    ],
    has_lifecycle_hooks: false,
};

/// The Machine API of OpenShift: the deletion of the Machine waits before the drain.
pub(crate) const OPENSHIFT: MachineApi = MachineApi {
    tool: "openshift",
    resource: "machines.machine.openshift.io",
    versions: &["machine.openshift.io/v1beta1"],
    names: Names::One("machine.openshift.io/machine"),
    annotations: &[],
    has_lifecycle_hooks: true,
};

impl MachineApi {
    /// The Machine that `node` names.
    pub(crate) fn machine_of(&'static self, node: &Node) -> Option<MachineRef> {
        let found = |key| annotation(&node.metadata, key).filter(|value| !value.is_empty());
        let (namespace, name) = match self.names {
            Names::Two { name, namespace } => (found(namespace).unwrap_or_default(), found(name)?),
            Names::One(key) => found(key)?.split_once('/')?,
        };
        Some(MachineRef {
            api: self,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            provider_id: node.spec.as_ref().and_then(|spec| spec.provider_id.clone()),
        })
    }
}

/// A Machine, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineRef {
    /// Its API.
    pub api: &'static MachineApi,
    /// Its namespace; empty if the Node does not tell.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What its Node says about the instance behind both.
    pub provider_id: Option<String>,
}

impl MachineRef {
    /// Its path in this version of its API.
    pub(crate) fn path(&self, version: &str) -> String {
        let (namespace, name) = (escape(&self.namespace), escape(&self.name));
        format!("/apis/{version}/namespaces/{namespace}/machines/{name}")
    }
}

/// A Machine that was read.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// Which one.
    pub(crate) of: MachineRef,
    pub(crate) version: &'static str,
    object: Object,
}

/// What is read of it.
#[derive(Clone, Debug, Deserialize)]
struct Object {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Value,
    #[serde(default)]
    status: Value,
}

/// The lock for which a Machine is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MachineLock<'a> {
    /// The lock id.
    pub(crate) lock_id: &'a str,
    /// Who has the lock, as the owner of the hook.
    pub(crate) owner: &'a str,
}

impl Machine {
    /// Reads the answer of the API server.
    pub(crate) fn parse(
        of: MachineRef,
        version: &'static str,
        answer: &[u8],
    ) -> Result<Self, serde_json::Error> {
        let object = serde_json::from_slice(answer)?;
        Ok(Self {
            of,
            version,
            object,
        })
    }

    /// Reads one of a list.
    pub(crate) fn parse_item(
        api: &'static MachineApi,
        version: &'static str,
        item: &[u8],
    ) -> Result<Self, serde_json::Error> {
        let object: Object = serde_json::from_slice(item)?;
        let metadata = &object.metadata;
        let of = MachineRef {
            api,
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            provider_id: None,
        };
        Ok(Self {
            of,
            version,
            object,
        })
    }

    /// Its uid.
    #[must_use]
    pub(crate) fn uid(&self) -> &str {
        self.object.metadata.uid.as_deref().unwrap_or_default()
    }

    /// The name of the Node that it says it is; empty: none.
    #[must_use]
    pub(crate) fn node(&self) -> &str {
        let node = &self.object.status["nodeRef"]["name"];
        node.as_str().unwrap_or_default()
    }

    /// Whether it says that it is the Machine of this Node. Another management cluster may have one of the same name.
    #[must_use]
    pub(crate) fn is_of(&self, node: &str) -> bool {
        self.node() == node && !self.is_of_another_instance(&self.of)
    }

    /// Whether a Node with this reference means it.
    #[must_use]
    pub(crate) fn is_at(&self, reference: &MachineRef) -> bool {
        let of = &self.of;
        (of.api, &of.namespace, &of.name) == (reference.api, &reference.namespace, &reference.name)
            && !self.is_of_another_instance(reference)
    }

    fn is_of_another_instance(&self, reference: &MachineRef) -> bool {
        let instance = self.object.spec["providerID"].as_str();
        let instances = instance.zip(reference.provider_id.as_deref());
        instances.is_some_and(|(one, other)| one != other)
    }

    /// The id of the lock that wrote on it, and did not remove that.
    #[must_use]
    pub(crate) fn lock_id(&self) -> Option<&str> {
        annotation(&self.object.metadata, LOCK_ID)
    }

    /// Whether a lock wrote on this very object, and not on one that it was copied from.
    pub(crate) fn has_own_keys(&self) -> bool {
        own_entry(&self.object.metadata).is_some()
    }

    /// Whether a hook of ours blocks its deletion, no matter who wrote it.
    #[must_use]
    pub(crate) fn has_hook(&self) -> bool {
        let mut keys = self.of.api.annotations.iter();
        keys.any(|(key, value)| {
            *value == AnnotationValue::Owner && annotation(&self.object.metadata, key).is_some()
        }) || self.hook().is_some()
    }

    fn hook(&self) -> Option<&Value> {
        let hooks = self.object.spec["lifecycleHooks"]["preDrain"].as_array()?;
        hooks.iter().find(|hook| hook["name"] == HOOK)
    }

    /// What its tool does to it in spite of a lock.
    #[must_use]
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let finding = |activity, key: &str, since| Finding {
            activity,
            key: key.to_owned(),
            since,
            detail: Some(self.of.name.clone()),
        };
        let mut findings = Vec::new();
        if let Some(time) = &self.object.metadata.deletion_timestamp {
            let since = Instant::from_micros(time.0.as_microsecond());
            let key = "metadata.deletionTimestamp";
            findings.push(finding(Activity::MachineDeleted, key, Some(since)));
        }
        let status = &self.object.status;
        let is_false = |kind: &str| {
            let lists = [&status["conditions"], &status["v1beta2"]["conditions"]];
            let mut conditions = lists.into_iter().filter_map(Value::as_array).flatten();
            conditions.any(|condition| condition["type"] == kind && condition["status"] == "False")
        };
        // Both together are the order to replace it, which nothing takes back.
        if is_false("HealthCheckSucceeded") && is_false("OwnerRemediated") {
            let key = "status.conditions.OwnerRemediated";
            findings.push(finding(Activity::MachineReplaced, key, None));
        }
        findings
    }

    /// The apply that sets the opt-outs for a lock; `None`: the lock has ended, or is being ended.
    pub(crate) fn to_set(&self, lock: MachineLock<'_>) -> Option<Value> {
        let metadata = &self.object.metadata;
        if annotation(metadata, BREAKS) == Some(lock.lock_id) {
            return None;
        }
        let value = |value| match value {
            AnnotationValue::True => "true",
            AnnotationValue::Owner => lock.owner,
        };
        let mut annotations = BTreeMap::from([(LOCK_ID, lock.lock_id)]);
        // Somebody else's value is an opt-out, too.
        let is_free = |key: &str, value: &str| {
            let found = annotation(metadata, key);
            found.is_none_or(|found| found == value)
                || is_only_ours(metadata, &["metadata", "annotations", key])
        };
        for (key, wanted) in self.of.api.annotations {
            if is_free(key, value(*wanted)) {
                annotations.insert(key, value(*wanted));
            }
        }
        let mut body = self.body(&annotations);
        let is_hooked = || self.hook().is_some() && !self.owns_hook();
        if self.of.api.has_lifecycle_hooks && !is_hooked() {
            // The API server refuses owners of less than three characters.
            let owner = format!("{HOOK}: {}", lock.owner);
            body["spec"] =
                json!({"lifecycleHooks": {"preDrain": [{"name": HOOK, "owner": owner}]}});
        }
        Some(body)
    }

    /// The apply that removes what locks set, and leaves the id of the lock that ends; `None`: that is done.
    pub(crate) fn to_remove(&self, ended: &str) -> Option<Value> {
        let metadata = &self.object.metadata;
        let left = json!({"f:metadata": {"f:annotations": {format!("f:{BREAKS}"): {}}}});
        let is_done = annotation(metadata, BREAKS) == Some(ended)
            && own_entry(metadata).is_none_or(|own| *own == left);
        (!is_done).then(|| self.body(&BTreeMap::from([(BREAKS, ended)])))
    }

    fn owns_hook(&self) -> bool {
        let name = format!("k:{{\"name\":\"{HOOK}\"}}");
        own_entry(&self.object.metadata)
            .is_some_and(|own| own["f:spec"]["f:lifecycleHooks"]["f:preDrain"][name].is_object())
    }

    fn body(&self, annotations: &BTreeMap<&str, &str>) -> Value {
        let metadata = &self.object.metadata;
        json!({
            "apiVersion": self.version,
            "kind": "Machine",
            "metadata": {
                "name": metadata.name,
                "namespace": metadata.namespace,
                // Without it, the apply would create a Machine that is gone.
                "uid": metadata.uid,
                "resourceVersion": metadata.resource_version,
                "annotations": annotations,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_keys::FIELD_MANAGER;

    const SKIP: &str = "cluster.x-k8s.io/skip-remediation";
    const DRAIN: &str = "pre-drain.delete.hook.machine.cluster.x-k8s.io/kubectl-maint";
    const LOCK: MachineLock<'static> = MachineLock {
        lock_id: "id",
        owner: "al",
    };

    fn machine(api: &'static MachineApi, object: &Value) -> Machine {
        let of = MachineRef {
            api,
            namespace: "default".to_owned(),
            name: "m-1".to_owned(),
            provider_id: Some("cloud://1".to_owned()),
        };
        let object = object.to_string();
        Machine::parse(of, api.versions[0], object.as_bytes()).expect("a Machine")
    }

    fn annotated(annotations: &Value, owned: &[&str]) -> Machine {
        let owned = owned.iter().map(|key| (format!("f:{key}"), json!({})));
        let owned: Value = Value::Object(owned.collect());
        machine(
            &CLUSTER_API,
            &json!({"metadata": {"name": "m-1", "annotations": annotations, "managedFields": [{
                "manager": FIELD_MANAGER, "operation": "Apply",
                "fieldsV1": {"f:metadata": {"f:annotations": owned}},
            }]}}),
        )
    }

    #[test]
    fn a_node_names_its_machine() {
        let of = |api: &'static MachineApi, annotations: Value| {
            let node = json!({"metadata": {"annotations": annotations}});
            let node: Node = serde_json::from_value(node).expect("a Node");
            let found = api.machine_of(&node)?;
            Some(found.path(api.versions[0]))
        };
        let name = "cluster.x-k8s.io/machine";
        let both = json!({name: "m-1", "cluster.x-k8s.io/cluster-namespace": "prod"});
        let path = "/apis/cluster.x-k8s.io/v1beta2/namespaces/prod/machines/m-1";
        assert_eq!(of(&CLUSTER_API, both).as_deref(), Some(path));
        assert_eq!(of(&CLUSTER_API, json!({name: ""})), None);
        let other = json!({"cluster.x-k8s.io/machinery": "m-1"});
        assert_eq!(of(&CLUSTER_API, other), None);
        let found = of(
            &OPENSHIFT,
            json!({"machine.openshift.io/machine": "ns/m-2"}),
        );
        let path = "/apis/machine.openshift.io/v1beta1/namespaces/ns/machines/m-2";
        assert_eq!(found.as_deref(), Some(path));
        // A kubelet may write any text.
        let odd = json!({"machine.openshift.io/machine": "a/../../b"});
        let found = of(&OPENSHIFT, odd).expect("a path");
        assert!(
            found.ends_with("/namespaces/a/machines/..%2F..%2Fb"),
            "{found}"
        );
    }

    #[test]
    fn a_machine_says_which_node_it_has() {
        for (spec, status, expected) in [
            (json!({}), json!({"nodeRef": {"name": "w-1"}}), true),
            (
                json!({"providerID": "cloud://1"}),
                json!({"nodeRef": {"name": "w-1"}}),
                true,
            ),
            (
                json!({"providerID": "cloud://2"}),
                json!({"nodeRef": {"name": "w-1"}}),
                false,
            ),
            (
                json!({"providerID": "cloud://1"}),
                json!({"nodeRef": {"name": "w-2"}}),
                false,
            ),
            (json!({"providerID": "cloud://1"}), json!({}), false),
        ] {
            let object = json!({"metadata": {"name": "m-1"}, "spec": spec, "status": status});
            assert_eq!(
                machine(&CLUSTER_API, &object).is_of("w-1"),
                expected,
                "{object}"
            );
        }
    }

    #[test]
    fn opt_outs_leave_values_of_others() {
        let opted_out = |machine: &Machine| machine.to_set(LOCK).expect("an apply");
        let ours = json!({LOCK_ID: "id", SKIP: "true", DRAIN: "al"});
        let with = |annotations| annotated(&annotations, &[]);
        for (machine, expected) in [
            (with(json!({})), ours.clone()),
            (with(json!({SKIP: "true"})), ours.clone()),
            (with(json!({SKIP: ""})), json!({LOCK_ID: "id", DRAIN: "al"})),
            (
                with(json!({DRAIN: "bob"})),
                json!({LOCK_ID: "id", SKIP: "true"}),
            ),
            // That of an earlier lock.
            (
                annotated(&json!({DRAIN: "bob", LOCK_ID: "old"}), &[DRAIN, LOCK_ID]),
                ours.clone(),
            ),
        ] {
            let body = opted_out(&machine);
            assert_eq!(body["metadata"]["annotations"], expected);
            assert_eq!(body["spec"], Value::Null);
        }
        assert_eq!(with(json!({BREAKS: "id"})).to_set(LOCK), None);
        let hooks = |hooks: Value| {
            let spec = json!({"lifecycleHooks": {"preDrain": hooks}});
            let machine = machine(
                &OPENSHIFT,
                &json!({"metadata": {"name": "m-1"}, "spec": spec}),
            );
            opted_out(&machine)["spec"].clone()
        };
        let own = json!([{"name": "kubectl-maint", "owner": "kubectl-maint: al"}]);
        let own = json!({"lifecycleHooks": {"preDrain": own}});
        assert_eq!(hooks(json!([{"name": "etcd", "owner": "etcd"}])), own);
        assert_eq!(
            hooks(json!([{"name": "kubectl-maint", "owner": "bob"}])),
            Value::Null
        );
    }

    #[test]
    fn opt_outs_are_removed_once() {
        let left = annotated(&json!({BREAKS: "id"}), &[BREAKS]);
        assert_eq!(left.to_remove("id"), None);
        let body = left.to_remove("next").expect("an apply");
        assert_eq!(body["metadata"]["annotations"], json!({BREAKS: "next"}));
        let opted_out = annotated(&json!({BREAKS: "id", DRAIN: "al"}), &[BREAKS, DRAIN]);
        assert!(opted_out.has_hook() && opted_out.to_remove("id").is_some());
        // A late apply for this lock has to fail, so its id is written.
        let never = machine(&CLUSTER_API, &json!({"metadata": {"name": "m-1"}}));
        assert!(!never.has_hook() && never.to_remove("id").is_some());
    }

    #[test]
    fn what_is_done_to_a_machine_is_found() {
        let activities = |object: Value| -> Vec<Activity> {
            let machine = machine(&CLUSTER_API, &object);
            machine.findings().iter().map(|it| it.activity).collect()
        };
        let condition = |kind: &str, status: &str| json!({"type": kind, "status": status});
        let (sick, wanted) = (
            condition("HealthCheckSucceeded", "False"),
            condition("OwnerRemediated", "False"),
        );
        let metadata = json!({"name": "m-1"});
        for (conditions, expected) in [
            (json!([]), vec![]),
            (json!([sick]), vec![]),
            (json!([sick, condition("OwnerRemediated", "True")]), vec![]),
            (json!([sick, wanted]), vec![Activity::MachineReplaced]),
        ] {
            let old = json!({"metadata": metadata, "status": {"conditions": conditions}});
            assert_eq!(activities(old), expected);
            let new = json!({"v1beta2": {"conditions": conditions}});
            assert_eq!(
                activities(json!({"metadata": metadata, "status": new})),
                expected
            );
        }
        let deleted = json!({"name": "m-1", "deletionTimestamp": "2026-03-01T12:00:00Z"});
        let deleted = machine(&CLUSTER_API, &json!({"metadata": deleted})).findings();
        let [deleted] = &deleted[..] else {
            panic!("{deleted:?}");
        };
        assert_eq!(deleted.activity, Activity::MachineDeleted);
        assert_eq!(
            deleted.since,
            Some(Instant::from_micros(1_772_366_400_000_000))
        );
    }
}
