//! The output of `-v` for requests and responses, in kubectl's layout. Level 6 shows the URL, status and time
//! of a response. Level 7 also shows requests and all headers.
//!
//! Gap in kube: its trace events have no headers.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use http::{HeaderMap, Request, Response};
use kube::client::Body;
use tower::{BoxError, Layer, Service};

use super::warnings::Warnings;
use super::{Notice, Notices};

/// Headers that carry credentials of the client or the server.
const SECRET_HEADERS: [&str; 4] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
];

/// Observes requests and responses.
#[derive(Clone)]
pub(super) struct ObserveLayer {
    pub(super) level: u8,
    pub(super) notices: Notices,
    pub(super) warnings: Warnings,
}

impl<S> Layer<S> for ObserveLayer {
    type Service = Observe<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Observe {
            inner,
            observer: self.clone(),
        }
    }
}

#[derive(Clone)]
pub(super) struct Observe<S> {
    inner: S,
    observer: ObserveLayer,
}

impl<S, B> Service<Request<Body>> for Observe<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let observer = self.observer.clone();
        let line = observer.show_request(&request);
        let sent = Instant::now();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await.map_err(Into::into);
            if let Ok(answer) = &answer {
                observer.warnings.observe(answer.headers());
            }
            if let Some(line) = line {
                observer.show_answer(&line, answer.as_ref().ok(), sent.elapsed().as_millis());
            }
            answer
        })
    }
}

impl ObserveLayer {
    fn notify(&self, line: String) {
        (self.notices)(Notice::Trace(line));
    }

    /// Shows a request. Returns what to show of it with its answer, if anything.
    fn show_request(&self, request: &Request<Body>) -> Option<String> {
        if self.level < 6 {
            return None;
        }
        let line = format!(
            "verb={:?} url={:?}",
            request.method().as_str(),
            request.uri().to_string()
        );
        if self.level >= 7 {
            let headers = headers(request.headers());
            self.notify(format!("\"Request\" {line} headers=<\n{headers} >"));
        }
        Some(line)
    }

    fn show_answer<B>(&self, line: &str, answer: Option<&Response<B>>, milliseconds: u128) {
        let status = answer.map(|answer| answer.status().to_string());
        let status = status.unwrap_or_default();
        let headers = answer
            .filter(|_| self.level >= 7)
            .map_or_else(String::new, |answer| {
                format!("headers=<\n{} > ", headers(answer.headers()))
            });
        self.notify(format!(
            "\"Response\" {line} status={status:?} {headers}milliseconds={milliseconds}"
        ));
    }
}

/// One line for each header. Secrets are masked.
fn headers(headers: &HeaderMap) -> String {
    let mut lines = String::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        let secret = SECRET_HEADERS.contains(&name.as_str());
        let value = if secret {
            masked(&value)
        } else {
            value.into_owned()
        };
        lines.push_str(&format!("\t{name}: {value}\n"));
    }
    lines
}

/// A credential without its secret. The kind of credential stays visible.
fn masked(value: &str) -> String {
    match value.split_once(' ') {
        Some((kind @ ("Bearer" | "Basic"), _)) => format!("{kind} <masked>"),
        _ => "<masked>".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked() {
        let mut map = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Bearer s3cret"),
            ("proxy-authorization", "Custom s3cret"),
            ("set-cookie", "session=s3cret"),
            ("accept", "application/json"),
        ] {
            map.insert(name, value.parse().unwrap());
        }
        let text = headers(&map);
        assert!(!text.contains("s3cret"), "{text}");
        for line in [
            "\tauthorization: Bearer <masked>\n",
            "\tproxy-authorization: <masked>\n",
            "\taccept: application/json\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
