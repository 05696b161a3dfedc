//! A proxy that lets some writes of a person's command through. It kills the command before the next one.

use std::convert::Infallible;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use control_plane::ControlPlane;
use http::header::{CONNECTION, HOST, TRANSFER_ENCODING};
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use kube::Client;
use kube::client::Body;
use kube::config::Kubeconfig;
use serde_json::json;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::tls::server_config;
use super::{Person, RUNTIME, Run};

/// How often it is looked whether the command has ended.
const PERIOD: Duration = Duration::from_millis(5);

/// How a command ended.
#[derive(Debug)]
pub(crate) enum End {
    Killed,
    ByItself(Run),
}

#[derive(Clone)]
struct Limit {
    client: Client,
    /// How many writes may still pass.
    left: Arc<AtomicUsize>,
    reached: Sender<()>,
}

impl Person {
    /// Runs the plugin. Kills it when it sends one more write of a Lease or a Node than `writes`. That one never arrives.
    pub(crate) fn killed_after(
        &self,
        plane: &ControlPlane,
        writes: usize,
        arguments: &[&str],
    ) -> End {
        let (reached, stops) = channel();
        let limit = Limit {
            client: self.client.clone(),
            left: Arc::new(AtomicUsize::new(writes)),
            reached,
        };
        let (directory, kubeconfig, accepting) = open(plane, self, limit);
        let child = Command::new(env!("CARGO_BIN_EXE_kubectl-maint"))
            .args(arguments)
            .env_clear()
            .env("KUBECONFIG", kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let end = until_stopped(child.expect("the program is there"), &stops);
        accepting.abort();
        drop(directory);
        end
    }
}

/// Waits for the end of the command, or kills it at its limit.
fn until_stopped(mut child: Child, stops: &Receiver<()>) -> End {
    loop {
        match stops.recv_timeout(PERIOD) {
            Ok(()) => {
                child.kill().expect("it runs");
                child.wait().expect("it was killed");
                return End::Killed;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => panic!("the proxy is gone"),
        }
        if child.try_wait().expect("it is a child").is_some() {
            return End::ByItself(Run::of(child.wait_with_output().expect("it has ended")));
        }
    }
}

/// A proxy, and a kubeconfig of `person` that leads there.
fn open(
    plane: &ControlPlane,
    person: &Person,
    limit: Limit,
) -> (TempDir, PathBuf, JoinHandle<Infallible>) {
    let listener = RUNTIME.block_on(TcpListener::bind("127.0.0.1:0"));
    let listener = listener.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let identity = plane.authority().server(&["127.0.0.1"]);
    let identity = identity.expect("a certificate");
    let tls = TlsAcceptor::from(server_config(&identity, &["h2", "http/1.1"]));
    let file = Kubeconfig::read_from(&person.kubeconfig).expect("a kubeconfig");
    let mut file = serde_json::to_value(file).expect("JSON");
    file["clusters"][0]["cluster"]["server"] = json!(format!("https://{address}"));
    let directory = TempDir::new().expect("a directory");
    let kubeconfig = directory.path().join("kubeconfig");
    std::fs::write(&kubeconfig, file.to_string()).expect("it is written");
    let accepting = RUNTIME.spawn(accept(listener, tls, limit));
    (directory, kubeconfig, accepting)
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, limit: Limit) -> Infallible {
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, tls.clone(), limit.clone()));
        }
    }
}

async fn serve(stream: TcpStream, tls: TlsAcceptor, limit: Limit) {
    let Ok(stream) = tls.accept(stream).await else {
        return;
    };
    let service = service_fn(|request| {
        let limit = limit.clone();
        async move { Ok::<_, Infallible>(limit.treat(request).await) }
    });
    // How a connection ends is the client's business.
    let _end = auto::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

impl Limit {
    async fn treat(&self, request: Request<Incoming>) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        let path = parts
            .uri
            .path_and_query()
            .expect("a path")
            .as_str()
            .to_owned();
        let is_write = parts.method != Method::GET
            && ["/leases", "/nodes"]
                .into_iter()
                .any(|part| path.contains(part));
        let take = |left: usize| left.checked_sub(1);
        if is_write
            && self
                .left
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, take)
                .is_err()
        {
            // The command may have been killed by an earlier one.
            let _ = self.reached.send(());
            return std::future::pending().await;
        }
        parts.uri = path.parse().expect("it was one");
        parts.version = http::Version::default();
        parts.headers.remove(HOST);
        let body = body.collect().await.expect("a request").to_bytes();
        let request = Request::from_parts(parts, Body::from(body));
        let mut answer = self.client.send(request).await.expect("an answer");
        // These are about the connection behind the proxy.
        answer.headers_mut().remove(CONNECTION);
        answer.headers_mut().remove(TRANSFER_ENCODING);
        answer
    }
}

/// A line of arguments without quotes, about this node.
pub(crate) fn about<'l>(line: &'l str, node: &'l str) -> Vec<&'l str> {
    let words = line.split(' ');
    words
        .map(|word| if word == "NODE" { node } else { word })
        .collect()
}
