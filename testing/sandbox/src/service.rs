//! Handles HTTP requests.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited, StreamBody};
use serde_json::{Value, json};
use tower::BoxError;

use crate::failure::Failure;
use crate::query::Query;
use crate::representation::{Include, Renderer, Representation};
use crate::route::{Route, Subresource, Target};
use crate::server::Server;
use crate::verbs::{self, Call, ListOptions, Outcome, PatchType};
use crate::watch::Watch;
use crate::{discovery, openapi};

/// The body of an answer: complete, or the stream of a watch.
pub type AnswerBody = UnsyncBoxBody<Bytes, Infallible>;

/// The largest request body that the server reads, in bytes.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// The API server as a [`tower::Service`], for a `kube::Client` in the same process or for a layer that adds faults.
#[derive(Clone)]
pub struct SandboxService {
    server: Arc<Server>,
}

impl SandboxService {
    pub(crate) fn new(server: Arc<Server>) -> Self {
        Self { server }
    }
}

impl<B> tower::Service<Request<B>> for SandboxService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.server.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let answer = match read_body(body).await {
                Ok(body) => dispatch(&server, &parts, &body),
                Err(failure) => Err(failure),
            };
            Ok(finish(&server, answer))
        })
    }
}

/// An answer without the headers that all answers have.
struct Answer {
    code: u16,
    content_type: &'static str,
    body: AnswerBody,
    /// Each one is sent in a `Warning` header.
    warnings: Vec<String>,
}

impl Answer {
    fn json(code: u16, body: String) -> Self {
        Self {
            code,
            content_type: "application/json",
            body: Full::from(body).boxed_unsync(),
            warnings: Vec::new(),
        }
    }

    fn text(code: u16, body: String) -> Self {
        Self {
            content_type: "text/plain; charset=utf-8",
            ..Self::json(code, body)
        }
    }

    fn refusal(failure: &Failure) -> Self {
        if *failure == Failure::no_such_page() {
            Self::text(failure.code, failure.message.clone())
        } else {
            Self::json(failure.code, failure.to_status().to_string())
        }
    }
}

async fn read_body<B>(body: B) -> Result<Bytes, Failure>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Failure::too_large(BODY_LIMIT)),
        Err(error) => Err(Failure::bad_request(error.to_string())),
    }
}

fn finish(server: &Server, answer: Result<Answer, Failure>) -> Response<AnswerBody> {
    let answer = answer.unwrap_or_else(|failure| Answer::refusal(&failure));
    let date = server.now().format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let mut response = Response::builder();
    for warning in answer.warnings {
        let text = warning.replace('\\', r"\\").replace('"', r#"\""#);
        response = response.header(header::WARNING, format!("299 - \"{text}\""));
    }
    response
        .status(answer.code)
        .header(header::CONTENT_TYPE, answer.content_type)
        .header(header::CACHE_CONTROL, "no-cache, private")
        .header(header::DATE, date)
        .body(answer.body)
        .expect("codes and headers are all of the server's own making")
}

fn dispatch(server: &Arc<Server>, parts: &Parts, body: &Bytes) -> Result<Answer, Failure> {
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    match Route::find(&server.catalog, &parts.method, parts.uri.path())? {
        Route::Health => Ok(Answer::text(200, "ok".to_owned())),
        Route::Version => Ok(Answer::json(200, version().to_string())),
        Route::Discovery(path) => discovery::answer(&server.catalog, &path)
            .map(|found| Answer::json(200, found.to_string())),
        Route::OpenApi(path) => openapi::answer(&server.catalog, &path)
            .map(|found| Answer::json(200, found.to_string())),
        Route::AccessReview { kind } => {
            // The answer does not depend on the request or its encoding.
            let review = parse(body).unwrap_or_default();
            let review = json!({
                "kind": kind,
                "apiVersion": "authorization.k8s.io/v1",
                "metadata": {},
                "spec": review["spec"],
                "status": {"allowed": true},
            });
            Ok(Answer::json(201, review.to_string()))
        }
        Route::SubjectReview => Ok(Answer::json(201, subject_review(parts).to_string())),
        Route::Objects(target) => objects(server, &target, parts, &query, body),
    }
}

/// There is no authentication. Every caller is the user of an API server without authentication, or the user that it
/// impersonates.
fn subject_review(parts: &Parts) -> Value {
    let impersonated = |name: &str| {
        let values = parts.headers.get_all(name).iter();
        let values = values.filter_map(|value| value.to_str().ok());
        values.map(ToOwned::to_owned).collect::<Vec<String>>()
    };
    let authenticated = "system:authenticated".to_owned();
    let (username, mut groups) = match impersonated("impersonate-user").pop() {
        Some(user) => (user, impersonated("impersonate-group")),
        None => (
            "system:unsecured".to_owned(),
            vec!["system:masters".to_owned()],
        ),
    };
    groups.push(authenticated);
    json!({
        "kind": "SelfSubjectReview",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {},
        "status": {"userInfo": {"username": username, "groups": groups}},
    })
}

fn version() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "gitVersion": "v1.36.3+sandbox",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": "linux/amd64",
    })
}

