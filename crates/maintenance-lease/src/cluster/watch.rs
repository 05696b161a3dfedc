//! Changes as they happen: a list, then a watch from its resource version. The watch is resumed whenever it
//! ends, is cut or has become too old, so that nothing is missed.

pub(crate) mod follow;
mod kind;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use http::StatusCode;
use http_body_util::BodyStream;
use kube::client::Body;
use serde::Deserialize;
use serde_json::value::RawValue;

use self::kind::{Kind, Leases, Rows};
use super::api::Api;
use super::call::Call;
use super::error::{ApiError, Status};
use super::nodes::{NodeRow, RowDetail};
use crate::env::{backoff, backoff_up_to};
use crate::lease::NodeLease;
use crate::outcome::Error;

/// How long the server is asked to keep one watch open. A connection that died unnoticed is detected after this
/// time at the latest.
const LASTS: Duration = Duration::from_secs(290);

/// How much longer than that a watch may be silent before it counts as cut.
const GRACE: Duration = Duration::from_secs(10);

/// The longest pause before a refused request is repeated, for example without the permission for it.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A missing permission does not appear within a second, so this many of the short pauses are skipped.
const REFUSED: u32 = 7;

/// The longest line of a watch: more than the largest object that etcd stores, as JSON.
const LONGEST_LINE: usize = 16 << 20;

/// What a watch of one kind of objects reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchEvent<T> {
    /// All existing objects, by node. An object that was reported before and is missing here was deleted.
    Listed(HashMap<String, T>),
    /// A new or changed object.
    Changed(T),
    /// A deleted object, in its last state.
    Deleted(T),
}

/// What a watch of Leases reports.
pub(crate) type LeaseEvent = WatchEvent<NodeLease>;

/// What a watch of Nodes reports.
pub type NodeRowEvent = WatchEvent<NodeRow>;

impl Api {
    pub(crate) fn watch_leases(
        &self,
        node: Option<&str>,
        from: Option<u64>,
    ) -> BoxStream<'static, Result<LeaseEvent, Error>> {
        let leases = Leases::new(self.repository.clone(), node);
        Watcher::new(self, leases, from).into_events()
    }

    /// The steps of the same watch, as if it had already failed this many times.
    pub(crate) fn lease_steps(
        &self,
        node: Option<&str>,
        from: Option<u64>,
        failures: u32,
    ) -> BoxStream<'static, Step<NodeLease>> {
        let leases = Leases::new(self.repository.clone(), node);
        let mut watcher = Watcher::new(self, leases, from);
        watcher.resumed = failures;
        watcher.into_steps()
    }

    pub(crate) fn watch_nodes(
        &self,
        node: Option<&str>,
        selector: Option<&str>,
        detail: RowDetail,
    ) -> BoxStream<'static, Result<NodeRowEvent, Error>> {
        let rows = Rows::new(node, selector, detail);
        Watcher::new(self, rows, None).into_events()
    }
}

/// What a watch did.
pub(crate) enum Step<T> {
    Told(WatchEvent<T>),
    /// The watch is open: it reports changes from now on.
    Opened,
    /// The list or the watch failed. It is retried.
    Failed(Request, Error),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    List,
    Watch,
}

impl Request {
    const fn verb(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Watch => "watch",
        }
    }
}

/// A watch that continues for as long as somebody reads it.
struct Watcher<K> {
    api: Api,
    kind: K,
    phase: Phase,
    /// The resource version up to which everything was reported.
    version: u64,
    /// How often it was resumed since the server's last event.
    resumed: u32,
    /// The last request was refused for a reason that is not temporary.
    refused: bool,
}

/// The next step.
enum Phase {
    /// List everything.
    List,
    /// Open a watch.
    Open,
    /// Read an open watch.
    Read(BoxStream<'static, Result<Vec<u8>, ApiError>>),
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: LineKind,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "UPPERCASE")]
enum LineKind {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

#[derive(Deserialize)]
struct Versioned {
    metadata: VersionedMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct VersionedMetadata {
    resource_version: String,
}

#[derive(Deserialize)]
struct Coded {
    code: u16,
}

impl<K: Kind> Watcher<K> {
    fn new(api: &Api, kind: K, from: Option<u64>) -> Self {
        Self {
            api: api.once(),
            kind,
            phase: from.map_or(Phase::List, |_| Phase::Open),
            version: from.unwrap_or(0),
            resumed: 0,
            refused: false,
        }
    }

