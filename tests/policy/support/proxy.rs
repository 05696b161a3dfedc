//! A proxy between a user's command and the API server. It changes the dates of answers, or it forwards only some
//! writes and kills the command before the next one.

use std::convert::Infallible;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use control_plane::ControlPlane;
use http::header::{CONNECTION, DATE, HOST, HeaderMap, TRANSFER_ENCODING};
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
use super::{PLUGIN, Person, RUNTIME, Run, run};

/// How often the test checks whether the command has ended.
const PERIOD: Duration = Duration::from_millis(5);

/// How a command ended.
#[derive(Debug)]
pub(crate) enum End {
    Killed,
    ByItself(Run),
}

/// The answers in which the proxy changes the `Date`, as if several API servers answered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Dates {
    /// All answers, by this number of seconds.
    All(i64),
    /// Every second answer, by this number of seconds.
    EverySecond(i64),
}

#[derive(Clone)]
enum Change {
    Limit {
        /// Parts of the paths of these writes.
        of: &'static [&'static str],
        /// The number of writes that may still pass.
        left: Arc<AtomicUsize>,
        reached: Sender<()>,
    },
    Dates {
        dates: Dates,
        answers: Arc<AtomicUsize>,
    },
}

#[derive(Clone)]
struct Proxy {
    client: Client,
    change: Change,
}

impl Person {
    /// Runs the plugin, and kills it when it sends more than `writes` writes to Leases or Nodes. The last write never
    /// reaches the server.
    pub(crate) fn killed_after(
        &self,
        plane: &ControlPlane,
        writes: usize,
        arguments: &[&str],
    ) -> End {
        self.killed_after_writes(plane, &["/leases", "/nodes"], writes, arguments)
    }

    /// Like [`Self::killed_after`], but for writes to policies and bindings.
    pub(crate) fn killed_after_policies(
        &self,
        plane: &ControlPlane,
        writes: usize,
        arguments: &[&str],
    ) -> End {
        self.killed_after_writes(plane, &["/validatingadmissionpolic"], writes, arguments)
    }

    fn killed_after_writes(
        &self,
        plane: &ControlPlane,
        of: &'static [&'static str],
        writes: usize,
        arguments: &[&str],
    ) -> End {
        let (reached, stops) = channel();
        let left = Arc::new(AtomicUsize::new(writes));
        let proxy = Proxy {
            client: self.client.clone(),
            change: Change::Limit { of, left, reached },
        };
        let (directory, kubeconfig, accepting) = open(plane, self, proxy);
        let child = Command::new(PLUGIN)
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

    /// Runs the plugin, and changes the dates of the API server's answers.
    pub(crate) fn maint_at(&self, plane: &ControlPlane, dates: Dates, arguments: &[&str]) -> Run {
        let answers = Arc::default();
        let proxy = Proxy {
            client: self.client.clone(),
            change: Change::Dates { dates, answers },
        };
        let (directory, kubeconfig, accepting) = open(plane, self, proxy);
        let run = run(Command::new(PLUGIN)
            .args(arguments)
            .env_clear()
            .env("KUBECONFIG", kubeconfig));
        accepting.abort();
        drop(directory);
        run
    }

    /// Runs the plugin with changed dates, and expects success.
    #[track_caller]
    pub(crate) fn succeeds_at(&self, plane: &ControlPlane, dates: Dates, arguments: &[&str]) {
        let run = self.maint_at(plane, dates, arguments);
        assert_eq!(run.code, 0, "{arguments:?} {dates:?}: {run:?}");
    }
}

/// Waits for the end of the command, or kills it when the proxy has reached its limit.
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

/// Starts a proxy, and writes a kubeconfig of `person` that leads to it.
fn open(
    plane: &ControlPlane,
    person: &Person,
    proxy: Proxy,
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
    let accepting = RUNTIME.spawn(accept(listener, tls, proxy));
    (directory, kubeconfig, accepting)
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, proxy: Proxy) -> Infallible {
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, tls.clone(), proxy.clone()));
        }
    }
}

async fn serve(stream: TcpStream, tls: TlsAcceptor, proxy: Proxy) {
    let Ok(stream) = tls.accept(stream).await else {
        return;
    };
    let service = service_fn(|request| {
        let proxy = proxy.clone();
        async move { Ok::<_, Infallible>(proxy.treat(request).await) }
    });
    // Errors of the connection are the client's problem.
    let _end = auto::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

impl Proxy {
    async fn treat(&self, request: Request<Incoming>) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        let path = parts
            .uri
            .path_and_query()
            .expect("a path")
            .as_str()
            .to_owned();
        if let Change::Limit { of, left, reached } = &self.change
            && parts.method != Method::GET
            && of.iter().any(|part| path.contains(part))
        {
            let take = |left: usize| left.checked_sub(1);
            let taken = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take);
            if taken.is_err() {
                // The command may have been killed because of an earlier write.
                let _ = reached.send(());
                return std::future::pending().await;
            }
        }
        parts.uri = path.parse().expect("it was one");
        parts.version = http::Version::default();
        parts.headers.remove(HOST);
        let body = body.collect().await.expect("a request").to_bytes();
        let request = Request::from_parts(parts, Body::from(body));
        let mut answer = self.client.send(request).await.expect("an answer");
        // These headers are about the connection between the proxy and the server.
        answer.headers_mut().remove(CONNECTION);
        answer.headers_mut().remove(TRANSFER_ENCODING);
        if let Change::Dates { dates, answers } = &self.change {
            let is_second = answers.fetch_add(1, Ordering::SeqCst) % 2 == 1;
            let seconds = match dates {
                Dates::All(seconds) => *seconds,
                Dates::EverySecond(seconds) => i64::from(is_second) * seconds,
            };
            shift_date(answer.headers_mut(), seconds);
        }
        answer
    }
}

fn shift_date(headers: &mut HeaderMap, seconds: i64) {
    let date = headers[DATE].to_str().expect("text");
    let date = DateTime::parse_from_rfc2822(date).expect("a date");
    let date = date.to_utc() + TimeDelta::seconds(seconds);
    let date = date.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    headers.insert(DATE, date.parse().expect("a header"));
}

/// The arguments of a line without quotes, with `node` for NODE.
pub(crate) fn about<'l>(line: &'l str, node: &'l str) -> Vec<&'l str> {
    let words = line.split(' ');
    words
        .map(|word| if word == "NODE" { node } else { word })
        .collect()
}
