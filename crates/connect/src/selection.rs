//! Selects the API server and the user: the kubeconfig's context, overridden by the flags with kubectl's
//! precedence.
//!
//! Gap in kube: it accepts only context, cluster and user, none of kubectl's other flags. If the user is
//! missing, it continues as an anonymous user (kube-rs/kube#1594).

use std::collections::HashMap;
use std::path::Path;

use http::Uri;

use super::environment::Environment;
use super::error::ConnectError;
use super::kubeconfig::{self, Cluster, Context, Kubeconfig, User};
use crate::flags::Flags;

/// kubectl's server if none is configured.
const DEFAULT_SERVER: &str = "http://localhost:8080";

/// An API server and a user, with everything known about both.
pub(super) struct ConnectTarget {
    pub(super) context: Option<String>,
    pub(super) server: Uri,
    pub(super) cluster: Cluster,
    pub(super) user: User,
    pub(super) user_description: Option<String>,
    pub(super) namespace: String,
}

impl ConnectTarget {
    /// Whether requests use TLS. Credentials are only sent with TLS.
    pub(super) fn is_secure(&self) -> bool {
        self.server.scheme_str() == Some("https")
    }
}

/// Selects the target of this command line.
pub(super) fn select(
    args: &Flags,
    environment: &Environment,
) -> Result<ConnectTarget, ConnectError> {
    let config = kubeconfig::load(args.kubeconfig.as_deref(), environment)?;
    let (context_name, context) = context(&config, args)?;
    let (cluster_name, cluster) = cluster(&config, context, args)?;
    let (user_name, user) = user(&config, context, args)?;

    let nowhere = cluster.is_none() && args.server.is_none();
    let account = service_account(environment);
    let has_account = account.is_some();
    let pod = account.filter(|_| nowhere);
    let in_pod = pod.is_some();
    let (mut cluster, mut user) = match pod {
        Some((api_server, account)) => (api_server, account),
        None => (
            cluster.cloned().unwrap_or_default(),
            user.cloned().unwrap_or_default(),
        ),
    };
    override_cluster(&mut cluster, args);
    override_user(&mut user, args);
    check_cluster(&cluster)?;
    check_user(&user, user_name)?;

    let server = match (cluster.server.as_deref(), cluster_name) {
        (Some(server), _) => server,
        (None, "") => environment
            .get("KUBERNETES_MASTER")
            .unwrap_or(DEFAULT_SERVER),
        (None, name) => {
            let missing = format!("no server found for cluster {name:?}");
            return Err(ConnectError::new(missing));
        }
    };
    // As in client-go, also if the server is another one.
    let of_pod = || has_account.then(|| pod_namespace(environment)).flatten();
    let of_context = || context.and_then(|context| context.namespace.clone());
    let namespace = nonempty(args.namespace.as_ref())
        .or_else(of_context)
        .or_else(of_pod);
    Ok(ConnectTarget {
        context: context.map(|_| context_name.to_owned()),
        server: server_url(server)?,
        user_description: describe_user(&user, user_name, in_pod),
        cluster,
        user,
        namespace: namespace.unwrap_or_else(|| "default".to_owned()),
    })
}

/// A name, and the entry of this name in the kubeconfig.
type Entry<'a, T> = (&'a str, Option<&'a T>);

/// The entry that a flag or the kubeconfig refers to.
fn existing<'a, T>(
    kind: &str,
    name: &'a str,
    entry: Option<&'a T>,
) -> Result<Entry<'a, T>, ConnectError> {
    match entry {
        Some(_) => Ok((name, entry)),
        None => Err(
            ConnectError::new(format!("{kind} {name:?} does not exist")).with_hint(format!(
                "list the {kind}s with `kubectl config get-{kind}s`"
            )),
        ),
    }
}

/// The context of the flag or the kubeconfig, if there is one.
fn context<'a>(
    config: &'a Kubeconfig,
    args: &'a Flags,
) -> Result<Entry<'a, Context>, ConnectError> {
    let from_flag = args.context.as_deref().filter(|name| !name.is_empty());
    match from_flag.or(config.current_context.as_deref()) {
        Some(name) => existing("context", name, config.context(name)),
        None => Ok(("", None)),
    }
}

/// The cluster of the flag or the context, if one of them names a cluster.
fn cluster<'a>(
    config: &'a Kubeconfig,
    context: Option<&'a Context>,
    args: &'a Flags,
) -> Result<Entry<'a, Cluster>, ConnectError> {
    let from_flag = args.cluster.as_deref().filter(|name| !name.is_empty());
    let of_context = || context.and_then(|context| context.cluster.as_deref());
    let Some(name) = from_flag.or_else(of_context) else {
        return Ok(("", None));
    };
    match config.cluster(name) {
        None if from_flag.is_none() && args.server.is_some() => Ok((name, None)),
        // For a context, kubectl continues with localhost:8080, which is never what the user wants.
        cluster => existing("cluster", name, cluster),
    }
}

