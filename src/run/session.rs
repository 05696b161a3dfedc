//! What a verb works with: the connection, access to the locks, and the terminal.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use connect::{ApiUser, Connection, Environment, Notice, Notices, connect};
use futures::poll;
use maintenance_lease::protocol::Now;
use maintenance_lease::{Change, DryRun, Error, Maintenance, NodeLease, NodeLookup};
use node_keys::{Activity, Finding};
use supervisor::termination;
use tokio::time::timeout;

use super::interruption::or_interrupted;
use crate::args::connection::{ConnectionArgs, USER_AGENT};
use crate::args::default_holder::HolderArgs;
use crate::args::write::WriteArgs;
use crate::error::{Failure, InputError, Verb};
use crate::text::escape;
use crate::ui::Terminal;
use crate::words::change;
use crate::words::hint_command::Program;
use crate::words::other_tools::sentence;
use crate::words::request::RequestContext;
use crate::words::session as words;

/// The name under which the API server records the fields that are written.
pub(crate) const FIELD_MANAGER: &str = "kubectl-maint";

/// After this time without a result, a line says that requests are slow.
pub(super) const SLOW: Duration = Duration::from_secs(5);

/// The number of nodes to work on at the same time.
pub(crate) const PARALLEL: usize = 32;

/// What every verb gets, before anything is sent.
pub(crate) struct Start<'a> {
    pub(crate) terminal: &'a Terminal,
    pub(crate) connection: &'a ConnectionArgs,
    pub(crate) environment: &'a Environment,
    /// Who the caller is.
    pub(crate) holder: &'a HolderArgs,
    /// How this program was run.
    pub(crate) program: &'a Program,
}

/// An open session.
pub(crate) struct Session<'a> {
    pub(crate) terminal: &'a Terminal,
    pub(crate) connection: Connection,
    pub(crate) locks: Maintenance,
    pub(crate) program: &'a Program,
    clocks_reported: AtomicBool,
    slow_reported: AtomicBool,
    /// What other tools do to the Nodes that were read whole.
    findings: Mutex<HashMap<String, Vec<Finding>>>,
    /// The expired locks that a question showed, each with the state of its node.
    shown: Mutex<Vec<NodeLease>>,
}

/// Prints what is to be said while requests are under way; the API server's warnings only if `warns`.
fn notices(warns: bool) -> Notices {
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

impl<'a> Start<'a> {
    /// Finds the API server. Sends nothing.
    ///
    /// # Caveats
    /// After a credential plugin was run, the signals that end this process no longer have their default
    /// effect. The code that follows must listen for them.
    async fn connect(&self, warns: bool) -> Result<Connection, Failure> {
        let notices = notices(warns);
        let flags = &self.connection.flags;
        let mut connecting = pin!(connect(flags, self.environment, USER_AGENT, &notices));
        // Only a credential plugin takes time.
        if let Poll::Ready(connection) = poll!(&mut connecting) {
            return Ok(connection?);
        }
        // Ctrl-C at a terminal reaches the plugin too, so its failure is not reported.
        tokio::select! {
            biased;
            () = termination() => Err(Failure::Interrupted),
            connection = connecting => Ok(connection?),
        }
    }

    /// A session that only reads, and doesn't need to know which locks are the caller's.
    pub(crate) async fn open_for_reading(&self) -> Result<Session<'a>, Failure> {
        self.open(None, true).await
    }

    /// A session that only reads, and knows which locks are the caller's.
    pub(crate) async fn open_as_holder(&self) -> Result<Session<'a>, Failure> {
        self.open_as(None, true, false).await
    }

    /// The same without the warnings of the API server, which in warn mode are about our own dry runs.
    pub(crate) async fn open_for_checks(&self) -> Result<Session<'a>, Failure> {
        self.open_as(None, false, false).await
    }

    /// A session that writes. One that acquires locks does so in the name of the API user.
    pub(crate) async fn open_for_writing(
        &self,
        write: &WriteArgs,
        acquires: bool,
    ) -> Result<Session<'a>, Failure> {
        self.open_as(Some(write), true, acquires).await
    }

    async fn open_as(
        &self,
        write: Option<&WriteArgs>,
        warns: bool,
        acquires: bool,
    ) -> Result<Session<'a>, Failure> {
        let mut session = self.open(write, warns).await?;
        if acquires || self.holder.holder.is_none() {
            or_interrupted(session.learn_api_user(self)).await?;
        }
        Ok(session)
    }

    async fn open(&self, write: Option<&WriteArgs>, warns: bool) -> Result<Session<'a>, Failure> {
        let connection = self.connect(warns).await?;
        let holder = self.holder.of(&connection.api_user, self.environment);
        let mut builder = Maintenance::builder(connection.client.clone(), holder)
            .request_timeout(connection.request_timeout)
            .reconnect(connection.reconnector())
            .field_manager(FIELD_MANAGER);
        if write.is_some_and(WriteArgs::is_dry_run) {
            builder = builder.dry_run(DryRun::Client);
        }
        let locks = builder.build().map_err(InputError::Holder)?;
        locks.set_creates_namespace(false);
        if let ApiUser::Known(name) = &connection.api_user {
            locks.set_api_user(name);
        }
        Ok(Session {
            terminal: self.terminal,
            connection,
            locks,
            program: self.program,
            clocks_reported: AtomicBool::new(false),
            slow_reported: AtomicBool::new(false),
            findings: Mutex::default(),
            shown: Mutex::default(),
        })
    }
}

