//! The way between clients and the API server, on which requests, answers and watches meet faults.

mod cuts;
mod trip;
mod watching;

use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Collected, Full};
use kube::client::Body;
use sandbox::{AnswerBody, SandboxService};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tower::{BoxError, Service};

use self::cuts::Cuts;
pub use self::trip::{Faults, Hurry};
use self::trip::{Loss, Manner, Trip};
use crate::faults::Fault;
use crate::history::{ClientId, Event, Fate, Recorder, RequestId};
use crate::machine::Machine;
use crate::time::{Time, Truth};

/// The body of an answer as a client gets it: a watch may break off.
type WireBody = UnsyncBoxBody<Bytes, io::Error>;

/// What an answer's receiver is sent.
type Answered = Result<Response<WireBody>, BoxError>;

/// Who gets an answer after this time notices.
const LONG: Duration = Duration::from_millis(100);

/// The network of a world; clones are the same one.
#[derive(Clone)]
pub(crate) struct Network {
    server: SandboxService,
    truth: Truth,
    recorder: Recorder,
    /// How far the clock of each API server is ahead, in microseconds.
    skews: Arc<[i64]>,
    /// The longest duration that an admission webhook lets through, in seconds.
    cap: Option<u32>,
    /// Whether faults happen, and how fast everything is.
    faults: Arc<Mutex<Faults>>,
    cuts: Cuts,
    /// Until when nobody listens.
    down_until: Arc<Mutex<Time>>,
    /// Watches from before this resource version are told that it is too old.
    horizon: Arc<AtomicU64>,
}

impl Network {
    /// A network before `server`.
    pub(crate) fn new(
        server: SandboxService,
        truth: Truth,
        recorder: Recorder,
        skews: &[i64],
        cap: Option<u32>,
        faults: Faults,
    ) -> Self {
        Self {
            server,
            truth,
            recorder,
            skews: skews.into(),
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

    /// No more faults from here on.
    pub(crate) fn heal(&self) {
        *lock(&self.faults) = Faults::none();
        *lock(&self.down_until) = self.truth.now();
        self.cuts.cut();
    }

    /// A connection to it from `machine`.
    pub(crate) fn wire(&self, client: ClientId, machine: Machine, seed: u64) -> Wire {
        Wire {
            network: self.clone(),
            client,
            machine,
            rng: fastrand::Rng::with_seed(seed),
        }
    }
}

/// One client's way to the API server.
pub(crate) struct Wire {
    network: Network,
    client: ClientId,
    machine: Machine,
    rng: fastrand::Rng,
}

impl Service<Request<Body>> for Wire {
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
            what: describe(&parts, &body),
        });
        let trip = lock(&self.network.faults).draw(&mut self.rng);
        let server = self.rng.usize(..self.network.skews.len());
        let carrier = Carrier {
            network: self.network.clone(),
            number,
            skew: self.network.skews[server],
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
struct Carrier {
    network: Network,
    number: RequestId,
    /// How far the clock of the API server that it meets is ahead.
    skew: i64,
    trip: Trip,
    /// How often connections were cut before it was sent.
    connected: u64,
    rng: fastrand::Rng,
}

impl Carrier {
    async fn carry(mut self, request: Request<Bytes>, answer: oneshot::Sender<Answered>) {
        if self.is_cut_within(self.trip.up).await {
            return self.mishap(Fate::Cut);
        }
        match self.trip.loss {
            Loss::None => {
                let answered = self.serve(request).await;
                if self.trip.up + self.trip.down > LONG {
                    let what = format!("r{} takes its time", self.number.0);
                    self.network.recorder.struck(Fault::Delay, what);
                }
                if self.is_cut_within(self.trip.down).await {
                    return self.mishap(Fate::Cut);
                }
                // Who is gone meanwhile hears nothing.
                let _ = answer.send(Ok(answered));
            }
            Loss::Request(manner) => {
                self.mishap(Fate::Lost);
                leave(answer, manner, &self.network.cuts, self.connected).await;
            }
            Loss::Late(after, manner) => {
                self.mishap(Fate::Late);
                let cuts = self.network.cuts.clone();
                let connected = self.connected;
                tokio::spawn(async move {
                    if self.is_cut_within(after).await {
                        self.mishap(Fate::Cut);
                    } else {
                        drop(self.serve(request).await);
                    }
                });
                leave(answer, manner, &cuts, connected).await;
            }
            Loss::Answer(manner) => {
                drop(self.serve(request).await);
                self.mishap(Fate::AnswerLost);
                leave(answer, manner, &self.network.cuts, self.connected).await;
            }
            Loss::Refused(status, retry_after) => {
                self.mishap(Fate::Refused(status.as_u16()));
                let refusal = self.refusal(status, retry_after);
                tokio::time::sleep(self.trip.down).await;
                let _ = answer.send(Ok(refusal));
            }
            Loss::AnsweredInstead(status) => {
                drop(self.serve(request).await);
                self.mishap(Fate::AnsweredInstead(status.as_u16()));
                let refusal = self.refusal(status, None);
                tokio::time::sleep(self.trip.down).await;
                let _ = answer.send(Ok(refusal));
            }
        }
    }

    /// Waits for `length`; `true` where the connection is cut meanwhile, or nobody listens.
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
        let is_watch = request
            .uri()
            .query()
            .is_some_and(|query| query.contains("watch=true"));
        let is_lease_write =
            request.method() != Method::GET && request.uri().path().contains("/leases");
        let since = is_watch.then(|| resource_version(&request)).flatten();
        let request = self.admitted(request);
        let Ok(answer) = self.network.server.call(request.map(Full::from)).await;
        let (mut parts, body) = answer.into_parts();
        let status = parts.status.as_u16();
        let date = self.network.truth.now().on_the_wall(self.skew);
        let date = date.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
        if let Ok(date) = HeaderValue::try_from(date) {
            parts.headers.insert(header::DATE, date);
        }
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
        watching::relay(
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
                .is_some_and(|asked| asked > u64::from(cap) && asked < 100_000)
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

    fn mishap(&self, fate: Fate) {
        self.network.recorder.record(Event::Mishap {
            request: self.number,
            fate,
        });
    }
}

/// No answer: the connection breaks, or nothing is ever heard of it until all are cut.
async fn leave(mut answer: oneshot::Sender<Answered>, manner: Manner, cuts: &Cuts, connected: u64) {
    if manner == Manner::Silence {
        tokio::select! {
            biased;
            () = answer.closed() => {}
            () = cuts.after(connected) => {}
        }
    }
}

fn whole(body: Bytes) -> WireBody {
    Full::from(body)
        .map_err(|never: Infallible| match never {})
        .boxed_unsync()
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
