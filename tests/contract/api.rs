//! Raw requests, and a record of their answers.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::Value;

use crate::compare::at;
use crate::normalize::Normalizer;

/// Longer than the slowest controller takes to delete an object.
const TIME_LIMIT: Duration = Duration::from_secs(30);

pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const JSON: &str = "application/json";

/// Compacts the oldest revisions of a server.
pub(crate) type Compaction = Pin<Box<dyn Future<Output = ()>>>;

/// One server, and the record of its answers.
pub(crate) struct Api {
    client: Client,
    compact: Box<dyn Fn() -> Compaction>,
    record: RefCell<Vec<Exchange>>,
    normalizer: RefCell<Normalizer>,
}

/// A request and its answer, without details that may differ between two servers that agree.
#[derive(Debug, PartialEq)]
pub(crate) struct Exchange {
    pub(crate) request: String,
    pub(crate) status: u16,
    pub(crate) warnings: Vec<String>,
    pub(crate) body: Value,
}

/// An unchanged answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Answer {
    /// Asserts success with this HTTP status.
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{:#}", self.body);
        self
    }

    /// Asserts a `Status` that refuses the request for this reason.
    #[track_caller]
    pub(crate) fn refused(self, status: u16, reason: &str) -> Self {
        let found = (self.status, self.body["reason"].as_str());
        assert_eq!(found, (status, Some(reason)), "{:#}", self.body);
        self
    }

    /// Asserts the fields that the causes name.
    #[track_caller]
    pub(crate) fn because_of(self, fields: &[&str]) -> Self {
        let causes = at(&self.body, "/details/causes");
        let found: Vec<&str> = causes
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|cause| cause["field"].as_str())
            .collect();
        assert_eq!(found, fields, "{:#}", self.body);
        self
    }

    /// Asserts the value at a JSON pointer.
    #[track_caller]
    pub(crate) fn has(self, pointer: &str, expected: impl Into<Value>) -> Self {
        assert_eq!(at(&self.body, pointer), expected.into(), "{pointer}");
        self
    }

    pub(crate) fn version(&self) -> String {
        self.text("/metadata/resourceVersion")
    }

    pub(crate) fn uid(&self) -> String {
        self.text("/metadata/uid")
    }

    pub(crate) fn text(&self, pointer: &str) -> String {
        let found = self.body.pointer(pointer).and_then(Value::as_str);
        found
            .unwrap_or_else(|| panic!("no text at {pointer}: {:#}", self.body))
            .to_owned()
    }

    /// The names of a list's items.
    pub(crate) fn names(&self) -> Vec<String> {
        let items = at(&self.body, "/items");
        let items = items.as_array().cloned().unwrap_or_default();
        items
            .iter()
            .filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned))
            .collect()
    }
}

impl Api {
    pub(crate) fn new(client: Client, compact: Box<dyn Fn() -> Compaction>) -> Self {
        Self {
            client,
            compact,
            record: RefCell::default(),
            normalizer: RefCell::default(),
        }
    }

    pub(crate) fn into_exchanges(self) -> Vec<Exchange> {
        self.record.into_inner()
    }

    /// Compacts the oldest revisions of the server.
    pub(crate) async fn compact(&self) {
        (self.compact)().await;
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], None).await
    }

    pub(crate) async fn get_as(&self, accept: &str, path: &str) -> Answer {
        self.send(Method::GET, path, &[("accept", accept)], None)
            .await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        let headers = [("content-type", JSON)];
        self.send(Method::POST, path, &headers, Some(&body)).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        let headers = [("content-type", JSON)];
        self.send(Method::PUT, path, &headers, Some(&body)).await
    }

    /// Sends a JSON merge patch.
    pub(crate) async fn patch(&self, path: &str, body: Value) -> Answer {
        self.patch_as(MERGE, path, body).await
    }

    pub(crate) async fn patch_as(&self, kind: &str, path: &str, body: Value) -> Answer {
        let headers = [("content-type", kind)];
        self.send(Method::PATCH, path, &headers, Some(&body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, &[], None).await
    }

    pub(crate) async fn delete_with(&self, path: &str, options: Value) -> Answer {
        let headers = [("content-type", JSON)];
        self.send(Method::DELETE, path, &headers, Some(&options))
            .await
    }

    /// The events of a watch until its timeout, which the path sets. Bookmarks that only report
    /// progress are left out, because the server sends them at any time.
    pub(crate) async fn watch(&self, path: &str) -> Vec<Value> {
        self.watch_as(JSON, path).await
    }

    pub(crate) async fn watch_as(&self, accept: &str, path: &str) -> Vec<Value> {
        let events = self.events(accept, path).await;
        let body = Value::from(events.clone());
        self.remember("WATCH", path, 200, Vec::new(), &body);
        events
    }

    async fn events(&self, accept: &str, path: &str) -> Vec<Value> {
        let response = self
            .exchange(Method::GET, path, &[("accept", accept)], None)
            .await;
        let status = response.status().as_u16();
        let text = read(response).await;
        assert_eq!(status, 200, "{text}");
        text.lines()
            .filter(|line| !line.contains("BOOKMARK") || line.contains("initial-events-end"))
            .map(|line| serde_json::from_str(line).expect("a watch sends a JSON text a line"))
            .collect()
    }

    /// Repeats a GET, without a record, until the object does not exist.
    pub(crate) async fn await_absence(&self, path: &str) {
        let gone = async {
            while self.peek(path).await.status != 404 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let outcome = tokio::time::timeout(TIME_LIMIT, gone).await;
        assert!(outcome.is_ok(), "{path} is still there");
    }

    /// A GET that is not recorded.
    pub(crate) async fn peek(&self, path: &str) -> Answer {
        let response = self.exchange(Method::GET, path, &[], None).await;
        let status = response.status().as_u16();
        let body = json_or_text(&read(response).await);
        Answer { status, body }
    }

    /// Creates a namespace for a case.
    pub(crate) async fn namespace(&self, name: &str) -> String {
        let body = serde_json::json!({"metadata": {"name": name}});
        self.post("/api/v1/namespaces", body).await.is(201);
        format!("/apis/coordination.k8s.io/v1/namespaces/{name}/leases")
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Answer {
        let verb = method.to_string();
        let response = self.exchange(method, path, headers, body).await;
        let status = response.status().as_u16();
        let warnings = response
            .headers()
            .get_all("warning")
            .iter()
            .filter_map(|value| value.to_str().ok().map(str::to_owned))
            .collect();
        assert!(response.headers().contains_key("date"), "no Date header");
        let body = json_or_text(&read(response).await);
        self.remember(&verb, path, status, warnings, &body);
        Answer { status, body }
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Response<Body> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = body.map_or_else(Vec::new, |body| body.to_string().into_bytes());
        let request = request.body(Body::from(body)).expect("a valid request");
        let answer = tokio::time::timeout(TIME_LIMIT, self.client.send(request)).await;
        answer.expect("an answer in time").expect("an answer")
    }

    fn remember(&self, verb: &str, path: &str, status: u16, warnings: Vec<String>, body: &Value) {
        let mut normal = self.normalizer.borrow_mut();
        self.record.borrow_mut().push(Exchange {
            request: normal.text(&format!("{verb} {path}")),
            status,
            warnings,
            body: normal.value(body),
        });
    }
}

async fn read(response: Response<Body>) -> String {
    let body = tokio::time::timeout(TIME_LIMIT, response.into_body().collect()).await;
    let bytes = body.expect("a body in time").expect("a body").to_bytes();
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

fn json_or_text(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}
