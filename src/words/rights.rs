//! How to get a missing right: the roles of deploy/rbac.yaml that are meant for the requested verb.

use maintenance_lease::{HEARTBEATS, NAMESPACE, Right};

/// The manifest with the rights that the verbs need.
const MANIFEST: &str = "deploy/rbac.yaml";

/// What a fencer needs to judge a node, if it is unknown which right is missing.
pub(crate) const TO_JUDGE: &str =
    "deploy/rbac.yaml (ClusterRole kubectl-maint-fencer) grants it to group kubectl-maint:fencers";

const NODES: &str = "nodes";
const LEASES: &str = "leases.coordination.k8s.io";
const PODS: &str = "pods";

/// The read-only verbs. For these, roles that fence or delete are never suggested.
const LOOKING: &[&str] = &["status", "wait", "leases"];
const FENCING: &[&str] = &["fence", "unfence"];
const DELETING: &[&str] = &["force-delete"];
const ANYTHING: &[&str] = &[];

/// What a role grants.
struct Grant {
    /// The verbs that the role is meant for; empty: all.
    meant_for: &'static [&'static str],
    rights: &'static [&'static str],
    resource: &'static str,
    within: Within,
    role: &'static str,
    /// Who is bound to it.
    group: Option<&'static str>,
}

/// The scope of a right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    /// In all namespaces, or for objects without a namespace.
    Cluster,
    Namespace(&'static str),
    /// In the namespace of the binding.
    Any,
}

/// The roles of the manifest, those with the fewest rights first.
const GRANTS: [Grant; 14] = [
    Grant {
        meant_for: LOOKING,
        rights: &["get", "list", "watch"],
        resource: NODES,
        within: Within::Cluster,
        role: "ClusterRole kubectl-maint-viewer",
        group: Some("kubectl-maint:viewers"),
    },
    Grant {
        meant_for: FENCING,
        rights: &["get", "list", "patch"],
        resource: NODES,
        within: Within::Cluster,
        role: "ClusterRole kubectl-maint-fencer",
        group: Some("kubectl-maint:fencers"),
    },
    Grant {
        meant_for: DELETING,
        rights: &["get", "list", "delete"],
        resource: NODES,
        within: Within::Cluster,
        role: "ClusterRole kubectl-maint-operator",
        group: Some("kubectl-maint:operators"),
    },
    Grant {
        meant_for: ANYTHING,
        rights: &["get", "list", "watch"],
        resource: NODES,
        within: Within::Cluster,
        role: "ClusterRole kubectl-maint-user",
        group: Some("kubectl-maint:users"),
    },
    Grant {
        meant_for: LOOKING,
        rights: &["get", "list", "watch"],
        resource: LEASES,
        within: Within::Namespace(NAMESPACE),
        role: "Role kubectl-maint-viewer",
        group: Some("kubectl-maint:viewers"),
    },
    Grant {
        meant_for: ANYTHING,
        rights: &["get", "list", "watch", "create", "patch"],
        resource: LEASES,
        within: Within::Namespace(NAMESPACE),
        role: "Role kubectl-maint-user",
        group: Some("kubectl-maint:users"),
    },
    Grant {
        meant_for: ANYTHING,
        rights: &["hold"],
        resource: LEASES,
        within: Within::Namespace(NAMESPACE),
        role: "Role kubectl-maint-holder",
        group: Some("kubectl-maint:holders"),
    },
    Grant {
        meant_for: ANYTHING,
        rights: &["takeover"],
        resource: LEASES,
        within: Within::Namespace(NAMESPACE),
        role: "Role kubectl-maint-takeover",
        group: Some("kubectl-maint:administrators"),
    },
    Grant {
        meant_for: ANYTHING,
        rights: &["get", "list"],
        resource: LEASES,
        within: Within::Namespace(HEARTBEATS),
        role: "Role kubectl-maint-heartbeats",
        group: Some("kubectl-maint:viewers"),
    },
    Grant {
        meant_for: ANYTHING,
        rights: &["get", "list", "watch", "create", "patch"],
        resource: LEASES,
        within: Within::Cluster,
        role: "ClusterRole kubectl-maint-administrator",
        group: Some("kubectl-maint:administrators"),
    },
    Grant {
        meant_for: ANYTHING,
        rights: &["create"],
        resource: "namespaces",
        within: Within::Cluster,
        role: "ClusterRole kubectl-maint-administrator",
        group: Some("kubectl-maint:administrators"),
    },
    Grant {
        meant_for: FENCING,
        rights: &["list"],
        resource: PODS,
        within: Within::Cluster,
        role: "ClusterRole kubectl-maint-fencer",
        group: Some("kubectl-maint:fencers"),
    },
    Grant {
        meant_for: DELETING,
        rights: &["get", "list", "delete"],
        resource: PODS,
        within: Within::Cluster,
        role: "ClusterRole kubectl-maint-operator",
        group: Some("kubectl-maint:operators"),
    },
    Grant {
        meant_for: DELETING,
        rights: &["get", "list", "delete"],
        resource: PODS,
        within: Within::Any,
        role: "ClusterRole kubectl-maint-owner",
        group: None,
    },
];

