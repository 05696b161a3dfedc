//! The objects that `kubectl maint install` puts into a cluster: those of `deploy/`, as text and as data. Pure.
//!
//! The files in `deploy/` are the only source. The plugin therefore applies exactly what kubectl or kustomize
//! apply.

#![warn(missing_docs)]

use serde_json::{Value, json};

/// The files, in the order in which they are applied.
const FILES: [&str; 5] = [
    include_str!("../../../deploy/namespace.yaml"),
    include_str!("../../../deploy/rbac.yaml"),
    include_str!("../../../deploy/flow-schema.yaml"),
    include_str!("../../../deploy/lease-policy.yaml"),
    include_str!("../../../deploy/node-policy.yaml"),
];

/// The oldest minor version of Kubernetes 1 on which the policies were tested.
pub const OLDEST_MINOR: u32 = 36;

/// The field manager of everything that the plugin installs.
pub const FIELD_MANAGER: &str = "kubectl-maint-install";

/// Each kind, its API version and its plural.
const KINDS: [(&str, &str, &str); 8] = [
    ("Namespace", "v1", "namespaces"),
    (
        "ClusterRole",
        "rbac.authorization.k8s.io/v1",
        "clusterroles",
    ),
    (
        "ClusterRoleBinding",
        "rbac.authorization.k8s.io/v1",
        "clusterrolebindings",
    ),
    ("Role", "rbac.authorization.k8s.io/v1", "roles"),
    (
        "RoleBinding",
        "rbac.authorization.k8s.io/v1",
        "rolebindings",
    ),
    (
        "FlowSchema",
        "flowcontrol.apiserver.k8s.io/v1",
        "flowschemas",
    ),
    (
        "ValidatingAdmissionPolicy",
        "admissionregistration.k8s.io/v1",
        "validatingadmissionpolicies",
    ),
    (
        "ValidatingAdmissionPolicyBinding",
        "admissionregistration.k8s.io/v1",
        "validatingadmissionpolicybindings",
    ),
];

/// What the policies do with a write that breaks a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Admit it, and note it in the audit log.
    Audit,
    /// The same, with a warning.
    Warn,
    /// Refuse it.
    Deny,
}

impl Mode {
    /// The `validationActions` of a binding.
    #[must_use]
    pub fn actions(self) -> Value {
        match self {
            Self::Audit => json!(["Audit"]),
            Self::Warn => json!(["Warn", "Audit"]),
            Self::Deny => json!(["Deny", "Audit"]),
        }
    }
}

/// One object.
#[derive(Clone, Debug)]
pub struct Manifest {
    object: Value,
    plural: &'static str,
}

/// All objects as one text, with the comments of the files.
#[must_use]
pub fn text() -> String {
    FILES.join("---\n")
}

/// All objects, in the order in which they are applied.
///
/// # Panics
/// If a file has an object of another kind than the known ones; a test reads them all.
#[must_use]
pub fn manifests() -> Vec<Manifest> {
    let texts = FILES.iter().flat_map(|file| file.split("\n---\n"));
    texts
        .map(|text| {
            let object: Value = serde_saphyr::from_str(text).expect("the files are YAML");
            let known = KINDS.iter().find(|(kind, version, _)| {
                object["kind"] == *kind && object["apiVersion"] == *version
            });
            let &(_, _, plural) = known.expect("the kinds are known");
            Manifest { object, plural }
        })
        .collect()
}

