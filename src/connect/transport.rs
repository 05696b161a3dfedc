//! The stack that requests go down: credentials, limits, observation, decompression, HTTP/2 or HTTP/1.1, TLS, a proxy.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{HeaderName, HeaderValue, USER_AGENT};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use rustls::pki_types::ServerName;
use tower::{BoxError, Service, ServiceBuilder};
use tower_http::decompression::DecompressionLayer;

use super::Notices;
use super::credentials::{Credentials, CredentialsLayer};
use super::dial::Dialer;
use super::environment::Environment;
use super::error::ConnectError;
use super::proxy;
use super::selection::Target;
use super::time_limit::TimeLimitLayer;
use super::tls::{self, Identity};
use super::trace::ObserveLayer;
use super::warnings::Warnings;

/// A connection that stays silent this long is asked whether it is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// And given up after this much more.
const KEEP_ALIVE_ANSWER: Duration = Duration::from_secs(15);

/// What a command line says of all its requests.
pub(super) struct Options {
    pub(super) verbosity: u8,
    pub(super) request_timeout: Option<Duration>,
    pub(super) notices: Notices,
}

/// Builds the client for a target. Nothing is retried: a lost answer to a write must come to light.
pub(super) fn client(
    target: &Target,
    identity: Identity,
    credentials: Credentials,
    environment: &Environment,
    options: Options,
) -> Result<kube::Client, ConnectError> {
    let Options {
        verbosity,
        request_timeout,
        notices,
    } = options;
    let connections = Connections::new(target, identity, environment, request_timeout)?;

    let mut config = kube::Config::new(target.server.clone());
    config.headers = vec![user_agent()];
    config.auth_info = impersonation(target);
    let extra_headers = config
        .extra_headers_layer()
        .map_err(|err| ConnectError::Transport {
            detail: err.to_string(),
        })?;
    let observe = ObserveLayer {
        level: verbosity,
        warnings: Warnings::new(Arc::clone(&notices)),
        notices,
    };
    let compress = !target.cluster.disable_compression;

    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(extra_headers)
        .layer(CredentialsLayer(credentials))
        .layer(TimeLimitLayer {
            limit: request_timeout,
        })
        .layer(observe)
        .layer(DecompressionLayer::new().gzip(compress))
        .service(connections);
    Ok(ClientBuilder::new(service, target.namespace.clone()).build())
}

fn user_agent() -> (HeaderName, HeaderValue) {
    let value = concat!("kubectl-maint/", env!("CARGO_PKG_VERSION"));
    (USER_AGENT, HeaderValue::from_static(value))
}

/// The part of the user that says whom to act as; credentials are not kube's business here.
fn impersonation(target: &Target) -> kube::config::AuthInfo {
    let user = &target.user;
    kube::config::AuthInfo {
        impersonate: user.impersonate.clone(),
        impersonate_uid: user.impersonate_uid.clone(),
        impersonate_groups: Some(user.impersonate_groups.clone()),
        impersonate_user_extra: Some(user.impersonate_extra.clone()),
        ..Default::default()
    }
}

type HttpClient = legacy::Client<HttpsConnector<Dialer>, Body>;

/// The connections to the API server. HTTP/2 carries all requests over one; a new client certificate needs new ones.
#[derive(Clone)]
struct Connections {
    connector: HttpsConnector<Dialer>,
    identity: Identity,
    current: Arc<Mutex<(u64, HttpClient)>>,
}

impl Connections {
    fn new(
        target: &Target,
        identity: Identity,
        environment: &Environment,
        request_timeout: Option<Duration>,
    ) -> Result<Self, ConnectError> {
        let proxy = proxy::choose(
            &target.server,
            target.cluster.proxy_url.as_deref(),
            environment,
        )?;
        let proxy_tls = match &proxy {
            Some(uri) if uri.scheme_str() == Some("https") => {
                Some(tls::system_trust(&target.server)?)
            }
            _ => None,
        };
        let tls = if target.is_secure() {
            tls::client_config(target, &identity)?
        } else {
            tls::no_trust()
        };
        let dialer = Dialer::new(request_timeout, proxy, || {
            proxy_tls.unwrap_or_else(tls::no_trust)
        });
        let builder = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http();
        let builder = match target.cluster.tls_server_name.as_deref() {
            Some(name) => {
                builder.with_server_name_resolver(FixedServerNameResolver::new(server_name(name)?))
            }
            None => builder,
        };
        let connector = builder.enable_http1().enable_http2().wrap_connector(dialer);
        let current = Arc::new(Mutex::new((
            identity.generation(),
            http_client(connector.clone()),
        )));
        Ok(Self {
            connector,
            identity,
            current,
        })
    }

    fn client(&self) -> HttpClient {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = self.identity.generation();
        if current.0 != generation {
            *current = (generation, http_client(self.connector.clone()));
        }
        current.1.clone()
    }
}

fn http_client(connector: HttpsConnector<Dialer>) -> HttpClient {
    legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(KEEP_ALIVE)
        .http2_keep_alive_timeout(KEEP_ALIVE_ANSWER)
        .retry_canceled_requests(false)
        .build(connector)
}

fn server_name(name: &str) -> Result<ServerName<'static>, ConnectError> {
    ServerName::try_from(name.to_owned()).map_err(|_| ConnectError::Transport {
        detail: format!("invalid tls-server-name {name:?}"),
    })
}

impl Service<Request<Body>> for Connections {
    type Response = Response<Incoming>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Incoming>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.client();
        Box::pin(async move { Ok(client.request(request).await?) })
    }
}
