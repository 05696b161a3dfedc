//! Machines of Cluster API and OpenShift, and kubeconfigs with the contexts of their clusters.

use std::path::{Path, PathBuf};
use std::sync::Once;
use std::thread::sleep;
use std::time::Duration;

use kube::config::Kubeconfig;
use serde_json::{Value, json};

use super::cluster::Cluster;

/// The path of medik8s' Leases.
pub(crate) const MEDIK8S: &str = "/apis/coordination.k8s.io/v1/namespaces/medik8s-leases/leases";

/// The paths of the Machines.
const CLUSTER_API: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines";
const OPENSHIFT: &str = "/apis/machine.openshift.io/v1beta1/namespaces/default/machines";

impl Cluster {
    /// Gives `node` a Machine of Cluster API, and returns the path of the Machine.
    pub(crate) fn machine(&self, node: &str) -> String {
        self.install_machines();
        let name = format!("{node}-machine");
        let names = json!({
            "cluster.x-k8s.io/machine": name,
            "cluster.x-k8s.io/cluster-namespace": "default",
        });
        let metadata = json!({"metadata": {"annotations": names}});
        self.patch(&format!("/api/v1/nodes/{node}"), &metadata);
        self.create_machine("cluster.x-k8s.io/v1beta2", CLUSTER_API, &name, node)
    }

    /// Gives `node` another Machine of Cluster API, as if it had been provisioned again, and returns the path of that
    /// Machine.
    pub(crate) fn later_machine(&self, node: &str) -> String {
        let name = format!("{node}-later");
        let metadata = json!({"metadata": {"annotations": {"cluster.x-k8s.io/machine": name}}});
        self.patch(&format!("/api/v1/nodes/{node}"), &metadata);
        self.create_machine("cluster.x-k8s.io/v1beta2", CLUSTER_API, &name, node)
    }

    /// Gives `node` a Machine of OpenShift, which another operator protects with a hook. Returns the path of the
    /// Machine.
    pub(crate) fn openshift_machine(&self, node: &str) -> String {
        self.install_machines();
        let name = format!("{node}-machine");
        let reference = json!({"machine.openshift.io/machine": format!("default/{name}")});
        let metadata = json!({"metadata": {"annotations": reference}});
        self.patch(&format!("/api/v1/nodes/{node}"), &metadata);
        self.create_machine("machine.openshift.io/v1beta1", OPENSHIFT, &name, node)
    }

    fn create_machine(&self, version: &str, path: &str, name: &str, node: &str) -> String {
        let hooks = json!([{"name": "etcd-quorum", "owner": "clusteroperator/etcd"}]);
        let spec = match version.starts_with("machine.openshift.io") {
            true => json!({"lifecycleHooks": {"preDrain": hooks}}),
            false => json!({"clusterName": "workload"}),
        };
        self.create(
            path,
            &json!({
                "apiVersion": version,
                "kind": "Machine",
                "metadata": {"name": name, "annotations": {"example.com/rack": "7"}},
                "spec": spec,
                "status": {"nodeRef": {"name": node}},
            }),
        );
        format!("{path}/{name}")
    }

