//! Whether an answer is the API server's, and belongs to the request. A proxy in between, for example with a
//! login page, also answers: with pages, with its own status codes, or with a part of the server's answer. No
//! decision may rest on those.

use std::borrow::Cow;

use http::{HeaderValue, Method, Response, StatusCode, header};
use kube::client::Body;
use percent_encoding::percent_decode_str;
use serde::Deserialize;

use super::call::{Accept, Call};
use super::error::{ApiError, Status, one_line};
use crate::bugs::{self, Bug};

/// How many characters of a body are shown.
const SHOWN: usize = 60;

/// What is checked about an answer: its request, and the type that it claims to have.
pub(crate) struct ResponseCheck<'c> {
    call: &'c Call,
    code: StatusCode,
    content_type: Option<HeaderValue>,
    retry_after: Option<u64>,
}

/// The object or the collection of a request, from its path.
struct RequestTarget<'c> {
    /// As in objects: `v1`, or `GROUP/VERSION`.
    api_version: &'c str,
    namespace: Option<Cow<'c, str>>,
    plural: &'c str,
    name: Option<Cow<'c, str>>,
    /// The request is for a part of the object, such as `status`.
    in_part: bool,
}

/// The fields that every object has.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Object<'a> {
    #[serde(borrow)]
    api_version: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

impl<'c> RequestTarget<'c> {
    /// `None` if the path is not that of an API object, such as `/version`.
    fn of(path: &'c str) -> Option<Self> {
        let path = path.split('?').next()?;
        let (api_version, rest) = if let Some(path) = path.strip_prefix("/api/") {
            path.split_once('/')?
        } else {
            let path = path.strip_prefix("/apis/")?;
            let (group, rest) = path.split_once('/')?;
            let version = rest.split('/').next()?;
            let (api_version, rest) = path.split_at(group.len() + 1 + version.len());
            (api_version, rest.strip_prefix('/')?)
        };
        let decoded = |text: &'c str| percent_decode_str(text).decode_utf8_lossy();
        let segments: Vec<&str> = rest.split('/').collect();
        let (namespace, rest) = match segments[..] {
            ["namespaces", namespace, _, ..] => (Some(decoded(namespace)), &segments[2..]),
            _ => (None, &segments[..]),
        };
        let (&plural, rest) = rest.split_first()?;
        Some(Self {
            api_version,
            namespace,
            plural,
            name: rest.first().map(|name| decoded(name)),
            in_part: rest.len() > 1,
        })
    }

    /// Whether `status` says that this object, or its namespace, does not exist.
    fn is_missing(&self, status: &Status) -> bool {
        let is = |plural, name: &Option<Cow<'_, str>>| {
            name.as_ref()
                .is_some_and(|name| status.is_about(plural, name))
        };
        is(self.plural, &self.name) || is("namespaces", &self.namespace)
    }

    /// Whether `object` is an answer to `call`, which is for this object.
    fn is_answered_by(&self, object: &Object<'_>, call: &Call) -> bool {
        if call.accept == Accept::Table {
            return object.kind == "Table";
        }
        let is_of_its_api = object.api_version == self.api_version;
        match (&call.method, &self.name) {
            _ if self.in_part => true,
            (&Method::DELETE, _) if object.kind == "Status" => true,
            (&Method::POST, _) => {
                let sent = call.body.as_ref().map(|(_, body)| &body[..]);
                let sent: Object<'_> = sent
                    .and_then(|sent| serde_json::from_slice(sent).ok())
                    .unwrap_or_default();
                is_of_its_api && object.kind == sent.kind
            }
            (_, Some(name)) => is_of_its_api && object.metadata.name == *name,
            (_, None) => is_of_its_api && object.kind.ends_with("List"),
        }
    }
}

