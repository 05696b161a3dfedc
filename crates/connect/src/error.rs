//! The errors of a connection to an API server, worded as in kubectl.
//!
//! Gap in kube: it reports the errors of its libraries, without the file, user or server that they are about.

use std::error::Error as StdError;
use std::fmt::Display;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use rustls::pki_types::UnixTime;
use rustls::{CertificateError, InvalidMessage};
use thiserror::Error;

/// Whether `message` already says where it comes from. kubectl puts `error: ` before all other messages.
#[must_use]
pub fn names_its_source(message: &str) -> bool {
    const BEGINNINGS: [&str; 4] = [
        "Error from server",
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
#[error("{message}")]
pub struct ConnectError {
    message: String,
    hint: Option<String>,
}

impl ConnectError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
        }
    }

    /// The server can't be reached.
    pub(super) fn of_server(detail: impl Display) -> Self {
        Self::new(format!("Unable to connect to the server: {detail}"))
    }

    /// The server's certificate is not accepted.
    fn of_certificate(detail: impl Display) -> Self {
        Self::of_server(format_args!(
            "tls: failed to verify certificate: x509: {detail}"
        ))
    }

    /// A credential plugin failed.
    pub(super) fn of_credentials(detail: impl Display) -> Self {
        Self::of_server(format_args!("getting credentials: {detail}"))
    }

    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// A request got no answer within this time.
    #[must_use]
    pub fn timed_out(after: Duration) -> Self {
        Self::of_server(
            "net/http: request canceled (Client.Timeout exceeded while awaiting headers)",
        )
        .with_hint(format!(
            "no answer within {}; to wait longer, use --request-timeout",
            humantime::format_duration(after)
        ))
    }

    /// The server does not recognize the user, as this message of it says.
    #[must_use]
    pub fn unauthorized(message: &str) -> Self {
        Self::new(format!("You must be logged in to the server ({message})"))
            .with_hint("log in again: the credentials are missing, wrong or expired")
    }

    /// What to do about the error, if the message does not make that clear.
    pub fn hint(&self) -> Option<String> {
        self.hint.clone()
    }

    /// The problem with the connection or the credentials that a request had; `None` if it is another
    /// problem. The error itself does not name the server.
    pub fn classify(err: &kube::Error) -> Option<Self> {
        match err {
            kube::Error::Service(source) => Some(Self::of_request(source.as_ref())),
            kube::Error::HyperError(source) => Some(Self::of_request(source)),
            other => Self::of_cause(other),
        }
    }

    /// As [`classify`](Self::classify), for any error whose causes include an error of ours or of the
    /// operating system.
    pub(super) fn of_cause(err: &(dyn StdError + 'static)) -> Option<Self> {
        causes(err).find_map(|cause| {
            if let Some(own) = cause.downcast_ref::<Self>() {
                Some(own.clone())
            } else if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
                Some(of_tls(tls))
            } else {
                cause.downcast_ref::<io::Error>().and_then(of_io)
            }
        })
    }

    /// Why a request got no response.
    fn of_request(err: &(dyn StdError + 'static)) -> Self {
        Self::of_cause(err).unwrap_or_else(|| match causes(err).any(is_closed) {
            true => Self::of_server("the server closed the connection before it answered"),
            false => Self::of_server(causes(err).last().unwrap_or(err)),
        })
    }
}

fn is_closed(err: &(dyn StdError + 'static)) -> bool {
    if let Some(http) = err.downcast_ref::<hyper::Error>() {
        http.is_incomplete_message() || http.is_closed() || http.is_canceled()
    } else {
        err.downcast_ref::<h2::Error>()
            .is_some_and(h2::Error::is_go_away)
    }
}

fn of_io(err: &io::Error) -> Option<ConnectError> {
    match err.kind() {
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::ConnectionAborted => Some(ConnectError::of_server(in_words(err))),
        io::ErrorKind::UnexpectedEof => Some(ConnectError::of_server("EOF")),
        _ => None,
    }
}

fn of_tls(err: &rustls::Error) -> ConnectError {
    use CertificateError as E;
    let rustls::Error::InvalidCertificate(certificate) = err else {
        return match err {
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
                ConnectError::of_server("http: server gave HTTP response to HTTPS client")
            }
            other => ConnectError::of_server(format_args!("tls: {other}")),
        };
    };
    match certificate {
        E::UnknownIssuer => ConnectError::of_certificate("certificate signed by unknown authority"),
        E::NotValidYetContext { time, not_before } => {
            not_valid_now(*time, "before", *not_before).with_hint(
                "check the local clock: it is before the time when the server's certificate becomes valid",
            )
        }
        E::ExpiredContext { time, not_after } => not_valid_now(*time, "after", *not_after)
            .with_hint("check the local clock; if it is right, renew the server's certificate"),
        E::NotValidForNameContext {
            expected,
            presented,
        } => {
            let presented: Vec<String> = presented.iter().map(|name| plain_name(name)).collect();
            ConnectError::of_certificate(wrong_name(&presented, &expected.to_str())).with_hint(
                "check the server address, or give the certificate's name with --tls-server-name",
            )
        }
        other => ConnectError::of_certificate(other),
    }
}

fn not_valid_now(now: UnixTime, is: &str, limit: UnixTime) -> ConnectError {
    ConnectError::of_certificate(format_args!(
        "certificate has expired or is not yet valid: current time {} is {is} {}",
        rfc3339(now),
        rfc3339(limit)
    ))
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

/// The name in a certificate, without the type that rustls writes around it: `DnsName("localhost")`.
fn plain_name(name: &str) -> String {
    match name.split_once('(') {
        Some((_, rest)) => rest.trim_end_matches(')').trim_matches('"').to_owned(),
        None => name.to_owned(),
    }
}

fn rfc3339(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).ok();
    let time = seconds.and_then(|seconds| DateTime::<Utc>::from_timestamp(seconds, 0));
    time.unwrap_or_default()
        .to_rfc3339_opts(SecondsFormat::Secs, true)
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
        let both = ["DnsName(\"a.example\")", "IpAddress(10.0.0.1)"].map(plain_name);
        let [domain, address] = both.each_ref().map(std::slice::from_ref);
        for (presented, wanted, expected) in [
            (&both[..], "x", "certificate is valid for a.example, not x"),
            (
                &both,
                "10.0.0.2",
                "certificate is valid for 10.0.0.1, not 10.0.0.2",
            ),
            (
                domain,
                "10.0.0.2",
                "cannot validate certificate for 10.0.0.2 because it doesn't contain any IP SANs",
            ),
            (
                address,
                "x",
                "certificate is not valid for any names, but wanted to match x",
            ),
        ] {
            assert_eq!(wrong_name(presented, wanted), expected);
        }
    }

    #[test]
    fn the_cause_carried_by_an_io_error_is_found() {
        let tls = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let err = io::Error::other(io::Error::other(tls));
        let found = ConnectError::of_cause(&err).expect("a cause").to_string();
        assert!(
            found.ends_with("certificate signed by unknown authority"),
            "{found}"
        );
    }
}
