//! The clusters with the Machines of Nodes, which Cluster API calls management clusters.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use connect::{ConnectError, Environment, Flags, Notice, Notices, connect, server_of};
use maintenance_lease::{ApiError, DEFAULT_REQUEST_TIMEOUT, Error, Requests};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::args::connection::USER_AGENT;
use crate::error::ProtectionError;
use crate::text::escape;
use crate::ui::Terminal;
use crate::words::session as words;

/// How long the credential plugin of a context may take that only a record on a Node names. `--request-timeout` may shorten it.
const PLUGIN_LIMIT: Duration = Duration::from_secs(10);

/// How long a cluster that did not answer is not asked again: a command for many nodes would wait for each of them.
const NOT_AGAIN: Duration = Duration::from_secs(60);

/// The clusters of Machines, by kubeconfig context.
pub(crate) struct ManagementClusters<'a> {
    /// The context that the user named.
    pub(crate) given: Option<String>,
    flags: Flags,
    environment: &'a Environment,
    open: Mutex<HashMap<String, Result<ManagementCluster, ProtectionError>>>,
    /// When a cluster did not answer last, by context.
    silent: Mutex<HashMap<String, Instant>>,
}

/// A cluster with Machines.
#[derive(Clone)]
pub(crate) struct ManagementCluster {
    pub(crate) context: String,
    pub(crate) requests: Requests,
    pub(crate) server: String,
}

impl<'a> ManagementClusters<'a> {
    /// With the same kubeconfig as the connection that `flags` choose, and as the same impersonated user.
    pub(super) fn new(flags: Flags, environment: &'a Environment) -> Self {
        Self {
            given: None,
            flags,
            environment,
            open: Mutex::default(),
            silent: Mutex::default(),
        }
    }

    /// The cluster behind `context`. Sends nothing, but may run a credential plugin: without a time limit if the user named
    /// the context, because it may be a login.
    ///
    /// # Errors
    /// If the kubeconfig has no usable context of this name, if its credential plugin fails, or if the cluster did
    /// not answer a moment ago.
    pub(crate) async fn open(&self, context: &str) -> Result<ManagementCluster, ProtectionError> {
        let silent = self.silent.lock().await.get(context).copied();
        if silent.is_some_and(|since| since.elapsed() < NOT_AGAIN) {
            let context = context.to_owned();
            return Err(ProtectionError::Silent { context });
        }
        let mut open = self.open.lock().await;
        if let Some(opened) = open.get(context) {
            return opened.clone();
        }
        let flags = self.flags(context);
        let notices = notices(true);
        let connecting = connect(&flags, self.environment, USER_AGENT, &notices);
        let limit = self.flags.request_timeout.0.unwrap_or(PLUGIN_LIMIT);
        let limit = limit.min(PLUGIN_LIMIT);
        let connected = match self.given.as_deref() == Some(context) {
            true => Ok(connecting.await),
            false => timeout(limit, connecting).await,
        };
        let opened = match connected {
            Ok(Ok(connection)) => Ok(ManagementCluster {
                context: context.to_owned(),
                requests: Requests::new(
                    connection.client,
                    Some(
                        connection
                            .request_timeout
                            .unwrap_or(DEFAULT_REQUEST_TIMEOUT),
                    ),
                ),
                server: connection.server,
            }),
            Ok(Err(error)) => Err(ProtectionError::Connect(error)),
            Err(_) => Err(ProtectionError::SlowPlugin {
                context: context.to_owned(),
                limit,
            }),
        };
        open.insert(context.to_owned(), opened.clone());
        opened
    }

    /// Remembers if the cluster behind `context` did not answer, and returns its `answer`.
    pub(super) async fn note_silence<T>(
        &self,
        context: &str,
        answer: Result<T, Error>,
    ) -> Result<T, Error> {
        if let Err(Error::Api(ApiError::TimedOut(_))) = &answer {
            let mut silent = self.silent.lock().await;
            silent.insert(context.to_owned(), Instant::now());
        }
        answer
    }

    /// The URL of the API server behind `context`. Runs and sends nothing.
    ///
    /// # Errors
    /// If the kubeconfig has no usable context of this name.
    pub(crate) fn server_of(&self, context: &str) -> Result<String, ConnectError> {
        server_of(&self.flags(context), self.environment)
    }

    /// The URL of the API server behind the context that the user named.
    pub(crate) fn given_server(&self) -> Option<String> {
        self.server_of(self.given.as_deref()?).ok()
    }

    fn flags(&self, context: &str) -> Flags {
        Flags {
            context: Some(context.to_owned()),
            kubeconfig: self.flags.kubeconfig.clone(),
            impersonate: self.flags.impersonate.clone(),
            impersonate_groups: self.flags.impersonate_groups.clone(),
            impersonate_uid: self.flags.impersonate_uid.clone(),
            impersonate_extra: self.flags.impersonate_extra.clone(),
            request_timeout: self.flags.request_timeout,
            disable_compression: self.flags.disable_compression,
            verbosity: self.flags.verbosity,
            ..Flags::default()
        }
    }
}

/// Prints what is to be said while requests are under way; the API server's warnings only if `warns`.
pub(super) fn notices(warns: bool) -> Notices {
    Arc::new(move |notice| {
        let terminal = Terminal::default();
        match notice {
            Notice::ApiWarning(_) if !warns => {}
            Notice::ApiWarning(text) => terminal.warn(escape(&text)),
            Notice::Trace(text) => terminal.raw_stderr(text),
            Notice::SlowPlugin(command) => terminal.remark(words::slow_plugin(&command)),
        }
    })
}
