//! Stands by until this process leads.

use std::time::Duration;

use maintenance_lease::protocol::identity::visible;
use maintenance_lease::{Error, HeldLease, Keep, LeaderElection, Maintenance, NodeLease, Progress};
use tokio::time::timeout;

use crate::election_state::ElectionState;
use crate::failure::{may_pass, words};
use crate::log;

/// How long to wait before standing by again after a temporary error, such as a request without a response.
/// client-go waits equally long.
const AGAIN: Duration = Duration::from_secs(2);

/// How long a write that was already sent may take to finish, once this process was asked to end. The release
/// of a lease that was acquired this way may take as long again.
const LAST_CHANCE: Duration = Duration::from_secs(2);

/// Stands by until this process leads. If you drop the future, a write may still be in progress: see
/// [`withdraw`].
///
/// # Errors
/// If waiting does not help, for example if a permission is missing.
pub(crate) async fn lead(
    election: &LeaderElection,
    keep: &Keep,
    election_state: &ElectionState,
) -> Result<HeldLease, Error> {
    let mut told = None;
    loop {
        let error = match election
            .lead(keep, |progress| show_progress(election_state, &progress))
            .await
        {
            Ok(held) => return Ok(held),
            Err(error) if may_pass(&error) => error,
            Err(error) => return Err(error),
        };
        election_state.set_unwatched(true);
        let problem = words(&error);
        if told.as_ref() != Some(&problem) {
            log::line(format_args!(
                "retrying every {}s: {problem}",
                AGAIN.as_secs()
            ));
        }
        told = Some(problem);
        tokio::time::sleep(AGAIN).await;
    }
}

fn show_progress(election_state: &ElectionState, progress: &Progress<'_>) {
    match progress {
        Progress::Blocked(blocked) => {
            election_state.set_unwatched(false);
            election_state.led_by_another();
            let refused = &blocked.refused;
            match refused.lease.as_ref().and_then(NodeLease::holder) {
                Some(leader) => {
                    log::line(format_args!("standing by: {} leads", visible(leader)));
                }
                None => log::line(format_args!("standing by: {refused}")),
            }
        }
        Progress::Unwatched(cause) => {
            election_state.set_unwatched(true);
            log::line(format_args!("the lease can't be watched: {}", words(cause)));
        }
        Progress::Watched => {
            election_state.set_unwatched(false);
            log::line("the lease is watched again");
        }
        _ => {}
    }
}

/// Ends a candidacy, because this process was asked to end. A write that was already sent gets some time to
/// finish, because it may take effect even if nothing waits for it. If it acquired the lease, the lease is
/// released.
pub(crate) async fn withdraw(
    locks: &Maintenance,
    lease: &str,
    candidacy: impl Future<Output = Result<HeldLease, Error>>,
) {
    if !locks.has_open_write(lease) {
        return;
    }
    let has_led = match timeout(LAST_CHANCE, candidacy).await {
        Ok(Ok(held)) => match timeout(LAST_CHANCE, held.release()).await {
            Ok(Ok(_) | Err(Error::Lost(_) | Error::Refused(_))) => {
                log::line("the lease was acquired too late and released");
                return;
            }
            Ok(Err(_)) | Err(_) => true,
        },
        Ok(Err(_)) | Err(_) => false,
    };
    if has_led || locks.has_open_write(lease) {
        log::line(
            "the last write may still take effect: the Lease may then name this process until it expires, but no daemon runs",
        );
    }
}
