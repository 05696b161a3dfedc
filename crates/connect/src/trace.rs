//! The output of `-v` for requests and responses, in kubectl's layout. Level 6 shows the URL, status and time
//! of a response. Level 7 also shows requests and their headers. Level 8 shows all headers and the bodies.
//!
//! Gap in kube: its trace events have no headers and no bodies.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::BodyExt as _;
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
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<TracedBody<B>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        let observer = self.observer.clone();
        if observer.level < 6 {
            let answer = inner.call(request);
            return Box::pin(async move {
                let answer = answer.await.map_err(Into::into)?;
                observer.warnings.observe(answer.headers());
                Ok(answer.map(|inner| TracedBody { inner, shown: None }))
            });
        }
        Box::pin(async move {
            let line = format!(
                "verb={:?} url={:?}",
                request.method().as_str(),
                request.uri().to_string()
            );
            let request = observer.show_request(&line, request).await?;
            let sent = Instant::now();
            let answer = inner.call(request).await.map_err(Into::into);
            let milliseconds = sent.elapsed().as_millis();
            match answer {
                Ok(answer) => {
                    observer.show_answer(&line, &answer, milliseconds);
                    observer.warnings.observe(answer.headers());
                    let body_wanted = observer.level >= 8;
                    Ok(answer.map(|inner| TracedBody {
                        inner,
                        shown: body_wanted.then(|| BodyTrace::new(observer)),
                    }))
                }
                Err(err) => {
                    observer.notify(format!(
                        "\"Response\" {line} status=\"\" milliseconds={milliseconds}"
                    ));
                    Err(err)
                }
            }
        })
    }
}

impl ObserveLayer {
    fn notify(&self, line: String) {
        (self.notices)(Notice::Trace(line));
    }

    async fn show_request(
        &self,
        line: &str,
        request: Request<Body>,
    ) -> Result<Request<Body>, BoxError> {
        if self.level < 7 {
            return Ok(request);
        }
        self.notify(format!(
            "\"Request\" {line} headers=<\n{} >",
            headers(request.headers())
        ));
        if self.level < 8 {
            return Ok(request);
        }
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        if !body.is_empty() {
            self.notify(format!(
                "\"Request Body\" body={}",
                shortened(&body, self.level)
            ));
        }
        Ok(Request::from_parts(parts, Body::from(body)))
    }

    fn show_answer<B>(&self, line: &str, answer: &Response<B>, milliseconds: u128) {
        let status = answer.status().to_string();
        let line = if self.level == 6 {
            format!("{line} ")
        } else {
            String::new()
        };
        let headers = if self.level >= 8 {
            format!("headers=<\n{} > ", headers(answer.headers()))
        } else {
            String::new()
        };
        self.notify(format!(
            "\"Response\" {line}status={status:?} {headers}milliseconds={milliseconds}"
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
        Some((kind, _))
            if ["bearer", "basic", "negotiate"].contains(&kind.to_lowercase().as_str()) =>
        {
            format!("{kind} <masked>")
        }
        _ => "<masked>".to_owned(),
    }
}

/// The maximum length in bytes of a body that a level shows; `None` means no limit.
fn longest(level: u8) -> Option<usize> {
    match level {
        10.. => None,
        9 => Some(10_240),
        _ => Some(1024),
    }
}

fn shortened(body: &[u8], level: u8) -> String {
    let shown = &body[..longest(level).map_or(body.len(), |longest| longest.min(body.len()))];
    let cut = body.len() - shown.len();
    let text = String::from_utf8_lossy(shown);
    if cut == 0 {
        text.into_owned()
    } else {
        format!("{text} [truncated {cut} chars]")
    }
}

/// The body of a response. It is shown once it has been read to the end.
pub(super) struct TracedBody<B> {
    inner: B,
    shown: Option<BodyTrace>,
}

struct BodyTrace {
    observer: ObserveLayer,
    start: Vec<u8>,
    length: usize,
}

impl BodyTrace {
    fn new(observer: ObserveLayer) -> Self {
        Self {
            observer,
            start: Vec::new(),
            length: 0,
        }
    }

    fn record(&mut self, data: &[u8]) {
        self.length += data.len();
        let room = longest(self.observer.level).map_or(data.len(), |longest| {
            longest.saturating_sub(self.start.len())
        });
        self.start.extend_from_slice(&data[..room.min(data.len())]);
    }
}

impl BodyTrace {
    /// The text that is shown for the body. Protobuf is not shown, because it would garble a terminal.
    fn text(&self) -> String {
        if self.start.starts_with(b"k8s\0") {
            return format!("[protobuf of {} bytes]", self.length);
        }
        let text = String::from_utf8_lossy(&self.start);
        let cut = self.length - self.start.len();
        let cut = if cut == 0 {
            String::new()
        } else {
            format!(" [truncated {cut} chars]")
        };
        format!("{text}{cut}")
    }
}

impl Drop for BodyTrace {
    fn drop(&mut self) {
        self.observer
            .notify(format!("\"Response Body\" body={}", self.text()));
    }
}

impl<B> http_body::Body for TracedBody<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = std::task::ready!(Pin::new(&mut self.inner).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let (Some(shown), Some(data)) = (&mut self.shown, frame.data_ref()) {
                    shown.record(data);
                }
            }
            _ => self.shown = None,
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked() {
        for (value, expected) in [
            ("Bearer abc", "Bearer <masked>"),
            ("Basic abc", "Basic <masked>"),
            ("Negotiate abc def", "Negotiate <masked>"),
            ("abc", "<masked>"),
            ("Custom abc", "<masked>"),
        ] {
            assert_eq!(masked(value), expected);
        }
        let mut map = HeaderMap::new();
        map.insert("authorization", "Bearer s3cret".parse().unwrap());
        map.insert("set-cookie", "session=s3cret".parse().unwrap());
        map.insert("accept", "application/json".parse().unwrap());
        let text = headers(&map);
        assert!(!text.contains("s3cret"), "{text}");
        assert!(
            text.contains("\tauthorization: Bearer <masked>\n"),
            "{text}"
        );
        assert!(text.contains("\taccept: application/json\n"), "{text}");
    }

    #[test]
    fn protobuf_is_shown_by_its_length() {
        let (notices, shown) = std::sync::mpsc::channel();
        let observer = ObserveLayer {
            level: 8,
            notices: std::sync::Arc::new(move |notice| {
                let Notice::Trace(line) = notice else {
                    return;
                };
                notices.send(line).unwrap();
            }),
            warnings: Warnings::new(std::sync::Arc::new(|_| ())),
        };
        for pieces in [&[&b"k8s\0\n\x0c\x1b[2J"[..], b"\xff"][..], &[b"{}", b"\n"]] {
            let mut trace = BodyTrace::new(observer.clone());
            for piece in pieces {
                trace.record(piece);
            }
        }
        let lines: Vec<String> = shown.try_iter().collect();
        assert_eq!(
            lines,
            [
                "\"Response Body\" body=[protobuf of 11 bytes]",
                "\"Response Body\" body={}\n",
            ]
        );
    }

    #[test]
    fn long_bodies_are_cut() {
        assert_eq!(shortened(b"short", 8), "short");
        let long = vec![b'x'; 1030];
        assert!(shortened(&long, 8).ends_with("x [truncated 6 chars]"));
        assert_eq!(shortened(&long, 9).len(), 1030);
    }
}
