//! The connection between a client and its server, which a case can disturb.

use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::future::{BoxFuture, pending, ready};
use futures::stream;
use http::{Method, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use kube::Client;
use kube::client::Body;
use maintenance_lease::env::Env;
use maintenance_lease::protocol::BootInstant;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tower::BoxError;

/// A request on its way.
#[derive(Clone, Debug)]
pub(crate) struct Passing {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) body: Value,
    /// When the request was sent, by the sender's boot clock.
    pub(crate) at: BootInstant,
    /// The number of writes so far, including this request.
    pub(crate) writes: usize,
}

impl Passing {
    pub(crate) fn is_write(&self) -> bool {
        self.method != Method::GET
    }

    pub(crate) fn is_watch(&self) -> bool {
        self.query.contains("watch=true")
    }

    /// The method and the kind of object, such as `PATCH lease` or `WATCH lease`.
    pub(crate) fn what(&self) -> String {
        let kind = if self.path.contains("/leases") {
            "lease"
        } else if self.path.contains("/nodes") {
            "node"
        } else {
            "namespace"
        };
        let method = match self.is_watch() {
            true => "WATCH",
            false => self.method.as_str(),
        };
        format!("{method} {kind}")
    }
}

/// What happens to a request.
pub(crate) enum Fate {
    /// It reaches the server, and the answer comes back.
    Pass,
    /// Something else happens before it reaches the server.
    Meanwhile(BoxFuture<'static, ()>),
    /// The server handles it, something else happens, and the connection breaks before the answer
    /// arrives.
    AnswerLost(BoxFuture<'static, ()>),
    /// The server handles it, but a proxy answers with this code.
    AnsweredInstead(StatusCode),
    /// The server handles it, but an HTML page comes back, with status 200.
    AnsweredByPage,
    /// It reaches the server with another body, as if an admission webhook had changed it.
    Altered(fn(&mut Value)),
    /// A proxy sends it twice, and returns the answer to the second one.
    Twice,
    /// It does not reach the server: an HTML page comes back, with status 200.
    MetByPage,
    /// It does not reach the server: a proxy answers this.
    MetBy(Response<Body>),
    /// The server handles it, but a proxy answers this.
    AnsweredBy(Response<Body>),
    /// The body of the answer is cut to this many of its bytes.
    CutShort(fn(&[u8]) -> usize),
    /// It does not reach the server: a proxy refuses it, perhaps with a `Retry-After`.
    Refused(StatusCode, Option<u32>),
    /// It does not reach the server: the connection breaks.
    Reset,
    /// It does not reach the server, and there is no answer.
    Swallowed,
    /// The server begins to answer, but none of that arrives. The connection breaks after something
    /// else has happened.
    Silent(BoxFuture<'static, ()>),
    /// The connection breaks. The request reaches the server when the [`Letter`] is delivered.
    Delayed(oneshot::Receiver<()>, oneshot::Sender<StatusCode>),
}

impl Fate {
    /// The answer is lost, and nothing else happens.
    pub(crate) fn answer_lost() -> Self {
        Self::AnswerLost(Box::pin(ready(())))
    }

    /// Something happens. Then the request neither reaches the server nor gets an answer.
    pub(crate) fn swallowed_after(something: impl FnOnce() + Send + 'static) -> Self {
        Self::Meanwhile(Box::pin(async {
            something();
            pending::<()>().await;
        }))
    }

    /// The sender sees a broken connection. The test decides when the request reaches the server.
    pub(crate) fn delayed() -> (Letter, Self) {
        let (go, going) = oneshot::channel();
        let (arriving, arrived) = oneshot::channel();
        (Letter { go, arrived }, Self::Delayed(going, arriving))
    }
}

/// A request that is still on its way.
pub(crate) struct Letter {
    go: oneshot::Sender<()>,
    arrived: oneshot::Receiver<StatusCode>,
}

impl Letter {
    /// Delivers the request to the server, and returns the status code of its answer.
    pub(crate) async fn deliver(self) -> StatusCode {
        self.go.send(()).expect("the request was sent");
        self.arrived.await.expect("the server answers")
    }
}

type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

type Plan = Box<dyn FnMut(&Passing) -> Fate + Send>;

/// A wire. Clones share its state.
#[derive(Clone)]
pub(crate) struct Wire {
    plan: Arc<Mutex<Plan>>,
    passed: Arc<Mutex<Vec<Passing>>>,
    drops_dates: bool,
}

impl Wire {
    /// A wire on which everything passes.
    pub(crate) fn clear() -> Self {
        Self::planned(|_| Fate::Pass)
    }

    /// A wire on which `plan` decides about each request.
    pub(crate) fn planned(plan: impl FnMut(&Passing) -> Fate + Send + 'static) -> Self {
        Self {
            plan: Arc::new(Mutex::new(Box::new(plan))),
            passed: Arc::default(),
            drops_dates: false,
        }
    }

    /// A wire that applies this fate to the first write. Everything else passes.
    pub(crate) fn first_write(fate: Fate) -> Self {
        let mut fate = Some(fate);
        Self::planned(move |passing| match fate.take() {
            Some(fate) if passing.is_write() => fate,
            later => {
                fate = later;
                Fate::Pass
            }
        })
    }

    /// A wire on which `plan` decides about each write. Reads pass.
    pub(crate) fn every_write(mut plan: impl FnMut() -> Fate + Send + 'static) -> Self {
        Self::planned(move |passing| {
            if passing.is_write() {
                plan()
            } else {
                Fate::Pass
            }
        })
    }

    /// A wire on which `plan` decides about each watch, by its number from 0. Everything else
    /// passes.
    pub(crate) fn every_watch(mut plan: impl FnMut(usize) -> Fate + Send + 'static) -> Self {
        let mut count = 0;
        Self::planned(move |passing| {
            if passing.is_watch() {
                count += 1;
                plan(count - 1)
            } else {
                Fate::Pass
            }
        })
    }

    /// Removes the `Date` header from answers, so the sender knows only its own clock.
    pub(crate) fn without_dates(mut self) -> Self {
        self.drops_dates = true;
        self
    }

    /// A client that sends its requests to `server` through this wire.
    pub(crate) fn client(&self, server: &Client, env: &Arc<dyn Env>) -> Client {
        let (wire, server, env) = (self.clone(), server.clone(), env.clone());
        let service = tower::service_fn(move |request| {
            let (wire, server) = (wire.clone(), server.clone());
            let at = env.boot();
            async move { wire.carry(&server, request, at).await }
        });
        Client::new(service, "default")
    }

    /// All requests so far.
    pub(crate) fn passed(&self) -> Vec<Passing> {
        self.passed.lock().unwrap().clone()
    }

    /// All requests so far, in order, in the format of [`Passing::what`].
    pub(crate) fn requests(&self) -> Vec<String> {
        self.passed().iter().map(Passing::what).collect()
    }

    /// When each write was sent.
    pub(crate) fn writes_at(&self) -> Vec<BootInstant> {
        let writes = self.passed().into_iter().filter(Passing::is_write);
        writes.map(|passing| passing.at).collect()
    }

    async fn carry(
        &self,
        server: &Client,
        request: Request<Body>,
        at: BootInstant,
    ) -> Result<Response<AnswerBody>, BoxError> {
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await?;
        let fate = self.note(&parts, &body, at);
        let again = Request::from_parts(parts.clone(), Body::from(body.clone()));
        let request = Request::from_parts(parts, Body::from(body));
        match fate {
            Fate::Pass => {}
            Fate::Meanwhile(something) => something.await,
            Fate::Altered(alter) => {
                let (parts, body) = again.into_parts();
                let mut body = serde_json::from_slice(&body.collect_bytes().await?)?;
                alter(&mut body);
                let altered = Request::from_parts(parts, Body::from(body.to_string().into_bytes()));
                return Ok(boxed(server.send(altered).await?));
            }
            Fate::Twice => drop(server.send(again).await?),
            Fate::AnswerLost(something) => {
                server.send(request).await?;
                something.await;
                return Err(reset());
            }
            Fate::AnsweredInstead(code) => {
                server.send(request).await?;
                return Ok(boxed(answer(code, None)));
            }
            Fate::AnsweredByPage => {
                server.send(request).await?;
                return Ok(boxed(login_page()));
            }
            Fate::MetByPage => return Ok(boxed(login_page())),
            Fate::MetBy(answer) => return Ok(boxed(answer)),
            Fate::AnsweredBy(answer) => {
                server.send(request).await?;
                return Ok(boxed(answer));
            }
            Fate::CutShort(end) => {
                let (mut parts, body) = server.send(request).await?.into_parts();
                parts.headers.remove(header::CONTENT_LENGTH);
                let body = body.collect_bytes().await?;
                let begun = Body::from(body.slice(..end(&body)));
                return Ok(boxed(Response::from_parts(parts, begun)));
            }
            Fate::Refused(code, retry_after) => return Ok(boxed(answer(code, retry_after))),
            Fate::Reset => return Err(reset()),
            Fate::Swallowed => return pending().await,
            Fate::Silent(until) => {
                let answer = server.send(request).await?;
                let broken = stream::once(async move {
                    until.await;
                    Err::<Frame<Bytes>, _>(reset())
                });
                return Ok(answer.map(|_| StreamBody::new(broken).boxed_unsync()));
            }
            Fate::Delayed(going, arriving) => {
                let server = server.clone();
                tokio::spawn(async move {
                    if going.await.is_ok() {
                        let answer = server.send(request).await.expect("the server answers");
                        // The test may not wait for the delivery.
                        let _ = arriving.send(answer.status());
                    }
                });
                return Err(reset());
            }
        }
        let mut answer = server.send(request).await?;
        if self.drops_dates {
            answer.headers_mut().remove(header::DATE);
        }
        Ok(boxed(answer))
    }

    fn note(&self, parts: &http::request::Parts, body: &Bytes, at: BootInstant) -> Fate {
        let mut passed = self.passed.lock().unwrap();
        let writes = passed.last().map_or(0, |last| last.writes);
        let mut passing = Passing {
            method: parts.method.clone(),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            body: serde_json::from_slice(body).unwrap_or_default(),
            at,
            writes,
        };
        passing.writes += usize::from(passing.is_write());
        passed.push(passing.clone());
        (self.plan.lock().unwrap())(&passing)
    }
}

fn boxed(answer: Response<Body>) -> Response<AnswerBody> {
    answer.map(|body| body.map_err(Into::into).boxed_unsync())
}

fn reset() -> BoxError {
    io::Error::from(io::ErrorKind::ConnectionReset).into()
}

/// A proxy's answer to a client that has to log in first.
fn login_page() -> Response<Body> {
    let page = b"<!DOCTYPE html>\n<title>Log in</title>\n<script>{\"items\":[{}]}</script>\n";
    let mut answer = Response::new(Body::from(page.to_vec()));
    let html = header::HeaderValue::from_static("text/html; charset=utf-8");
    answer.headers_mut().insert(header::CONTENT_TYPE, html);
    answer
}

fn answer(code: StatusCode, retry_after: Option<u32>) -> Response<Body> {
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": code.canonical_reason().unwrap_or_default().replace(' ', ""),
        "message": "something on the way says so",
        "code": code.as_u16(),
    });
    let mut answer = Response::new(Body::from(status.to_string().into_bytes()));
    *answer.status_mut() = code;
    if let Some(seconds) = retry_after {
        answer
            .headers_mut()
            .insert(header::RETRY_AFTER, seconds.into());
    }
    answer
}
