//! A proxy between the plugin and an API server. It loses, keeps and answers requests as a test tells it to. It uses
//! plain HTTP in front of the in-memory server, and TLS in front of the real one.

use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta};
use control_plane::{ControlPlane, Identity, Kubeconfig};
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, DATE, RETRY_AFTER};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use kube::Client;
use kube::client::Body;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::cluster::{Cluster, RUNTIME};
use super::run::{Maint, Running};
use super::tls::server_config;

/// How long a test waits for a request.
const LIMIT: Duration = Duration::from_secs(60);

/// What the proxy does with a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Treatment {
    /// Forwards it, and returns the answer.
    Pass,
    /// Forwards it. After the server has answered, cuts the connection.
    LoseAnswer,
    /// Forwards it. The answer's server time is ahead by this many seconds.
    Ahead(i64),
    /// Forwards it, and returns only the beginning of the answer: up to the end of an element of a list.
    CutAnswer,
    /// Forwards it without this field of its body, a JSON pointer. An admission webhook may change a request like this.
    Without(&'static str),
    /// Forwards it as a request of this API user, who is in system:masters. `kubectl proxy` adds credentials like this.
    As(&'static str),
    /// Keeps it until the test lets it pass, even if the client no longer waits for the answer.
    Keep,
    /// Does not forward it. Answers with this status code, and a `Retry-After` in seconds.
    Answer(u16, Option<u32>),
    /// Does not forward it. Answers with a refusal with this code and message.
    Refuse(u16, &'static str),
    /// Does not forward it. Answers with this status code in plain text, as a server in between does.
    Foreign(u16),
    /// Does not forward it. Answers with a login page and status 200.
    Page,
}

/// The text of the proxy's own answers.
const SAID: &str = "the proxy says so";

type Answer = UnsyncBoxBody<Bytes, kube::Error>;

type Plan = Arc<dyn Fn(&Method, &str) -> Treatment + Send + Sync>;

/// A running proxy. It stops when it is dropped.
pub(crate) struct Proxy {
    pub(crate) kubeconfig: PathBuf,
    pub(crate) address: SocketAddr,
    kept: Receiver<Kept>,
    accepting: JoinHandle<Infallible>,
}

/// A request that the proxy keeps. If this is dropped, the request is never forwarded.
pub(crate) struct Kept {
    go: oneshot::Sender<()>,
    answered: oneshot::Receiver<u16>,
}

#[derive(Clone)]
struct RequestHandler {
    client: Client,
    plan: Plan,
    kept: Sender<Kept>,
}

impl Cluster {
    /// A proxy in front of this cluster. For each request, `plan` chooses the treatment by method and path.
    pub(crate) fn proxy(
        &self,
        plan: impl Fn(&Method, &str) -> Treatment + Send + Sync + 'static,
    ) -> Proxy {
        let certificate = self.real.map(|plane| {
            let identity = plane.authority().server(&["127.0.0.1"]);
            identity.expect("a certificate")
        });
        self.proxy_as(certificate.as_ref(), plan)
    }

    /// A proxy in front of this cluster, with TLS and this certificate, or in plain HTTP.
    pub(crate) fn proxy_as(
        &self,
        certificate: Option<&Identity>,
        plan: impl Fn(&Method, &str) -> Treatment + Send + Sync + 'static,
    ) -> Proxy {
        let listener = RUNTIME
            .block_on(TcpListener::bind("127.0.0.1:0"))
            .expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        // Ports may be reused, so a number identifies the proxy.
        static PROXIES: AtomicUsize = AtomicUsize::new(0);
        let number = PROXIES.fetch_add(1, Ordering::Relaxed);
        let kubeconfig = self.directory().join(format!("proxy-{number}.kubeconfig"));
        match self.real {
            Some(plane) => write_kubeconfig(plane, &format!("https://{address}"), &kubeconfig),
            None => {
                let text = sandbox::Sandbox::new().kubeconfig(&format!("http://{address}"));
                std::fs::write(&kubeconfig, text).expect("a kubeconfig");
            }
        }
        let (sender, kept) = channel();
        let handler = RequestHandler {
            client: self.client.clone(),
            plan: Arc::new(plan),
            kept: sender,
        };
        let tls = certificate.map(tls);
        Proxy {
            kubeconfig,
            address,
            kept,
            accepting: RUNTIME.spawn(accept(listener, tls, handler)),
        }
    }

    /// A proxy that applies `treatment` to the requests that `is_meant` selects by method and path, and forwards all
    /// others.
    pub(crate) fn proxy_for(
        &self,
        treatment: Treatment,
        is_meant: impl Fn(&Method, &str) -> bool + Send + Sync + 'static,
    ) -> Proxy {
        self.proxy(move |method, path| match is_meant(method, path) {
            true => treatment,
            false => Treatment::Pass,
        })
    }

    /// A proxy that applies these treatments to the first writes, one each, and forwards all other requests.
    pub(crate) fn proxy_for_writes(&self, treatments: &[Treatment]) -> Proxy {
        let treatments = Mutex::new(Vec::from(treatments).into_iter());
        self.proxy(move |method, _| {
            if method == Method::GET {
                return Treatment::Pass;
            }
            let mut treatments = treatments.lock().expect("no treatment panics");
            treatments.next().unwrap_or(Treatment::Pass)
        })
    }
}

impl Proxy {
    /// Starts `maint` through the proxy, and waits for the first request that the proxy keeps.
    #[track_caller]
    pub(crate) fn holds_up(&self, maint: Maint) -> (Running, Kept) {
        let run = maint.kubeconfig(&self.kubeconfig).start();
        (run, self.kept())
    }

    /// Starts `maint` through the proxy, and kills it at the first request that the proxy keeps. That request can still
    /// be forwarded.
    #[track_caller]
    pub(crate) fn kills(&self, maint: Maint) -> Kept {
        let (run, kept) = self.holds_up(maint);
        run.is_sent(Signal::KILL);
        run.ends_killed();
        kept
    }

    /// Waits for the next request that the proxy keeps.
    #[track_caller]
    pub(crate) fn kept(&self) -> Kept {
        self.kept.recv_timeout(LIMIT).expect("a request is kept")
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Kept {
    /// Forwards the request to the server, and returns the status code of the answer.
    #[track_caller]
    pub(crate) fn passes(self) -> u16 {
        self.go.send(()).expect("it waits");
        self.answered
            .blocking_recv()
            .expect("the server answers it")
    }
}

fn write_kubeconfig(plane: &ControlPlane, server: &str, path: &std::path::Path) {
    Kubeconfig {
        server,
        ca_pem: &plane.authority().pem(),
        user: "admin",
        identity: plane.admin(),
    }
    .write(path)
    .expect("a kubeconfig");
}

fn tls(identity: &Identity) -> TlsAcceptor {
    TlsAcceptor::from(server_config(identity, &["h2", "http/1.1"]))
}

async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    handler: RequestHandler,
) -> Infallible {
    loop {
        // A client that disconnects before it is accepted must not stop the proxy.
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let (tls, handler) = (tls.clone(), handler.clone());
        tokio::spawn(async move {
            match tls {
                None => serve(stream, handler).await,
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        serve(stream, handler).await;
                    }
                }
            }
        });
    }
}

/// Serves a connection until its client leaves, or until a treatment cuts it.
async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    handler: RequestHandler,
) {
    let cut = Arc::new(Notify::new());
    let service = service_fn(|request| {
        let (handler, cut) = (handler.clone(), cut.clone());
        async move { Ok::<_, Infallible>(handler.treat(request, &cut).await) }
    });
    let server = auto::Builder::new(TokioExecutor::new());
    tokio::select! {
        // Errors of the connection are the client's problem.
        _ = server.serve_connection(TokioIo::new(stream), service) => {}
        () = cut.notified() => {}
    }
}