    fn into_steps(self) -> BoxStream<'static, Step<K::Object>> {
        stream::unfold(self, |mut watcher| async move {
            Some((watcher.next().await, watcher))
        })
        .boxed()
    }

    fn into_events(self) -> BoxStream<'static, Result<WatchEvent<K::Object>, Error>> {
        let events = self.into_steps().filter_map(async |step| match step {
            Step::Told(event) => Some(Ok(event)),
            Step::Opened => None,
            Step::Failed(_, error) => Some(Err(error)),
        });
        events.boxed()
    }

    /// The next step. After a failure it may be called again; it then retries after a pause.
    async fn next(&mut self) -> Step<K::Object> {
        loop {
            match &mut self.phase {
                Phase::List => {
                    self.pause().await;
                    match self.list().await {
                        Ok((objects, version)) => {
                            self.version = version;
                            self.refused = false;
                            self.phase = Phase::Open;
                            return Step::Told(WatchEvent::Listed(objects));
                        }
                        Err(error) => return self.failed(Request::List, error),
                    }
                }
                Phase::Open => {
                    self.pause().await;
                    match self.open().await {
                        Ok(lines) => {
                            self.refused = false;
                            self.phase = Phase::Read(lines);
                            return Step::Opened;
                        }
                        Err(error) if error.is(StatusCode::GONE) => self.restart(),
                        Err(error) => return self.failed(Request::Watch, error),
                    }
                }
                Phase::Read(lines) => match lines.next().await {
                    Some(Ok(line)) => match self.line(&line) {
                        Ok(Some(event)) => return Step::Told(event),
                        Ok(None) => {}
                        Err(error) => return self.failed(Request::Watch, error),
                    },
                    // If it was cut, opening the next one shows whether that is a problem.
                    Some(Err(_)) | None => {
                        self.resumed += 1;
                        self.phase = Phase::Open;
                    }
                },
            }
        }
    }

    /// Reads a line of the open watch; `None` if there is nothing in it for the reader.
    fn line(&mut self, line: &[u8]) -> Result<Option<WatchEvent<K::Object>>, ApiError> {
        let unreadable = |error: serde_json::Error| ApiError::Unreadable(error.to_string());
        let line: Line<'_> = serde_json::from_slice(line).map_err(unreadable)?;
        let json = line.object.get().as_bytes();
        if line.kind == LineKind::Error {
            return self.ended_by(json);
        }
        let read: Versioned = serde_json::from_slice(json).map_err(unreadable)?;
        let passed = parse_version(&read).map_err(ApiError::Unreadable)?;
        self.resumed = 0;
        let is_newer = passed > self.version;
        self.version = self.version.max(passed);
        let event = match line.kind {
            LineKind::Added | LineKind::Modified if is_newer => WatchEvent::Changed,
            LineKind::Deleted if is_newer => WatchEvent::Deleted,
            _ => return Ok(None),
        };
        self.kind
            .object(json)
            .map(|object| Some(event(object)))
            .map_err(ApiError::Unreadable)
    }

    /// The server ended the watch by an error, long after it answered the request with success.
    fn ended_by(&mut self, status: &[u8]) -> Result<Option<WatchEvent<K::Object>>, ApiError> {
        let code = serde_json::from_slice::<Coded>(status)
            .ok()
            .and_then(|status| StatusCode::from_u16(status.code).ok())
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let error = ApiError::Status(Box::new(Status::read(code, None, status)));
        if error.is(StatusCode::GONE) {
            self.restart();
            return Ok(None);
        }
        self.phase = Phase::Open;
        Err(error)
    }

    fn restart(&mut self) {
        self.resumed += 1;
        self.phase = Phase::List;
    }

