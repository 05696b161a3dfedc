//! The way between clients and the API server, on which requests, answers and watches meet faults.

mod body;
mod cuts;
mod round_trip;
mod watch_relay;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Collected, Full};
use kube::client::Body;
use sandbox::{AnswerBody, SandboxService};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tower::{BoxError, Service};

use self::body::{WireBody, truncated, whole};
use self::cuts::Cuts;
pub use self::round_trip::{Faults, Latency};
use self::round_trip::{Loss, NoAnswer, RoundTrip};
use crate::fault::Fault;
use crate::history::{ClientId, Event, Recorder, RequestFault, RequestId};
use crate::machine::Machine;
use crate::time::{Time, TrueClock};

/// What an answer's receiver is sent.
type Answered = Result<Response<WireBody>, BoxError>;

/// Who gets an answer after this time notices.
const LONG: Duration = Duration::from_millis(100);

/// The network of a world; clones are the same one.
#[derive(Clone)]
pub(crate) struct Network {
    server: SandboxService,
    truth: TrueClock,
    recorder: Recorder,
    /// How far the clock of each API server is ahead, in microseconds.
    skews: Arc<Mutex<Vec<i64>>>,
    /// The longest duration that an admission webhook lets through, in seconds.
    cap: Option<u32>,
    /// Whether faults happen, and how fast everything is.
    faults: Arc<Mutex<Faults>>,
    cuts: Cuts,
    /// Until when nobody listens.
    down_until: Arc<Mutex<Time>>,
    /// Watches from before this resource version fail, because it is too old.
    horizon: Arc<AtomicU64>,
}

impl Network {
    /// A network before `server`.
    pub(crate) fn new(
        server: SandboxService,
        truth: TrueClock,
        recorder: Recorder,
        skews: &[i64],
        cap: Option<u32>,
        faults: Faults,
    ) -> Self {
        Self {
            server,
            truth,
            recorder,
            skews: Arc::new(Mutex::new(skews.to_vec())),
            cap,
            faults: Arc::new(Mutex::new(faults)),
            cuts: Cuts::default(),
            down_until: Arc::new(Mutex::new(Time::from_micros(0))),
            horizon: Arc::default(),
        }
    }

    /// Ends every connection; nobody listens for `outage`.
    pub(crate) fn restart(&self, outage: Duration) {
        let what = format!("the API server is down for {outage:?}");
        self.recorder.struck(Fault::ApiRestart, what);
        *lock(&self.down_until) = self.truth.now() + outage;
        self.cuts.cut();
    }

    /// Forgets the history of all changes up to resource version `version`.
    pub(crate) fn compact(&self, version: u64) {
        self.recorder.record(Event::Note(format!(
            "history is forgotten up to @{version}"
        )));
        self.horizon.store(version, Ordering::Relaxed);
    }

    /// Steps the clocks of all API servers.
    pub(crate) fn step_servers(&self, by: i64) {
        let mut skews = lock(&self.skews);
        skews.iter_mut().for_each(|skew| *skew += by);
        let what = format!("the clocks of the API servers are stepped by {by} us");
        self.recorder.struck(Fault::ServerStep, what);
        self.recorder.record(Event::ServerClocks {
            ahead: skews.clone(),
        });
    }

    /// No more faults from here on.
    pub(crate) fn heal(&self) {
        *lock(&self.faults) = Faults::none();
        *lock(&self.down_until) = self.truth.now();
        self.cuts.cut();
    }

    /// A connection to it from `machine`.
    pub(crate) fn wire(
        &self,
        client: ClientId,
        machine: Machine,
        may_watch: bool,
        seed: u64,
    ) -> ClientNetwork {
        ClientNetwork {
            network: self.clone(),
            client,
            machine,
            may_watch,
            rng: fastrand::Rng::with_seed(seed),
        }
    }
}

/// One client's way to the API server.
pub(crate) struct ClientNetwork {
    network: Network,
    client: ClientId,
    machine: Machine,
    /// The client has the right to watch.
    may_watch: bool,
    rng: fastrand::Rng,
}