impl Grant {
    fn grants(&self, right: &Right, verb: &str) -> bool {
        let is_within = match (self.within, right.namespace.as_deref()) {
            (Within::Cluster, None) | (Within::Any, Some(_)) => true,
            (Within::Namespace(ours), Some(namespace)) => ours == namespace,
            (Within::Cluster, Some(_)) | (Within::Any | Within::Namespace(_), None) => false,
        };
        let is_meant = self.meant_for.is_empty() || self.meant_for.contains(&verb);
        is_within
            && is_meant
            && self.resource == right.resource
            && self.rights.contains(&right.verb)
    }
}

/// How to get `right` for a user who typed `verb`.
pub(crate) fn granted(right: &Right, verb: &str) -> String {
    let Some(Grant { role, group, .. }) = GRANTS.iter().find(|grant| grant.grants(right, verb))
    else {
        return "ask your cluster's administrator".to_owned();
    };
    match (group, &right.namespace) {
        (Some(group), _) => format!("{MANIFEST} ({role}) grants it to group {group}"),
        (None, Some(namespace)) => {
            format!("{MANIFEST} ({role}) grants it if bound in namespace {namespace}")
        }
        (None, None) => format!("{MANIFEST} ({role}) grants it"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// The objects of the manifest.
    fn manifest() -> Vec<Value> {
        let text = include_str!("../../deploy/rbac.yaml");
        text.split("\n---\n")
            .map(|object| serde_saphyr::from_str(object).expect("YAML"))
            .collect()
    }

    fn has(list: &Value, wanted: &str) -> bool {
        let list = list.as_array().expect("a list");
        list.iter().any(|item| item == wanted)
    }

    /// The groups that get this role by a binding in `namespace` (`""`: in all).
    fn groups(objects: &[Value], (kind, name): (&str, &str), namespace: &str) -> Vec<String> {
        let binding = match namespace {
            "" => "ClusterRoleBinding",
            _ => "RoleBinding",
        };
        let bindings = objects.iter().filter(|object| {
            let role = &object["roleRef"];
            let is_there = object["metadata"]["namespace"].as_str().unwrap_or_default();
            let is_of_role = role["kind"] == kind && role["name"] == name;
            object["kind"] == binding && is_there == namespace && is_of_role
        });
        let subjects = bindings.flat_map(|binding| binding["subjects"].as_array().expect("some"));
        subjects
            .filter(|subject| subject["kind"] == "Group")
            .map(|subject| subject["name"].as_str().expect("a name").to_owned())
            .collect()
    }

    #[test]
    fn the_manifest_grants_what_is_said_of_it() {
        let objects = manifest();
        for grant in &GRANTS {
            let (kind, name) = grant.role.split_once(' ').expect("a kind and a name");
            let namespace = match (kind, grant.within) {
                ("Role", Within::Namespace(namespace)) => namespace,
                ("ClusterRole", Within::Cluster | Within::Any) => "",
                other => panic!("{}: {other:?}", grant.role),
            };
            let role = objects.iter().find(|object| {
                let metadata = &object["metadata"];
                let is_there = metadata["namespace"].as_str().unwrap_or_default();
                object["kind"] == kind && metadata["name"] == name && is_there == namespace
            });
            let rules = &role.unwrap_or_else(|| panic!("no {}", grant.role))["rules"];
            let (resource, group) = grant
                .resource
                .split_once('.')
                .unwrap_or((grant.resource, ""));
            for right in grant.rights {
                let mut rules = rules.as_array().expect("rules").iter();
                let is_granted = rules.any(|rule| {
                    has(&rule["apiGroups"], group)
                        && has(&rule["resources"], resource)
                        && has(&rule["verbs"], right)
                });
                assert!(is_granted, "{} has no {right} {resource}", grant.role);
            }
            let bound = groups(&objects, (kind, name), namespace);
            match grant.group {
                Some(group) => assert!(bound.iter().any(|bound| bound == group), "{bound:?}"),
                None => assert!(bound.is_empty(), "{} of {bound:?}", grant.role),
            }
        }
    }

    #[test]
    fn what_judges_a_node_is_granted_to_fencers() {
        let role = ("ClusterRole", "kubectl-maint-fencer");
        assert!(TO_JUDGE.starts_with(MANIFEST), "{TO_JUDGE}");
        assert!(TO_JUDGE.contains(role.1), "{TO_JUDGE}");
        let groups = groups(&manifest(), role, "");
        assert!(TO_JUDGE.ends_with(&*groups[0]), "{groups:?}");
    }

    #[test]
    fn the_role_is_one_for_what_was_asked_or_nobodys() {
        let right = |verb, resource, namespace: Option<&str>| Right {
            verb,
            resource,
            namespace: namespace.map(ToOwned::to_owned),
        };
        let nobodys = "ask your cluster's administrator";
        for (asked, verb, reported) in [
            (
                right("list", NODES, None),
                "status",
                "deploy/rbac.yaml (ClusterRole kubectl-maint-viewer) grants it to group \
                 kubectl-maint:viewers",
            ),
            (
                right("patch", NODES, None),
                "fence",
                "deploy/rbac.yaml (ClusterRole kubectl-maint-fencer) grants it to group \
                 kubectl-maint:fencers",
            ),
            (
                right("get", LEASES, Some(NAMESPACE)),
                "acquire",
                "deploy/rbac.yaml (Role kubectl-maint-user) grants it to group kubectl-maint:users",
            ),
            (
                right("list", LEASES, None),
                "leases",
                "deploy/rbac.yaml (ClusterRole kubectl-maint-administrator) grants it to group \
                 kubectl-maint:administrators",
            ),
            (right("list", LEASES, Some("shop")), "leases", nobodys),
            (right("list", PODS, None), "status", nobodys),
            (
                right("list", PODS, None),
                "force-delete",
                "deploy/rbac.yaml (ClusterRole kubectl-maint-operator) grants it to group \
                 kubectl-maint:operators",
            ),
            (
                right("get", PODS, Some("shop")),
                "force-delete",
                "deploy/rbac.yaml (ClusterRole kubectl-maint-owner) grants it if bound in namespace \
                 shop",
            ),
            (right("patch", NODES, None), "status", nobodys),
            (right("delete", LEASES, Some(NAMESPACE)), "acquire", nobodys),
        ] {
            assert_eq!(granted(&asked, verb), reported, "{asked} for {verb}");
        }
    }
}