impl Session<'_> {
    /// Asks the API server who the caller is, if the credentials don't tell. The API user becomes the holder, and is
    /// named in acquisitions. Without an answer, acquisitions name nobody.
    async fn learn_api_user(&mut self, start: &Start<'_>) -> Result<(), Failure> {
        if self.connection.api_user != ApiUser::Unknown {
            return Ok(());
        }
        // No answer is kept for the next run: the user of a credential plugin may be another by then.
        let user = self.locks.api_user().await.ok();
        let name = user.and_then(|user| user.username);
        let user = self.connection.api_user.clone().or_named(name);
        if let ApiUser::Known(name) = &user {
            self.locks.set_api_user(name);
            let holder = start.holder.of(&user, start.environment);
            self.locks = self.locks.as_holder(holder).map_err(InputError::Holder)?;
            self.connection.api_user = user;
        }
        Ok(())
    }

    /// The cluster and namespace of the changes, for confirmations.
    pub(crate) fn place(&self) -> String {
        let Connection {
            context,
            server,
            user,
            ..
        } = &self.connection;
        words::place(context.as_deref(), server, user.as_deref())
    }

    /// Distinguishes a node that was never locked from one that does not exist.
    ///
    /// # Errors
    /// If it does not exist, or can't be read.
    pub(crate) async fn must_exist(&self, node: &str) -> Result<(), Failure> {
        match self.locks.node(node).await? {
            NodeLookup::Missing => Err(Error::NodeNotFound(node.to_owned()).into()),
            _ => Ok(()),
        }
    }

    /// Remembers what other tools do to a Node that was read whole.
    pub(crate) fn remember(&self, node: &str, findings: Vec<Finding>) {
        let mut known = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(node.to_owned(), findings);
    }

    /// What other tools do to `node`; `None`: the Node was not read whole.
    pub(crate) fn findings(&self, node: &str) -> Option<Vec<Finding>> {
        let known = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(node).cloned()
    }

    /// Remembers the expired locks that a question showed.
    pub(super) fn remember_shown(&self, leases: &[NodeLease]) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.extend_from_slice(leases);
    }

    /// Whether a question showed the lock that `change` replaced.
    fn is_shown(&self, change: &Change) -> bool {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let key = |lease: &NodeLease| {
            let holder = lease.holder().map(ToOwned::to_owned);
            (lease.node().to_owned(), holder, lease.acquired())
        };
        let before = change.before.as_ref().map(key);
        before.is_some_and(|before| shown.iter().any(|lease| key(lease) == before))
    }

    /// Reports what the last holder left behind, and what other tools do to the node.
    pub(crate) fn report_before(&self, change: &Change, now: Now) {
        if let Some(fenced) = change::fenced(change, self.program) {
            self.terminal.warn(fenced);
        }
        let is_shown = self.is_shown(change);
        let findings = self.findings(&change.node).unwrap_or_default();
        let is_cordon = |finding: &Finding| finding.activity == Activity::Cordoned;
        let expired = change::expired(change, now, findings.iter().any(is_cordon));
        if let Some(expired) = expired.filter(|_| !is_shown) {
            self.terminal.warn(expired);
        }
        if let Some(note) = change::note(change) {
            self.terminal.remark(note);
        }
        for finding in findings {
            if is_shown && is_cordon(&finding) {
                continue;
            }
            let words = sentence(&finding, now);
            self.terminal.warn(format!("node/{}: {words}", change.node));
        }
    }

    /// The request of `verb`, for a message now.
    pub(crate) fn request_context(&self, verb: Verb) -> RequestContext<'_> {
        RequestContext {
            verb,
            caller: self.locks.identity(),
            program: self.program,
            now: self.locks.server_time().now(),
            waited: false,
        }
    }

    /// Waits for `requests`. If they are slow, for example because they are retried, says so once.
    pub(crate) async fn report_slow<T>(&self, requests: impl Future<Output = T>) -> T {
        let mut requests = pin!(requests);
        if let Ok(result) = timeout(SLOW, &mut requests).await {
            return result;
        }
        self.say_slow();
        requests.await
    }

    /// Says once that requests are slow.
    pub(super) fn say_slow(&self) {
        if !self.slow_reported.swap(true, Ordering::Relaxed) {
            self.terminal.remark(words::STILL_WAITING);
        }
    }

    /// Warns once if the clocks differ.
    pub(crate) fn warn_of_clocks(&self) {
        if let Some(warning) = self.locks.server_time().warning()
            && !self.clocks_reported.swap(true, Ordering::Relaxed)
        {
            self.terminal.warn(words::clocks(warning));
        }
    }
}