impl Service<Request<Body>> for ClientNetwork {
    type Response = Response<WireBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Answered>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (parts, body) = request.into_parts();
        // What is sent in one piece is there at once.
        let body = body
            .collect_bytes()
            .now_or_never()
            .and_then(Result::ok)
            .unwrap_or_default();
        let number = self.network.recorder.next_request();
        self.network.recorder.record(Event::Sent {
            request: number,
            client: self.client,
            op: self.machine.op(),
            node: node_of(&parts, &body),
            what: describe(&parts, &body),
        });
        let trip = lock(&self.network.faults).draw(&mut self.rng);
        let skews = lock(&self.network.skews);
        let skew = skews[self.rng.usize(..skews.len())];
        drop(skews);
        let carrier = RequestTask {
            network: self.network.clone(),
            number,
            machine: self.machine.clone(),
            may_watch: self.may_watch,
            skew,
            trip,
            connected: self.network.cuts.count(),
            rng: self.rng.fork(),
        };
        let (answer, answered) = oneshot::channel();
        // Beside its sender: what was sent is under way, whatever becomes of who sent it.
        tokio::spawn(carrier.carry(Request::from_parts(parts, body), answer));
        async { answered.await.unwrap_or_else(|_| Err(reset())) }.boxed()
    }
}

/// Carries one request there and its answer back.
struct RequestTask {
    network: Network,
    number: RequestId,
    /// Whose answer it is.
    machine: Machine,
    may_watch: bool,
    /// How far the clock of the API server that it meets is ahead.
    skew: i64,
    trip: RoundTrip,
    /// How often connections were cut before it was sent.
    connected: u64,
    rng: fastrand::Rng,
}

impl RequestTask {
    async fn carry(mut self, request: Request<Bytes>, answer: oneshot::Sender<Answered>) {
        if self.is_cut_within(self.trip.up).await {
            return self.record_fault(RequestFault::Cut);
        }
        match self.trip.loss {
            Loss::None => self.deliver(request, answer, None).await,
            Loss::Truncated(part) if !is_watch(&request) => {
                self.deliver(request, answer, Some(part)).await;
            }
            // A watch that breaks off is a fault of its own.
            Loss::Truncated(_) => self.deliver(request, answer, None).await,
            Loss::Repeated if request.method() != Method::GET => {
                drop(self.serve(request.clone()).await);
                self.record_fault(RequestFault::Repeated);
                self.deliver(request, answer, None).await;
            }
            Loss::Repeated => self.deliver(request, answer, None).await,
            Loss::Page(status, is_carried_out) => {
                if is_carried_out && !is_watch(&request) {
                    drop(self.serve(request).await);
                }
                self.record_fault(RequestFault::Page(status.as_u16()));
                let page = self.page(status);
                tokio::time::sleep(self.trip.down).await;
                let _ = answer.send(Ok(page));
            }
            Loss::Request(no_answer) => {
                self.record_fault(RequestFault::Lost);
                leave(answer, no_answer, &self.network.cuts, self.connected).await;
            }
            Loss::Late(after, no_answer) => {
                self.record_fault(RequestFault::Late);
                let cuts = self.network.cuts.clone();
                let connected = self.connected;
                tokio::spawn(async move {
                    if self.is_cut_within(after).await {
                        self.record_fault(RequestFault::Cut);
                    } else {
                        drop(self.serve(request).await);
                    }
                });
                leave(answer, no_answer, &cuts, connected).await;
            }
            Loss::Answer(no_answer) => {
                drop(self.serve(request).await);
                self.record_fault(RequestFault::AnswerLost);
                leave(answer, no_answer, &self.network.cuts, self.connected).await;
            }
            Loss::Refused(status, retry_after) => {
                self.record_fault(RequestFault::Refused(status.as_u16()));
                let refusal = self.refusal(status, retry_after);
                tokio::time::sleep(self.trip.down).await;
                let _ = answer.send(Ok(refusal));
            }
            Loss::AnsweredInstead(status) => {
                drop(self.serve(request).await);
                self.record_fault(RequestFault::AnsweredInstead(status.as_u16()));
                let refusal = self.refusal(status, None);
                tokio::time::sleep(self.trip.down).await;
                let _ = answer.send(Ok(refusal));
            }
        }
    }