impl Manifest {
    /// The object.
    #[must_use]
    pub fn object(&self) -> &Value {
        &self.object
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.object["kind"].as_str().unwrap_or_default()
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// As kubectl prints it, such as `role.rbac.authorization.k8s.io/kubectl-maint-user`.
    #[must_use]
    pub fn full_name(&self) -> String {
        let kind = self.kind().to_lowercase();
        match self.api_version().split_once('/') {
            Some((group, _)) => format!("{kind}.{group}/{}", self.name()),
            None => format!("{kind}/{}", self.name()),
        }
    }

    /// Its path in the API.
    #[must_use]
    pub fn path(&self) -> String {
        let version = self.api_version();
        let root = if version.contains('/') { "apis" } else { "api" };
        let namespace = self.object["metadata"]["namespace"]
            .as_str()
            .map(|namespace| format!("/namespaces/{namespace}"))
            .unwrap_or_default();
        let (plural, name) = (self.plural, self.name());
        format!("/{root}/{version}{namespace}/{plural}/{name}")
    }

    /// Whether it is a binding, which puts a policy into effect.
    #[must_use]
    pub fn is_binding(&self) -> bool {
        self.kind() == "ValidatingAdmissionPolicyBinding"
    }

    /// Whether it is a policy.
    #[must_use]
    pub fn is_policy(&self) -> bool {
        self.kind() == "ValidatingAdmissionPolicy"
    }

    /// Whether it is the namespace of the Leases, which `uninstall` keeps.
    #[must_use]
    pub fn is_namespace(&self) -> bool {
        self.kind() == "Namespace"
    }

    /// A binding with these `validationActions`.
    #[must_use]
    pub fn with_actions(mut self, actions: Value) -> Self {
        self.object["spec"]["validationActions"] = actions;
        self
    }

    fn api_version(&self) -> &str {
        self.object["apiVersion"].as_str().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_is_ours_and_there_once() {
        let all = manifests();
        let mut paths: Vec<String> = all.iter().map(Manifest::path).collect();
        let count = paths.len();
        paths.sort();
        paths.dedup();
        assert_eq!(paths.len(), count);
        for manifest in &all {
            let label = &manifest.object()["metadata"]["labels"]["app.kubernetes.io/name"];
            assert_eq!(label, "kubectl-maint", "{}", manifest.full_name());
        }
        assert_eq!(text().split("\n---\n").count(), count);
    }

    #[test]
    fn paths_and_names_are_those_of_the_api() {
        let all = manifests();
        let shown: Vec<_> = all
            .iter()
            .filter(|manifest| ["Namespace", "Role"].contains(&manifest.kind()))
            .take(2)
            .map(|manifest| (manifest.full_name(), manifest.path()))
            .collect();
        let expected = [
            (
                "namespace/kube-node-maintenance",
                "/api/v1/namespaces/kube-node-maintenance",
            ),
            (
                "role.rbac.authorization.k8s.io/kubectl-maint-viewer",
                "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-node-maintenance/roles/\
                 kubectl-maint-viewer",
            ),
        ];
        let expected = expected.map(|(name, path)| (name.to_owned(), path.to_owned()));
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_is_shipped_refuses_nothing() {
        let all = manifests();
        let bindings: Vec<_> = all
            .iter()
            .filter(|manifest| manifest.is_binding())
            .collect();
        assert_eq!(bindings.len(), 2);
        for binding in bindings {
            let spec = &binding.object()["spec"];
            assert_eq!(spec["validationActions"], Mode::Audit.actions());
            let is_policy = |manifest: &&Manifest| {
                manifest.is_policy() && spec["policyName"] == manifest.name()
            };
            assert!(all.iter().any(|manifest| is_policy(&manifest)));
        }
    }

    /// kustomize must apply what the plugin applies.
    #[test]
    fn the_kustomization_lists_every_file() {
        let kustomization = include_str!("../../../deploy/kustomization.yaml");
        let kustomization: Value = serde_saphyr::from_str(kustomization).expect("YAML");
        let listed = kustomization["resources"].as_array().expect("a list");
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");
        let texts: Vec<String> = listed
            .iter()
            .map(|name| format!("{directory}/{}", name.as_str().expect("a name")))
            .map(|path| std::fs::read_to_string(path).expect("a file"))
            .collect();
        assert_eq!(texts, FILES);
    }
}
