//! Sets and removes the keys of locks on their Nodes.
//!
//! The Lease is written first, at both ends of a lock. Each write names the uid and the resource version of the Node that was
//! read. If a command dies between the two writes, the Lease has no keys, or the keys stay after it: [`clear`] and [`set`]
//! mend that.

use std::time::Duration;

use http::Method;
use k8s_openapi::api::core::v1::Node;
use maintenance_lease::protocol::{Span, State};
use maintenance_lease::{Accept, ApiError, Call, Error, HeldLease, Maintenance, NodeLease, escape};
use serde_json::Value;
use tokio::time::sleep;

use crate::asked::{Asked, Cordon};
use crate::keys::{
    Mode, NodeKeys, Wanted, apply, end, is_held_key, lock_id_of, lock_id_on, removal, wanted,
};
use crate::managed_fields::FIELD_MANAGER;

/// How a patch is sent: its content type, and more of the query.
type Kind = (&'static str, &'static str);

/// Forced, because the keys that only locks write may have another owner. Keys of others are left out.
const APPLY: Kind = ("application/apply-patch+yaml", "&force=true");
const MERGE: Kind = ("application/merge-patch+json", "");

/// How often a Node that keeps changing is read and written.
const MOST_TRIES: u32 = 5;

/// The pause after a failed try. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Why keys were not set.
#[derive(Debug)]
pub enum NotSet {
    /// The Lease shows another lock, or none. Nothing was written.
    LockEnded,
    /// There is no such Node, or another one has its name now. Nothing was written.
    NodeGone,
    /// The Node or the Lease can't be read, or the Node can't be written, or keeps changing.
    Failed(Error),
}