    /// Lets the server have it, and brings the answer back: all of it, or so many thousandths of its
    /// body.
    async fn deliver(
        &mut self,
        request: Request<Bytes>,
        answer: oneshot::Sender<Answered>,
        part: Option<u16>,
    ) {
        let is_write = request.method() != Method::GET;
        let is_list = !is_write && is_about_all(&request);
        let mut answered = self.serve(request).await;
        self.machine.answer_leaves(is_write);
        if self.trip.up + self.trip.down > LONG {
            let what = format!("r{} takes its time", self.number.0);
            self.network.recorder.struck(Fault::Delay, what);
        }
        if let Some(part) = part {
            self.record_fault(RequestFault::Truncated);
            if is_list && answered.status().is_success() {
                let what = format!("r{} lists a part", self.number.0);
                self.network.recorder.struck(Fault::TruncatedList, what);
            }
            answered = truncated(answered, part).await;
        }
        if self.is_cut_within(self.trip.down).await {
            return self.record_fault(RequestFault::Cut);
        }
        // A client that has disconnected gets no answer.
        let is_the_servers = part.is_none() && answered.headers().contains_key(header::DATE);
        if answer.send(Ok(answered)).is_ok() && is_the_servers {
            self.network.recorder.record(Event::Answered {
                request: self.number,
            });
        }
    }

    /// Waits for `length`; `true` if the connection is cut meanwhile, or nobody listens.
    async fn is_cut_within(&self, length: Duration) -> bool {
        let down = || *lock(&self.network.down_until) > self.network.truth.now();
        if down() {
            return true;
        }
        tokio::select! {
            biased;
            () = self.network.cuts.after(self.connected) => true,
            () = tokio::time::sleep(length) => down(),
        }
    }

    /// Lets the server have it.
    async fn serve(&mut self, request: Request<Bytes>) -> Response<WireBody> {
        let is_watch = is_watch(&request);
        if is_watch && !self.may_watch {
            let what = format!("r{} may not watch", self.number.0);
            self.network.recorder.struck(Fault::NoWatch, what);
            return self.refusal(StatusCode::FORBIDDEN, None);
        }
        let is_lease_write =
            request.method() != Method::GET && request.uri().path().contains("/leases");
        let since = is_watch.then(|| resource_version(&request)).flatten();
        let request = self.admitted(request);
        let Ok(answer) = self.network.server.call(request.map(Full::from)).await;
        let (mut parts, body) = answer.into_parts();
        let status = parts.status.as_u16();
        self.date(&mut parts.headers);
        let (wrote, body) = if is_watch && parts.status.is_success() {
            (None, self.watch(body, since))
        } else {
            let body = body
                .collect()
                .await
                .map_or_else(|never| match never {}, Collected::to_bytes);
            let wrote = (is_lease_write && parts.status.is_success())
                .then(|| version_of(&body))
                .flatten();
            (wrote, whole(body))
        };
        self.network.recorder.record(Event::Served {
            request: self.number,
            status,
            wrote,
        });
        Response::from_parts(parts, body)
    }

    fn watch(&mut self, body: AnswerBody, since: Option<u64>) -> WireBody {
        let faults = lock(&self.network.faults).watch(&mut self.rng);
        watch_relay::relay(
            body,
            since,
            faults,
            self.network.cuts.clone(),
            self.network.horizon.clone(),
            self.network.recorder.clone(),
            self.rng.fork(),
        )
    }

    /// What an admission webhook makes of it.
    fn admitted(&self, request: Request<Bytes>) -> Request<Bytes> {
        let Some(cap) = self.network.cap else {
            return request;
        };
        request.map(|body| {
            let Ok(mut object) = serde_json::from_slice::<Value>(&body) else {
                return body;
            };
            let Some(duration) = object.pointer_mut("/spec/leaseDurationSeconds") else {
                return body;
            };
            if duration
                .as_u64()
                .is_some_and(|seconds| seconds > u64::from(cap) && seconds < 100_000)
            {
                *duration = cap.into();
                let what = format!("r{} may ask for {cap}s only", self.number.0);
                self.network.recorder.struck(Fault::ShortenedLease, what);
            }
            object.to_string().into()
        })
    }