impl RequestHandler {
    async fn treat(&self, request: Request<Incoming>, cut: &Notify) -> Response<Answer> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path_and_query().expect("a path").as_str();
        let treatment = (self.plan)(&parts.method, path);
        let Ok(body) = body.collect().await else {
            return answer(400, None, SAID);
        };
        let mut onwards = Request::builder().method(parts.method).uri(path);
        for name in [ACCEPT, CONTENT_TYPE] {
            if let Some(value) = parts.headers.get(&name) {
                onwards = onwards.header(name, value);
            }
        }
        if let Treatment::As(user) = treatment {
            onwards = onwards.header("impersonate-user", user);
            onwards = onwards.header("impersonate-group", "system:masters");
        }
        let body = match treatment {
            Treatment::Without(field) => without(&body.to_bytes(), field),
            _ => body.to_bytes(),
        };
        let onwards = onwards
            .body(Body::from(body))
            .expect("a request that came in");
        match treatment {
            Treatment::Pass | Treatment::As(_) | Treatment::Without(_) => {
                forward(self.client.clone(), onwards).await
            }
            Treatment::Ahead(seconds) => {
                let mut answer = forward(self.client.clone(), onwards).await;
                move_date(&mut answer, seconds);
                answer
            }
            Treatment::CutAnswer => cut_short(forward(self.client.clone(), onwards).await).await,
            Treatment::LoseAnswer => {
                forward(self.client.clone(), onwards).await;
                cut.notify_one();
                pending().await
            }
            Treatment::Answer(code, retry_after) => answer(code, retry_after, SAID),
            Treatment::Refuse(code, message) => refusal(code, None, message),
            Treatment::Foreign(code) => plain_text(code, None),
            Treatment::Page => login_page(),
            Treatment::Keep => {
                let (go, gone) = oneshot::channel();
                let (answering, answered) = oneshot::channel();
                // If the test has ended, the receiver is gone, and this request is not needed.
                let _ = self.kept.send(Kept { go, answered });
                // In a task of its own: the request continues even if the client disconnects.
                let client = self.client.clone();
                let forwarded = tokio::spawn(async move {
                    if gone.await.is_err() {
                        return pending().await;
                    }
                    let answer = forward(client, onwards).await;
                    let _ = answering.send(answer.status().as_u16());
                    answer
                });
                forwarded.await.expect("forwarding doesn't panic")
            }
        }
    }
}

