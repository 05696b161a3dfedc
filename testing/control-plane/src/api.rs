//! A small blocking client for this crate. Objects are JSON, in requests and answers.

use std::future::Future;
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures::stream::{self, StreamExt, TryStreamExt};
use http::Request;
use kube::{Client, Config};
use serde_json::Value;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::authority::{Authority, Identity};

/// The time limit of a request. A server that is alive answers much sooner.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);

/// The object, or an error: the server's refusal, or a failed connection.
pub(crate) type Answer = Result<Value, kube::Error>;

/// The threads that send requests. They are independent of the caller's runtime, so blocking on
/// them is always allowed.
#[derive(Debug)]
pub(crate) struct Worker {
    runtime: Option<Runtime>,
}

impl Worker {
    pub(crate) fn new() -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("control-plane")
            .enable_all()
            .build()
            .context("failed to start a thread for the control plane's client")?;
        Ok(Self {
            runtime: Some(runtime),
        })
    }

    pub(crate) fn handle(&self) -> Handle {
        self.runtime
            .as_ref()
            .expect("it is there until it is dropped")
            .handle()
            .clone()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A client of one server.
#[derive(Clone)]
pub(crate) struct Api {
    worker: Handle,
    client: Client,
}

impl Api {
    /// A client that authenticates as `identity`. It trusts only `authority`, so only a server of
    /// this control plane can answer.
    pub(crate) fn secure(
        worker: &Worker,
        url: &str,
        authority: &Authority,
        identity: &Identity,
    ) -> Result<Self> {
        let mut config = Config::new(url.parse()?);
        config.root_cert = Some(vec![authority.der()]);
        config.auth_info.client_certificate_data = Some(BASE64.encode(&identity.cert_pem));
        config.auth_info.client_key_data = Some(BASE64.encode(&identity.key_pem).into());
        Self::new(worker, config)
    }

    /// A client of a server without TLS.
    pub(crate) fn plain(worker: &Worker, url: &str) -> Result<Self> {
        Self::new(worker, Config::new(url.parse()?))
    }

    fn new(worker: &Worker, mut config: Config) -> Result<Self> {
        config.default_retry = false;
        config.proxy_url = None;
        let worker = worker.handle();
        let client = {
            let _in_runtime = worker.enter();
            Client::try_from(config)?
        };
        Ok(Self { worker, client })
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.one(request("GET", path, None))
    }

    /// A GET request whose answer is not JSON.
    pub(crate) fn get_text(&self, path: &str) -> Result<String> {
        let client = self.client.clone();
        let request = request("GET", path, None);
        self.block_on(async move {
            tokio::time::timeout(REQUEST_LIMIT, client.request_text(request))
                .await?
                .map_err(anyhow::Error::from)
        })
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.one(request("POST", path, Some(body)))
    }

    /// Sends a JSON merge patch.
    pub(crate) fn patch(&self, path: &str, body: &Value) -> Answer {
        self.one(request("PATCH", path, Some(body)))
    }

    /// Deletes an object. `options` is a DeleteOptions object.
    pub(crate) fn delete(&self, path: &str, options: &Value) -> Answer {
        self.one(request("DELETE", path, Some(options)))
    }

    fn one(&self, request: Request<Vec<u8>>) -> Answer {
        self.block_on(send(self.client.clone(), request))
    }

    /// Sends all requests, `parallel` of them at a time, and stops at the first failure.
    pub(crate) fn all(&self, requests: Vec<Request<Vec<u8>>>, parallel: usize) -> Result<()> {
        let client = self.client.clone();
        self.block_on(async move {
            stream::iter(requests)
                .map(|request| {
                    let what = format!("{} {}", request.method(), request.uri());
                    let answer = send(client.clone(), request);
                    async move {
                        answer
                            .await
                            .map(drop)
                            .with_context(|| format!("failed to {what}"))
                    }
                })
                .buffer_unordered(parallel)
                .try_collect::<()>()
                .await
        })
    }

    fn block_on<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> T {
        let (done, result) = mpsc::sync_channel(1);
        self.worker.spawn(async move {
            let _caller_gone = done.send(future.await);
        });
        result.recv().expect("the worker outlives its clients")
    }
}

/// Builds a request for the API server. A PATCH is a JSON merge patch.
pub(crate) fn request(method: &str, path: &str, body: Option<&Value>) -> Request<Vec<u8>> {
    let content_type = if method == "PATCH" {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    Request::builder()
        .method(method)
        .uri(path)
        .header("Content-Type", content_type)
        .body(body.map_or_else(Vec::new, |body| body.to_string().into_bytes()))
        .expect("methods and paths are ours, and names in them are DNS labels")
}

async fn send(client: Client, request: Request<Vec<u8>>) -> Answer {
    match tokio::time::timeout(REQUEST_LIMIT, client.request::<Value>(request)).await {
        Ok(answer) => answer,
        Err(_) => Err(kube::Error::Service(
            anyhow!("no answer within {} s", REQUEST_LIMIT.as_secs()).into(),
        )),
    }
}