impl<'c> ResponseCheck<'c> {
    pub(crate) fn of(call: &'c Call, answer: &Response<Body>) -> Self {
        let header = |name| answer.headers().get(name);
        Self {
            call,
            code: answer.status(),
            content_type: header(header::CONTENT_TYPE).cloned(),
            retry_after: header(header::RETRY_AFTER)
                .and_then(|value| value.to_str().ok()?.parse().ok()),
        }
    }

    /// The error for this answer with `body`, if its code is not a success.
    ///
    /// A refusal is a `Status`. A `Status` about a missing object names the object that the request asked
    /// for, unless an admission webhook refuses with that code. Too many requests and server failures are accepted
    /// from any sender, because they prove nothing about the object.
    pub(crate) fn refusal(&self, body: &[u8]) -> ApiError {
        let status = Status::read(self.code, self.retry_after, body);
        let is_servers = match self.code {
            StatusCode::TOO_MANY_REQUESTS => true,
            code if code.is_server_error() => true,
            StatusCode::NOT_FOUND if bugs::active(Bug::Any404AsProof) => true,
            StatusCode::NOT_FOUND => {
                let target = RequestTarget::of(&self.call.path);
                status.is_by_webhook() || target.is_some_and(|target| target.is_missing(&status))
            }
            code => code.is_client_error() && status.is_genuine(),
        };
        if is_servers {
            return ApiError::Status(Box::new(status));
        }
        self.not_kubernetes(match status.is_genuine() {
            true => format!("has status {} and says {:?}", status.code, status.message),
            false => self.shown(body),
        })
    }

