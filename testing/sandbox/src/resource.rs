//! The types that the server knows: their names, scopes and the few rules that depend on the type.

use std::sync::Arc;

/// One type of object: its names in paths, lists and answers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Resource {
    /// The API group, or an empty string for the core group.
    pub group: String,
    /// The version within the group.
    pub version: String,
    /// The kind written in objects, such as `Lease`.
    pub kind: String,
    /// The name in paths, such as `leases`.
    pub plural: String,
    /// The name in messages to people, such as `lease`.
    pub singular: String,
    /// The short names that kubectl accepts, such as `no` for nodes.
    pub short_names: Vec<String>,
    /// Whether the objects belong to a namespace.
    pub namespaced: bool,
    /// Whether `status` is written only through its subresource.
    pub has_status: bool,
    /// Whether a PUT to a name that does not exist creates the object.
    pub(crate) put_creates: bool,
    /// Whether a PUT may omit the resource version.
    pub(crate) put_unconditional: bool,
    /// The collection in the store. Two API versions of one type share it.
    pub(crate) collection: Arc<str>,
}

impl Resource {
    /// A type with the rules of custom resources, for
    /// [`Builder::resource`](crate::Builder::resource).
    pub fn custom(group: &str, version: &str, kind: &str, plural: &str, namespaced: bool) -> Self {
        let collection = qualified(plural, group);
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            short_names: Vec::new(),
            namespaced,
            has_status: false,
            put_creates: false,
            put_unconditional: false,
            collection: collection.into(),
        }
    }

    /// `group/version`, or only the version for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The name in messages: `leases.coordination.k8s.io`, or `nodes` in the core group.
    pub(crate) fn qualified_plural(&self) -> String {
        qualified(&self.plural, &self.group)
    }

    /// The kind in messages: `Lease.coordination.k8s.io`, or `Node` in the core group.
    pub(crate) fn qualified_kind(&self) -> String {
        qualified(&self.kind, &self.group)
    }

    fn short(mut self, name: &str) -> Self {
        self.short_names.push(name.to_owned());
        self
    }

    fn with_status(mut self) -> Self {
        self.has_status = true;
        self
    }

    fn put_creates(mut self) -> Self {
        self.put_creates = true;
        self
    }

    fn put_unconditional(mut self) -> Self {
        self.put_unconditional = true;
        self
    }

    fn stored_as(mut self, collection: &str) -> Self {
        self.collection = collection.into();
        self
    }
}

fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() {
        name.to_owned()
    } else {
        format!("{name}.{group}")
    }
}

/// All types of one server.
#[derive(Clone, Debug)]
pub(crate) struct Catalog {
    resources: Vec<Arc<Resource>>,
}

impl Catalog {
    /// The types that every sandbox has, and the types in `extra`.
    pub(crate) fn with(extra: Vec<Resource>) -> Self {
        let resources = built_in().into_iter().chain(extra).map(Arc::new);
        Self {
            resources: resources.collect(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.iter()
    }

    /// The type that a path names.
    pub(crate) fn by_plural(
        &self,
        group: &str,
        version: &str,
        plural: &str,
    ) -> Option<&Arc<Resource>> {
        self.iter()
            .find(|r| r.group == group && r.version == version && r.plural == plural)
    }

    /// The type of an object or an owner reference.
    pub(crate) fn by_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.iter()
            .find(|r| r.kind == kind && r.api_version() == api_version)
    }

    /// A type whose objects are in `collection`.
    pub(crate) fn by_collection(&self, collection: &str) -> Option<&Arc<Resource>> {
        self.iter().find(|r| &*r.collection == collection)
    }
}

const CLUSTER: bool = false;
const NAMESPACED: bool = true;

fn built_in() -> Vec<Resource> {
    let core = |kind, plural, namespaced| {
        Resource::custom("", "v1", kind, plural, namespaced).put_unconditional()
    };
    let apps = |kind, plural| {
        Resource::custom("apps", "v1", kind, plural, NAMESPACED)
            .put_unconditional()
            .with_status()
    };
    let storage = |kind, plural| Resource::custom("storage.k8s.io", "v1", kind, plural, CLUSTER);
    let rbac = |kind, plural, namespaced| {
        Resource::custom("rbac.authorization.k8s.io", "v1", kind, plural, namespaced)
            .put_unconditional()
            .put_creates()
    };
    vec![
        core("Namespace", "namespaces", CLUSTER)
            .with_status()
            .short("ns"),
        core("Node", "nodes", CLUSTER).with_status().short("no"),
        core("Pod", "pods", NAMESPACED).with_status().short("po"),
        core("Event", "events", NAMESPACED)
            .put_creates()
            .short("ev"),
        core("ConfigMap", "configmaps", NAMESPACED).short("cm"),
        core("Secret", "secrets", NAMESPACED),
        core("Service", "services", NAMESPACED)
            .with_status()
            .short("svc"),
        core("ServiceAccount", "serviceaccounts", NAMESPACED).short("sa"),
        core("PersistentVolume", "persistentvolumes", CLUSTER)
            .with_status()
            .short("pv"),
        core(
            "PersistentVolumeClaim",
            "persistentvolumeclaims",
            NAMESPACED,
        )
        .with_status()
        .short("pvc"),
        storage("VolumeAttachment", "volumeattachments").with_status(),
        storage("CSIDriver", "csidrivers"),
        Resource::custom("coordination.k8s.io", "v1", "Lease", "leases", NAMESPACED).put_creates(),
        Resource::custom("events.k8s.io", "v1", "Event", "events", NAMESPACED)
            .put_creates()
            .put_unconditional()
            .stored_as("events")
            .short("ev"),
        apps("Deployment", "deployments").short("deploy"),
        apps("DaemonSet", "daemonsets").short("ds"),
        apps("StatefulSet", "statefulsets").short("sts"),
        apps("ReplicaSet", "replicasets").short("rs"),
        Resource::custom(
            "policy",
            "v1",
            "PodDisruptionBudget",
            "poddisruptionbudgets",
            NAMESPACED,
        )
        .with_status()
        .short("pdb"),
        rbac("Role", "roles", NAMESPACED),
        rbac("RoleBinding", "rolebindings", NAMESPACED),
        rbac("ClusterRole", "clusterroles", CLUSTER),
        rbac("ClusterRoleBinding", "clusterrolebindings", CLUSTER),
    ]
}
