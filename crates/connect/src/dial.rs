//! Opens a byte stream to the API server, directly or through a proxy. TLS to the server runs inside this
//! stream.
//!
//! Gap in kube: it does not set `TCP_NODELAY` (kube-rs/kube#2056). It does not support `socks5h` or passwords
//! of SOCKS proxies. It trusts the cluster's authority for an `https://` proxy.

use std::error::Error as StdError;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderValue, Uri};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiAddrs, GaiFuture, GaiResolver, Name};
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::rt::TokioIo;
use percent_encoding::percent_decode_str;
use thiserror::Error;
use tokio::net::TcpStream;
use tower::{Service, ServiceExt as _};

use super::error::{causes, in_words};

/// The time limit of a connection attempt, even if requests have no limit.
const LONGEST_DIAL: Duration = Duration::from_secs(30);

/// A stream that carries HTTP or TLS to the API server. The stream itself uses TLS only if the proxy
/// requires it.
type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// The reason why a stream could not be opened.
#[derive(Clone, Debug, Error)]
pub(super) enum DialError {
    /// `host` is the host in the server's URL, without a port if the URL has none.
    #[error("dial tcp {host}: connect: connection refused")]
    Refused { host: String },
    #[error("dial tcp: lookup {host}: no such host")]
    NoSuchHost { host: String },
    #[error("dial tcp {host}: {detail}")]
    Failed { host: String, detail: String },
    #[error("proxyconnect {proxy}: {detail}")]
    Proxy { proxy: String, detail: String },
}

/// Opens streams.
#[derive(Clone)]
pub(super) struct Dialer {
    direct: HttpConnector<Resolver>,
    proxy: Option<Proxy>,
}

#[derive(Clone)]
struct Proxy {
    uri: Uri,
    user: Option<(String, String)>,
    /// Connects to the proxy itself. Uses TLS only for an `https://` proxy.
    connector: HttpsConnector<HttpConnector<Resolver>>,
}

impl Dialer {
    /// Creates a dialer, which uses the proxy if there is one. `proxy_tls` is the TLS configuration for
    /// checking the certificate of an `https://` proxy.
    pub(super) fn new(
        request_timeout: Option<Duration>,
        proxy: Option<Uri>,
        proxy_tls: impl FnOnce() -> rustls::ClientConfig,
    ) -> Self {
        let mut direct = HttpConnector::new_with_resolver(Resolver(GaiResolver::new()));
        direct.enforce_http(false);
        direct.set_nodelay(true);
        direct.set_keepalive(Some(Duration::from_secs(30)));
        direct.set_connect_timeout(Some(
            request_timeout.unwrap_or(LONGEST_DIAL).min(LONGEST_DIAL),
        ));
        let proxy = proxy.map(|uri| Proxy {
            user: credentials(&uri),
            connector: HttpsConnector::from((direct.clone(), proxy_tls())),
            uri: with_port(&uri),
        });
        Self { direct, proxy }
    }
}

impl Service<Uri> for Dialer {
    type Response = Stream;
    type Error = DialError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, DialError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), DialError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        match &self.proxy {
            Some(proxy) => Box::pin(proxy.clone().open(with_port(&server))),
            None => {
                let direct = self.direct.clone();
                Box::pin(async move {
                    let stream = direct.oneshot(server.clone()).await;
                    stream
                        .map(MaybeHttpsStream::Http)
                        .map_err(|err| of_connector(&err, &server))
                })
            }
        }
    }
}

impl Proxy {
    /// Opens a stream through the proxy. An unreachable proxy and a refusal by the proxy are different
    /// errors.
    async fn open(self, server: Uri) -> Result<Stream, DialError> {
        let to_proxy = match self.uri.scheme_str() {
            Some("https") => self.uri.clone(),
            // The connector does not know `socks5`, and treats a proxy without TLS as a plain host and port.
            _ => with_scheme(&self.uri, "http"),
        };
        let stream = self
            .connector
            .clone()
            .oneshot(to_proxy)
            .await
            .map_err(|err| self.fails(&reason(err.as_ref())))?;
        let mut stream = Some(stream);
        let ready = tower::service_fn(move |_: Uri| {
            std::future::ready(
                stream
                    .take()
                    .ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected)),
            )
        });
        if self
            .uri
            .scheme_str()
            .is_some_and(|scheme| scheme.starts_with("socks5"))
        {
            let mut socks = SocksV5::new(self.uri.clone(), ready);
            if let Some((name, password)) = &self.user {
                socks = socks.with_auth(name.clone(), password.clone());
            }
            socks
                .call(server)
                .await
                .map_err(|err| self.fails(&err.to_string()))
        } else {
            let mut tunnel = Tunnel::new(self.uri.clone(), ready);
            if let Some((name, password)) = &self.user
                && let Ok(value) = basic(name, password)
            {
                tunnel = tunnel.with_auth(value);
            }
            tunnel
                .call(server)
                .await
                .map_err(|err| self.fails(&err.to_string()))
        }
    }

    fn fails(&self, detail: &str) -> DialError {
        DialError::Proxy {
            proxy: authority(&self.uri),
            detail: detail.to_owned(),
        }
    }
}