    /// Creates the namespace of medik8s' Leases, if no other test has created it.
    pub(crate) fn install_medik8s(&self) {
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "medik8s-leases"},
        });
        if self
            .try_send("POST", "/api/v1/namespaces", Some(&namespace))
            .is_err()
        {
            self.get("/api/v1/namespaces/medik8s-leases");
        }
    }

    /// A kubeconfig for this cluster with more contexts. Each is the current context of another kubeconfig.
    pub(crate) fn with_contexts(&self, contexts: &[(&str, &Path)]) -> PathBuf {
        let read = |path: &Path| Kubeconfig::read_from(path).expect("a kubeconfig");
        let mut all = read(&self.kubeconfig);
        let mut file = String::from("contexts");
        for (name, path) in contexts {
            let mut other = read(path);
            let current = other.current_context.take().expect("a context");
            let context = other.contexts.iter_mut().find(|it| it.name == current);
            let context = context.expect("the current context");
            (*name).clone_into(&mut context.name);
            let inner = context.context.as_mut().expect("a context");
            let cluster = other
                .clusters
                .iter_mut()
                .find(|it| it.name == inner.cluster);
            let cluster = cluster.expect("its cluster");
            cluster.name = format!("{name}-cluster");
            inner.cluster.clone_from(&cluster.name);
            let user = inner.user.as_mut();
            if let Some(user) = user
                && let Some(found) = other.auth_infos.iter_mut().find(|it| it.name == *user)
            {
                found.name = format!("{name}-user");
                user.clone_from(&found.name);
            }
            all.contexts.extend(other.contexts);
            all.clusters.extend(other.clusters);
            all.auth_infos.extend(other.auth_infos);
            file = format!("{file}-{name}");
        }
        let text = serde_json::to_string(&without_nulls(&json!(all))).expect("JSON");
        let path = self.directory().join(file);
        std::fs::write(&path, text).expect("a kubeconfig");
        path
    }

    /// `kubeconfig` with one more context, `name`. It leads to the same cluster, but its credential plugin is this
    /// shell script.
    pub(crate) fn with_plugin(&self, kubeconfig: &Path, name: &str, script: &str) -> PathBuf {
        let mut all = json!(Kubeconfig::read_from(kubeconfig).expect("a kubeconfig"));
        let cluster = all["contexts"][0]["context"]["cluster"].clone();
        let exec = json!({
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "sh",
            "args": ["-c", script],
            "interactiveMode": "Never",
        });
        let more = [
            ("users", json!({"name": name, "user": {"exec": exec}})),
            (
                "contexts",
                json!({"name": name, "context": {"cluster": cluster, "user": name}}),
            ),
        ];
        for (list, item) in more {
            let list = all[list].as_array_mut().expect("a list");
            list.push(item);
        }
        let text = serde_json::to_string(&without_nulls(&all)).expect("JSON");
        let path = self.directory().join(format!("with-{name}"));
        std::fs::write(&path, text).expect("a kubeconfig");
        path
    }

    /// The kubeconfig of the administrator.
    pub(crate) fn admin(&self) -> &Path {
        &self.kubeconfig
    }

    /// Makes the Machine resources known to the real server.
    fn install_machines(&self) {
        static INSTALLED: Once = Once::new();
        if self.real.is_some() {
            INSTALLED.call_once(|| {
                self.install("cluster.x-k8s.io", "v1beta2", CLUSTER_API);
                self.install("machine.openshift.io", "v1beta1", OPENSHIFT);
            });
        }
    }

    fn install(&self, group: &str, version: &str, path: &str) {
        let hook = json!({
            "type": "object",
            "required": ["name", "owner"],
            "properties": {
                "name": {"type": "string", "minLength": 3},
                "owner": {"type": "string", "minLength": 3},
            },
        });
        let schema = json!({
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"spec": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"lifecycleHooks": {
                    "type": "object",
                    "properties": {"preDrain": {
                        "type": "array",
                        "items": hook,
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                    }},
                }},
            }},
        });
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": format!("machines.{group}"),
                "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
            },
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"kind": "Machine", "plural": "machines", "singular": "machine"},
                "versions": [{
                    "name": version, "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": schema},
                }],
            },
        });
        let path_of_definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        self.create(path_of_definitions, &definition);
        for _ in 0..600 {
            if self.try_send("GET", path, None).is_ok() {
                return;
            }
            sleep(Duration::from_millis(50));
        }
        panic!("{path} is not served");
    }
}

/// `value` without fields that are null, which kubectl's format does not have.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            let fields = fields.map(|(name, value)| (name.clone(), without_nulls(value)));
            Value::Object(fields.collect())
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}
