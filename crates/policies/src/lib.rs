//! The objects that `kubectl maint install` puts into a cluster: those of `deploy/`, as text and as data. How the cluster
//! gets them, and whether they have an effect.
//!
//! The files in `deploy/` are the only source. The plugin therefore applies exactly what kubectl or kustomize
//! apply.

#![warn(missing_docs)]

mod broken_rules;
mod dry_runs;
mod error;
mod installed;

use serde_json::{Value, json};

pub use self::broken_rules::broken_rules;
pub use self::dry_runs::{any_node, held_without_lock, refuses, wrong_time};
pub use self::error::{Error, Refusal};
pub use self::installed::{Applied, Enforcement, Installed, object};

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

/// Whether this version of Kubernetes is at least the oldest on which the policies were tested. On older ones, they might
/// refuse correct writes.
/// Some providers write minor versions such as `36+`.
#[must_use]
pub fn is_supported(major: &str, minor: &str) -> bool {
    let digits = minor.trim_end_matches(|c: char| !c.is_ascii_digit());
    let is_new = digits.parse().is_ok_and(|minor: u32| minor >= OLDEST_MINOR);
    major == "1" && is_new
}

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

/// Who counts as the holder of every lock, for the node policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// API users.
    pub users: Vec<String>,
    /// Groups of API users.
    pub groups: Vec<String>,
}

/// The variables of the node policy with these lists.
const ALLOWED_USERS: &str = "allowedUsers";
const ALLOWED_GROUPS: &str = "allowedGroups";

impl Allowed {
    /// Those of a node policy that the cluster has; nobody if somebody wrote another expression there.
    #[must_use]
    pub fn of(policy: &Value) -> Self {
        let variables = policy["spec"]["variables"].as_array();
        let list = |name: &str| {
            let mut variables = variables.into_iter().flatten();
            let variable = variables.find(|variable| variable["name"] == name)?;
            serde_json::from_str(variable["expression"].as_str()?).ok()
        };
        Self {
            users: list(ALLOWED_USERS).unwrap_or_default(),
            groups: list(ALLOWED_GROUPS).unwrap_or_default(),
        }
    }