/// The user of the flag or the context, if one of them names a user.
fn user<'a>(
    config: &'a Kubeconfig,
    context: Option<&'a Context>,
    args: &'a Flags,
) -> Result<Entry<'a, User>, ConnectError> {
    let from_flag = args.user.as_deref().filter(|name| !name.is_empty());
    let of_context = || context.and_then(|context| context.user.as_deref());
    let Some(name) = from_flag.or_else(of_context) else {
        return Ok(("", None));
    };
    let has_credentials = args.token.is_some() || args.client_certificate.is_some();
    match config.user(name) {
        None if from_flag.is_none() && has_credentials => Ok((name, None)),
        // For a context, kubectl asks for a user name and password, which no API server accepts any more.
        user => existing("user", name, user),
    }
}

fn override_cluster(cluster: &mut Cluster, args: &Flags) {
    if let Some(server) = nonempty(args.server.as_ref()) {
        cluster.server = Some(server);
        // The TLS server name of the kubeconfig's server does not apply to another server.
        cluster.tls_server_name = None;
    }
    if let Some(name) = nonempty(args.tls_server_name.as_ref()) {
        cluster.tls_server_name = Some(name);
    }
    // A flag for one of these replaces all three: a CA from a flag must be checked, and "insecure" needs no
    // CA.
    let insecure = args.insecure_skip_tls_verify == Some(true);
    if insecure || args.certificate_authority.is_some() {
        cluster.insecure_skip_tls_verify = insecure;
        cluster.certificate_authority = args.certificate_authority.as_ref().map(path_text);
        cluster.certificate_authority_data = None;
    }
}

fn override_user(user: &mut User, args: &Flags) {
    if let Some(token) = nonempty(args.token.as_ref()) {
        user.token = Some(token);
        user.token_file = None;
    }
    if let Some(path) = &args.client_certificate {
        user.client_certificate = Some(path_text(path));
        user.client_certificate_data = None;
    }
    if let Some(path) = &args.client_key {
        user.client_key = Some(path_text(path));
        user.client_key_data = None;
    }
    if let Some(name) = nonempty(args.impersonate.as_ref()) {
        user.impersonate = Some(name);
    }
    if let Some(uid) = nonempty(args.impersonate_uid.as_ref()) {
        user.impersonate_uid = Some(uid);
    }
    if !args.impersonate_groups.is_empty() {
        user.impersonate_groups.clone_from(&args.impersonate_groups);
    }
    if !args.impersonate_extra.is_empty() {
        let mut extra: HashMap<String, Vec<String>> = HashMap::new();
        for (key, value) in &args.impersonate_extra {
            extra.entry(key.clone()).or_default().push(value.clone());
        }
        user.impersonate_extra = extra;
    }
}

fn check_cluster(cluster: &Cluster) -> Result<(), ConnectError> {
    let has_authority =
        cluster.certificate_authority.is_some() || cluster.certificate_authority_data.is_some();
    if cluster.insecure_skip_tls_verify && has_authority {
        return Err(ConnectError::new(
            "specifying a root certificates file with the insecure flag is not allowed",
        ));
    }
    Ok(())
}

fn check_user(user: &User, name: &str) -> Result<(), ConnectError> {
    let attributes = user.impersonate_uid.is_some()
        || !user.impersonate_groups.is_empty()
        || !user.impersonate_extra.is_empty();
    if attributes && user.impersonate.is_none() {
        return Err(ConnectError::new(format!(
            "requesting uid, groups or user-extra for {name} without impersonating a user"
        )));
    }
    let certificate = user.client_certificate.is_some() || user.client_certificate_data.is_some();
    let key = user.client_key.is_some() || user.client_key_data.is_some();
    if certificate && !key {
        return Err(ConnectError::new(format!(
            "client-key-data or client-key must be specified for {name} to use the clientCert authentication method."
        )));
    }
    Ok(())
}

/// A server as kubectl accepts it: a URL, or a host and port, which use plain HTTP.
fn server_url(server: &str) -> Result<Uri, ConnectError> {
    let invalid = || {
        ConnectError::new(format!(
            "host must be a URL or a host:port pair: {server:?}"
        ))
    };
    let with_scheme = if server.contains("://") {
        server
    } else {
        &format!("http://{server}")
    };
    let url = with_scheme.parse::<Uri>().map_err(|_| invalid())?;
    let host = url.host().is_some_and(|host| !host.is_empty());
    if !host || !matches!(url.scheme_str(), Some("http" | "https")) {
        return Err(invalid());
    }
    // Query and fragment are not part of a server's address.
    let path = url.path().to_owned();
    let mut parts = url.into_parts();
    parts.path_and_query = Some(path.parse().map_err(|_| invalid())?);
    Uri::from_parts(parts).map_err(|_| invalid())
}

/// The cluster and the user of a pod's service account, if it has one.
fn service_account(environment: &Environment) -> Option<(Cluster, User)> {
    let host = environment.get("KUBERNETES_SERVICE_HOST")?;
    let port = environment.get("KUBERNETES_SERVICE_PORT")?;
    let token = environment.service_account.join("token");
    if !token.is_file() {
        return None;
    }
    let authority = environment.service_account.join("ca.crt");
    let host = if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    };
    let cluster = Cluster {
        server: Some(format!("https://{host}:{port}")),
        certificate_authority: authority.is_file().then(|| path_text(&authority)),
        ..Cluster::default()
    };
    Some((
        cluster,
        User {
            token_file: Some(path_text(&token)),
            ..User::default()
        },
    ))
}

