//! The `Authorization` header of each request: fixed, from a file that is read again, or from a plugin.
//!
//! Gap in kube: it does not run the plugin again after the server answered 401. It loses a login that takes
//! longer than the request that started it. It sends credentials over plain HTTP too. kubectl does none of
//! this.

use std::fs;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use http::{HeaderValue, Request, Response, StatusCode, header::AUTHORIZATION};
use kube::client::Body;
use tower::{BoxError, Layer, Service};

use super::error::{ConnectError, in_words};
use super::exec_plugin::{Credential, Plugin, Stdin, undecodable};
use super::kubeconfig::AuthProvider;
use super::selection::ConnectTarget;
use super::tls::Identity;
use super::{Notice, Notices};

/// After this time, a message names the plugin, because it may be waiting for input or hang.
const SLOW: Duration = Duration::from_secs(2);

/// Files are read again after this time: service account tokens are replaced while a pod runs.
const FILE_FRESH: Duration = Duration::from_secs(50);

/// The source of the header.
#[derive(Clone)]
pub(super) enum Credentials {
    /// No header is sent: the user is anonymous, or has a client certificate in the kubeconfig.
    None,
    Fixed(HeaderValue),
    File(Arc<TokenFile>),
    Plugin(Arc<PluginCredentials>),
}

impl Credentials {
    /// The user's credentials. Plain HTTP carries none. A token or a certificate takes precedence over a
    /// plugin, as in kubectl, so `--token` is enough if the plugin can't run.
    pub(super) fn of_user(
        target: &ConnectTarget,
        identity: &Identity,
        stdin: &Stdin,
        notices: &Notices,
    ) -> Result<Self, ConnectError> {
        let user = &target.user;
        if !target.is_secure() {
            return Ok(Self::None);
        }
        let bearer = |token| {
            bearer(token).map_err(|_| {
                let owner = target.user_description.as_deref().unwrap_or_default();
                ConnectError::new(format!(
                    "token of {owner}: it has characters that are not allowed in an HTTP header"
                ))
            })
        };
        if let Some(path) = &user.token_file {
            let file = TokenFile::open(Path::new(path))?;
            return Ok(Self::File(Arc::new(file)));
        }
        if let Some(token) = &user.token {
            return bearer(token).map(Self::Fixed);
        }
        if let Some(provider) = &user.auth_provider {
            return bearer(id_token(provider)?).map(Self::Fixed);
        }
        match &user.exec {
            Some(exec)
                if user.client_certificate.is_none() && user.client_certificate_data.is_none() =>
            {
                let plugin = Plugin::new(exec, &target.cluster, stdin)?;
                Ok(Self::Plugin(Arc::new(PluginCredentials {
                    plugin,
                    identity: identity.clone(),
                    notices: Arc::clone(notices),
                    is_named: AtomicBool::new(false),
                    last: Mutex::default(),
                })))
            }
            _ => Ok(Self::None),
        }
    }

    /// Runs the credential plugin, if there is one, before the first request. The user may have to log in,
    /// and the time limit of a request must not interrupt that.
    pub(super) async fn obtain(&self) -> Result<(), ConnectError> {
        self.header().await.map(drop)
    }

    async fn header(&self) -> Result<Option<HeaderValue>, ConnectError> {
        match self {
            Self::None => Ok(None),
            Self::Fixed(header) => Ok(Some(header.clone())),
            Self::File(file) => Ok(Some(file.header().await)),
            Self::Plugin(plugin) => plugin.header().await,
        }
    }
}

