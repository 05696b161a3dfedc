//! The errors of a connection to an API server, worded as in kubectl.
//!
//! Gap in kube: it reports the errors of its libraries, without the file, user or server that they are about.

mod classify;

use std::error::Error as StdError;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use std::{fmt, io};

use chrono::{DateTime, SecondsFormat, Utc};
use thiserror::Error;

/// Whether `message` already says where it comes from. kubectl puts `error: ` before all other messages.
#[must_use]
pub fn names_its_source(message: &str) -> bool {
    const BEGINNINGS: [&str; 5] = [
        "Error from server",
        "Error in configuration: ",
        "Unable to connect",
        "The connection to the server",
        "error: ",
    ];
    BEGINNINGS
        .iter()
        .any(|beginning| message.starts_with(beginning))
}

/// Why there is no connection. `Display` is kubectl's message, without the `error: ` that kubectl puts before
/// messages that do not say where they come from.
#[derive(Clone, Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each of them is")]
pub enum ConnectError {
    #[error("stat {}: no such file or directory", path.display())]
    KubeconfigMissing { path: PathBuf },
    #[error("error loading config file \"{}\": {detail}", path.display())]
    Kubeconfig { path: PathBuf, detail: String },
    #[error("context {name:?} does not exist")]
    UnknownContext { name: String },
    #[error("Error in configuration: context was not found for specified context: {name}")]
    CurrentContextMissing { name: String },
    #[error("cluster {name:?} does not exist")]
    UnknownCluster { name: String },
    #[error("auth info {name:?} does not exist")]
    UnknownUser { name: String },
    #[error("cluster {cluster:?} was not found for context {context:?}")]
    ContextWithoutCluster { context: String, cluster: String },
    #[error("user {user:?} was not found for context {context:?}")]
    ContextWithoutUser { context: String, user: String },
    #[error("no server found for cluster {cluster:?}")]
    NoServer { cluster: String },
    #[error("host must be a URL or a host:port pair: {server:?}")]
    InvalidServer { server: String },
    #[error("invalid 'proxy-url' {url:?}: {detail}")]
    InvalidProxy { url: String, detail: String },
    #[error("unable to read {what} {} for {owner} due to open {}: {detail}", path.display(), path.display())]
    UnreadableFile {
        what: &'static str,
        path: PathBuf,
        owner: String,
        detail: String,
    },
    #[error("{what} of {owner}: {detail}")]
    InvalidCredential {
        what: &'static str,
        owner: String,
        detail: String,
    },
    #[error("specifying a root certificates file with the insecure flag is not allowed")]
    AuthorityAndInsecure,
    #[error(
        "client-key-data or client-key must be specified for {user} to use the clientCert authentication method."
    )]
    CertificateWithoutKey { user: String },
    #[error("requesting uid, groups or user-extra for {user} without impersonating a user")]
    ImpersonationWithoutUser { user: String },
    #[error("the {name} auth plugin is not supported")]
    AuthProvider { name: String },
    #[error("{detail}")]
    Transport { detail: String },

    #[error(
        "The connection to the server {host} was refused - did you specify the right host or port?"
    )]
    Refused { host: String },
    #[error("Unable to connect to the server: dial tcp: lookup {host}: no such host")]
    NoSuchHost { host: String },
    #[error("Unable to connect to the server: dial tcp {host}: {detail}")]
    Unreachable { host: String, detail: String },
    #[error("Unable to connect to the server: proxyconnect {proxy}: {detail}")]
    Proxy { proxy: String, detail: String },
    #[error(
        "Unable to connect to the server: net/http: request canceled (Client.Timeout exceeded while awaiting headers)"
    )]
    TimedOut { after: Duration },
    #[error("Unable to connect to the server: {detail}")]
    Broken { detail: String },

    #[error(
        "Unable to connect to the server: tls: failed to verify certificate: x509: certificate signed by unknown authority"
    )]
    UnknownAuthority,
    #[error(
        "Unable to connect to the server: tls: failed to verify certificate: x509: certificate has expired or is not \
         yet valid: current time {} is before {}",
        rfc3339(now),
        rfc3339(not_before)
    )]
    NotYetValid {
        now: DateTime<Utc>,
        not_before: DateTime<Utc>,
    },
    #[error(
        "Unable to connect to the server: tls: failed to verify certificate: x509: certificate has expired or is not \
         yet valid: current time {} is after {}",
        rfc3339(now),
        rfc3339(not_after)
    )]
    Expired {
        now: DateTime<Utc>,
        not_after: DateTime<Utc>,
    },
    #[error(
        "Unable to connect to the server: tls: failed to verify certificate: x509: {}",
        wrong_name(presented, wanted)
    )]
    WrongName {
        presented: Vec<String>,
        wanted: String,
    },
    #[error("Unable to connect to the server: http: server gave HTTP response to HTTPS client")]
    NotTls,
    #[error("Unable to connect to the server: tls: {detail}")]
    Tls { detail: String },

    #[error("You must be logged in to the server ({message})")]
    Unauthorized { message: String },
    #[error("Unable to connect to the server: getting credentials: {detail}")]
    Credentials {
        detail: String,
        install_hint: Option<String>,
    },
}

