//! From the error of a request to what it means: the causes are looked through, outermost first.

use std::error::Error as StdError;
use std::io;

use chrono::{DateTime, Utc};
use rustls::pki_types::UnixTime;
use rustls::{CertificateError, InvalidMessage};

use super::{ConnectError, causes, in_words};
use crate::dial::DialError;
use crate::exec_plugin::PluginError;

impl ConnectError {
    /// Names the trouble with the connection or the credentials that a request met; `None` where it is
    /// something else. The error itself knows which server it was.
    pub fn classify(err: &kube::Error) -> Option<Self> {
        match err {
            kube::Error::Service(source) => Some(
                Self::classify_cause(source.as_ref()).unwrap_or_else(|| Self::Broken {
                    detail: innermost(source.as_ref()),
                }),
            ),
            kube::Error::HyperError(source) => Some(Self::classify_cause(source).unwrap_or_else(
                || Self::Broken {
                    detail: innermost(source),
                },
            )),
            other => Self::classify_cause(other),
        }
    }

    /// The same for any error that has one of ours, or one of the operating system's, among its causes.
    pub fn classify_cause(err: &(dyn StdError + 'static)) -> Option<Self> {
        causes(err).find_map(|cause| {
            if let Some(dial) = cause.downcast_ref::<DialError>() {
                Some(of_dial(dial))
            } else if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
                Some(of_tls(tls))
            } else if let Some(plugin) = cause.downcast_ref::<PluginError>() {
                Some(Self::from(plugin.clone()))
            } else {
                cause.downcast_ref::<io::Error>().and_then(of_io)
            }
        })
    }
}

impl From<PluginError> for ConnectError {
    fn from(err: PluginError) -> Self {
        Self::Credentials {
            detail: err.to_string(),
            install_hint: err.install_hint(),
        }
    }
}

fn innermost(err: &(dyn StdError + 'static)) -> String {
    causes(err).last().unwrap_or(err).to_string()
}

fn of_dial(err: &DialError) -> ConnectError {
    match err {
        DialError::Refused { host } => ConnectError::Refused { host: host.clone() },
        DialError::NoSuchHost { host } => ConnectError::NoSuchHost { host: host.clone() },
        DialError::Failed { host, detail } => ConnectError::Unreachable {
            host: host.clone(),
            detail: detail.clone(),
        },
        DialError::Proxy { proxy, detail } => ConnectError::Proxy {
            proxy: proxy.clone(),
            detail: detail.clone(),
        },
    }
}

fn of_io(err: &io::Error) -> Option<ConnectError> {
    match err.kind() {
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::ConnectionAborted => Some(ConnectError::Broken {
            detail: in_words(err),
        }),
        io::ErrorKind::UnexpectedEof => Some(ConnectError::Broken {
            detail: "EOF".to_owned(),
        }),
        _ => None,
    }
}

fn of_tls(err: &rustls::Error) -> ConnectError {
    use CertificateError as E;
    let rustls::Error::InvalidCertificate(certificate) = err else {
        return match err {
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
                ConnectError::NotTls
            }
            other => ConnectError::Tls {
                detail: other.to_string(),
            },
        };
    };
    match certificate {
        E::UnknownIssuer => ConnectError::UnknownAuthority,
        E::NotValidYetContext { time, not_before } => ConnectError::NotYetValid {
            now: utc(*time),
            not_before: utc(*not_before),
        },
        E::ExpiredContext { time, not_after } => ConnectError::Expired {
            now: utc(*time),
            not_after: utc(*not_after),
        },
        E::NotValidForNameContext {
            expected,
            presented,
        } => ConnectError::WrongName {
            presented: presented.iter().map(|name| plain_name(name)).collect(),
            wanted: expected.to_str().into_owned(),
        },
        other => ConnectError::Tls {
            detail: format!("failed to verify certificate: x509: {other}"),
        },
    }
}

fn utc(time: UnixTime) -> DateTime<Utc> {
    i64::try_from(time.as_secs())
        .ok()
        .and_then(|seconds| DateTime::from_timestamp(seconds, 0))
        .unwrap_or_default()
}

/// A name of a certificate without the kind that rustls writes around it: `DnsName("localhost")`.
fn plain_name(name: &str) -> String {
    match name.split_once('(') {
        Some((_, rest)) => rest.trim_end_matches(')').trim_matches('"').to_owned(),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_certificates_lose_their_kind() {
        assert_eq!(plain_name("DnsName(\"localhost\")"), "localhost");
        assert_eq!(plain_name("IpAddress(127.0.0.1)"), "127.0.0.1");
        assert_eq!(plain_name("localhost"), "localhost");
    }

    #[test]
    fn the_cause_carried_by_an_io_error_is_found() {
        let tls = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let err = io::Error::other(io::Error::other(tls));
        assert!(matches!(
            ConnectError::classify_cause(&err),
            Some(ConnectError::UnknownAuthority)
        ));
    }
}