/// The JSON `body` without a field.
fn without(body: &[u8], field: &str) -> Bytes {
    let mut body: Value = serde_json::from_slice(body).expect("JSON");
    let (parent, name) = field.rsplit_once('/').expect("a pointer");
    if let Some(Value::Object(fields)) = body.pointer_mut(parent) {
        fields.remove(&name.replace("~1", "/"));
    }
    Bytes::from(body.to_string())
}

async fn forward(client: Client, request: Request<Body>) -> Response<Answer> {
    let Ok(response) = client.send(request).await else {
        return answer(502, None, SAID);
    };
    let (parts, body) = response.into_parts();
    let mut back = Response::builder().status(parts.status);
    for name in [CONTENT_TYPE, CONTENT_ENCODING, DATE] {
        if let Some(value) = parts.headers.get(&name) {
            back = back.header(name, value);
        }
    }
    // The body is streamed, because a watch has no end.
    back.body(body.boxed_unsync())
        .expect("an answer that came in")
}

/// The beginning of the answer, up to the last comma between two objects or to the end of the last object.
async fn cut_short(answer: Response<Answer>) -> Response<Answer> {
    let (parts, body) = answer.into_parts();
    let body = body.collect().await.expect("an answer").to_bytes();
    let last = |wanted: &[u8]| {
        let mut windows = body.windows(wanted.len());
        windows.rposition(|window| window == wanted)
    };
    let end = last(b"},{").or_else(|| last(b"}]"));
    let end = end.expect("a list of objects");
    let begun = Full::new(body.slice(..=end));
    Response::from_parts(parts, begun.map_err(|never| match never {}).boxed_unsync())
}

fn move_date(answer: &mut Response<Answer>, seconds: i64) {
    let date = answer.headers()[DATE].to_str().expect("a date");
    let date = DateTime::parse_from_rfc2822(date).expect("a date") + TimeDelta::seconds(seconds);
    let date = date.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let date = date.try_into().expect("a date");
    answer.headers_mut().insert(DATE, date);
}

/// A proxy's answer to a client that has to log in first.
fn login_page() -> Response<Answer> {
    let page = Full::new(Bytes::from_static(
        b"<!DOCTYPE html>\n<html><head><title>Log in</title></head><body>\x1b[2J</body></html>\n",
    ));
    Response::builder()
        .header(CONTENT_TYPE, "text/html; charset=utf-8")
        .body(page.map_err(|never| match never {}).boxed_unsync())
        .expect("an answer")
}

/// An answer of a server: a refusal as a `Status`, and overload or an internal error as plain text.
fn answer(code: u16, retry_after: Option<u32>, message: &str) -> Response<Answer> {
    let status = StatusCode::from_u16(code).expect("a status code of the test");
    if status == StatusCode::TOO_MANY_REQUESTS || !status.is_client_error() {
        return plain_text(code, retry_after);
    }
    refusal(code, retry_after, message)
}

fn refusal(code: u16, retry_after: Option<u32>, message: &str) -> Response<Answer> {
    let status = StatusCode::from_u16(code).expect("a status code of the test");
    let refusal = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": status.canonical_reason().unwrap_or_default().replace(' ', ""),
        "code": code,
    });
    said(code, retry_after, refusal.to_string())
}

fn plain_text(code: u16, retry_after: Option<u32>) -> Response<Answer> {
    said(code, retry_after, format!("{SAID}\n"))
}

fn said(code: u16, retry_after: Option<u32>, body: String) -> Response<Answer> {
    let mut response = Response::builder().status(code);
    if let Some(seconds) = retry_after {
        response = response.header(RETRY_AFTER, seconds);
    }
    response
        .body(
            Full::from(body)
                .map_err(|never| match never {})
                .boxed_unsync(),
        )
        .expect("a status code of the test")
}