/// Resolves names as the system does, and marks its errors as look-up errors.
#[derive(Clone)]
struct Resolver(GaiResolver);

#[derive(Debug, Error)]
#[error("{0}")]
struct LookupError(io::Error);

impl Service<Name> for Resolver {
    type Response = GaiAddrs;
    type Error = LookupError;
    type Future = futures::future::MapErr<GaiFuture, fn(io::Error) -> LookupError>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), LookupError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        futures::TryFutureExt::map_err(self.0.call(name), LookupError as fn(_) -> _)
    }
}

fn of_connector(err: &(dyn StdError + 'static), server: &Uri) -> DialError {
    let host = authority(&with_port(server));
    if let Some(lookup) = find::<LookupError>(err) {
        let host = server.host().unwrap_or_default().to_owned();
        return if lookup.0.to_string().contains("Temporary failure") {
            DialError::Failed {
                host,
                detail: "lookup: temporary failure in name resolution".to_owned(),
            }
        } else {
            DialError::NoSuchHost { host }
        };
    }
    match find::<io::Error>(err) {
        Some(io) if io.kind() == io::ErrorKind::ConnectionRefused => DialError::Refused {
            host: authority(server),
        },
        _ => DialError::Failed {
            host,
            detail: reason(err),
        },
    }
}

/// The innermost cause, worded as in Go.
fn reason(err: &(dyn StdError + 'static)) -> String {
    if find::<LookupError>(err).is_some() {
        return "no such host".to_owned();
    }
    match find::<io::Error>(err) {
        Some(io) if io.kind() == io::ErrorKind::TimedOut => "i/o timeout".to_owned(),
        Some(io) if io.get_ref().is_none() => format!("connect: {}", in_words(io)),
        _ => causes(err).last().unwrap_or(err).to_string(),
    }
}

fn find<'a, E: StdError + 'static>(err: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    causes(err).find_map(|cause| cause.downcast_ref())
}

/// The user name and password in a URL, with percent escapes decoded.
pub(super) fn credentials(url: &Uri) -> Option<(String, String)> {
    let (user, _) = url.authority()?.as_str().rsplit_once('@')?;
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let decoded = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
    Some((decoded(name), decoded(password)))
}

pub(super) fn basic(
    name: &str,
    password: &str,
) -> Result<HeaderValue, http::header::InvalidHeaderValue> {
    let mut value = HeaderValue::try_from(format!(
        "Basic {}",
        BASE64_STANDARD.encode(format!("{name}:{password}"))
    ))?;
    value.set_sensitive(true);
    Ok(value)
}

/// The host and port, without user name and password.
pub(super) fn authority(uri: &Uri) -> String {
    let whole = uri.authority().map_or("", |authority| authority.as_str());
    whole
        .rsplit_once('@')
        .map_or(whole, |(_, host)| host)
        .to_owned()
}

/// The same URI with an explicit port, which tunnels need.
fn with_port(uri: &Uri) -> Uri {
    if uri.port().is_some() {
        return uri.clone();
    }
    let port = match uri.scheme_str() {
        Some("https") => 443,
        Some("socks5" | "socks5h") => 1080,
        _ => 80,
    };
    rebuild(
        uri,
        uri.scheme_str().unwrap_or("http"),
        &format!("{}:{port}", authority(uri)),
    )
}

fn with_scheme(uri: &Uri, scheme: &str) -> Uri {
    rebuild(uri, scheme, &authority(uri))
}

fn rebuild(uri: &Uri, scheme: &str, authority: &str) -> Uri {
    let rebuilt = Uri::builder()
        .scheme(scheme)
        .authority(authority)
        .path_and_query(uri.path())
        .build();
    rebuilt.unwrap_or_else(|_| uri.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_spelt_out() {
        for (uri, expected) in [
            ("https://h", "https://h:443/"),
            ("http://h/p", "http://h:80/p"),
            ("socks5://u:p@h", "socks5://h:1080/"),
            ("https://[::1]", "https://[::1]:443/"),
            ("https://h:1", "https://h:1/"),
        ] {
            assert_eq!(with_port(&uri.parse().unwrap()).to_string(), expected);
        }
    }

    #[test]
    fn refusals_name_the_server_as_its_url_does() {
        for (server, expected) in [
            ("https://h/k8s/c-1", "h"),
            ("http://h:8080", "h:8080"),
            ("https://[::1]:6443", "[::1]:6443"),
        ] {
            let refusal = io::Error::from(io::ErrorKind::ConnectionRefused);
            let err = of_connector(&refusal, &server.parse().unwrap());
            assert!(
                matches!(&err, DialError::Refused { host } if host == expected),
                "{server}: {err:?}"
            );
        }
    }

    #[test]
    fn a_proxys_password_is_unescaped() {
        let proxy = "http://me:p%40ss%3Aw@h:1".parse().unwrap();
        assert_eq!(
            credentials(&proxy),
            Some(("me".to_owned(), "p@ss:w".to_owned()))
        );
        assert_eq!(credentials(&"http://h:1".parse().unwrap()), None);
        assert_eq!(
            basic("user", "pa@ss:word").unwrap(),
            "Basic dXNlcjpwYUBzczp3b3Jk"
        );
    }
}
