//! From kubeconfig and flags to a client, kubectl's way.
//!
//! [`connect`] decides where to and as whom, and builds the transport; nothing is sent before the first request, so
//! most of what can go wrong with a connection shows only there. [`ConnectError::classify`] names it then.
//!
//! kube does the rest. The head of each file in `src/` names the gap in kube that it closes, or why it is here. Once kube
//! closes a gap, its file can go.
//!
//! This module never prints: what the API server or `-v` has to say goes to the caller as a [`Notice`].

mod api_user;
mod connections;
mod credentials;
mod dial;
mod environment;
mod error;
mod exec_plugin;
mod flags;
mod kubeconfig;
mod platform;
mod proxy;
mod selection;
mod tls;
mod trace;
mod transport;
mod warnings;
mod webhook;

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;

pub use self::api_user::ApiUser;
use self::connections::Connections;
use self::credentials::Credentials;
pub use self::environment::Environment;
pub use self::error::{ConnectError, in_words, names_its_source};
use self::exec_plugin::Stdin;
pub use self::flags::{Flags, Timeout};
pub use self::kubeconfig::KubeconfigNames;
use self::selection::ConnectTarget;
use self::tls::Identity;
use self::transport::Options;
pub use self::webhook::{Webhook, WebhookError};

/// A way to an API server, as one user.
pub struct Connection {
    /// Sends requests. Cheap to clone; all clones share their connections.
    pub client: kube::Client,
    /// The kubeconfig context in use; none in a cluster, or with `--server` alone.
    pub context: Option<String>,
    /// The API server's URL.
    pub server: String,
    /// Whom the kubeconfig or the flags say we are, in words for a confirmation; none for an anonymous user.
    pub user: Option<String>,
    /// The API user of the caller, as far as the credentials show it.
    pub api_user: ApiUser,
    /// The longest time that one request may take; `None` is without limit.
    pub request_timeout: Option<Duration>,
    stdin: Stdin,
    connections: Connections,
}

impl Connection {
    /// What opens new connections for all requests from now on, for a machine that was paused: the old ones may be dead,
    /// and nobody would notice before a request on them takes too long. What is under way goes on.
    pub fn reconnector(&self) -> impl Fn() + Send + Sync + use<> {
        let connections = self.connections.clone();
        move || connections.reopen()
    }

    /// Leaves stdin to a command that is run from now on: a credential plugin may not ask there any more. What reads a
    /// terminal behind the back of the command that has it is stopped, and this process with it.
    pub fn leave_stdin(&self) {
        self.stdin.take();
    }
}

/// Something to tell the person while requests are under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The text of a `Warning` header, once a connection; kubectl prints it behind `Warning: `.
    ApiWarning(String),
    /// What `-v` asked to see of a request or an answer, without any secret.
    Trace(String),
    /// The credential plugin of this name has run for two seconds: it may wait for a person, or hang. Told once a connection.
    SlowPlugin(String),
}

/// Where notices go.
pub type Notices = Arc<dyn Fn(Notice) + Send + Sync>;

/// The URL of the API server that `flags` choose. Runs and sends nothing.
///
/// # Errors
/// When the kubeconfig can't be read, or names something that doesn't exist.
pub fn server_of(flags: &Flags, environment: &Environment) -> Result<String, ConnectError> {
    selection::select(flags, environment).map(|target| url(&target))
}

/// The names in the kubeconfig that `flags` choose. Runs and sends nothing.
///
/// # Errors
/// When the kubeconfig can't be read.
pub fn names_of(flags: &Flags, environment: &Environment) -> Result<KubeconfigNames, ConnectError> {
    kubeconfig::load(flags.kubeconfig.as_deref(), environment).map(|config| config.names())
}

fn url(target: &ConnectTarget) -> String {
    target.server.to_string().trim_end_matches('/').to_owned()
}

/// Finds the API server and the user's credentials, and builds the client, which calls itself `user_agent`. Sends nothing, but runs the kubeconfig's
/// credential plugin where there is one.
///
/// # Errors
/// When the kubeconfig can't be read, names something that doesn't exist, or holds a certificate, key or address that
/// can't be used; and when the plugin fails.
///
/// # Caveats
/// There is no time limit for the plugin, which may have a person log in. Dropping the future ends it with all that it
/// started, and so does dropping the client: not later than with the runtime.
///
/// # Panics
/// Outside a tokio runtime, which the client's background task needs.
pub async fn connect(
    flags: &Flags,
    environment: &Environment,
    user_agent: &'static str,
    notices: &Notices,
) -> Result<Connection, ConnectError> {
    let target = selection::select(flags, environment)?;
    let request_timeout = flags.request_timeout.0;
    let identity = Identity::of_user(&target)?;
    let stdin = Stdin::new(environment.stdin_may_ask);
    let credentials = Credentials::of_user(&target, &identity, &stdin, notices)?;
    credentials.obtain().await?;
    let api_user = ApiUser::of(&target, &identity);
    let options = Options {
        user_agent: HeaderValue::from_static(user_agent),
        verbosity: flags.verbosity,
        request_timeout,
        notices: Arc::clone(notices),
    };
    let server = url(&target);
    let (client, connections) =
        transport::client(&target, identity, credentials, environment, options)?;
    Ok(Connection {
        client,
        context: target.context,
        server,
        user: target.user_description,
        api_user,
        request_timeout,
        stdin,
        connections,
    })
}
