//! The content of a kubeconfig file, read as leniently as kubectl does: everything may be absent, empty
//! counts as absent, and unknown fields are ignored.
//!
//! kube refuses a whole file because of one entry that kubectl accepts, such as a context without a cluster
//! or an entry without a name (see kube-rs/kube#1076). Its types keep empty strings.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use kube::config::ExecInteractiveMode;
use serde::{Deserialize, Deserializer};

/// One kubeconfig file, or several merged.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct Kubeconfig {
    #[serde(deserialize_with = "null_as_default")]
    clusters: Vec<Named<ClusterEntry>>,
    #[serde(deserialize_with = "null_as_default")]
    users: Vec<Named<UserEntry>>,
    #[serde(deserialize_with = "null_as_default")]
    contexts: Vec<Named<ContextEntry>>,
    #[serde(deserialize_with = "nonempty")]
    pub(crate) current_context: Option<String>,
}

/// How to reach an API server.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct Cluster {
    #[serde(deserialize_with = "nonempty")]
    pub(crate) server: Option<String>,
    #[serde(deserialize_with = "nonempty")]
    pub(crate) tls_server_name: Option<String>,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) insecure_skip_tls_verify: bool,
    #[serde(deserialize_with = "nonempty")]
    pub(crate) certificate_authority: Option<String>,
    #[serde(deserialize_with = "nonempty")]
    pub(crate) certificate_authority_data: Option<String>,
    #[serde(deserialize_with = "nonempty")]
    pub(crate) proxy_url: Option<String>,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) extensions: Vec<Extension>,
}

/// Data of another program in a kubeconfig.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Extension {
    pub(crate) name: String,
    pub(crate) extension: serde_json::Value,
}

/// The credentials of a user. It contains secrets, so it has no `Debug`.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct User {
    #[serde(deserialize_with = "nonempty")]
    pub(crate) token: Option<String>,
    #[serde(rename = "tokenFile", deserialize_with = "nonempty")]
    pub(crate) token_file: Option<String>,
    #[serde(deserialize_with = "nonempty")]
    pub(crate) client_certificate: Option<String>,
    #[serde(deserialize_with = "nonempty")]
    pub(crate) client_certificate_data: Option<String>,
    #[serde(deserialize_with = "nonempty")]
    pub(crate) client_key: Option<String>,
    #[serde(deserialize_with = "nonempty")]
    pub(crate) client_key_data: Option<String>,
    #[serde(rename = "as", deserialize_with = "nonempty")]
    pub(crate) impersonate: Option<String>,
    #[serde(rename = "as-uid", deserialize_with = "nonempty")]
    pub(crate) impersonate_uid: Option<String>,
    #[serde(rename = "as-groups", deserialize_with = "null_as_default")]
    pub(crate) impersonate_groups: Vec<String>,
    #[serde(rename = "as-user-extra", deserialize_with = "null_as_default")]
    pub(crate) impersonate_extra: HashMap<String, Vec<String>>,
    pub(crate) auth_provider: Option<AuthProvider>,
    pub(crate) exec: Option<Exec>,
}

/// An authentication method that was once built into kubectl.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AuthProvider {
    pub(crate) name: String,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) config: HashMap<String, String>,
}

/// A program that returns credentials.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Exec {
    pub(crate) api_version: String,
    pub(crate) command: String,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) args: Vec<String>,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) env: Vec<Variable>,
    #[serde(deserialize_with = "nonempty")]
    pub(crate) install_hint: Option<String>,
    pub(crate) provide_cluster_info: bool,
    pub(crate) interactive_mode: Option<ExecInteractiveMode>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// A cluster, a user and a namespace.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Context {
    #[serde(deserialize_with = "nonempty")]
    pub(crate) cluster: Option<String>,
    #[serde(deserialize_with = "nonempty")]
    pub(crate) user: Option<String>,
    #[serde(deserialize_with = "nonempty")]
    pub(crate) namespace: Option<String>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct Named<T: Default> {
    name: String,
    #[serde(flatten)]
    entry: T,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct ClusterEntry {
    #[serde(deserialize_with = "null_as_default")]
    cluster: Cluster,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct UserEntry {
    #[serde(deserialize_with = "null_as_default")]
    user: User,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct ContextEntry {
    #[serde(deserialize_with = "null_as_default")]
    context: Context,
}

/// The names in the kubeconfig, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KubeconfigNames {
    /// The values for `--context`.
    pub contexts: Vec<String>,
    /// The values for `--cluster`.
    pub clusters: Vec<String>,
    /// The values for `--user`.
    pub users: Vec<String>,
}

impl Kubeconfig {
    /// Parses a file's text.
    ///
    /// # Errors
    /// Where the text can't be read. The message shows nothing of its content, because that may be a secret.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let config: Result<Option<Self>, _> = serde_saphyr::from_str(text);
        config.map(Option::unwrap_or_default).map_err(|err| {
            let at = err.location();
            let at = at.map(|at| format!("line {}, column {}: ", at.line(), at.column()));
            format!("yaml: {}this is not a kubeconfig", at.unwrap_or_default())
        })
    }

    /// Merges a later file. If both files define an entry with the same name, the first one is used as a
    /// whole.
    pub(super) fn merge(&mut self, later: Self) {
        append_new(&mut self.clusters, later.clusters);
        append_new(&mut self.users, later.users);
        append_new(&mut self.contexts, later.contexts);
        self.current_context = self.current_context.take().or(later.current_context);
    }

    /// Makes its relative paths relative to the directory of the file.
    pub(super) fn resolve_paths(&mut self, directory: &Path) {
        let resolve = |path: &mut Option<String>| {
            if let Some(path) = path {
                *path = directory.join(&path).to_string_lossy().into_owned();
            }
        };
        for Named {
            entry: ClusterEntry { cluster },
            ..
        } in &mut self.clusters
        {
            resolve(&mut cluster.certificate_authority);
        }
        for Named {
            entry: UserEntry { user },
            ..
        } in &mut self.users
        {
            resolve(&mut user.client_certificate);
            resolve(&mut user.client_key);
            resolve(&mut user.token_file);
            // A bare name is looked up in PATH instead.
            if let Some(exec) = user
                .exec
                .as_mut()
                .filter(|exec| exec.command.contains(std::path::MAIN_SEPARATOR))
            {
                exec.command = directory.join(&exec.command).to_string_lossy().into_owned();
            }
        }
    }

    pub(crate) fn names(&self) -> KubeconfigNames {
        KubeconfigNames {
            contexts: names(&self.contexts),
            clusters: names(&self.clusters),
            users: names(&self.users),
        }
    }

    pub(crate) fn cluster(&self, name: &str) -> Option<&Cluster> {
        find(&self.clusters, name).map(|entry| &entry.cluster)
    }

    pub(crate) fn user(&self, name: &str) -> Option<&User> {
        find(&self.users, name).map(|entry| &entry.user)
    }

    pub(crate) fn context(&self, name: &str) -> Option<&Context> {
        find(&self.contexts, name).map(|entry| &entry.context)
    }
}

fn names<T: Default>(entries: &[Named<T>]) -> Vec<String> {
    entries.iter().map(|entry| entry.name.clone()).collect()
}

fn append_new<T: Default>(entries: &mut Vec<Named<T>>, later: Vec<Named<T>>) {
    let mut known: HashSet<String> = names(entries).into_iter().collect();
    entries.extend(
        later
            .into_iter()
            .filter(|entry| known.insert(entry.name.clone())),
    );
}

fn find<'a, T: Default>(entries: &'a [Named<T>], name: &str) -> Option<&'a T> {
    entries
        .iter()
        .find(|entry| entry.name == name)
        .map(|entry| &entry.entry)
}