    fn refusal(&self, status: StatusCode, retry_after: Option<u32>) -> Response<WireBody> {
        let body = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "reason": status.canonical_reason().unwrap_or_default().replace(' ', ""),
            "message": "the network says so",
            "code": status.as_u16(),
        });
        let mut answer = Response::new(whole(body.to_string().into()));
        *answer.status_mut() = status;
        if let Some(seconds) = retry_after {
            answer
                .headers_mut()
                .insert(header::RETRY_AFTER, seconds.into());
        }
        answer
    }

    /// A page of something on the way, whose clock is right.
    fn page(&self, status: StatusCode) -> Response<WireBody> {
        let (kind, text) = match status.is_success() {
            true => ("text/html", "<!DOCTYPE html><title>Log in</title>"),
            false => ("text/plain; charset=utf-8", "404 page not found\n"),
        };
        let mut page = Response::new(whole(Bytes::from_static(text.as_bytes())));
        *page.status_mut() = status;
        let kind = HeaderValue::from_static(kind);
        page.headers_mut().insert(header::CONTENT_TYPE, kind);
        self.date(page.headers_mut());
        page
    }

    /// Says what time it is.
    fn date(&self, headers: &mut HeaderMap) {
        let date = self.network.truth.now().on_the_wall(self.skew);
        let date = date.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
        if let Ok(date) = HeaderValue::try_from(date) {
            headers.insert(header::DATE, date);
        }
    }

    fn record_fault(&self, fault: RequestFault) {
        self.network.recorder.record(Event::RequestFailed {
            request: self.number,
            fault,
        });
    }
}

/// No answer: the connection breaks, or nothing is ever heard of it until all are cut.
async fn leave(
    mut answer: oneshot::Sender<Answered>,
    no_answer: NoAnswer,
    cuts: &Cuts,
    connected: u64,
) {
    if no_answer == NoAnswer::Silence {
        tokio::select! {
            biased;
            () = answer.closed() => {}
            () = cuts.after(connected) => {}
        }
    }
}

fn is_watch(request: &Request<Bytes>) -> bool {
    let query = request.uri().query();
    query.is_some_and(|query| query.contains("watch=true"))
}

/// Its path names no object.
fn is_about_all(request: &Request<Bytes>) -> bool {
    let path = request.uri().path();
    path.ends_with("/leases") || path.ends_with("/nodes")
}

fn reset() -> BoxError {
    io::Error::from(io::ErrorKind::ConnectionReset).into()
}

fn resource_version(request: &Request<Bytes>) -> Option<u64> {
    let query = request.uri().query()?;
    query
        .split('&')
        .find_map(|pair| pair.strip_prefix("resourceVersion=")?.parse().ok())
}

fn version_of(body: &Bytes) -> Option<u64> {
    let object: Value = serde_json::from_slice(body).ok()?;
    object
        .pointer("/metadata/resourceVersion")?
        .as_str()?
        .parse()
        .ok()
}

/// The node whose Lease a request is about, if it is about a single one.
fn node_of(parts: &http::request::Parts, body: &Bytes) -> Option<Arc<str>> {
    let (_, name) = parts.uri.path().split_once("/leases")?;
    if let Some(name) = name.strip_prefix('/') {
        return Some(name.into());
    }
    let query = parts.uri.query().unwrap_or_default();
    if let Some((_, name)) = query.split_once("metadata.name%3D") {
        return name.split('&').next().map(Into::into);
    }
    let object: Value = serde_json::from_slice(body).ok()?;
    object.pointer("/metadata/name")?.as_str().map(Into::into)
}

/// Method, kind and name, and what a write stands on.
fn describe(parts: &http::request::Parts, body: &Bytes) -> String {
    let path = parts.uri.path();
    let at = path
        .find("/leases")
        .or_else(|| path.find("/nodes"))
        .map_or(0, |at| at + 1);
    let mut text = format!("{} {}", parts.method, &path[at..]);
    if parts
        .uri
        .query()
        .is_some_and(|query| query.contains("watch=true"))
    {
        text.push_str(" watch");
    }
    if let Ok(object) = serde_json::from_slice::<Value>(body)
        && let Some(version) = object
            .pointer("/metadata/resourceVersion")
            .and_then(Value::as_str)
    {
        text.push_str(" @");
        text.push_str(version);
    }
    text
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
