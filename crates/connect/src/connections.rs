//! The connections to the API server, and the choice of a connection for each request.
//!
//! Gap in kube: it has no HTTP/2 (kube-rs/kube#1923), and cannot replace a dead connection.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Method, Request, Response, Uri};
use hyper::body::Incoming;
use hyper_rustls::{
    FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream,
};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::Body;
use rustls::pki_types::ServerName;
use thiserror::Error;
use tower::{BoxError, Service};

use super::dial::Dialer;
use super::environment::Environment;
use super::error::{ConnectError, causes};
use super::proxy;
use super::selection::ConnectTarget;
use super::tls::{self, Identity};

/// A connection without data for this long gets a keep-alive request.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// The time limit for the response to a keep-alive request.
const KEEP_ALIVE_ANSWER: Duration = Duration::from_secs(15);

/// How many times a request is retried after the handshake of another request failed.
const MOST_FAILED_FOR_OTHERS: u8 = 8;

type HttpClient<C> = legacy::Client<C, Body>;

/// The connections to the API server. HTTP/2 sends all requests over one connection, and concurrent requests
/// wait for the same handshake. HTTP/1.1 needs one connection for each request. New connections are opened
/// for a new client certificate. They are also opened after a request timed out, because the next request on
/// the same connection could time out too.
#[derive(Clone)]
pub(super) struct Connections {
    connector: HttpsConnector<Dialer>,
    identity: Identity,
    current: Arc<Mutex<Clients>>,
}

#[derive(Clone)]
struct Clients {
    /// The generation of the client certificate.
    generation: u64,
    /// The number of earlier clients.
    number: u64,
    /// `None` if the server has no HTTP/2.
    http2: Option<HttpClient<Http2Connector>>,
    http1: HttpClient<HttpsConnector<Dialer>>,
}

impl Connections {
    pub(super) fn new(
        target: &ConnectTarget,
        identity: Identity,
        environment: &Environment,
        request_timeout: Option<Duration>,
    ) -> Result<Self, ConnectError> {
        let proxy = proxy::choose(
            &target.server,
            target.cluster.proxy_url.as_deref(),
            environment,
        )?;
        let tls = if target.is_secure() {
            tls::client_config(target, &identity)?
        } else {
            tls::no_trust()
        };
        let dialer = Dialer::new(request_timeout, proxy);
        let builder = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http();
        let builder = match target.cluster.tls_server_name.as_deref() {
            Some(name) => {
                builder.with_server_name_resolver(FixedServerNameResolver::new(server_name(name)?))
            }
            None => builder,
        };
        let connector = builder.enable_all_versions().wrap_connector(dialer);
        let http2 = target.is_secure().then(|| http2_client(connector.clone()));
        let current = Clients {
            generation: identity.generation(),
            number: 0,
            http2,
            http1: http1_client(connector.clone()),
        };
        Ok(Self {
            connector,
            identity,
            current: Arc::new(Mutex::new(current)),
        })
    }

    fn current(&self) -> MutexGuard<'_, Clients> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The clients whose connections use the current client certificate.
    fn clients(&self) -> Clients {
        let mut current = self.current();
        if current.generation != self.identity.generation() {
            self.renew(&mut current);
        }
        current.clone()
    }

    /// Opens new connections for later requests. Requests that were already sent continue.
    pub(super) fn reopen(&self) {
        self.renew(&mut self.current());
    }

    fn renew(&self, current: &mut Clients) {
        *current = Clients {
            generation: self.identity.generation(),
            number: current.number + 1,
            http2: current
                .http2
                .as_ref()
                .map(|_| http2_client(self.connector.clone())),
            http1: http1_client(self.connector.clone()),
        };
    }

