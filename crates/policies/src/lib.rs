//! The objects that `kubectl maint install` puts into a cluster: those of `deploy/`, as text and as data. Pure.
//!
//! The files in `deploy/` are the only source. The plugin therefore applies exactly what kubectl or kustomize
//! apply.

#![warn(missing_docs)]

use serde_json::{Value, json};

/// The files, in the order in which they are applied.
const FILES: [&str; 6] = [
    include_str!("../../../deploy/namespace.yaml"),
    include_str!("../../../deploy/rbac.yaml"),
    include_str!("../../../deploy/flow-schema.yaml"),
    include_str!("../../../deploy/lease-policy.yaml"),
    include_str!("../../../deploy/node-policy.yaml"),
    include_str!("../../../deploy/pod-policy.yaml"),
];

/// The policy that warns, and does nothing else.
const WARNS_ONLY: &str = "kubectl-maint-pods";

/// The oldest minor version of Kubernetes 1 on which the policies were tested.
pub const OLDEST_MINOR: u32 = 30;

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
    /// Its name, as typed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Audit => "audit",
            Self::Warn => "warn",
            Self::Deny => "deny",
        }
    }

    /// The mode of a binding that the cluster has.
    #[must_use]
    pub fn of(binding: &Value) -> Self {
        let actions = binding["spec"]["validationActions"].as_array();
        let has = |action: &str| actions.is_some_and(|all| all.iter().any(|one| one == action));
        match (has("Deny"), has("Warn")) {
            (true, _) => Self::Deny,
            (false, true) => Self::Warn,
            (false, false) => Self::Audit,
        }
    }

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

    /// Whether it is a policy, or the binding of one, whose mode can be set. The others only warn.
    #[must_use]
    pub fn has_mode(&self) -> bool {
        (self.is_binding() || self.is_policy()) && self.name() != WARNS_ONLY
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

    /// Another tool, such as Argo CD or Helm, that manages the object which the cluster has. It and the plugin would
    /// undo each other's changes. kubectl is none: it changes something only if somebody runs it. The namespace is
    /// left out: it has no fields to disagree about.
    #[must_use]
    pub fn other_manager<'f>(&self, found: &'f Value) -> Option<&'f str> {
        if self.is_namespace() {
            return None;
        }
        let entries = found["metadata"]["managedFields"].as_array()?;
        let others = entries
            .iter()
            // Kubernetes' own controllers write the status.
            .filter(|entry| entry["subresource"] != "status")
            .filter_map(|entry| entry["manager"].as_str());
        others
            .into_iter()
            .find(|manager| !manager.starts_with("kubectl") && *manager != "before-first-apply")
    }

    /// Whether the object which the cluster has is that of this release, whatever the mode is.
    #[must_use]
    pub fn is_current(&self, found: &Value) -> bool {
        let mut wanted = self.object["spec"].clone();
        if let Some(spec) = wanted.as_object_mut().filter(|_| self.is_binding()) {
            spec.remove("validationActions");
        }
        contains(&found["spec"], &wanted)
    }

    fn api_version(&self) -> &str {
        self.object["apiVersion"].as_str().unwrap_or_default()
    }
}

/// Whether `found` has every field of `wanted`. The server adds defaults.
fn contains(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted.iter().all(|(key, wanted)| {
            let found = found.get(key);
            found.is_some_and(|found| contains(found, wanted))
        }),
        (Value::Array(found), Value::Array(wanted)) => {
            let mut pairs = found.iter().zip(wanted);
            found.len() == wanted.len() && pairs.all(|(found, wanted)| contains(found, wanted))
        }
        _ => found == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> Manifest {
        let mut all = manifests().into_iter();
        all.find(Manifest::is_policy).expect("a policy")
    }

    #[test]
    fn a_tool_that_applies_repeatedly_is_the_manager() {
        let manager = |entries: Value| {
            let found = json!({"metadata": {"managedFields": entries}});
            policy().other_manager(&found).map(ToOwned::to_owned)
        };
        let ours = json!({"manager": FIELD_MANAGER, "operation": "Apply"});
        let kubectl = json!({"manager": "kubectl-client-side-apply", "operation": "Update"});
        let status = json!({"manager": "kube-controller-manager", "subresource": "status"});
        assert_eq!(manager(json!([ours, kubectl, status])), None);
        let argo = json!({"manager": "argocd-controller", "operation": "Apply"});
        let found = manager(json!([ours, argo]));
        assert_eq!(found.as_deref(), Some("argocd-controller"));
    }

    #[test]
    fn defaults_of_the_server_are_no_other_release() {
        let mut found = policy().object().clone();
        found["spec"]["matchConstraints"]["matchPolicy"] = json!("Equivalent");
        assert!(policy().is_current(&found));
        found["spec"]["validations"][0]["expression"] = json!("true");
        assert!(!policy().is_current(&found));
    }

    #[test]
    fn modes_are_those_of_the_bindings() {
        for mode in [Mode::Audit, Mode::Warn, Mode::Deny] {
            let binding = json!({"spec": {"validationActions": mode.actions()}});
            assert_eq!(Mode::of(&binding), mode);
        }
    }

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
    fn shipped_policies_refuse_nothing() {
        let all = manifests();
        let bindings: Vec<_> = all
            .iter()
            .filter(|manifest| manifest.is_binding())
            .collect();
        assert_eq!(bindings.len(), 3);
        for binding in bindings {
            let spec = &binding.object()["spec"];
            let actions = match binding.has_mode() {
                true => Mode::Audit.actions(),
                false => json!(["Warn"]),
            };
            assert_eq!(spec["validationActions"], actions);
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
