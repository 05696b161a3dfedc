//! How the objects with keys of a lock are read and written: patches by our field manager, and their retries.

use std::time::Duration;

use http::Method;
use maintenance_lease::{Accept, ApiError, Call, Requests};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::sleep;

use crate::node_keys::FIELD_MANAGER;

/// How a patch is sent: its content type, and more of the query.
pub(crate) type Kind = (&'static str, &'static str);

pub(crate) const APPLY: Kind = ("application/apply-patch+yaml", "");
/// Only if nothing but keys of ours may have another owner.
pub(crate) const FORCED_APPLY: Kind = ("application/apply-patch+yaml", "&force=true");
pub(crate) const MERGE: Kind = ("application/merge-patch+json", "");

/// How often a write is tried on an object that keeps changing.
const MOST_TRIES: u32 = 6;

/// The pause after a failed try. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The object at `path`; `None`: it does not exist.
pub(crate) async fn read<T: DeserializeOwned>(
    requests: &Requests,
    path: &str,
) -> Result<Option<T>, ApiError> {
    let call = Call::get(path.to_owned(), Accept::Json);
    match requests.call(&call).await {
        Ok(answer) => serde_json::from_slice(&answer)
            .map(Some)
            .map_err(|error| ApiError::Unreadable(error.to_string())),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sends a patch. Returns the object as the server stored it.
///
/// # Errors
/// Also if the server stored a label, an annotation or the cordon differently.
pub(crate) async fn patch(
    requests: &Requests,
    path: &str,
    kind: Kind,
    body: &Value,
) -> Result<Value, ApiError> {
    send(requests, path, kind, body, "").await
}

/// The same in a dry run: nothing is written.
pub(crate) async fn try_patch(
    requests: &Requests,
    path: &str,
    kind: Kind,
    body: &Value,
) -> Result<Value, ApiError> {
    send(requests, path, kind, body, "&dryRun=All").await
}

async fn send(
    requests: &Requests,
    path: &str,
    (content_type, query): Kind,
    body: &Value,
    dry_run: &str,
) -> Result<Value, ApiError> {
    let call = Call::write(
        Method::PATCH,
        format!("{path}?fieldManager={FIELD_MANAGER}{query}{dry_run}"),
        content_type,
        body,
    );
    let answer = requests.call(&call).await?;
    let object: Value =
        serde_json::from_slice(&answer).map_err(|error| ApiError::Unreadable(error.to_string()))?;
    match is_as_written(body, &object) {
        true => Ok(object),
        false => Err(ApiError::Altered),
    }
}

/// Whether `object` has the labels, the annotations and the cordon of the patch `body`, and lacks those that are null there.
/// An admission webhook may have changed them.
fn is_as_written(body: &Value, object: &Value) -> bool {
    let has =
        |map: &Value, key: &str, wanted: &Value| map.get(key).unwrap_or(&Value::Null) == wanted;
    let (written, stored) = (&body["metadata"], &object["metadata"]);
    let are_same = ["labels", "annotations"].into_iter().all(|map| {
        let wanted = written[map].as_object().into_iter().flatten();
        let stored = &stored[map];
        wanted
            .into_iter()
            .all(|(key, wanted)| has(stored, key, wanted))
    });
    let cordon = body["spec"].get("unschedulable");
    are_same && cordon.is_none_or(|wanted| has(&object["spec"], "unschedulable", wanted))
}

/// The failed tries of one write.
#[derive(Default)]
pub(crate) struct Tries(u32);

impl Tries {
    /// Waits before another try, after `error`.
    ///
    /// # Errors
    /// `error`, if another try would not help.
    pub(crate) async fn wait(&mut self, error: ApiError) -> Result<(), ApiError> {
        let is_version = error.is_conflict() && !is_of_fields(&error);
        // It was written, and would be changed again.
        let is_altered = matches!(error, ApiError::Altered);
        self.0 += 1;
        if self.0 >= MOST_TRIES || is_altered || !(is_version || error.may_pass()) {
            return Err(error);
        }
        sleep(FIRST_PAUSE * 2u32.pow(self.0 - 1)).await;
        Ok(())
    }
}

/// Whether somebody else owns a field with another value.
fn is_of_fields(error: &ApiError) -> bool {
    let status = error.status();
    status.is_some_and(|status| status.has_cause("FieldManagerConflict"))
}