fn pod_namespace(environment: &Environment) -> Option<String> {
    let from_file = || std::fs::read_to_string(environment.service_account.join("namespace")).ok();
    let name = environment
        .get("POD_NAMESPACE")
        .map(str::to_owned)
        .or_else(from_file)?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

fn describe_user(user: &User, name: &str, in_pod: bool) -> Option<String> {
    let own = match (name, in_pod) {
        (_, true) => Some("the pod's service account".to_owned()),
        ("", false) => None,
        (name, false) => Some(name.to_owned()),
    };
    match (&user.impersonate, own) {
        (Some(other), Some(own)) => Some(format!("{other} (impersonated by {own})")),
        (Some(other), None) => Some(format!("{other} (impersonated)")),
        (None, own) => own,
    }
}

fn nonempty(value: Option<&String>) -> Option<String> {
    value.filter(|value| !value.is_empty()).cloned()
}

fn path_text(path: impl AsRef<Path>) -> String {
    path.as_ref().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The environment of a pod, with its service account in namespace `own`.
    fn pod(variables: &[(&'static str, &'static str)]) -> (tempfile::TempDir, Environment) {
        let account = tempfile::tempdir().expect("a directory");
        for (name, text) in [
            ("token", "secret"),
            ("ca.crt", "PEM"),
            ("namespace", "own\n"),
        ] {
            std::fs::write(account.path().join(name), text).expect("a file");
        }
        let of_every_pod = [
            ("KUBERNETES_SERVICE_HOST", "fd00::1"),
            ("KUBERNETES_SERVICE_PORT", "6443"),
            ("KUBECONFIG", "/no/such/file"),
        ];
        let variables = of_every_pod.iter().chain(variables).copied();
        let mut environment = Environment::of_variables(variables);
        environment.service_account = account.path().to_owned();
        (account, environment)
    }

    fn target(flags: &Flags, environment: &Environment) -> ConnectTarget {
        select(flags, environment).expect("a target")
    }

    #[test]
    fn in_a_pod_without_a_kubeconfig_its_service_account_counts() {
        let (account, environment) = pod(&[]);
        let target = target(&Flags::default(), &environment);
        assert_eq!(target.server, "https://[fd00::1]:6443/");
        assert_eq!(target.namespace, "own");
        assert!(target.is_secure());
        let file = |name: &str| Some(path_text(account.path().join(name)));
        assert_eq!(target.cluster.certificate_authority, file("ca.crt"));
        assert_eq!(target.user.token_file, file("token"));
        let who = target.user_description.as_deref();
        assert_eq!(who, Some("the pod's service account"));
    }

    #[test]
    fn given_namespaces_win_over_the_pods_own() {
        let (_account, environment) = pod(&[("POD_NAMESPACE", "told")]);
        assert_eq!(target(&Flags::default(), &environment).namespace, "told");
        let flags = Flags {
            namespace: Some("asked".to_owned()),
            ..Flags::default()
        };
        assert_eq!(target(&flags, &environment).namespace, "asked");
    }

    #[test]
    fn a_server_that_was_named_is_not_asked_as_the_pod() {
        let (_account, environment) = pod(&[]);
        let flags = Flags {
            server: Some("https://192.0.2.1".to_owned()),
            ..Flags::default()
        };
        let target = target(&flags, &environment);
        assert_eq!(target.server, "https://192.0.2.1/");
        assert_eq!(target.namespace, "own");
        assert_eq!(target.user.token_file, None, "its token goes nowhere else");
    }

    #[test]
    fn a_context_without_a_namespace_means_that_of_the_pod() {
        let (account, _) = pod(&[]);
        let kubeconfig = account.path().join("kubeconfig");
        let written = |context: &str| {
            let text = format!(
                "{{current-context: a, contexts: [{{name: a, context: {context}}}], \
                 clusters: [{{name: b, cluster: {{server: 'https://192.0.2.1'}}}}]}}"
            );
            std::fs::write(&kubeconfig, text).expect("a kubeconfig");
        };
        let flags = Flags {
            kubeconfig: Some(kubeconfig.clone()),
            ..Flags::default()
        };
        let (_account, environment) = pod(&[]);
        written("{cluster: b}");
        let named = target(&flags, &environment);
        assert_eq!(
            (named.server.host(), &*named.namespace),
            (Some("192.0.2.1"), "own")
        );
        written("{cluster: b, namespace: default}");
        assert_eq!(target(&flags, &environment).namespace, "default");
    }

    #[test]
    fn a_pod_without_a_token_has_no_account() {
        let (account, environment) = pod(&[]);
        std::fs::remove_file(account.path().join("token")).expect("it is there");
        let target = target(&Flags::default(), &environment);
        assert_eq!(target.server, "http://localhost:8080/");
        assert_eq!(target.namespace, "default");
    }
}
