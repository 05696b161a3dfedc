//! The time that one request may take, here and at the server.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body::Frame;
use kube::client::Body;
use thiserror::Error;
use tokio::time::{Instant, Sleep, timeout_at};
use tower::{BoxError, Layer, Service};

/// A request took longer than it may.
#[derive(Clone, Copy, Debug, Error)]
#[error("request timed out after {after:?}")]
pub(super) struct TimeLimitExceeded {
    pub(super) after: Duration,
}

/// Ends each request after a time, its answer's body included, and tells the server to give up by then, too.
/// A watch is limited up to its first byte only: it is meant to stay.
#[derive(Clone, Copy)]
pub(super) struct TimeLimitLayer {
    pub(super) limit: Option<Duration>,
}

impl<S> Layer<S> for TimeLimitLayer {
    type Service = TimeLimit<S>;

    fn layer(&self, inner: S) -> Self::Service {
        TimeLimit {
            inner,
            limit: self.limit,
        }
    }
}

#[derive(Clone)]
pub(super) struct TimeLimit<S> {
    inner: S,
    limit: Option<Duration>,
}

impl<S, B> Service<Request<Body>> for TimeLimit<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<LimitedBody<B>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let watch = is_watch(request.uri());
        let Some(after) = self.limit else {
            let answer = self.inner.call(request);
            return Box::pin(async move {
                Ok(answer
                    .await
                    .map_err(Into::into)?
                    .map(|inner| LimitedBody { inner, limit: None }))
            });
        };
        if !watch {
            *request.uri_mut() = with_timeout(request.uri(), after);
        }
        let deadline = Instant::now() + after;
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = timeout_at(deadline, answer)
                .await
                .map_err(|_| TimeLimitExceeded { after })?;
            let limit = (!watch).then(|| (Box::pin(tokio::time::sleep_until(deadline)), after));
            Ok(answer
                .map_err(Into::into)?
                .map(|inner| LimitedBody { inner, limit }))
        })
    }
}

/// The body of an answer, which fails once the request's time is over.
pub(super) struct LimitedBody<B> {
    inner: B,
    limit: Option<(Pin<Box<Sleep>>, Duration)>,
}

impl<B> http_body::Body for LimitedBody<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        if let Some((sleep, after)) = &mut self.limit
            && sleep.as_mut().poll(cx).is_ready()
        {
            let after = *after;
            return Poll::Ready(Some(Err(TimeLimitExceeded { after }.into())));
        }
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.inner.size_hint()
    }
}

fn is_watch(uri: &Uri) -> bool {
    query_pairs(uri).any(|(key, value)| key == "watch" && matches!(value, "true" | "1"))
}

/// Adds `timeout`, by which the API server ends a request; one that is there already stays.
fn with_timeout(uri: &Uri, limit: Duration) -> Uri {
    if query_pairs(uri).any(|(key, _)| key == "timeout") {
        return uri.clone();
    }
    let time = match (limit.as_secs(), limit.subsec_millis()) {
        (seconds, 0) if seconds > 0 => format!("{seconds}s"),
        _ => format!("{}ms", limit.as_millis().max(1)),
    };
    // kube leaves an empty query, or a trailing `&`, where a request has no parameters.
    let query = uri.query().unwrap_or_default().trim_end_matches('&');
    let separator = if query.is_empty() { "" } else { "&" };
    let path = format!("{}?{query}{separator}timeout={time}", uri.path());
    let mut parts = uri.clone().into_parts();
    let Ok(path) = path.parse() else {
        return uri.clone();
    };
    parts.path_and_query = Some(path);
    Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
}

fn query_pairs(uri: &Uri) -> impl Iterator<Item = (&str, &str)> {
    let query = uri.query().unwrap_or_default();
    query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(uri: &str) -> String {
        with_timeout(&uri.parse().unwrap(), Duration::from_millis(1500)).to_string()
    }

    #[test]
    fn the_server_is_told_the_limit() {
        assert_eq!(limited("/version"), "/version?timeout=1500ms");
        assert_eq!(
            limited("/api/v1/nodes?&limit=5"),
            "/api/v1/nodes?&limit=5&timeout=1500ms"
        );
        assert_eq!(limited("/api/v1/nodes?"), "/api/v1/nodes?timeout=1500ms");
        assert_eq!(
            limited("/api/v1/nodes?timeout=3s"),
            "/api/v1/nodes?timeout=3s"
        );
    }

    #[test]
    fn a_watch_is_told_from_a_list() {
        assert!(is_watch(
            &"/api/v1/nodes?watch=true&resourceVersion=5"
                .parse()
                .unwrap()
        ));
        assert!(!is_watch(&"/api/v1/nodes?watch=false".parse().unwrap()));
        assert!(!is_watch(
            &"/api/v1/nodes?labelSelector=watch".parse().unwrap()
        ));
    }
}