/// The ID token of the only provider that kubectl still supports. The other providers became plugins.
fn id_token(provider: &AuthProvider) -> Result<&str, ConnectError> {
    let unsupported = || {
        ConnectError::new(format!(
            "the {} auth plugin is not supported",
            provider.name
        ))
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

/// A token in a file. If the file can't be read again, the last token is kept.
pub(super) struct TokenFile {
    path: PathBuf,
    last: Mutex<(HeaderValue, Instant)>,
}

impl TokenFile {
    fn open(path: &Path) -> Result<Self, ConnectError> {
        let header = Self::read(path).map_err(ConnectError::new)?;
        Ok(Self {
            path: path.to_owned(),
            last: Mutex::new((header, Instant::now())),
        })
    }

    /// The latest header. The file is read in a separate thread, because a file system may hang. Renewals of
    /// other leases and their deadlines must not wait for it.
    async fn header(&self) -> HeaderValue {
        let (last, read) = self.last().clone();
        if read.elapsed() <= FILE_FRESH {
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

/// The credentials of a plugin, and the run that gets them.
pub(super) struct PluginCredentials {
    plugin: Plugin,
    identity: Identity,
    notices: Notices,
    /// The user has already been told the name of this slow plugin.
    is_named: AtomicBool,
    last: Mutex<Option<Login>>,
}

/// One run of the plugin. All requests wait for the same run. If a request times out, the run continues for
/// the next request, because a login may take longer than a request. The run ends when its last handle is
/// dropped. The credentials hold one handle.
#[derive(Clone)]
struct Login {
    since: tokio::time::Instant,
    issued: Shared<BoxFuture<'static, Result<IssuedCredentials, ConnectError>>>,
}

#[derive(Clone)]
struct IssuedCredentials {
    header: Option<HeaderValue>,
    expires: Option<DateTime<Utc>>,
}

impl IssuedCredentials {
    /// Keeps the token, and uses the certificate from now on.
    fn take_over(credential: &Credential, identity: &Identity) -> Result<Self, ConnectError> {
        if let Some((certificate, key)) = &credential.certificate {
            identity
                .replace(certificate.as_bytes(), key.as_bytes())
                .map_err(|detail| {
                    let detail = format!("failed parsing client key/certificate: {detail}");
                    ConnectError::of_credentials(detail)
                })?;
        }
        let token = credential.token.as_deref().map(bearer).transpose();
        let header = token.map_err(|_| undecodable())?;
        Ok(Self {
            header,
            expires: credential.expires,
        })
    }
}

impl Login {
    fn begin(plugin: Plugin, identity: Identity) -> Self {
        let issued = async move { IssuedCredentials::take_over(&plugin.run().await?, &identity) };
        Self {
            since: tokio::time::Instant::now(),
            issued: issued.boxed().shared(),
        }
    }

    /// Whether the run is still in progress, or its credentials have not expired.
    fn is_of_use(&self) -> bool {
        match self.issued.peek() {
            None => true,
            Some(Ok(issued)) => issued.expires.is_none_or(|at| Utc::now() < at),
            Some(Err(_)) => false,
        }
    }
}

impl PluginCredentials {
    async fn header(&self) -> Result<Option<HeaderValue>, ConnectError> {
        let login = self.login();
        let is_slow = tokio::time::sleep_until(login.since + SLOW);
        let issued = tokio::select! {
            biased;
            issued = login.issued.clone() => issued,
            () = is_slow => {
                self.name_plugin();
                login.issued.await
            }
        };
        issued.map(|issued| issued.header)
    }

    /// The last login, or a new one if the last one cannot be used any more.
    fn login(&self) -> Login {
        let mut last = self.last();
        match last.as_ref().filter(|login| login.is_of_use()) {
            Some(login) => login.clone(),
            None => last
                .insert(Login::begin(self.plugin.clone(), self.identity.clone()))
                .clone(),
        }
    }

    fn name_plugin(&self) {
        if !self.is_named.swap(true, Ordering::Relaxed) {
            (self.notices)(Notice::SlowPlugin(self.plugin.command().to_owned()));
        }
    }

    /// Drops credentials that the server refused. The next request runs the plugin again, unless it is
    /// already running.
    fn forget(&self) {
        self.last().take_if(|login| login.issued.peek().is_some());
    }

    fn last(&self) -> MutexGuard<'_, Option<Login>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds the header to every request.
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
        // Calls the service that was polled ready, and leaves its clone in its place.
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
                plugin.forget();
            }
            Ok(answer)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::future::{Either, select};
    use kube::config::ExecInteractiveMode;
    use tempfile::TempDir;

    use super::*;
    use crate::kubeconfig::{Cluster, Exec};

    /// If the plugin opens the terminal, the system stops its whole group.
    #[tokio::test]
    async fn a_plugin_beside_a_command_is_in_a_group_of_its_own() {
        let script = "echo \"{apiVersion: client.authentication.k8s.io/v1, kind: ExecCredential, \
                      status: {token: $(ps -o pgid= -p $$)=$$}}\"";
        let exec = Exec {
            api_version: "client.authentication.k8s.io/v1".to_owned(),
            command: "/bin/sh".to_owned(),
            args: vec!["-c".to_owned(), script.to_owned()],
            interactive_mode: Some(ExecInteractiveMode::Never),
            ..Exec::default()
        };
        let stdin = Stdin::new(true);
        let plugin = Plugin::new(&exec, &Cluster::default(), &stdin).expect("a plugin");
        let leads_group = async || {
            let token = plugin.run().await.expect("a token").token;
            let token = token.expect("a token");
            let (group, pid) = token.split_once('=').expect("two numbers");
            group.trim() == pid
        };
        assert!(!leads_group().await);
        stdin.take();
        assert!(leads_group().await);
    }

    /// The credentials from a shell script, which gets its directory in `$0`.
    fn credentials(
        directory: &TempDir,
        script: &str,
    ) -> (PluginCredentials, Arc<Mutex<Vec<Notice>>>) {
        let exec = Exec {
            api_version: "client.authentication.k8s.io/v1".to_owned(),
            command: "/bin/sh".to_owned(),
            args: vec![
                "-c".to_owned(),
                script.to_owned(),
                directory.path().display().to_string(),
            ],
            interactive_mode: Some(ExecInteractiveMode::Never),
            ..Exec::default()
        };
        let told = Arc::new(Mutex::new(Vec::new()));
        let notices = Arc::clone(&told);
        let credentials = PluginCredentials {
            plugin: Plugin::new(&exec, &Cluster::default(), &Stdin::default()).expect("a plugin"),
            identity: Identity::default(),
            notices: Arc::new(move |notice| notices.lock().expect("no panic").push(notice)),
            is_named: AtomicBool::new(false),
            last: Mutex::default(),
        };
        (credentials, told)
    }

    /// Waits until the plugin has created a file.
    async fn made(path: PathBuf) {
        while !path.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[tokio::test]
    async fn a_login_outlives_the_request_that_began_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = |name| directory.path().join(name);
        let script = r#"echo run >>"$0/runs"; until [ -e "$0/go" ]; do sleep 0.05; done
            echo '{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": {"token": "t"}}'"#;
        let (credentials, _) = credentials(&directory, script);
        let begun = pin!(made(file("runs")));
        match select(pin!(credentials.header()), begun).await {
            Either::Left(_) => panic!("it was not told to go on"),
            // This request is canceled.
            Either::Right(_) => {}
        }
        fs::write(file("go"), "").expect("a file");
        let header = credentials.header().await.expect("credentials");
        assert_eq!(header.expect("a token"), "Bearer t");
        assert_eq!(fs::read_to_string(file("runs")).expect("a file"), "run\n");
    }

    #[tokio::test]
    async fn a_slow_plugin_is_named_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let script = r#"until [ -e "$0/go" ]; do sleep 0.05; done; exit 1"#;
        let (credentials, told) = credentials(&directory, script);
        let named = async {
            while told.lock().expect("no panic").is_empty() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            fs::write(directory.path().join("go"), "").expect("a file");
        };
        let (one, other, ()) = futures::join!(credentials.header(), credentials.header(), named);
        assert!(one.is_err() && other.is_err());
        let told = told.lock().expect("no panic");
        assert_eq!(*told, [Notice::SlowPlugin("/bin/sh".to_owned())]);
    }

    #[tokio::test]
    async fn a_login_is_used_until_it_expires_or_is_refused() {
        for (expires, answer, runs) in [
            ("2100-01-01T00:00:00Z", StatusCode::OK, "run\n"),
            ("2020-01-01T00:00:00Z", StatusCode::OK, "run\nrun\n"),
            (
                "2100-01-01T00:00:00Z",
                StatusCode::UNAUTHORIZED,
                "run\nrun\n",
            ),
        ] {
            let directory = tempfile::tempdir().expect("a directory");
            let script = format!(
                r#"echo run >>"$0/runs"; echo '{{"kind": "ExecCredential",
                "apiVersion": "client.authentication.k8s.io/v1",
                "status": {{"token": "t", "expirationTimestamp": "{expires}"}}}}'"#
            );
            let (credentials, _) = credentials(&directory, &script);
            let server = tower::service_fn(move |_: Request<Body>| async move {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = answer;
                Ok::<_, BoxError>(response)
            });
            let layer = CredentialsLayer(Credentials::Plugin(Arc::new(credentials)));
            let mut client = layer.layer(server);
            for _ in 0..2 {
                let request = Request::new(Body::empty());
                client.call(request).await.expect("an answer");
            }
            let file = directory.path().join("runs");
            let found = fs::read_to_string(file).expect("a file");
            assert_eq!(found, runs, "{expires} {answer}");
        }
    }
}
