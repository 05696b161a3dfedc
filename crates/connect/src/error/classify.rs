//! Classifies the error of a request by its causes, outermost first.
//!
//! kube returns a failed connection as an opaque `Service` error.

use std::error::Error as StdError;
use std::io;

use chrono::{DateTime, Utc};
use rustls::pki_types::UnixTime;
use rustls::{CertificateError, InvalidMessage};

use super::{ConnectError, causes, in_words};
use crate::dial::DialError;
use crate::exec_plugin::PluginError;

impl ConnectError {
    /// The problem with the connection or the credentials that a request had; `None` if it is another
    /// problem. The error itself does not name the server.
    pub fn classify(err: &kube::Error) -> Option<Self> {
        match err {
            kube::Error::Service(source) => Some(Self::of_request(source.as_ref())),
            kube::Error::HyperError(source) => Some(Self::of_request(source)),
            other => Self::classify_cause(other),
        }
    }

    /// As [`classify`](Self::classify), for any error whose causes include an error of ours or of the
    /// operating system.
    pub(crate) fn classify_cause(err: &(dyn StdError + 'static)) -> Option<Self> {
        let known = causes(err).find_map(|cause| {
            if let Some(dial) = cause.downcast_ref::<DialError>() {
                Some(of_dial(dial))
            } else if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
                Some(of_tls(tls))
            } else if let Some(plugin) = cause.downcast_ref::<PluginError>() {
                Some(Self::from(plugin.clone()))
            } else {
                cause.downcast_ref::<io::Error>().and_then(of_io)
            }
        });
        let is_http = |cause: &(dyn StdError + 'static)| cause.is::<hyper::Error>();
        known.or_else(|| {
            let is_undecodable = causes(err).any(is_malformed) && !causes(err).any(is_http);
            is_undecodable.then(|| Self::Broken {
                detail: "could not decompress the server's answer".to_owned(),
            })
        })
    }

    /// Why a request got no response.
    pub(crate) fn of_request(err: &(dyn StdError + 'static)) -> Self {
        Self::classify_cause(err).unwrap_or_else(|| Self::Broken {
            detail: of_connection(err),
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

/// Describes a connection error without names of the libraries.
fn of_connection(err: &(dyn StdError + 'static)) -> String {
    let known = causes(err).find_map(|cause| {
        if let Some(http) = cause.downcast_ref::<hyper::Error>() {
            of_http(http)
        } else {
            cause.downcast_ref::<h2::Error>().map(of_http2)
        }
    });
    let innermost = causes(err).last().unwrap_or(err);
    match known {
        Some(words) => words.to_owned(),
        // Its own text is only the name of an internal step.
        None if innermost.is::<hyper_util::client::legacy::Error>() => {
            "the connection was lost before the request was sent".to_owned()
        }
        None => innermost.to_string(),
    }
}

fn of_http(err: &hyper::Error) -> Option<&'static str> {
    if err.is_incomplete_message() || err.is_closed() {
        Some("the server closed the connection before it answered")
    } else if err.is_canceled() {
        Some("the connection was lost before the request was sent")
    } else if err.is_timeout() {
        Some("the server did not respond on an open connection")
    } else if err.is_parse() || causes(err).any(is_malformed) {
        Some("the server's answer is not valid HTTP")
    } else {
        None
    }
}

/// Whether a body can't be decoded, for example because a chunk has no length.
fn is_malformed(err: &(dyn StdError + 'static)) -> bool {
    let kind = err.downcast_ref::<io::Error>().map(io::Error::kind);
    matches!(
        kind,
        Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData)
    )
}

fn of_http2(err: &h2::Error) -> &'static str {
    if err.is_go_away() {
        "the server closed the connection before it answered"
    } else if err.is_reset() {
        "the server canceled the request"
    } else {
        "the connection was lost: HTTP/2 error"
    }
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
                detail: of_handshake(other),
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
            detail: format!(
                "failed to verify certificate: x509: {}",
                of_certificate(other)
            ),
        },
    }
}

/// Describes a handshake error, worded as in Go if Go has a message for it.
fn of_handshake(err: &rustls::Error) -> String {
    match err {
        rustls::Error::AlertReceived(alert) => {
            format!("remote error: {}", spaced(&format!("{alert:?}")))
        }
        rustls::Error::InvalidMessage(_)
        | rustls::Error::InappropriateMessage { .. }
        | rustls::Error::InappropriateHandshakeMessage { .. }
        | rustls::Error::PeerMisbehaved(_) => "the server broke the TLS protocol".to_owned(),
        rustls::Error::PeerIncompatible(_) => {
            "the server supports no TLS version or cipher suite of this client".to_owned()
        }
        other => other.to_string(),
    }
}

/// Describes the problem with a certificate.
fn of_certificate(err: &CertificateError) -> String {
    use CertificateError as E;
    match err {
        E::BadEncoding => "malformed certificate".to_owned(),
        E::Revoked => "certificate has been revoked".to_owned(),
        E::UnhandledCriticalExtension => "unhandled critical extension".to_owned(),
        E::BadSignature => "invalid signature".to_owned(),
        E::InvalidPurposeContext { .. } => {
            "certificate specifies an incompatible key usage".to_owned()
        }
        E::Other(other) => other.to_string(),
        other => {
            let words = spaced(&format!("{other:?}"));
            words.trim_end_matches(" context").to_owned()
        }
    }
}

/// The words in a name such as `HandshakeFailure`, without a following part in parentheses or braces.
fn spaced(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars().take_while(char::is_ascii_alphanumeric) {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}

fn utc(time: UnixTime) -> DateTime<Utc> {
    i64::try_from(time.as_secs())
        .ok()
        .and_then(|seconds| DateTime::from_timestamp(seconds, 0))
        .unwrap_or_default()
}

/// The name in a certificate, without the type that rustls writes around it: `DnsName("localhost")`.
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
    fn words_of_libraries_are_not_shown() {
        use rustls::{AlertDescription, InvalidMessage, PeerIncompatible, PeerMisbehaved};
        let tls = |err: rustls::Error| of_tls(&err).to_string();
        for (err, expected) in [
            (
                rustls::Error::AlertReceived(AlertDescription::HandshakeFailure),
                "remote error: handshake failure",
            ),
            (
                rustls::Error::AlertReceived(AlertDescription::CertificateRequired),
                "remote error: certificate required",
            ),
            (
                rustls::Error::InvalidMessage(InvalidMessage::InvalidCcs),
                "the server broke the TLS protocol",
            ),
            (
                rustls::Error::PeerMisbehaved(PeerMisbehaved::BadCertChainExtensions),
                "the server broke the TLS protocol",
            ),
            (
                rustls::Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13),
                "the server supports no TLS version or cipher suite of this client",
            ),
            (
                rustls::Error::InvalidCertificate(CertificateError::BadSignature),
                "failed to verify certificate: x509: invalid signature",
            ),
            (
                rustls::Error::InvalidCertificate(CertificateError::InvalidOcspResponse),
                "failed to verify certificate: x509: invalid ocsp response",
            ),
        ] {
            let expected = format!("Unable to connect to the server: tls: {expected}");
            assert_eq!(tls(err), expected);
        }
    }

    /// The client's error message if the server sends `answer` and closes the connection.
    async fn complaint_at(answer: &'static [u8]) -> String {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            assert!(stream.read(&mut request).await.unwrap() > 0);
            stream.write_all(answer).await.unwrap();
        };
        let client =
            hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new())
                .build_http::<http_body_util::Empty<bytes::Bytes>>();
        let request = client.get(format!("http://{address}/version").parse().unwrap());
        let (response, ()) = futures::future::join(request, server).await;
        let err = match response {
            Ok(response) => {
                let body = http_body_util::BodyExt::collect(response.into_body()).await;
                kube::Error::HyperError(body.expect_err("it is no body"))
            }
            Err(err) => kube::Error::Service(err.into()),
        };
        ConnectError::classify(&err).unwrap().to_string()
    }

    #[tokio::test]
    async fn a_broken_connection_is_reported_in_plain_words() {
        for (answer, expected) in [
            (
                &b""[..],
                "the server closed the connection before it answered",
            ),
            (
                b"HTTP/1.1 200 OK\r\nconte",
                "the server closed the connection before it answered",
            ),
            (
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nno length\r\n",
                "the server's answer is not valid HTTP",
            ),
            (
                b"SSH-2.0-x\r\n\r\n",
                "the server's answer is not valid HTTP",
            ),
        ] {
            let expected = format!("Unable to connect to the server: {expected}");
            assert_eq!(complaint_at(answer).await, expected);
        }
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
