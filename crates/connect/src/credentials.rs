//! The `Authorization` header of each request: fixed, from a file that is read again, or from a plugin.

use std::fs;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use http::{HeaderValue, Request, Response, StatusCode, header::AUTHORIZATION};
use kube::client::Body;
use tower::{BoxError, Layer, Service};

use super::dial::basic;
use super::environment::Environment;
use super::error::{ConnectError, in_words};
use super::exec_plugin::{Credential, Plugin, PluginError};
use super::kubeconfig::AuthProvider;
use super::selection::Target;
use super::tls::Identity;

/// A token file is read again after this: service account tokens are replaced while a pod runs.
const TOKEN_FILE_FRESH: Duration = Duration::from_secs(50);

/// Where the header comes from.
#[derive(Clone)]
pub(super) enum Credentials {
    /// None is sent: an anonymous user, or one with a client certificate.
    None,
    Fixed(HeaderValue),
    File(Arc<TokenFile>),
    Plugin(Arc<PluginCredentials>),
}

impl Credentials {
    /// The user's credentials. Plain HTTP carries none. A token or a certificate comes before a plugin, as for
    /// kubectl, so that `--token` is enough where the plugin can't run.
    pub(super) fn of_user(
        target: &Target,
        identity: &Identity,
        environment: &Environment,
    ) -> Result<Self, ConnectError> {
        let user = &target.user;
        let owner = || target.user_description.clone().unwrap_or_default();
        if !target.is_secure() {
            return Ok(Self::None);
        }
        let invalid = |_| ConnectError::InvalidCredential {
            what: "token",
            owner: owner(),
            detail: "it has characters that no header can carry".to_owned(),
        };
        if let Some(path) = &user.token_file {
            return TokenFile::open(Path::new(path))
                .map(Arc::new)
                .map(Self::File);
        }
        if let Some(token) = &user.token {
            return bearer(token).map(Self::Fixed).map_err(invalid);
        }
        if let Some(name) = &user.username {
            return basic(name, user.password.as_deref().unwrap_or_default())
                .map(Self::Fixed)
                .map_err(invalid);
        }
        if let Some(provider) = &user.auth_provider {
            return bearer(id_token(provider)?)
                .map(Self::Fixed)
                .map_err(invalid);
        }
        match &user.exec {
            Some(exec)
                if user.client_certificate.is_none() && user.client_certificate_data.is_none() =>
            {
                let plugin = Plugin::new(exec, &target.cluster, environment.stdin_may_ask)?;
                Ok(Self::Plugin(Arc::new(PluginCredentials {
                    plugin,
                    identity: identity.clone(),
                    current: tokio::sync::Mutex::default(),
                })))
            }
            _ => Ok(Self::None),
        }
    }

    /// Runs the plugin at once, where there is one: a person may have to log in, which no request's time limit should
    /// cut short.
    pub(super) async fn obtain(&self) -> Result<(), PluginError> {
        self.header().await.map(drop)
    }

    async fn header(&self) -> Result<Option<HeaderValue>, PluginError> {
        match self {
            Self::None => Ok(None),
            Self::Fixed(header) => Ok(Some(header.clone())),
            Self::File(file) => Ok(Some(file.header().await)),
            Self::Plugin(plugin) => plugin.header().await,
        }
    }
}

/// The ID token of the one provider that kubectl still has; the others became plugins.
fn id_token(provider: &AuthProvider) -> Result<&str, ConnectError> {
    let unsupported = || ConnectError::AuthProvider {
        name: provider.name.clone(),
    };
    if provider.name != "oidc" {
        return Err(unsupported());
    }
    provider
        .config
        .get("id-token")
        .map(String::as_str)
        .ok_or_else(unsupported)
}

fn bearer(token: &str) -> Result<HeaderValue, http::header::InvalidHeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {}", token.trim()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// A token in a file. Where reading it again fails, the last one stays.
pub(super) struct TokenFile {
    path: PathBuf,
    last: Mutex<(HeaderValue, Instant)>,
}

