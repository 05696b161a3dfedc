//! Watches: a stream of the changes after a resource version.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, Stream};
use http_body::Frame;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::failure::Failure;
use crate::query::Query;
use crate::representation::{Include, Renderer, Representation};
use crate::resource::Resource;
use crate::route::Target;
use crate::selector::Selector;
use crate::server::Server;
use crate::store::{Change, Compacted};
use crate::verbs::{ListOptions, prefix};
use crate::{object, rules, versions};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30 * 60);
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);
/// How long before its end a watch sends its last bookmark.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// A watch in progress.
pub(crate) struct Watch {
    server: Arc<Server>,
    renderer: Renderer,
    prefix: String,
    selector: Selector,
    /// All changes up to this revision have been handled.
    position: u64,
    outbox: VecDeque<Bytes>,
    columns_sent: bool,
    /// `None` if the client requested no bookmarks.
    next_bookmark: Option<Instant>,
    deadline: Instant,
    ended: bool,
}

/// The change of an object, as seen through a selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
            Self::Error => "ERROR",
        }
    }
}

/// Every minute, and shortly before the end.
fn bookmark_after(now: Instant, deadline: Instant) -> Instant {
    let periodic = now + BOOKMARK_PERIOD;
    deadline
        .checked_sub(LAST_BOOKMARK)
        .filter(|&last| last > now)
        .map_or(periodic, |last| last.min(periodic))
}

impl Watch {
    /// Starts at the resource version in the query, or with all existing objects.
    pub(crate) fn start(
        server: Arc<Server>,
        target: &Target,
        query: &Query,
        renderer: Renderer,
    ) -> Result<Self, Failure> {
        let options = ListOptions::read(&target.resource, query)?;
        let since = match query.get("resourceVersion") {
            None | Some("0") => None,
            Some(version) => Some(
                version
                    .parse::<u64>()
                    .map_err(|_| Failure::unreadable_watch_version(version))?,
            ),
        };
        let wants_initial = query.get("sendInitialEvents").map(|flag| flag == "true");
        let bookmarks = query.flag("allowWatchBookmarks");
        let timeout = query.number("timeoutSeconds")?;
        let now = Instant::now();
        let deadline = now + timeout.map_or(DEFAULT_TIMEOUT, Duration::from_secs);
        let mut watch = Self {
            position: since.unwrap_or_else(|| server.state().store.revision()),
            server,
            renderer,
            prefix: prefix(&target.namespace),
            selector: options.selector,
            outbox: VecDeque::new(),
            columns_sent: false,
            next_bookmark: bookmarks.then(|| bookmark_after(now, deadline)),
            deadline,
            ended: false,
        };
        if wants_initial.unwrap_or(since.is_none()) {
            watch.send_all_there_is();
            if wants_initial == Some(true) && bookmarks {
                watch.send_bookmark(true);
            }
        }
        Ok(watch)
    }

    /// The body of the answer: one JSON text per line.
    pub(crate) fn into_frames(self) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> {
        stream::unfold(self, |mut watch| async move {
            let line = watch.next().await?;
            Some((Ok(Frame::data(line)), watch))
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.outbox.pop_front() {
                return Some(line);
            }
            if self.ended {
                return None;
            }
            self.send_changes();
            if self.outbox.is_empty() && !self.ended {
                self.wait().await;
            }
        }
    }

    /// Waits for a change, the next bookmark or the end, whichever is first.
    async fn wait(&mut self) {
        let bookmark = self.next_bookmark.filter(|&at| at < self.deadline);
        let wake_up = bookmark.unwrap_or(self.deadline);
        tokio::select! {
            // The time is checked first, so that a steady stream of changes can't delay the end.
            biased;
            () = sleep_until(wake_up) => {
                if bookmark.is_some() {
                    self.send_bookmark(false);
                    self.next_bookmark = Some(bookmark_after(wake_up, self.deadline));
                } else {
                    self.ended = true;
                }
            }
            () = self.server.changed_since(self.position) => {}
        }
    }

    fn send_all_there_is(&mut self) {
        let server = self.server.clone();
        let state = server.state();
        self.position = state.store.revision();
        let resource = self.renderer.resource.clone();
        for (_, object) in state.store.list(&resource, &self.prefix.clone()) {
            let object = versions::served(&resource, object);
            if self.selector.matches(&object) {
                self.send(Kind::Added, &object);
            }
        }
    }

    fn send_changes(&mut self) {
        let server = self.server.clone();
        let state = server.state();
        match state.store.changes_since(self.position) {
            Ok(changes) => {
                for change in changes {
                    self.send_change(change);
                }
                self.position = self.position.max(state.store.revision());
            }
            Err(Compacted) => {
                let why = "The resourceVersion for the provided watch is too old.";
                self.send_line(Kind::Error, &Failure::expired(why).to_status().to_string());
                self.ended = true;
            }
        }
    }

    fn send_change(&mut self, change: &Change) {
        let resource: &Resource = &self.renderer.resource.clone();
        if change.collection != resource.collection || !change.key.starts_with(&self.prefix) {
            return;
        }
        let after = versions::served(resource, &change.after);
        let was_seen = change
            .before
            .as_ref()
            .is_some_and(|before| self.selector.matches(&versions::served(resource, before)));
        let is_seen = !change.deleted && self.selector.matches(&after);
        match (was_seen, is_seen) {
            (false, true) => self.send(Kind::Added, &after),
            (true, true) => self.send(Kind::Modified, &after),
            (true, false) => {
                // If a change removes an object from the selection, the event has the last selected
                // state, with the version of the change.
                let mut last = change.before.as_deref().map_or(Value::Null, Value::clone);
                let version = object::resource_version(&after).to_owned();
                object::set_metadata(&mut last, "resourceVersion", Some(version.into()));
                let last = versions::served(resource, &Arc::new(last));
                self.send(Kind::Deleted, &last);
            }
            (false, false) => {}
        }
    }

    /// Sends a bookmark with the position of the watch. `initial_end` marks the end of the initial
    /// events.
    fn send_bookmark(&mut self, initial_end: bool) {
        let mut bookmark = json!({
            "kind": self.renderer.resource.kind,
            "apiVersion": self.renderer.resource.api_version(),
            "metadata": {"resourceVersion": self.position.to_string()},
        });
        for part in rules::parts_shown_when_empty(&self.renderer.resource) {
            bookmark[part] = json!({});
        }
        let include = self.renderer.include;
        if initial_end {
            bookmark["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
            // In a table, only the object of the row can contain the annotation.
            self.renderer.include = Include::Metadata;
        }
        self.send(Kind::Bookmark, &bookmark);
        self.renderer.include = include;
    }

    fn send(&mut self, kind: Kind, object: &Value) {
        self.renderer.now = self.server.now();
        let bare = self.columns_sent && self.renderer.representation == Representation::Table;
        let rendered = if bare {
            self.renderer.bare_row(object)
        } else {
            self.renderer.object(object)
        };
        self.columns_sent = true;
        self.send_line(kind, &rendered);
    }

    fn send_line(&mut self, kind: Kind, object: &str) {
        let line = format!("{{\"type\":\"{}\",\"object\":{object}}}\n", kind.name());
        self.outbox.push_back(line.into());
    }
}