    async fn send(self, request: Request<Body>) -> Result<Response<Incoming>, BoxError> {
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await?;
        let mut failed_for_others = 0;
        let mut left_behind = false;
        loop {
            let clients = self.clients();
            let request = Request::from_parts(parts.clone(), Body::from(body.clone()));
            let Some(http2) = clients.http2 else {
                return Ok(clients.http1.request(request).await?);
            };
            // Retries are safe here: without a connection, nothing was sent.
            let waiting = Waiting {
                connections: &self,
                number: clients.number,
                is_over: false,
            };
            match waiting.for_answer(http2.request(request)).await {
                Err(err) if is_no_http2(&err) => {
                    self.current().http2 = None;
                }
                Err(err) if is_of_another(&err) && failed_for_others < MOST_FAILED_FOR_OTHERS => {
                    failed_for_others += 1;
                }
                Err(err) if !left_behind && parts.method == Method::GET && is_farewell(&err) => {
                    left_behind = true;
                }
                answer => return Ok(answer?),
            }
        }
    }
}

/// A request that waits for its response. If this is dropped before the response, the request was canceled,
/// and new connections are opened.
struct Waiting<'a> {
    connections: &'a Connections,
    /// The number of the clients that sent it.
    number: u64,
    is_over: bool,
}

impl Waiting<'_> {
    async fn for_answer<T>(mut self, answer: impl Future<Output = T>) -> T {
        let answer = answer.await;
        self.is_over = true;
        answer
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut current = self.connections.current();
        if !self.is_over && current.number == self.number {
            self.connections.renew(&mut current);
        }
    }
}

/// Whether the server closed the connection normally. It does so if it does not recognize the user of another
/// request on the connection. A read may then be sent again.
fn is_farewell(err: &legacy::Error) -> bool {
    causes(err)
        .filter_map(|cause| cause.downcast_ref::<h2::Error>())
        .any(|err| {
            err.is_go_away() && err.is_remote() && err.reason() == Some(h2::Reason::NO_ERROR)
        })
}

fn is_no_http2(err: &legacy::Error) -> bool {
    causes(err).any(<dyn std::error::Error>::is::<NoHttp2>)
}

/// Whether a request waited for the handshake of another request and failed with it. The connection pool does
/// not report the cause to this request, so it must try again to find the cause.
fn is_of_another(err: &legacy::Error) -> bool {
    err.is_connect() && ConnectError::of_cause(err).is_none()
}

fn client_builder() -> legacy::Builder {
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new());
    builder
}

fn http1_client(connector: HttpsConnector<Dialer>) -> HttpClient<HttpsConnector<Dialer>> {
    client_builder().build(connector)
}

fn http2_client(connector: HttpsConnector<Dialer>) -> HttpClient<Http2Connector> {
    client_builder()
        .http2_only(true)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .http2_keep_alive_timeout(KEEP_ALIVE_ANSWER)
        // A connection that was replaced counts as idle, although a watch may still use it.
        .http2_keep_alive_while_idle(true)
        .build(Http2Connector(connector))
}

/// Makes connections only if the server agrees to HTTP/2.
#[derive(Clone)]
struct Http2Connector(HttpsConnector<Dialer>);

#[derive(Debug, Error)]
#[error("the server has no HTTP/2")]
struct NoHttp2;

impl Service<Uri> for Http2Connector {
    type Response = <HttpsConnector<Dialer> as Service<Uri>>::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let connecting = self.0.call(server);
        Box::pin(async move {
            let stream = connecting.await?;
            let agreed = match &stream {
                MaybeHttpsStream::Https(tls) => tls.inner().get_ref().1.alpn_protocol(),
                MaybeHttpsStream::Http(_) => None,
            };
            if agreed == Some(b"h2") {
                Ok(stream)
            } else {
                Err(NoHttp2.into())
            }
        })
    }
}

fn server_name(name: &str) -> Result<ServerName<'static>, ConnectError> {
    ServerName::try_from(name.to_owned())
        .map_err(|_| ConnectError::new(format!("invalid tls-server-name {name:?}")))
}

impl Service<Request<Body>> for Connections {
    type Response = Response<Incoming>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Incoming>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().send(request))
    }
}
