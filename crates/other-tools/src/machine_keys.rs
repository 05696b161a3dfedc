//! What a lock writes on the Machine of its Node: one server-side apply with an own field manager, which is never forced, and
//! its undo. The Machine may be in another cluster.
//!
//! Both writes name the uid and the resource version of the Machine that was read, as for Nodes. The Node has a record of the
//! Machine before the first of them, and until the last. The undo leaves the id of the ended lock, so a late write for that lock
//! fails.

use maintenance_lease::{Accept, ApiError, Call, Requests, escape};

use crate::machine::{Machine, MachineApi, MachineLock, MachineRef};
use crate::machine_record::MachineRecord;
use crate::writes::{APPLY, Tries, patch};

/// The result of [`set_machine_opt_outs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptOutsSet {
    /// The opt-outs are set.
    Done,
    /// The Machine does not exist any more.
    Gone,
    /// The lock has ended, or is being ended. Nothing was written.
    LockEnded,
}

/// The result of [`remove_machine_opt_outs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptOutsRemoved {
    /// The opt-outs of locks are removed. Those that somebody else set to the same value stayed.
    Done,
    /// The Machine does not exist any more.
    Gone,
    /// The Machine says that it is that of another Node, or of none. Nothing was removed.
    OfAnother,
    /// It was created from a copy, so the opt-outs on it belong to others.
    Copied,
    /// They belong to the lock that the Lease shows, and were left as they are.
    StillHeld,
}

/// Reads a Machine; `None`: it does not exist.
///
/// # Errors
/// If it can't be read. If the cluster does not have this API, [`ApiError::is_not_installed`] is true.
pub(crate) async fn read_machine(
    requests: &Requests,
    of: &MachineRef,
) -> Result<Option<Machine>, ApiError> {
    let reading = in_some_version(of.api, async |version| {
        let call = Call::get(of.path(version), Accept::Json);
        let answer = requests.call(&call).await?;
        let read = Machine::parse(of.clone(), version, &answer);
        read.map_err(|error| ApiError::Unreadable(error.to_string()))
    });
    match reading.await {
        Ok(machine) => Ok(Some(machine)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The Machines in `namespace` on which a lock set opt-outs that are still there.
///
/// # Errors
/// If they can't be read. If the cluster does not have this API, [`ApiError::is_not_installed`] is true.
pub(crate) async fn machines_with_opt_outs(
    requests: &Requests,
    api: &'static MachineApi,
    namespace: &str,
) -> Result<Vec<Machine>, ApiError> {
    let listing = in_some_version(api, async |version| {
        let namespace = escape(namespace);
        let path = format!("/apis/{version}/namespaces/{namespace}/machines");
        let read = |item: &[u8], _: &[u8]| {
            let machine = Machine::parse_item(api, version, item);
            let machine = machine.map_err(|error| ApiError::Unreadable(error.to_string()))?;
            Ok(Some(machine).filter(|machine| machine.lock_id().is_some()))
        };
        requests.list(&Call::get(path, Accept::Json), read).await
    });
    Ok(listing.await?.objects)
}

/// Reads in the newest version of `api` that the cluster has.
async fn in_some_version<T>(
    api: &MachineApi,
    read: impl AsyncFn(&'static str) -> Result<T, ApiError>,
) -> Result<T, ApiError> {
    let (last, earlier) = api.versions.split_last().expect("an API has a version");
    for version in earlier {
        match read(version).await {
            Err(error) if error.is_not_installed() => {}
            answer => return answer,
        }
    }
    read(last).await
}

/// Sets the opt-outs for a lock on `machine`, which was read. Replaces those of an earlier lock.
///
/// `is_held` reads whether the Lease still shows the lock id. It is called after each read of the Machine.
///
/// # Errors
/// If the Machine can't be written, or keeps changing. Also the errors of `is_held`.
///
/// # Caveats
/// Dropping this future abandons the answer. The opt-outs may still be set, unless they are removed first.
pub(crate) async fn set_machine_opt_outs<E: From<ApiError>>(
    requests: &Requests,
    mut machine: Machine,
    lock: MachineLock<'_>,
    is_held: impl AsyncFn() -> Result<bool, E>,
) -> Result<OptOutsSet, E> {
    let mut tries = Tries::of_conflicts();
    let uid = machine.uid().to_owned();
    loop {
        let Some(body) = machine.to_set(lock) else {
            return Ok(OptOutsSet::LockEnded);
        };
        if !is_held().await? {
            return Ok(OptOutsSet::LockEnded);
        }
        let path = machine.of.path(machine.version);
        match patch(requests, &path, APPLY, &body).await {
            Ok(_) => return Ok(OptOutsSet::Done),
            Err(error) => tries.wait(error).await?,
        }
        machine = match read_machine(requests, &machine.of).await? {
            Some(machine) if machine.uid() == uid => machine,
            _ => return Ok(OptOutsSet::Gone),
        };
    }
}

/// Removes from the Machine `of` what locks of `node` set on it, and leaves the id of the lock `ended`.
///
/// Call it before that lock is released. `shown` reads the lock id that the Lease shows. It is called after a read of a Machine
/// with the opt-outs of another lock.
///
/// # Errors
/// If the Machine can't be read or written, or keeps changing. Also the errors of `shown`.
///
/// # Caveats
/// Dropping this future abandons the answer. The opt-outs may still be removed.
pub(crate) async fn remove_machine_opt_outs<E: From<ApiError>>(
    requests: &Requests,
    node: &str,
    of: &MachineRef,
    record: &MachineRecord,
    ended: &str,
    shown: impl AsyncFn() -> Result<Option<String>, E>,
) -> Result<OptOutsRemoved, E> {
    let mut tries = Tries::of_conflicts();
    loop {
        let machine = match read_machine(requests, of).await? {
            Some(machine) if machine.uid() == record.uid => machine,
            Some(other) if other.has_hook() => return Ok(OptOutsRemoved::Copied),
            _ => return Ok(OptOutsRemoved::Gone),
        };
        // A user who can change Nodes may have copied the record and the lock id from another Node.
        if !machine.is_of(node) {
            return Ok(OptOutsRemoved::OfAnother);
        }
        if machine.lock_id().is_some() && !machine.has_own_keys() {
            return Ok(OptOutsRemoved::Copied);
        }
        let Some(body) = machine.to_remove(ended) else {
            return Ok(OptOutsRemoved::Done);
        };
        if let Some(other) = machine.lock_id().filter(|id| *id != ended)
            && shown().await?.as_deref() == Some(other)
        {
            return Ok(OptOutsRemoved::StillHeld);
        }
        let path = of.path(machine.version);
        match patch(requests, &path, APPLY, &body).await {
            Ok(_) => return Ok(OptOutsRemoved::Done),
            // Nothing of ours is there, and this user could not have written it.
            Err(error) if error.is_forbidden() && machine.lock_id().is_none() => {
                return Ok(OptOutsRemoved::Done);
            }
            // The next read shows that it is gone.
            Err(error) if error.is_not_found() => {}
            Err(error) => tries.wait(error).await?,
        }
    }
}