    fn failed(&mut self, request: Request, error: ApiError) -> Step<K::Object> {
        self.resumed += 1;
        self.refused = !error.may_pass();
        Step::Failed(request, self.kind.right(request.verb()).explain(error))
    }

    /// Pauses if a server does not answer, or ends every watch at once. What it refuses is requested less and
    /// less often.
    fn pause(&self) -> impl Future<Output = ()> + use<K> {
        let env = &self.api.env;
        let pause = self.resumed.checked_sub(1).map(|attempt| {
            env.sleep(match self.refused {
                true => backoff_up_to(LONGEST_PAUSE, &**env, attempt + REFUSED),
                false => backoff(&**env, attempt),
            })
        });
        async {
            if let Some(pause) = pause {
                pause.await;
            }
        }
    }

    async fn list(&mut self) -> Result<(HashMap<String, K::Object>, u64), ApiError> {
        let Self { api, kind, .. } = self;
        let call = Call::get(path(kind, &[]), K::ACCEPT);
        let listed = api
            .list(&call, |element, before| {
                let object = kind
                    .element(element, before)
                    .map_err(ApiError::Unreadable)?;
                Ok(Some((K::name(&object).to_owned(), object)))
            })
            .await?;
        let list: Versioned = serde_json::from_slice(&listed.envelope)
            .map_err(|error| ApiError::Unreadable(error.to_string()))?;
        let version = parse_version(&list).map_err(ApiError::Unreadable)?;
        kind.listed(&listed.envelope)
            .map_err(ApiError::Unreadable)?;
        Ok((listed.objects.into_iter().collect(), version))
    }

    /// Opens a watch that starts after the last report.
    fn open(
        &self,
    ) -> impl Future<Output = Result<BoxStream<'static, Result<Vec<u8>, ApiError>>, ApiError>> + use<K>
    {
        let path = path(
            &self.kind,
            &[
                "watch=true".to_owned(),
                "allowWatchBookmarks=true".to_owned(),
                format!("timeoutSeconds={}", LASTS.as_secs()),
                format!("resourceVersion={}", self.version),
            ],
        );
        let api = self.api.clone();
        async move {
            let answer = api.open(&Call::get(path, K::ACCEPT)).await?;
            let end = api.env.sleep(LASTS + GRACE);
            Ok(lines(pieces(answer.into_body()).boxed())
                .take_until(end)
                .boxed())
        }
    }
}

/// The path of a collection with the query for its selection, and `more`.
fn path(kind: &impl Kind, more: &[String]) -> String {
    let mut query = kind.selection();
    query.extend_from_slice(more);
    let joint = if query.is_empty() { "" } else { "?" };
    format!("{}{joint}{}", kind.collection(), query.join("&"))
}

/// The lines of a text that arrives in pieces. Text after the last line break is ignored: a watch that was cut
/// within a line did not report it.
fn lines(
    pieces: impl Stream<Item = Result<Bytes, ApiError>> + Unpin,
) -> impl Stream<Item = Result<Vec<u8>, ApiError>> {
    stream::try_unfold((pieces, Vec::new()), |(mut pieces, mut begun)| async move {
        loop {
            if let Some(end) = begun.iter().position(|&byte| byte == b'\n') {
                let rest = begun.split_off(end + 1);
                begun.pop();
                return Ok(Some((begun, (pieces, rest))));
            }
            if begun.len() > LONGEST_LINE {
                let why = "a watch has a line without end".to_owned();
                return Err(ApiError::Unreadable(why));
            }
            match pieces.try_next().await? {
                Some(piece) => begun.extend_from_slice(&piece),
                None => return Ok(None),
            }
        }
    })
}

/// The pieces in which a body arrives.
fn pieces(body: Body) -> impl Stream<Item = Result<Bytes, ApiError>> {
    BodyStream::new(body)
        .map_err(|error| ApiError::Transport(Box::new(error)))
        .try_filter_map(|frame| std::future::ready(Ok(frame.into_data().ok())))
}

fn parse_version(object: &Versioned) -> Result<u64, String> {
    let version = &object.metadata.resource_version;
    version
        .parse()
        .map_err(|_| format!("resourceVersion {version:?} is not a number"))
}
