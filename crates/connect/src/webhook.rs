//! A web server that receives messages. It uses the same proxies as the API server, and trusts the system's
//! authorities.
//!
//! No gap in kube: this is here because it shares proxies, dialing, TLS and their errors with the connection
//! to the API server.

use http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::Body;
use url::Url;

use super::dial::{Dialer, authority, basic, credentials};
use super::environment::Environment;
use super::error::ConnectError;
use super::{proxy, tls};

/// Why a webhook can't be used.
#[derive(Debug)]
pub enum WebhookError {
    /// Its URL is not an `http` or `https` URL with a host.
    NotAnHttpUrl,
    /// The proxy or the system's authorities can't be used.
    Connect(ConnectError),
}

impl From<ConnectError> for WebhookError {
    fn from(error: ConnectError) -> Self {
        Self::Connect(error)
    }
}

/// A URL that receives messages. It may contain a secret, so nothing here prints it.
pub struct Webhook {
    client: legacy::Client<HttpsConnector<Dialer>, Body>,
    url: Uri,
    user_agent: &'static str,
}

impl Webhook {
    /// Creates the webhook at `url`. Sends nothing.
    ///
    /// # Errors
    /// If `url` is not an `http` or `https` URL, or if the proxy or the system's authorities can't be used.
    pub fn new(
        url: &str,
        environment: &Environment,
        user_agent: &'static str,
    ) -> Result<Self, WebhookError> {
        // This also rejects an invalid port.
        let url = Url::parse(url)
            .ok()
            .and_then(|url| url.as_str().parse().ok());
        let is_web =
            |url: &Uri| matches!(url.scheme_str(), Some("http" | "https")) && url.host().is_some();
        let url = url.filter(is_web);
        let url = url.ok_or(WebhookError::NotAnHttpUrl)?;
        let proxy = proxy::choose(&url, None, environment)?;
        let is_secure = |url: &Uri| url.scheme_str() == Some("https");
        let trust = match is_secure(&url) || proxy.as_ref().is_some_and(is_secure) {
            true => tls::system_trust(&url)?,
            false => tls::no_trust(),
        };
        let dialer = Dialer::new(None, proxy, || trust.clone());
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(trust.clone())
            .https_or_http()
            .enable_http1()
            .wrap_connector(dialer);
        let mut client = legacy::Client::builder(TokioExecutor::new());
        client
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new());
        Ok(Self {
            client: client.build(connector),
            url,
            user_agent,
        })
    }

    /// The host and port, which contain no secret.
    #[must_use]
    pub fn host(&self) -> String {
        authority(&self.url)
    }

    /// Posts JSON, and returns the status of the response.
    ///
    /// # Errors
    /// If there is no response.
    ///
    /// # Caveats
    /// There is no time limit. If you drop this future, the response is ignored. The message may still
    /// arrive.
    pub async fn post(&self, json: Vec<u8>) -> Result<StatusCode, ConnectError> {
        let mut request = Request::new(Body::from(json));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.url.clone();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(self.user_agent));
        let user = credentials(&self.url);
        if let Some(Ok(user)) = user.map(|(name, password)| basic(&name, &password)) {
            headers.insert(AUTHORIZATION, user);
        }
        let answer = self.client.request(request).await;
        answer
            .map(|answer| answer.status())
            .map_err(|error| ConnectError::of_request(&error))
    }
}