impl ConnectError {
    /// What to do about the error, if the message does not make that clear.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::KubeconfigMissing { .. } => "check the path in --kubeconfig",
            Self::UnknownContext { .. } | Self::CurrentContextMissing { .. } => {
                "list the contexts with `kubectl config get-contexts`"
            }
            Self::UnknownCluster { .. } | Self::ContextWithoutCluster { .. } => {
                "list the clusters with `kubectl config get-clusters`"
            }
            Self::UnknownUser { .. } | Self::ContextWithoutUser { .. } => {
                "list the users with `kubectl config get-users`"
            }
            Self::Refused { host } if host == "localhost:8080" => {
                "no API server is configured: check that the files in KUBECONFIG exist, or use --kubeconfig or --context"
            }
            Self::TimedOut { after } => {
                return Some(format!(
                    "no answer within {}; to wait longer, use --request-timeout",
                    humantime::format_duration(*after)
                ));
            }
            Self::Proxy { .. } => {
                "check the proxy: it is set by proxy-url in the kubeconfig, or by HTTPS_PROXY"
            }
            Self::NotYetValid { .. } => {
                "check the local clock: it is before the time when the server's certificate becomes valid"
            }
            Self::Expired { .. } => {
                "check the local clock; if it is right, renew the server's certificate"
            }
            Self::WrongName { .. } => {
                "check the server address, or give the certificate's name with --tls-server-name"
            }
            Self::Unauthorized { .. } => {
                "log in again: the credentials are missing, wrong or expired"
            }
            Self::Credentials {
                install_hint: Some(hint),
                ..
            } => return Some(hint.clone()),
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

/// The message for a certificate with other names, worded as in Go. It lists the certificate's names of the
/// same kind as the `wanted` one.
fn wrong_name(presented: &[String], wanted: &str) -> String {
    let is_address = |name: &str| name.parse::<IpAddr>().is_ok();
    let of_kind = presented
        .iter()
        .map(String::as_str)
        .filter(|name| is_address(name) == is_address(wanted))
        .collect::<Vec<_>>()
        .join(", ");
    match (of_kind.is_empty(), is_address(wanted)) {
        (false, _) => format!("certificate is valid for {of_kind}, not {wanted}"),
        (true, true) => {
            format!(
                "cannot validate certificate for {wanted} because it doesn't contain any IP SANs"
            )
        }
        (true, false) => {
            format!("certificate is not valid for any names, but wanted to match {wanted}")
        }
    }
}

fn rfc3339(time: &DateTime<Utc>) -> impl fmt::Display {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// An I/O error worded as in Go: lower case, without the error number.
#[must_use]
pub fn in_words(err: &io::Error) -> String {
    let text = err.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_lowercase().chain(letters).collect())
        .unwrap_or_default()
}

/// The error and its causes, outermost first. An error inside an I/O error counts as a cause, although
/// `source` skips it.
pub(super) fn causes<'a>(
    err: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(err), |&err| {
        match err.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(carried) => Some(carried as &(dyn StdError + 'static)),
            None => err.source(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_errors_are_worded_as_go_words_them() {
        let err = io::Error::from_raw_os_error(2);
        assert_eq!(in_words(&err), "no such file or directory");
    }

    #[test]
    fn names_of_the_wanted_kind_are_listed() {
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|&name| name.to_owned())
                .collect::<Vec<_>>()
        };
        let both = names(&["api.example.com", "localhost", "10.0.0.1"]);
        let domains = names(&["localhost"]);
        let address = names(&["10.0.0.1"]);
        for (presented, wanted, expected) in [
            (
                &both,
                "x",
                "certificate is valid for api.example.com, localhost, not x",
            ),
            (
                &both,
                "10.0.0.2",
                "certificate is valid for 10.0.0.1, not 10.0.0.2",
            ),
            (
                &domains,
                "10.0.0.2",
                "cannot validate certificate for 10.0.0.2 because it doesn't contain any IP SANs",
            ),
            (
                &address,
                "x",
                "certificate is not valid for any names, but wanted to match x",
            ),
        ] {
            assert_eq!(wrong_name(presented, wanted), expected);
        }
    }

    #[test]
    fn an_unconfigured_server_hints_at_the_kubeconfig() {
        let refused = |host: &str| ConnectError::Refused {
            host: host.to_owned(),
        };
        assert_eq!(
            refused("localhost:8080").to_string(),
            "The connection to the server localhost:8080 was refused - did you specify the right host or port?"
        );
        assert!(
            refused("localhost:8080")
                .hint()
                .is_some_and(|hint| hint.contains("KUBECONFIG"))
        );
        assert_eq!(refused("10.0.0.1:6443").hint(), None);
    }
}
