//! Users and their rights.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::authority::Identity;
use crate::kubeconfig::Kubeconfig;
use crate::plane::ControlPlane;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
/// The time limit until new rights have taken effect. The server's authorizer watches its store, so this usually takes
/// milliseconds.
const EFFECT_LIMIT: Duration = Duration::from_secs(30);

/// One rule of a role: verbs and resources.
#[derive(Debug, Clone)]
pub struct Rule {
    api_group: String,
    resources: Vec<String>,
    verbs: Vec<String>,
    names: Vec<String>,
}

impl Rule {
    /// Allows `verbs` on `resources` of an API group (`""` is the core group).
    #[must_use]
    pub fn new(api_group: &str, resources: &[&str], verbs: &[&str]) -> Self {
        Self {
            api_group: api_group.to_owned(),
            resources: owned(resources),
            verbs: owned(verbs),
            names: Vec::new(),
        }
    }

    /// Limits the rule to objects with these names.
    #[must_use]
    pub fn named(mut self, names: &[&str]) -> Self {
        self.names = owned(names);
        self
    }

    fn json(&self) -> Value {
        json!({
            "apiGroups": [self.api_group],
            "resources": self.resources,
            "verbs": self.verbs,
            "resourceNames": self.names,
        })
    }
}

impl ControlPlane {
    /// Returns a kubeconfig for a user with this name and these groups (at most two). The user has only the rights that
    /// every user has.
    ///
    /// # Errors
    /// If there are too many groups, or the file can't be written.
    pub fn user(&self, name: &str, groups: &[&str]) -> Result<PathBuf> {
        let identity = self.identity(name, groups)?;
        self.write_kubeconfig(name, &identity)
    }

    /// Returns a client certificate for a user, for tests that connect by themselves.
    ///
    /// # Errors
    /// If there are more than two groups.
    pub fn identity(&self, name: &str, groups: &[&str]) -> Result<Identity> {
        self.authority().client(name, groups)
    }

    /// Writes a kubeconfig that authenticates as `identity`, to a file with a unique name.
    ///
    /// # Errors
    /// If the file can't be written.
    pub fn write_kubeconfig(&self, name: &str, identity: &Identity) -> Result<PathBuf> {
        let path = self
            .directory()
            .join(format!("user-{:016x}.kubeconfig", fastrand::u64(..)));
        let ca_pem = self.authority().pem();
        Kubeconfig {
            server: self.url(),
            ca_pem: &ca_pem,
            user: name,
            identity,
        }
        .write(&path)?;
        Ok(path)
    }

    /// Grants a user these rights in all namespaces, in addition to existing rights. Waits until they have taken
    /// effect.
    ///
    /// # Errors
    /// If the API server refuses.
    pub fn grant(&self, user: &str, rules: &[Rule]) -> Result<()> {
        let role = format!("test-{:016x}", fastrand::u64(..));
        let rules: Vec<Value> = rules.iter().map(Rule::json).collect();
        let body = json!({"metadata": {"name": role}, "rules": rules});
        self.api()
            .post(&format!("{RBAC}/clusterroles"), &body)
            .with_context(|| format!("failed to make a role for {user}"))?;
        self.bind(user, &role)
    }

    /// Grants a user the rights of a ClusterRole in all namespaces. Waits until they have taken effect.
    ///
    /// # Errors
    /// If the role does not exist, or the API server refuses.
    pub fn bind(&self, user: &str, cluster_role: &str) -> Result<()> {
        let role = self
            .api()
            .get(&format!("{RBAC}/clusterroles/{cluster_role}"))
            .with_context(|| format!("failed to read the ClusterRole {cluster_role}"))?;
        let body = json!({
            "metadata": {"name": format!("test-{:016x}", fastrand::u64(..))},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": cluster_role,
            },
            "subjects": [{
                "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user,
            }],
        });
        self.api()
            .post(&format!("{RBAC}/clusterrolebindings"), &body)
            .with_context(|| format!("failed to bind {user} to {cluster_role}"))?;
        for rule in role["rules"].as_array().into_iter().flatten() {
            self.await_right(user, rule)?;
        }
        Ok(())
    }

    /// Waits until a rule has taken effect. All rights of a rule take effect together, so one access review for each
    /// rule is enough.
    fn await_right(&self, user: &str, rule: &Value) -> Result<()> {
        let resource = rule["resources"][0].as_str().unwrap_or_default();
        if resource.is_empty() {
            return Ok(());
        }
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let review = json!({"spec": {"user": user, "resourceAttributes": {
            "group": rule["apiGroups"][0],
            "resource": resource,
            "subresource": subresource,
            "verb": rule["verbs"][0],
            "name": rule["resourceNames"][0],
        }}});
        await_effect(&format!("{user}: {rule}"), || self.is_allowed(&review))
    }

    /// Whether the API server allows this to a user in these groups. A resource outside the core group needs its group,
    /// as in `leases.coordination.k8s.io`. An empty namespace means all namespaces.
    ///
    /// # Errors
    /// If the API server does not answer.
    pub fn allows(
        &self,
        groups: &[&str],
        verb: &str,
        resource: &str,
        namespace: &str,
    ) -> Result<bool> {
        let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
        let groups = [groups, &["system:authenticated"]].concat();
        self.is_allowed(&json!({
            "spec": {"user": "somebody", "groups": groups, "resourceAttributes": {
                "group": group,
                "resource": resource,
                "verb": verb,
                "namespace": namespace,
            }},
        }))
    }

    /// Waits until the API server [allows](Self::allows) this.
    ///
    /// # Errors
    /// If it is not allowed within 30 seconds.
    pub fn await_allowed(
        &self,
        groups: &[&str],
        verb: &str,
        resource: &str,
        namespace: &str,
    ) -> Result<()> {
        let right = format!("{groups:?}: {verb} {resource} in {namespace:?}");
        await_effect(&right, || self.allows(groups, verb, resource, namespace))
    }

    fn is_allowed(&self, review: &Value) -> Result<bool> {
        let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let answer = self.api().post(reviews, review);
        let answer = answer.context("failed to ask what a user may do")?;
        Ok(answer["status"]["allowed"] == true)
    }
}

/// Repeats `is_allowed` until it returns true.
fn await_effect(right: &str, is_allowed: impl Fn() -> Result<bool>) -> Result<()> {
    let deadline = Instant::now() + EFFECT_LIMIT;
    while !is_allowed()? {
        ensure!(Instant::now() < deadline, "still not allowed: {right}");
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}