fn nonempty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.filter(|text| !text.is_empty()))
}

fn null_as_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_file_to_name_something_wins() {
        let mut merged = Kubeconfig::parse(
            "{current-context: '', clusters: [{name: a, cluster: {server: first}}], users: null}",
        )
        .unwrap();
        merged.merge(
            Kubeconfig::parse(
                "{current-context: later, clusters: [{name: a, cluster: {server: second, proxy-url: p}}, {name: b}],
                  users: [{name: u, user: {token: t}}]}",
            )
            .unwrap(),
        );
        assert_eq!(merged.current_context.as_deref(), Some("later"));
        assert_eq!(
            merged.cluster("a").unwrap().server.as_deref(),
            Some("first")
        );
        assert_eq!(merged.cluster("a").unwrap().proxy_url, None);
        assert!(merged.cluster("b").is_some());
        assert!(merged.user("u").is_some());
    }

    #[test]
    fn incomplete_entries_and_unknown_fields_do_no_harm() {
        let config = Kubeconfig::parse(
            "apiVersion: v1\nkind: Config\npreferences: {}\nextra: [1]\ncontexts:\n- name: x\n  context: {}\n- {}\n\
             users:\n- name: u\n  user:\n    exec: {command: c, apiVersion: v, env: null, interactiveMode: Never}\n",
        )
        .unwrap();
        assert!(config.context("x").unwrap().cluster.is_none());
        assert_eq!(
            config
                .user("u")
                .unwrap()
                .exec
                .as_ref()
                .unwrap()
                .interactive_mode,
            Some(ExecInteractiveMode::Never)
        );
    }

    #[test]
    fn an_empty_file_is_an_empty_config() {
        for text in ["", "---\n", "# nothing\n", "null\n"] {
            assert!(
                Kubeconfig::parse(text).unwrap().current_context.is_none(),
                "{text:?}"
            );
        }
    }

    #[test]
    fn complaints_name_the_place_and_show_nothing_of_the_content() {
        for text in [
            "users:\n- name: u\n  user: s3cret\n",
            "users: s3cret\n",
            "users: [{name: u, user: {token: [s3cret]}}]",
            "users: [{token: s3cret\n",
        ] {
            let complaint = Kubeconfig::parse(text).err().expect(text);
            assert!(!complaint.contains("s3cret"), "{complaint}");
            assert!(complaint.starts_with("yaml: line "), "{complaint}");
        }
    }

    #[test]
    fn paths_are_relative_to_the_file() {
        let mut config = Kubeconfig::parse(
            "clusters: [{name: c, cluster: {certificate-authority: ca.crt}}]
users:
- name: u
  user: {client-certificate: /abs/u.crt, client-key: keys/u.key, tokenFile: t, exec: {command: ./login}}
- name: v
  user: {exec: {command: aws}}",
        )
        .unwrap();
        config.resolve_paths(Path::new("/etc/kube"));
        assert_eq!(
            config
                .cluster("c")
                .unwrap()
                .certificate_authority
                .as_deref(),
            Some("/etc/kube/ca.crt")
        );
        let user = config.user("u").unwrap();
        assert_eq!(user.client_certificate.as_deref(), Some("/abs/u.crt"));
        assert_eq!(user.client_key.as_deref(), Some("/etc/kube/keys/u.key"));
        assert_eq!(user.token_file.as_deref(), Some("/etc/kube/t"));
        assert_eq!(user.exec.as_ref().unwrap().command, "/etc/kube/./login");
        assert_eq!(
            config.user("v").unwrap().exec.as_ref().unwrap().command,
            "aws"
        );
    }
}
