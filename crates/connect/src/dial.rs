//! Opens a byte stream to the API server, directly or through a proxy. TLS to the server runs inside this
//! stream.
//!
//! Gap in kube: it does not set `TCP_NODELAY` (kube-rs/kube#2056), and does not support passwords of SOCKS
//! proxies.

use std::error::Error as StdError;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiAddrs, GaiFuture, GaiResolver, Name};
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::proxy::matcher::Intercept;
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::net::TcpStream;
use tower::{Service, ServiceExt as _};

use super::error::{ConnectError, causes, in_words};

/// The time limit of a connection attempt, even if requests have no limit.
const LONGEST_DIAL: Duration = Duration::from_secs(30);

/// A stream that carries HTTP or TLS to the API server.
type Stream = TokioIo<TcpStream>;

/// Opens streams.
#[derive(Clone)]
pub(super) struct Dialer {
    direct: HttpConnector<Resolver>,
    proxy: Option<Intercept>,
}

impl Dialer {
    /// Creates a dialer, which uses the proxy if there is one.
    pub(super) fn new(request_timeout: Option<Duration>, proxy: Option<Intercept>) -> Self {
        let mut direct = HttpConnector::new_with_resolver(Resolver(GaiResolver::new()));
        direct.enforce_http(false);
        direct.set_nodelay(true);
        direct.set_keepalive(Some(Duration::from_secs(30)));
        direct.set_connect_timeout(Some(
            request_timeout.unwrap_or(LONGEST_DIAL).min(LONGEST_DIAL),
        ));
        Self { direct, proxy }
    }

    async fn open(self, server: Uri) -> Result<Stream, ConnectError> {
        let Some(proxy) = self.proxy else {
            let stream = self.direct.oneshot(server.clone()).await;
            return stream.map_err(|err| of_connector(&err, &server));
        };
        let address = with_port(proxy.uri());
        let fails = |detail: &str| {
            let proxy = address
                .authority()
                .map_or("", |authority| authority.as_str());
            ConnectError::of_server(format_args!("proxyconnect {proxy}: {detail}")).with_hint(
                "check the proxy: it is set by proxy-url in the kubeconfig, or by HTTPS_PROXY",
            )
        };
        let stream = self.direct.oneshot(address.clone()).await;
        let mut stream = Some(stream.map_err(|err| fails(&reason(&err)))?);
        let ready = tower::service_fn(move |_: Uri| {
            let stream = stream.take();
            std::future::ready(stream.ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected)))
        });
        let server = with_port(&server);
        if address.scheme_str() == Some("socks5") {
            let mut socks = SocksV5::new(address.clone(), ready);
            if let Some((name, password)) = proxy.raw_auth() {
                socks = socks.with_auth(name.to_owned(), password.to_owned());
            }
            let stream = socks.call(server).await;
            stream.map_err(|err| fails(&err.to_string()))
        } else {
            let mut tunnel = Tunnel::new(address.clone(), ready);
            if let Some(value) = proxy.basic_auth() {
                tunnel = tunnel.with_auth(value.clone());
            }
            let stream = tunnel.call(server).await;
            stream.map_err(|err| fails(&err.to_string()))
        }
    }
}

impl Service<Uri> for Dialer {
    type Response = Stream;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        Box::pin(self.clone().open(server))
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

fn of_connector(err: &(dyn StdError + 'static), server: &Uri) -> ConnectError {
    let address = server.authority().map_or("", |address| address.as_str());
    if let Some(lookup) = find::<LookupError>(err) {
        let host = server.host().unwrap_or_default();
        return match lookup.0.to_string().contains("Temporary failure") {
            true => ConnectError::of_server(format_args!(
                "dial tcp {host}: lookup: temporary failure in name resolution"
            )),
            false => ConnectError::of_server(format_args!("dial tcp: lookup {host}: no such host")),
        };
    }
    match find::<io::Error>(err) {
        Some(io) if io.kind() == io::ErrorKind::ConnectionRefused => refused(address),
        _ => ConnectError::of_server(format_args!("dial tcp {address}: {}", reason(err))),
    }
}

fn refused(address: &str) -> ConnectError {
    let refused = ConnectError::new(format!(
        "The connection to the server {address} was refused - did you specify the right host or port?"
    ));
    match address {
        "localhost:8080" => refused.with_hint(
            "no API server is configured: check that the files in KUBECONFIG exist, or use --kubeconfig or --context",
        ),
        _ => refused,
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

/// The same URI with an explicit port, which tunnels need.
fn with_port(uri: &Uri) -> Uri {
    if uri.port().is_some() {
        return uri.clone();
    }
    let port = match uri.scheme_str() {
        Some("https") => 443,
        Some("socks5") => 1080,
        _ => 80,
    };
    let with_port = Uri::builder()
        .scheme(uri.scheme_str().unwrap_or("http"))
        .authority(format!("{}:{port}", uri.host().unwrap_or_default()))
        .path_and_query(uri.path())
        .build();
    with_port.unwrap_or_else(|_| uri.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_spelt_out() {
        for (uri, expected) in [
            ("https://h", "https://h:443/"),
            ("http://h/p", "http://h:80/p"),
            ("socks5://h", "socks5://h:1080/"),
            ("https://[::1]", "https://[::1]:443/"),
            ("https://h:1", "https://h:1/"),
        ] {
            assert_eq!(with_port(&uri.parse().unwrap()).to_string(), expected);
        }
    }

    #[test]
    fn an_unconfigured_server_hints_at_the_kubeconfig() {
        let io = io::Error::from(io::ErrorKind::ConnectionRefused);
        for (server, has_hint) in [("http://localhost:8080", true), ("https://10.0.0.1", false)] {
            let err = of_connector(&io, &server.parse().unwrap());
            assert_eq!(err.hint().is_some(), has_hint, "{err}");
        }
    }

    /// The system drops connections to a listener whose queue is full.
    #[tokio::test]
    async fn a_connection_has_a_time_limit_even_if_requests_have_none() {
        let listener = tokio::net::TcpSocket::new_v4().expect("a socket");
        listener
            .bind("127.0.0.1:0".parse().unwrap())
            .expect("a free port");
        let listener = listener.listen(1).expect("it is bound");
        let address = listener.local_addr().expect("it is bound");
        let mut queue = Vec::new();
        let wait = Duration::from_millis(200);
        while let Ok(client) = tokio::time::timeout(wait, TcpStream::connect(address)).await {
            queue.push(client.expect("it is queued"));
        }
        // From here on, time jumps to the next timer whenever nothing happens.
        tokio::time::pause();
        let begun = tokio::time::Instant::now();
        let server: Uri = format!("http://{address}").parse().unwrap();
        Dialer::new(None, None)
            .open(server)
            .await
            .expect_err("nobody answers");
        let took = begun.elapsed();
        assert!(took < LONGEST_DIAL + Duration::from_secs(1), "{took:?}");
    }
}