    /// Expects the complete answer in JSON: the object, or a list without its elements.
    ///
    /// # Errors
    /// [`ApiError::NotKubernetes`] if it is something else; [`ApiError::CutShort`] if only the beginning
    /// arrived.
    pub(crate) fn expect_answer(&self, body: &[u8]) -> Result<(), ApiError> {
        self.expect_json(body)?;
        let object: Object<'_> = serde_json::from_slice(body).map_err(|error| {
            if error.is_eof() {
                ApiError::CutShort {
                    request: self.request_line(),
                }
            } else {
                ApiError::Unreadable(error.to_string())
            }
        })?;
        let target = RequestTarget::of(&self.call.path);
        if target.is_none_or(|target| target.is_answered_by(&object, self.call)) {
            return Ok(());
        }
        Err(self.not_kubernetes(format!(
            "is an object of kind {:?} ({:?}) with the name {:?}",
            object.kind, object.api_version, object.metadata.name
        )))
    }

    /// Expects an object in JSON, in a body that begins like this.
    ///
    /// # Errors
    /// [`ApiError::NotKubernetes`] if it is something else.
    pub(crate) fn expect_json(&self, beginning: &[u8]) -> Result<(), ApiError> {
        match beginning.trim_ascii_start().first() {
            Some(b'{') => Ok(()),
            _ => Err(self.not_kubernetes(self.shown(beginning))),
        }
    }

    /// Expects anything but a page for people. For a body without an end, that is all that can be checked
    /// before its first line.
    ///
    /// # Errors
    /// As [`expect_json`](Self::expect_json).
    pub(crate) fn expect_no_page(&self) -> Result<(), ApiError> {
        match self.media_type() {
            Some("text/html") => Err(self.not_kubernetes("is text/html".to_owned())),
            _ => Ok(()),
        }
    }

    fn not_kubernetes(&self, what: String) -> ApiError {
        ApiError::NotKubernetes {
            request: self.request_line(),
            code: self.code.as_u16(),
            what,
        }
    }

    /// Method and path.
    fn request_line(&self) -> String {
        let path = self.call.path.split('?').next().unwrap_or_default();
        format!("{} {path}", self.call.method)
    }

    /// The error for a body that is not an API server's: its status code, unless a success, its type, and its
    /// first characters.
    fn shown(&self, body: &[u8]) -> String {
        let line = one_line(body, SHOWN);
        let last = match line.is_empty() {
            true => "is empty".to_owned(),
            false => format!("begins with {line:?}"),
        };
        let code = (!self.code.is_success()).then(|| format!("has status {}", self.code.as_u16()));
        let media_type = self.media_type().filter(|_| !line.is_empty());
        let media_type = media_type.map(|media_type| format!("is {media_type}"));
        let first: Vec<String> = code.into_iter().chain(media_type).collect();
        match first.is_empty() {
            true => last,
            false => format!("{} and {last}", first.join(", ")),
        }
    }

    /// Its content type without parameters, visible characters only.
    fn media_type(&self) -> Option<&str> {
        let content_type = self.content_type.as_ref()?.to_str().ok()?;
        let media_type = content_type.split(';').next()?.trim();
        (!media_type.is_empty() && media_type.len() <= SHOWN).then_some(media_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin<'c>(
        call: &'c Call,
        code: u16,
        content_type: Option<&'static str>,
    ) -> ResponseCheck<'c> {
        let mut answer = Response::new(Body::empty());
        *answer.status_mut() = StatusCode::from_u16(code).expect("a code");
        if let Some(content_type) = content_type {
            let content_type = HeaderValue::from_static(content_type);
            answer
                .headers_mut()
                .insert(header::CONTENT_TYPE, content_type);
        }
        ResponseCheck::of(call, &answer)
    }

    /// The error for an answer to the reading of a list, if any.
    fn complaint(content_type: Option<&'static str>, body: &[u8]) -> Option<String> {
        let call = Call::get("/api/v1/nodes?limit=5".to_owned(), Accept::Json);
        let answer = origin(&call, 200, content_type).expect_answer(body);
        answer.err().map(|error| error.to_string())
    }

    #[test]
    fn a_page_instead_of_an_answer_is_reported_in_one_line_with_the_request() {
        let page =
            b"<!DOCTYPE html>\r\n<html>\n  <head><title>Log \"in\"\x1b[31m</title></head>\n</html>";
        assert_eq!(
            complaint(Some("text/html; charset=utf-8"), page).as_deref(),
            Some(
                r#"no Kubernetes API server answered GET /api/v1/nodes: the answer is text/html and begins with "<!DOCTYPE html> <html> <head><title>Log \"in\"\u{1b}[31m</title></h…""#
            )
        );
        let call = Call::get("/api/v1/nodes?watch=true".to_owned(), Accept::Json);
        let watch = origin(&call, 200, Some("text/html; charset=utf-8"));
        let error = watch.expect_no_page().expect_err("a page");
        assert!(matches!(error, ApiError::NotKubernetes { .. }), "{error}");
    }

    #[test]
    fn an_answer_without_a_type_is_reported_by_its_first_bytes() {
        for content_type in [None, Some(""), Some("; charset=utf-8")] {
            let complaint = complaint(content_type, b"OK").expect("an error");
            assert!(
                complaint.ends_with(": the answer begins with \"OK\""),
                "{complaint}"
            );
        }
        let complaint = complaint(None, b" \n").expect("an error");
        assert!(complaint.contains(": the answer is empty"), "{complaint}");
    }

    #[test]
    fn an_object_with_a_status_is_shown_with_it() {
        let call = Call::get("/api/v1/nodes".to_owned(), Accept::Json);
        for (content_type, body, expected) in [
            (
                Some("text/plain"),
                "no\n",
                r#": the answer has status 404, is text/plain and begins with "no""#,
            ),
            (
                None,
                "no",
                r#": the answer has status 404 and begins with "no""#,
            ),
            (
                Some("text/plain"),
                "",
                ": the answer has status 404 and is empty",
            ),
            (
                Some("application/json"),
                r#"{"kind":"Status","reason":"NotFound","message":"no such \u001bAPI","details":{}}"#,
                r#": the answer has status 404 and says "no such \u{1b}API""#,
            ),
        ] {
            let complaint = origin(&call, 404, content_type).refusal(body.as_bytes());
            assert!(complaint.is_not_installed() && !complaint.is_not_found());
            let complaint = complaint.to_string();
            assert!(complaint.ends_with(expected), "{complaint}");
        }
    }

    #[test]
    fn a_list_is_accepted_with_any_name_of_its_type() {
        let list = br#" {"kind":"NodeList","apiVersion":"v1","metadata":{},"items":[]}"#;
        for content_type in [None, Some("application/json"), Some("text/plain")] {
            assert_eq!(complaint(content_type, list), None);
        }
    }

    #[test]
    fn the_beginning_of_an_answer_is_no_answer() {
        let list = br#"{"kind":"NodeList","apiVersion":"v1","metadata":{},"items":[]}"#;
        for end in 1..list.len() {
            let complaint = complaint(None, &list[..end]).expect("an error");
            assert_eq!(
                complaint, "the answer to GET /api/v1/nodes was cut short",
                "{end}"
            );
        }
        let twice = [&list[..], &list[..]].concat();
        assert!(
            complaint(None, &twice)
                .is_some_and(|complaint| complaint.contains("could not be read"))
        );
    }

    #[test]
    fn an_answer_has_the_name_and_the_kind_that_were_asked_for() {
        let read = "/apis/coordination.k8s.io/v1/namespaces/a/leases/n.1?timeout=5s";
        let create = "/apis/coordination.k8s.io/v1/namespaces/a/leases";
        let lease = "coordination.k8s.io/v1 Lease n.1";
        let call = |method, path: &str, accept| Call {
            method,
            path: path.to_owned(),
            accept,
            body: Some(("application/json", br#"{"kind":"Lease"}"#.to_vec())),
        };
        for (method, path, accept, answer, fits) in [
            (Method::GET, read, Accept::Json, lease, true),
            (Method::PATCH, read, Accept::Json, lease, true),
            (Method::DELETE, read, Accept::Json, lease, true),
            (Method::DELETE, read, Accept::Json, "v1 Status ", true),
            (Method::POST, create, Accept::Json, lease, true),
            (
                Method::GET,
                read,
                Accept::Table,
                "meta.k8s.io/v1 Table ",
                true,
            ),
            (Method::GET, "/version", Accept::Json, "  ", true),
            (
                Method::PATCH,
                "/api/v1/nodes/n.1/status",
                Accept::Json,
                "v1 Node n.1",
                true,
            ),
            (
                Method::GET,
                "/api/v1/namespaces/n.1",
                Accept::Json,
                "v1 Namespace n.1",
                true,
            ),
            (
                Method::GET,
                "/api/v1/nodes/a%2Fb",
                Accept::Json,
                "v1 Node a/b",
                true,
            ),
            (
                Method::GET,
                read,
                Accept::Json,
                "coordination.k8s.io/v1 Lease n.2",
                false,
            ),
            (Method::GET, read, Accept::Json, "v1 Node n.1", false),
            (Method::GET, read, Accept::Table, lease, false),
            (Method::GET, create, Accept::Json, lease, false),
            (
                Method::POST,
                create,
                Accept::Json,
                "coordination.k8s.io/v1 LeaseList ",
                false,
            ),
            (Method::PATCH, read, Accept::Json, "v1 Status ", false),
        ] {
            let call = call(method, path, accept);
            let words: Vec<&str> = answer.split(' ').collect();
            let body = serde_json::json!({
                "apiVersion": words[0], "kind": words[1], "metadata": {"name": words[2]},
            });
            let taken = origin(&call, 200, None).expect_answer(body.to_string().as_bytes());
            assert_eq!(taken.is_ok(), fits, "{} {path}: {answer}", call.method);
        }
    }

    #[test]
    fn a_line_has_so_many_characters_at_most() {
        assert_eq!(one_line("é\té".as_bytes(), 3), "é é");
        assert_eq!(one_line("é\té é".as_bytes(), 3), "é é…");
        assert_eq!(one_line(b"", 3), "");
    }
}
