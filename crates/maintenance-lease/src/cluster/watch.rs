//! Changes as they happen: a list, then a watch from its resource version on, resumed whenever it
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
use super::error::{ApiError, Status};
use super::nodes::NodeRow;
use super::requests::Call;
use crate::env::backoff;
use crate::lease::NodeLease;
use crate::outcome::Error;

/// How long the server is asked to keep one watch open. A connection that died unnoticed is found
/// out this much later at the latest.
const LASTS: Duration = Duration::from_secs(290);

/// How much longer than that a watch may be silent before it counts as cut.
const GRACE: Duration = Duration::from_secs(10);

/// The longest line of a watch: more than the largest object that etcd stores, as JSON.
const LONGEST_LINE: usize = 16 << 20;

/// What a watch tells of objects of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchEvent<T> {
    /// All there are, by node: what was told before and is not among these is gone.
    Listed(HashMap<String, T>),
    /// One that is new or changed.
    Changed(T),
    /// One that is gone, as it was at the end.
    Deleted(T),
}

/// What a watch tells of Leases.
pub type LeaseEvent = WatchEvent<NodeLease>;

/// What a watch tells of Nodes.
pub type NodeRowEvent = WatchEvent<NodeRow>;

impl Api {
    pub(crate) fn watch_leases(
        &self,
        node: Option<&str>,
        from: Option<u64>,
    ) -> BoxStream<'static, Result<LeaseEvent, Error>> {
        let leases = Leases::new(self.repository.clone(), node);
        Watcher::new(self.clone(), leases, from).into_stream()
    }

    pub(crate) fn watch_nodes(
        &self,
        node: Option<&str>,
        selector: Option<&str>,
    ) -> BoxStream<'static, Result<NodeRowEvent, Error>> {
        let rows = Rows::new(node, selector);
        Watcher::new(self.clone(), rows, None).into_stream()
    }
}

/// A watch that goes on for as long as somebody reads it.
struct Watcher<K> {
    api: Api,
    kind: K,
    phase: Phase,
    /// How often it was resumed since the server last had something to say.
    resumed: u32,
}

/// What comes next.
enum Phase {
    /// Everything is to be listed.
    List,
    /// A watch is to be opened that begins after this resource version.
    Open { version: u64 },
    /// An open watch is to be read.
    Read {
        version: u64,
        lines: BoxStream<'static, Result<Vec<u8>, ApiError>>,
    },
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
    fn new(api: Api, kind: K, from: Option<u64>) -> Self {
        Self {
            api,
            kind,
            phase: from.map_or(Phase::List, |version| Phase::Open { version }),
            resumed: 0,
        }
    }

    /// The version up to which everything was told.
    fn version(&self) -> u64 {
        match self.phase {
            Phase::List => 0,
            Phase::Open { version } | Phase::Read { version, .. } => version,
        }
    }

