//! Creates a client from kubeconfig and flags, as kubectl does.
//!
//! [`connect`] selects the server and the user, and builds the transport. Nothing is sent before the first
//! request, so most connection problems only appear then. [`ConnectError::classify`] names them.
//!
//! kube does the rest. Its own kubeconfig loader and client are not enough here:
//!
//! - kube 5.0.0 runs a credential plugin three times at start. It cannot end a plugin that hangs, and a process
//!   with such a plugin does not exit.
//! - It takes any JSON object for a Lease without a holder. So the library checks what an answer is, over the
//!   client from here.
//! - It knows only HTTP/1.
//! - One odd context fails a whole kubeconfig.
//!
//! The head of each file in `src/` names the gap in kube that it closes, or why it is
//! here. Once kube closes a gap, you can delete its file.
//!
//! This crate never prints. It passes the API server's warnings and the output of `-v` to the caller as a
//! [`Notice`].

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
use self::tls::Identity;
use self::transport::Options;

/// A connection to an API server, as one user.
pub struct Connection {
    /// Sends requests. Cheap to clone; all clones share their connections.
    pub client: kube::Client,
    /// The kubeconfig context in use; `None` in a pod, or with `--server` alone.
    pub context: Option<String>,
    /// The API server's URL.
    pub server: String,
    /// The user as the kubeconfig or the flags describe them, for a confirmation; `None` for an anonymous
    /// user.
    pub user: Option<String>,
    /// The API user of the caller, as far as the credentials show it.
    pub api_user: ApiUser,
    /// The time limit of one request; `None` means no limit.
    pub request_timeout: Option<Duration>,
    stdin: Stdin,
    connections: Connections,
}

impl Connection {
    /// A function that opens new connections for all later requests. Call it after the machine was paused:
    /// the old connections may be dead, and you would only notice that when a request times out. Requests
    /// that were already sent continue.
    pub fn reconnector(&self) -> impl Fn() + Send + Sync + use<> {
        let connections = self.connections.clone();
        move || connections.reopen()
    }

    /// Leaves stdin to a command that is run from now on. A credential plugin may then not prompt there any
    /// more. A process that reads from a terminal that the command has is stopped, and this process with it.
    pub fn leave_stdin(&self) {
        self.stdin.take();
    }
}

/// A message for the user, while requests are in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The text of a `Warning` header. Each text is reported once per connection. kubectl prints it after
    /// `Warning: `.
    ApiWarning(String),
    /// A line about a request or a response, as requested with `-v`. It contains no secrets.
    Trace(String),
    /// The credential plugin with this name has run for two seconds. It may wait for input, or hang. Reported
    /// once per connection.
    SlowPlugin(String),
}

/// Receives the notices.
pub type Notices = Arc<dyn Fn(Notice) + Send + Sync>;

/// The names in the kubeconfig that `flags` select. Runs no plugin and sends nothing.
///
/// # Errors
/// If the kubeconfig can't be read.
pub fn names_of(flags: &Flags, environment: &Environment) -> Result<KubeconfigNames, ConnectError> {
    kubeconfig::load(flags.kubeconfig.as_deref(), environment).map(|config| config.names())
}

/// Finds the API server and the user's credentials, and builds the client. The client sends `user_agent` as
/// its name. Sends nothing, but runs the kubeconfig's credential plugin if there is one.
///
/// # Errors
/// If the kubeconfig can't be read, refers to something that does not exist, or contains a certificate, key
/// or address that can't be used. Also if the plugin fails.
///
/// # Caveats
/// The plugin has no time limit, because the user may have to log in. Dropping the future ends the plugin and
/// the processes that it started. So does dropping the client, or at the latest the runtime.
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
    let server = target.server.to_string();
    let (client, connections) =
        transport::client(&target, identity, credentials, environment, options)?;
    Ok(Connection {
        client,
        context: target.context,
        server: server.trim_end_matches('/').to_owned(),
        user: target.user_description,
        api_user,
        request_timeout,
        stdin,
        connections,
    })
}