impl TokenFile {
    fn open(path: &Path) -> Result<Self, ConnectError> {
        let header = Self::read(path).map_err(|detail| ConnectError::Transport { detail })?;
        Ok(Self {
            path: path.to_owned(),
            last: Mutex::new((header, Instant::now())),
        })
    }

    /// The latest header. It is read beside the runtime: a file system may hang, and renewals of
    /// other leases and their deadlines must not.
    async fn header(&self) -> HeaderValue {
        let (last, read) = self.last().clone();
        if read.elapsed() <= TOKEN_FILE_FRESH {
            return last;
        }
        let path = self.path.clone();
        match tokio::task::spawn_blocking(move || Self::read(&path)).await {
            Ok(Ok(header)) => {
                *self.last() = (header.clone(), Instant::now());
                header
            }
            _ => last,
        }
    }

    fn last(&self) -> MutexGuard<'_, (HeaderValue, Instant)> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(path: &Path) -> Result<HeaderValue, String> {
        let token = fs::read_to_string(path)
            .map_err(|err| format!("open {}: {}", path.display(), in_words(&err)))?;
        if token.trim().is_empty() {
            return Err(format!(
                "read empty token from file {:?}",
                path.display().to_string()
            ));
        }
        bearer(&token).map_err(|_| format!("no token in {}", path.display()))
    }
}

/// What a plugin gave last. One request at a time asks it; the others wait for that answer.
pub(super) struct PluginCredentials {
    plugin: Plugin,
    identity: Identity,
    current: tokio::sync::Mutex<Option<Given>>,
}

struct Given {
    header: Option<HeaderValue>,
    expires: Option<DateTime<Utc>>,
}

impl Given {
    /// Keeps the token, and has the certificate shown from now on.
    fn take_over(credential: &Credential, identity: &Identity) -> Result<Self, PluginError> {
        if let Some((certificate, key)) = &credential.certificate {
            identity
                .replace(certificate.as_bytes(), key.as_bytes())
                .map_err(|detail| PluginError::BadPair { detail })?;
        }
        let token = credential.token.as_deref().map(bearer).transpose();
        let header = token.map_err(|_| PluginError::Undecodable)?;
        Ok(Self {
            header,
            expires: credential.expires,
        })
    }
}

impl PluginCredentials {
    async fn header(&self) -> Result<Option<HeaderValue>, PluginError> {
        let mut current = self.current.lock().await;
        let is_fresh = |given: &&Given| given.expires.is_none_or(|at| Utc::now() < at);
        if let Some(given) = current.as_ref().filter(is_fresh) {
            return Ok(given.header.clone());
        }
        let plugin = self.plugin.clone();
        let credential = match tokio::task::spawn_blocking(move || plugin.run()).await {
            Ok(credential) => credential?,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        };
        let given = Given::take_over(&credential, &self.identity)?;
        let header = given.header.clone();
        *current = Some(given);
        Ok(header)
    }

    /// The server refused what the plugin gave: the next request asks it again.
    async fn forget(&self) {
        *self.current.lock().await = None;
    }
}

/// Puts the header on every request.
pub(super) struct CredentialsLayer(pub(super) Credentials);

impl<S> Layer<S> for CredentialsLayer {
    type Service = WithCredentials<S>;

    fn layer(&self, inner: S) -> Self::Service {
        WithCredentials {
            inner,
            credentials: self.0.clone(),
        }
    }
}

#[derive(Clone)]
pub(super) struct WithCredentials<S> {
    inner: S,
    credentials: Credentials,
}

impl<S, B> Service<Request<Body>> for WithCredentials<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: Send,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let credentials = self.credentials.clone();
        // The service that was polled ready is the one to call; its clone takes its place.
        let next = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, next);
        Box::pin(async move {
            if let Some(header) = credentials.header().await? {
                request.headers_mut().insert(AUTHORIZATION, header);
            }
            let answer = inner.call(request).await?;
            if answer.status() == StatusCode::UNAUTHORIZED
                && let Credentials::Plugin(plugin) = &credentials
            {
                plugin.forget().await;
            }
            Ok(answer)
        })
    }
}