fn objects(
    server: &Arc<Server>,
    target: &Target,
    parts: &Parts,
    query: &Query,
    body: &Bytes,
) -> Result<Answer, Failure> {
    let accept = header_text(parts, &header::ACCEPT);
    let renderer = Renderer {
        resource: target.resource.clone(),
        representation: Representation::negotiate(accept)?,
        include: Include::read(query.get("includeObject"))?,
        now: server.now(),
    };
    let call = Call {
        server,
        target,
        query,
        warnings: RefCell::default(),
    };
    let single = !target.name.is_empty();
    let outcome = match (&parts.method, single) {
        (&Method::GET, false) if query.flag("watch") => {
            let watch = Watch::start(server.clone(), target, query, renderer)?;
            return Ok(Answer {
                code: 200,
                content_type: "application/json",
                body: StreamBody::new(watch.into_frames()).boxed_unsync(),
                warnings: Vec::new(),
            });
        }
        (&Method::GET, false) => {
            let options = ListOptions::read(&target.resource, query)?;
            verbs::list(&call, &options)
        }
        (&Method::GET, true) => verbs::get(&call),
        (&Method::POST, false) => verbs::create(&call, read_json(parts, body)?),
        (&Method::PUT, true) => verbs::replace(&call, read_json(parts, body)?),
        (&Method::PATCH, true) => {
            let content_type = header_text(parts, &header::CONTENT_TYPE);
            let patch_type = PatchType::from_content_type(content_type)?;
            verbs::patch(&call, patch_type, &parse(body)?)
        }
        (&Method::DELETE, _) if target.subresource != Subresource::None => {
            Err(Failure::method_not_allowed())
        }
        (&Method::DELETE, true) => verbs::delete(&call, optional_json(parts, body)?.as_ref()),
        (&Method::DELETE, false) => {
            verbs::delete_collection(&call, optional_json(parts, body)?.as_ref())
        }
        _ => Err(Failure::method_not_allowed()),
    }?;
    let answer = match outcome {
        Outcome::Object(code, object) => Answer::json(code, renderer.object(&object)),
        Outcome::List(list) => Answer::json(200, renderer.list(&list)),
        Outcome::Done(status) => Answer::json(200, status.to_string()),
    };
    Ok(Answer {
        warnings: call.warnings.into_inner(),
        ..answer
    })
}

fn header_text<'a>(parts: &'a Parts, name: &header::HeaderName) -> &'a str {
    parts
        .headers
        .get(name)
        .map(HeaderValue::to_str)
        .and_then(Result::ok)
        .unwrap_or_default()
}

fn optional_json(parts: &Parts, body: &Bytes) -> Result<Option<Value>, Failure> {
    if body.is_empty() {
        Ok(None)
    } else {
        read_json(parts, body).map(Some)
    }
}

fn read_json(parts: &Parts, body: &Bytes) -> Result<Value, Failure> {
    let content_type = header_text(parts, &header::CONTENT_TYPE);
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    if !matches!(media_type, "" | "application/json" | "*/*") {
        return Err(Failure::unsupported_media_type("application/json"));
    }
    parse(body)
}

fn parse(body: &Bytes) -> Result<Value, Failure> {
    serde_json::from_slice(body).map_err(|error| {
        Failure::bad_request(format!(
            "couldn't get version/kind; json parse error: {error}"
        ))
    })
}
