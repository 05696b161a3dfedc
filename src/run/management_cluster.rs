//! The clusters with the Machines of Nodes, which Cluster API calls management clusters.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use connect::{Environment, Flags, Notice, Notices, connect, server_of};
use maintenance_lease::{DEFAULT_REQUEST_TIMEOUT, Requests};
use other_tools::{ConnectFailure, ManagementCluster, ManagementClusters};
use tokio::sync;
use tokio::time::{Instant, timeout};

use crate::args::connection::USER_AGENT;
use crate::error::ManagementError;
use crate::text::escape;
use crate::ui::Terminal;
use crate::words::session as words;

/// How long the credential plugin of a context may take that only a record on a Node names. `--request-timeout` may shorten it.
const PLUGIN_LIMIT: Duration = Duration::from_secs(10);

/// How long a cluster that did not answer is not asked again: a command for many nodes would wait for each of them.
const NOT_AGAIN: Duration = Duration::from_secs(60);

/// The kubeconfig contexts of clusters with Machines.
pub(crate) struct ManagementContexts<'a> {
    /// The context that the user named.
    pub(crate) given: Option<String>,
    flags: Flags,
    environment: &'a Environment,
    open: sync::Mutex<HashMap<String, Result<ManagementCluster, ConnectFailure>>>,
    /// When a cluster did not answer last, by context.
    unresponsive: Mutex<HashMap<String, Instant>>,
}

impl<'a> ManagementContexts<'a> {
    /// With the same kubeconfig as the connection that `flags` choose, and as the same impersonated user.
    pub(super) fn new(flags: Flags, environment: &'a Environment) -> Self {
        Self {
            given: None,
            flags,
            environment,
            open: sync::Mutex::default(),
            unresponsive: Mutex::default(),
        }
    }

    /// The URL of the API server behind the context that the user named.
    pub(crate) fn given_server(&self) -> Option<String> {
        self.server_of(self.given.as_deref()?).ok()
    }

    /// Whether the cluster behind `context` did not answer an earlier request.
    fn is_unresponsive(&self, context: &str) -> bool {
        let unresponsive = self
            .unresponsive
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let since = unresponsive.get(context);
        since.is_some_and(|since| since.elapsed() < NOT_AGAIN)
    }

    async fn connect(&self, context: &str) -> Result<ManagementCluster, ManagementError> {
        let flags = self.flags(context);
        let notices = notices(true);
        let connecting = connect(&flags, self.environment, USER_AGENT, &notices);
        let limit = self.flags.request_timeout.0.unwrap_or(PLUGIN_LIMIT);
        let limit = limit.min(PLUGIN_LIMIT);
        let context = context.to_owned();
        let connected = match self.given.as_deref() == Some(&*context) {
            true => connecting.await,
            false => match timeout(limit, connecting).await {
                Ok(connected) => connected,
                Err(_) => return Err(ManagementError::SlowPlugin { context, limit }),
            },
        };
        let connection = connected.map_err(ManagementError::Connect)?;
        let limit = connection.request_timeout;
        let limit = limit.unwrap_or(DEFAULT_REQUEST_TIMEOUT);
        Ok(ManagementCluster {
            context,
            server: connection.server,
            requests: Requests::new(connection.client, Some(limit)),
        })
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

impl ManagementClusters for ManagementContexts<'_> {
    fn given(&self) -> Option<&str> {
        self.given.as_deref()
    }

    fn server_of(&self, context: &str) -> Result<String, ConnectFailure> {
        let server = server_of(&self.flags(context), self.environment);
        server.map_err(|error| Arc::new(error) as ConnectFailure)
    }

    /// The cluster behind `context`. Sends nothing, but may run a credential plugin: without a time limit if the user named
    /// the context, because it may be a login.
    async fn open(&self, context: &str) -> Result<ManagementCluster, ConnectFailure> {
        if self.is_unresponsive(context) {
            let context = context.to_owned();
            return Err(Arc::new(ManagementError::Unresponsive { context }));
        }
        let mut open = self.open.lock().await;
        if let Some(opened) = open.get(context) {
            return opened.clone();
        }
        let opened = self.connect(context).await;
        let opened = opened.map_err(|error| Arc::new(error) as ConnectFailure);
        open.insert(context.to_owned(), opened.clone());
        opened
    }

    fn note_silence(&self, context: &str) {
        let mut unresponsive = self
            .unresponsive
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        unresponsive.insert(context.to_owned(), Instant::now());
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
