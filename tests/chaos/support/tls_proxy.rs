//! A proxy that terminates TLS in front of the API server, and changes the `Date` of its answers.

use std::convert::Infallible;
use std::path::{Path, PathBuf};

use chrono::{DateTime, TimeDelta};
use control_plane::ControlPlane;
use http::header::{CONNECTION, DATE, HOST, HeaderValue, TRANSFER_ENCODING};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::tls::server_config;
use super::{RUNTIME, tcp_proxy};

/// A running proxy. It ends when it is dropped.
pub(crate) struct TlsProxy {
    pub(crate) kubeconfig: PathBuf,
    accepting: JoinHandle<Infallible>,
}

impl TlsProxy {
    /// A proxy that makes the server's clock look ahead by this many seconds.
    pub(crate) fn ahead(plane: &ControlPlane, directory: &Path, seconds: i64) -> Self {
        let (listener, client) = RUNTIME.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await;
            (listener.expect("a free port"), client(plane).await)
        });
        let address = listener.local_addr().expect("it is bound");
        Self {
            kubeconfig: tcp_proxy::kubeconfig(plane, directory, address),
            accepting: RUNTIME.spawn(accept(listener, tls(plane), client, seconds)),
        }
    }
}

impl Drop for TlsProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// All requests through the proxy are sent as the administrator, because TLS and the client's own certificate end at
/// the proxy.
async fn client(plane: &ControlPlane) -> Client {
    let kubeconfig = Kubeconfig::read_from(plane.admin_kubeconfig()).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config = config.expect("a kubeconfig of ours");
    config.default_retry = false;
    config.proxy_url = None;
    Client::try_from(config).expect("a client")
}

fn tls(plane: &ControlPlane) -> TlsAcceptor {
    let identity = plane.authority().server(&["127.0.0.1"]);
    let identity = identity.expect("a certificate");
    TlsAcceptor::from(server_config(&identity, &["h2", "http/1.1"]))
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, client: Client, ahead: i64) -> Infallible {
    loop {
        // A client that disconnects before it is accepted must not stop the proxy.
        if let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, tls.clone(), client.clone(), ahead));
        }
    }
}

async fn serve(stream: TcpStream, tls: TlsAcceptor, client: Client, ahead: i64) {
    let Ok(stream) = tls.accept(stream).await else {
        return;
    };
    let service = service_fn(|request| {
        let client = client.clone();
        async move { Ok::<_, Infallible>(forward(client, request, ahead).await) }
    });
    // Errors of the connection are the client's problem.
    let _end = auto::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// Forwards a request, and streams the answer back, because a watch has no end.
async fn forward(client: Client, request: Request<Incoming>, ahead: i64) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().expect("a path").as_str();
    parts.uri = path.parse().expect("it was one");
    parts.version = http::Version::default();
    parts.headers.remove(HOST);
    let answer = match body.collect().await {
        Ok(body) => {
            let body = Body::from(body.to_bytes());
            client.send(Request::from_parts(parts, body)).await.ok()
        }
        Err(_) => None,
    };
    let Some(mut answer) = answer else {
        let mut answer = Response::new(Body::empty());
        *answer.status_mut() = StatusCode::BAD_GATEWAY;
        return answer;
    };
    // These headers are about the connection between the proxy and the server.
    answer.headers_mut().remove(CONNECTION);
    answer.headers_mut().remove(TRANSFER_ENCODING);
    if let Some(date) = answer.headers().get(DATE) {
        let date = moved(date, ahead);
        answer.headers_mut().insert(DATE, date);
    }
    answer
}

fn moved(date: &HeaderValue, seconds: i64) -> HeaderValue {
    let date = date.to_str().expect("a date");
    let date = DateTime::parse_from_rfc2822(date).expect("a date") + TimeDelta::seconds(seconds);
    let date = date.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    date.try_into().expect("a date")
}