impl From<Error> for NotSet {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<ApiError> for NotSet {
    fn from(error: ApiError) -> Self {
        Self::Failed(error.into())
    }
}

/// Sets on its Node what `lock` asks for. The Lease must have been written.
///
/// # Errors
/// Why the keys are not set. [`ApiError::Altered`] if something, such as an admission webhook, changed one.
///
/// # Caveats
/// Dropping this future abandons the answer. The keys may still be written, unless the lock is ended first.
pub async fn set(locks: &Maintenance, lock: &NodeLease, mode: Mode) -> Result<Wanted, NotSet> {
    let mut tries = Tries::default();
    loop {
        let node = node_of(locks, lock).await?.ok_or(NotSet::NodeGone)?;
        let lease = locks.get(lock.node()).await?;
        let lease = lease.filter(|lease| lock_id_of(lease) == lock_id_of(lock));
        let lease = lease.ok_or(NotSet::LockEnded)?;
        let wanted = wanted(&node, &lease, mode).unwrap_or_default();
        let Some(body) = apply(&node, &wanted.keys) else {
            return Ok(wanted);
        };
        match patch(locks, &node, APPLY, &body).await {
            Ok(stored) if has(&stored, &wanted.keys) => return Ok(wanted),
            Ok(_) => return Err(ApiError::Altered.into()),
            Err(error) => tries.wait(error).await?,
        }
    }
}

/// Removes what `ended` set on its Node, if the keys there are its keys. Returns whether that uncordoned the node. The lock must
/// have ended, by a release or because another one replaced it.
///
/// # Errors
/// If the Node can't be read or written, or keeps changing. [`ApiError::Altered`] if a key that only locks write is still there.
///
/// # Caveats
/// Dropping this future abandons the answer. The keys may still be removed.
pub async fn remove(locks: &Maintenance, ended: &NodeLease) -> Result<bool, Error> {
    let lock_id = lock_id_of(ended);
    let mut tries = Tries::default();
    loop {
        let Some(node) = node_of(locks, ended).await? else {
            return Ok(false);
        };
        let state = ended.state(locks.server_time().now());
        let Some(body) = end(&node, &lock_id, matches!(state, State::Expired { .. })) else {
            return Ok(false);
        };
        match patch(locks, &node, APPLY, &body).await {
            Ok(stored) if has_held_keys(&stored) => return Err(ApiError::Altered.into()),
            Ok(stored) => {
                let is_cordoned = stored["spec"]["unschedulable"] == true;
                return Ok(NodeKeys::on(&node).cordon && !is_cordoned);
            }
            // A caller who may not write the Node has set nothing on it.
            Err(error) if error.is_rejection() && lock_id_on(&node).is_none() => return Ok(false),
            Err(error) => tries.wait(error).await?,
        }
    }
}

/// Removes what is left on `node` of locks that have ended or expired, or with `all` everything that locks set there, except the
/// cordon of a lock that stands. Returns what was removed; `None`: the keys belong to a lock that stands.
///
/// # Errors
/// If the Node or the Lease can't be read, or the Node can't be written, or keeps changing. [`ApiError::Altered`] if a key that
/// only locks write is still there.
///
/// # Caveats
/// Dropping this future abandons the answer. The keys may still be removed.
pub async fn clear(locks: &Maintenance, node: &str, all: bool) -> Result<Option<NodeKeys>, Error> {
    let mut tries = Tries::default();
    loop {
        let Some(node) = read(locks, node).await? else {
            return Ok(Some(NodeKeys::default()));
        };
        let lease = locks
            .get(node.metadata.name.as_deref().unwrap_or_default())
            .await?;
        let now = locks.server_time().now();
        let mut keys = NodeKeys::on(&node);
        if keys.belong_to(lease.as_ref(), now) && !all {
            return Ok(None);
        }
        // It was set by a lock that this one replaced, or the Node stays cordoned for maintenance.
        let keeps_cordon = |lease: &NodeLease| {
            let asked = Asked::of(lease).map(|asked| asked.cordon);
            lease.state(now).is_locked() && (all || asked.is_some_and(|asked| asked != Cordon::No))
        };
        keys.cordon &= !lease.as_ref().is_some_and(keeps_cordon);
        let ended = lock_id_on(&node).filter(|_| !all);
        match patch(locks, &node, MERGE, &removal(&node, &keys, ended)).await {
            Ok(stored) if has_held_keys(&stored) => return Err(ApiError::Altered.into()),
            Ok(_) => return Ok(Some(keys)),
            Err(error) if error.is_not_found() => return Ok(Some(NodeKeys::default())),
            Err(error) => tries.wait(error).await?,
        }
    }
}

/// Moves the end that the Node shows while the lock `held` is renewed, until it is lost. Failures are passed to `report`.
///
/// # Caveats
/// Dropping this future abandons the answers. What it was writing may still be written.
pub async fn follow_end(locks: &Maintenance, held: &HeldLease, report: &dyn Fn(&str, NotSet)) {
    let mut state = held.held_state();
    let mut shown = state.lease.end();
    while state.lost.is_none() && Asked::of(&state.lease).is_some() {
        state = held.changed(&state).await;
        let lease = &state.lease;
        if state.lost.is_some() || lease.end() <= shown {
            continue;
        }
        if let Err(error) = set(locks, lease, Mode::Keep).await {
            report(lease.node(), error);
        }
        // After a failure, too: it is reported once in that time.
        let duration = Span::seconds(lease.duration_seconds());
        shown = lease.end().map(|end| end + duration);
    }
}

/// The Node of the lock in `lease`; `None`: it does not exist, or another one has its name.
async fn node_of(locks: &Maintenance, lease: &NodeLease) -> Result<Option<Node>, ApiError> {
    let node = read(locks, lease.node()).await?;
    Ok(node.filter(|node| node.metadata.uid == lease.node_uid()))
}

async fn read(locks: &Maintenance, node: &str) -> Result<Option<Node>, ApiError> {
    let call = Call::get(path(node), Accept::Json);
    match locks.requests().call(&call).await {
        Ok(answer) => serde_json::from_slice(&answer)
            .map(Some)
            .map_err(|error| ApiError::Unreadable(error.to_string())),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sends a patch. Returns the Node as the server stored it.
async fn patch(
    locks: &Maintenance,
    node: &Node,
    (content_type, query): Kind,
    body: &Value,
) -> Result<Value, ApiError> {
    let path = path(node.metadata.name.as_deref().unwrap_or_default());
    let path = format!("{path}?fieldManager={FIELD_MANAGER}{query}");
    let call = Call::write(Method::PATCH, path, content_type, body);
    let answer = locks.requests().call(&call).await?;
    serde_json::from_slice(&answer).map_err(|error| ApiError::Unreadable(error.to_string()))
}

fn path(node: &str) -> String {
    format!("/api/v1/nodes/{}", escape(node))
}

/// Whether the Node has the keys.
fn has(stored: &Value, keys: &NodeKeys) -> bool {
    let maps = [("labels", &keys.labels), ("annotations", &keys.annotations)];
    let mut pairs = maps
        .iter()
        .flat_map(|(map, keys)| keys.iter().map(move |pair| (*map, pair)));
    pairs.all(|(map, (key, value))| stored["metadata"][map][key] == **value)
        && (stored["spec"]["unschedulable"] == true || !keys.cordon)
}

/// Whether the Node has keys that only locks write.
fn has_held_keys(stored: &Value) -> bool {
    let maps = ["labels", "annotations"].map(|map| stored["metadata"][map].as_object());
    let mut keys = maps.into_iter().flatten().flat_map(|map| map.keys());
    keys.any(|key| is_held_key(key))
}

/// The failed tries of one write.
#[derive(Default)]
struct Tries(u32);

impl Tries {
    /// Waits before another try, after `error`.
    ///
    /// # Errors
    /// `error`, if another try would not help.
    async fn wait(&mut self, error: ApiError) -> Result<(), ApiError> {
        self.0 += 1;
        if self.0 == MOST_TRIES || !(error.is_conflict() || error.may_pass()) {
            return Err(error);
        }
        sleep(FIRST_PAUSE * 2u32.pow(self.0 - 1)).await;
        Ok(())
    }
}