    /// Each variable with its expression. JSON's lists of strings are also those of CEL.
    fn variables(&self) -> [(&'static str, String); 2] {
        [
            (ALLOWED_USERS, json!(self.users).to_string()),
            (ALLOWED_GROUPS, json!(self.groups).to_string()),
        ]
    }
}

/// One object.
#[derive(Clone, Debug)]
pub struct Manifest {
    object: Value,
    plural: &'static str,
}

/// All objects as one text, with the comments of the files, and with these lists in the node policy.
#[must_use]
pub fn text_allowing(allowed: &Allowed) -> String {
    let variables = allowed.variables().into_iter();
    variables.fold(FILES.join("---\n"), |text, (name, list)| {
        let variable = format!("- name: {name}\n      expression: ");
        let scalar = json!(list);
        text.replace(&format!("{variable}\"[]\""), &format!("{variable}{scalar}"))
    })
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

/// The fields of a spec that can restrict a policy or a binding to fewer writes.
const RESTRICTIONS: [&str; 4] = ["matchResources", "matchConditions", "paramKind", "paramRef"];

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

    /// A node policy with these lists; another object as it is.
    #[must_use]
    pub fn allowing(mut self, allowed: &Allowed) -> Self {
        let variables = self.object.pointer_mut("/spec/variables");
        let variables = variables.and_then(Value::as_array_mut);
        for variable in variables.into_iter().flatten() {
            for (name, list) in allowed.variables() {
                if variable["name"] == name {
                    variable["expression"] = json!(list);
                }
            }
        }
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

    /// A field of the spec that somebody added to the object in the cluster. It may restrict a policy to fewer writes,
    /// and an apply does not remove it.
    #[must_use]
    pub fn added_field(&self, found: &Value) -> Option<&'static str> {
        let length = |spec: &Value, field: &str| match &spec[field] {
            Value::Object(fields) => fields.len(),
            Value::Array(items) => items.len(),
            _ => 0,
        };
        let (wanted, found) = (&self.object["spec"], &found["spec"]);
        let mut fields = RESTRICTIONS.into_iter();
        fields.find(|field| length(found, field) > length(wanted, field))
    }

    /// Whether the object which the cluster has is that of this release, whatever the mode and the lists are.
    #[must_use]
    pub fn is_current(&self, found: &Value) -> bool {
        let wanted = self.clone().allowing(&Allowed::of(found));
        let mut wanted = wanted.object["spec"].clone();
        if let Some(spec) = wanted.as_object_mut().filter(|_| self.is_binding()) {
            spec.remove("validationActions");
        }
        let constraints = "matchConstraints";
        // An empty selector matches everything, so `contains` would accept a selector that matches less.
        self.added_field(found).is_none()
            && found["spec"][constraints] == wanted[constraints]
            && contains(&found["spec"], &wanted)
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
    fn only_tested_servers_are_supported() {
        assert!(is_supported("1", "30") && is_supported("1", "30+") && is_supported("1", "40"));
        assert!(!is_supported("1", "29") && !is_supported("1", "9+") && !is_supported("1", ""));
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
    fn a_restricted_object_is_not_current() {
        for manifest in manifests()
            .into_iter()
            .filter(|it| it.is_policy() || it.is_binding())
        {
            let name = manifest.full_name();
            let edited = |field: &str, value: &Value| {
                let mut found = manifest.object().clone();
                found["spec"][field] = value.clone();
                found
            };
            assert!(manifest.is_current(manifest.object()), "{name}");
            let selector = json!({"objectSelector": {"matchLabels": {"a": "b"}}});
            let mut conditions = manifest.object()["spec"]["matchConditions"].clone();
            let never = json!({"name": "never", "expression": "false"});
            match conditions.as_array_mut() {
                Some(conditions) => conditions.push(never),
                None => conditions = json!([never]),
            }
            for (field, value) in [
                ("matchResources", &selector),
                ("paramRef", &json!({"name": "a"})),
                ("matchConditions", &conditions),
            ] {
                let found = edited(field, value);
                assert_eq!(manifest.added_field(&found), Some(field), "{name}");
                assert!(!manifest.is_current(&found), "{name} {field}");
            }
            let mut found = manifest.object().clone();
            if manifest.is_policy() {
                found["spec"]["matchConstraints"]["objectSelector"] =
                    json!({"matchLabels": {"a": "b"}});
                assert!(!manifest.is_current(&found), "{name}");
            }
            // The server may add empty fields.
            let found = edited("matchResources", &json!({}));
            assert!(manifest.is_current(&found), "{name}");
        }
    }

    #[test]
    fn modes_are_those_of_the_bindings() {
        for mode in [Mode::Audit, Mode::Warn, Mode::Deny] {
            let binding = json!({"spec": {"validationActions": mode.actions()}});
            assert_eq!(Mode::of(&binding), mode);
        }
    }

    #[test]
    fn lists_are_written_read_again_and_no_other_release() {
        let mut all = manifests().into_iter();
        let node_policy = all.find(|it| it.is_policy() && it.name() == "kubectl-maint-nodes");
        let node_policy = node_policy.expect("a policy");
        assert_eq!(Allowed::of(node_policy.object()), Allowed::default());
        let allowed = Allowed {
            users: vec!["it's \"me\"".to_owned(), "system:node:ä\\".to_owned()],
            groups: vec!["ops".to_owned()],
        };
        let listed = node_policy.clone().allowing(&allowed);
        assert_eq!(Allowed::of(listed.object()), allowed);
        assert!(node_policy.is_current(listed.object()));
        let text = text_allowing(&allowed);
        let texts = text.split("\n---\n");
        let objects = texts.map(|text| serde_saphyr::from_str::<Value>(text).expect("YAML"));
        assert!(objects.into_iter().any(|object| object == *listed.object()));
        assert_eq!(text_allowing(&Allowed::default()), FILES.join("---\n"));
        for other in manifests()
            .iter()
            .filter(|it| it.path() != node_policy.path())
        {
            assert_eq!(other.clone().allowing(&allowed).object(), other.object());
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
        assert_eq!(FILES.join("---\n").split("\n---\n").count(), count);
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
