//! One request to the API server, with a time limit on both sides. The answer's `Date` is recorded.
//! `retry.rs` decides which reads are retried.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{Either, select};
use futures::pin_mut;
use http::{Method, Request, Response, header};
use kube::Client;
use kube::client::Body;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::call::Call;
use super::error::ApiError;
use super::response_check::ResponseCheck;
use super::retry::Retries;
use super::server_time::{OnSuspectedPause, ServerTime};
use crate::env::{Env, Machine};

/// Access to the API server: one client, one estimate of the server's time, one time limit.
///
/// Reads are retried if the connection breaks or if the server is too busy (429), within the time limit.
/// Writes are sent once.
///
/// Clones share the client and the estimate.
#[derive(Clone)]
pub struct Requests {
    client: Client,
    pub(crate) env: Arc<dyn Env>,
    pub(crate) time: ServerTime,
    /// The limit for each request; `None`: no limit.
    pub(crate) limit: Option<Duration>,
    /// Whether reads are retried.
    retries: bool,
}

impl Requests {
    /// Requests through `client`, each within `limit` (`None`: no limit).
    #[must_use]
    pub fn new(client: Client, limit: Option<Duration>) -> Self {
        Self::on(Arc::new(Machine), client, limit, Arc::new(|| ()))
    }

    pub(crate) fn on(
        env: Arc<dyn Env>,
        client: Client,
        limit: Option<Duration>,
        on_suspected_pause: OnSuspectedPause,
    ) -> Self {
        Self {
            client,
            time: ServerTime::new(env.clone(), on_suspected_pause),
            env,
            limit,
            retries: true,
        }
    }

    /// The same for a caller that retries by itself: every request is sent once.
    pub(crate) fn once(&self) -> Self {
        Self {
            retries: false,
            ..self.clone()
        }
    }

    /// The estimate of the server's time, which every answer improves.
    #[must_use]
    pub fn server_time(&self) -> &ServerTime {
        &self.time
    }

    /// Sends `call` and reads the whole answer.
    ///
    /// # Usage
    /// ```
    /// use std::time::Duration;
    ///
    /// use maintenance_lease::{Accept, Call, Requests};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let client = sandbox.client();
    /// let requests = Requests::new(client, Some(Duration::from_secs(10)));
    /// let call = Call::get("/api/v1/nodes/worker-1".to_owned(), Accept::Json);
    /// let node: serde_json::Value = serde_json::from_slice(&requests.call(&call).await?)?;
    /// assert_eq!(node["metadata"]["name"], "worker-1");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the server refuses or fails, or nothing answers in time. Also if the answer does not come from
    /// an API server, or does not have the kind and name that the path and the body ask for.
    ///
    /// # Caveats
    /// Dropping this future abandons the answer. A write may still take effect.
    pub async fn call(&self, call: &Call) -> Result<Bytes, ApiError> {
        self.within(async {
            let mut retries = self.retries(call);
            loop {
                match self.call_once(call).await {
                    Err(error) => retries.wait(error).await?,
                    answered => return answered,
                }
            }
        })
        .await
    }

    pub(super) fn retries(&self, call: &Call) -> Retries {
        let is_read = call.method == Method::GET;
        Retries::new(self.env.clone(), self.limit, self.retries && is_read)
    }

    async fn call_once(&self, call: &Call) -> Result<Bytes, ApiError> {
        let answer = self.send(call).await?;
        let origin = ResponseCheck::of(call, &answer);
        let body = answer
            .into_body()
            .collect_bytes()
            .await
            .map_err(|error| ApiError::Transport(Box::new(error)))?;
        origin.expect_answer(&body)?;
        Ok(body)
    }

    /// Sends `call`, whose answer has no end of its own: the limit is for its beginning.
    pub(crate) async fn open(&self, call: &Call) -> Result<Response<Body>, ApiError> {
        let answer = self.within(self.send(call)).await?;
        ResponseCheck::of(call, &answer).expect_no_page()?;
        Ok(answer)
    }

    pub(super) async fn send(&self, call: &Call) -> Result<Response<Body>, ApiError> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(self.with_timeout(&call.path))
            .header(header::ACCEPT, call.accept.header());
        let body = match &call.body {
            Some((content_type, body)) => {
                request = request.header(header::CONTENT_TYPE, *content_type);
                Body::from(body.clone())
            }
            None => Body::empty(),
        };
        let request = request
            .body(body)
            .map_err(|error| ApiError::Transport(Box::new(kube::Error::HttpError(error))))?;
        let sent = self.time.sending();
        let answer = self.client.send(request).await;
        let answer = answer.map_err(|error| ApiError::Transport(Box::new(error)))?;
        self.time.observe(sent, self.env.boot(), answer.headers());
        if answer.status().is_success() {
            return Ok(answer);
        }
        let origin = ResponseCheck::of(call, &answer);
        let body = answer
            .into_body()
            .collect_bytes()
            .await
            .map_err(|error| ApiError::Transport(Box::new(error)))?;
        Err(origin.refusal(&body))
    }

    /// Ends `work` at the limit. Without a runtime it does not begin, because the client would panic.
    pub(super) async fn within<T>(
        &self,
        work: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        self.env.runtime()?;
        let Some(limit) = self.limit else {
            return work.await;
        };
        pin_mut!(work);
        match select(work, self.env.sleep(limit)).await {
            Either::Left((result, _)) => result,
            Either::Right(_) => Err(ApiError::TimedOut(limit)),
        }
    }

    /// The server has the same time limit, and does not carry out a request that the client has dropped. A watch has
    /// its own time limit.
    fn with_timeout(&self, path: &str) -> String {
        match self.limit {
            Some(limit) if !path.contains("watch=") => {
                let limit = limit.min(LONGEST_TIMEOUT);
                let joint = if path.contains('?') { '&' } else { '?' };
                if limit.subsec_nanos() == 0 {
                    format!("{path}{joint}timeout={}s", limit.as_secs())
                } else {
                    format!("{path}{joint}timeout={}ms", limit.as_millis().max(1))
                }
            }
            _ => path.to_owned(),
        }
    }
}

/// The longest time that the server can parse: the nanoseconds of a signed 64-bit number.
const LONGEST_TIMEOUT: Duration = Duration::from_nanos(i64::MAX as u64);

/// Characters that need no escaping anywhere in a URL (RFC 3986, section 2.3).
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// One path segment or query value, escaped.
#[must_use]
pub fn escape(text: &str) -> impl std::fmt::Display {
    utf8_percent_encode(text, ESCAPED)
}