    fn into_stream(self) -> BoxStream<'static, Result<WatchEvent<K::Object>, Error>> {
        stream::unfold(self, |mut watcher| async move {
            Some((watcher.next().await, watcher))
        })
        .boxed()
    }

    /// The next event. After an error it may be called again, and tries again after a pause.
    async fn next(&mut self) -> Result<WatchEvent<K::Object>, Error> {
        loop {
            match &mut self.phase {
                Phase::List => {
                    self.pause().await;
                    let (objects, version) = self
                        .list()
                        .await
                        .map_err(|error| self.failed("list", error))?;
                    self.phase = Phase::Open { version };
                    return Ok(WatchEvent::Listed(objects));
                }
                Phase::Open { version } => {
                    let version = *version;
                    self.pause().await;
                    match self.open(version).await {
                        Ok(lines) => self.phase = Phase::Read { version, lines },
                        Err(error) if error.is(StatusCode::GONE) => self.begin_anew(),
                        Err(error) => return Err(self.failed("watch", error)),
                    }
                }
                Phase::Read { version, lines } => {
                    let version = *version;
                    match lines.next().await {
                        Some(Ok(line)) => {
                            if let Some(event) = self.line(&line)? {
                                return Ok(event);
                            }
                        }
                        // Where it was cut, opening the next one tells whether that is a problem.
                        Some(Err(_)) | None => {
                            self.resumed += 1;
                            self.phase = Phase::Open { version };
                        }
                    }
                }
            }
        }
    }

    /// Reads a line of the open watch; `None` where it is none of the reader's business.
    fn line(&mut self, line: &[u8]) -> Result<Option<WatchEvent<K::Object>>, Error> {
        let unreadable = |why: String| Error::Api(ApiError::Unreadable(why));
        let line: Line<'_> =
            serde_json::from_slice(line).map_err(|error| unreadable(error.to_string()))?;
        let json = line.object.get().as_bytes();
        if line.kind == LineKind::Error {
            return self.ended_by(json);
        }
        let read: Versioned =
            serde_json::from_slice(json).map_err(|error| unreadable(error.to_string()))?;
        let passed = parse_version(&read).map_err(ApiError::Unreadable)?;
        self.resumed = 0;
        if let Phase::Read { version, .. } = &mut self.phase {
            *version = passed;
        }
        let event = match line.kind {
            LineKind::Added | LineKind::Modified => WatchEvent::Changed,
            LineKind::Deleted => WatchEvent::Deleted,
            LineKind::Bookmark | LineKind::Error => return Ok(None),
        };
        self.kind
            .object(json)
            .map(|object| Some(event(object)))
            .map_err(unreadable)
    }

    /// The server ended the watch by an error, long after it answered the request with success.
    fn ended_by(&mut self, status: &[u8]) -> Result<Option<WatchEvent<K::Object>>, Error> {
        let code = serde_json::from_slice::<Coded>(status)
            .ok()
            .and_then(|status| StatusCode::from_u16(status.code).ok())
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let error = ApiError::Status(Box::new(Status::read(code, None, status)));
        if error.is(StatusCode::GONE) {
            self.begin_anew();
            return Ok(None);
        }
        if let Phase::Read { version, .. } = self.phase {
            self.phase = Phase::Open { version };
        }
        Err(self.failed("watch", error))
    }

    fn begin_anew(&mut self) {
        self.resumed += 1;
        self.phase = Phase::List;
    }

    fn failed(&mut self, verb: &'static str, error: ApiError) -> Error {
        self.resumed += 1;
        self.kind.right(verb).explain(error)
    }

    /// Lets a server that does not answer, or ends every watch at once, get its breath back.
    fn pause(&self) -> impl Future<Output = ()> + use<K> {
        let env = &self.api.env;
        let pause = self
            .resumed
            .checked_sub(1)
            .map(|attempt| env.sleep(backoff(&**env, attempt)));
        async {
            if let Some(pause) = pause {
                pause.await;
            }
        }
    }

    async fn list(&mut self) -> Result<(HashMap<String, K::Object>, u64), ApiError> {
        let Self { api, kind, .. } = self;
        let call = Call::get(path(kind, &[]), K::ACCEPT);
        let mut objects = HashMap::new();
        let envelope = api
            .list(&call, K::ARRAY, |element, before| {
                let object = kind
                    .element(element, before)
                    .map_err(ApiError::Unreadable)?;
                objects.insert(K::name(&object).to_owned(), object);
                Ok(())
            })
            .await?;
        let list: Versioned = serde_json::from_slice(&envelope)
            .map_err(|error| ApiError::Unreadable(error.to_string()))?;
        let version = parse_version(&list).map_err(ApiError::Unreadable)?;
        kind.listed(&envelope).map_err(ApiError::Unreadable)?;
        Ok((objects, version))
    }

    /// Opens a watch that begins after `version`.
    fn open(
        &self,
        version: u64,
    ) -> impl Future<Output = Result<BoxStream<'static, Result<Vec<u8>, ApiError>>, ApiError>> + use<K>
    {
        let path = path(
            &self.kind,
            &[
                "watch=true".to_owned(),
                "allowWatchBookmarks=true".to_owned(),
                format!("timeoutSeconds={}", LASTS.as_secs()),
                format!("resourceVersion={version}"),
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

/// The path of a collection with the query that selects in it, and `more`.
fn path(kind: &impl Kind, more: &[String]) -> String {
    let mut query = kind.selection();
    query.extend_from_slice(more);
    let joint = if query.is_empty() { "" } else { "?" };
    format!("{}{joint}{}", kind.collection(), query.join("&"))
}

/// The lines of a text that comes in pieces. What comes after the last line break is left out: a
/// watch that was cut in the middle of a line did not say it.
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

/// The pieces in which a body comes.
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
