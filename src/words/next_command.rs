//! What somebody who looks at a node may want to run next.

use maintenance_lease::protocol::{Now, State, check_finished};
use maintenance_lease::{NodeLease, NodeRow};
use pod_safety::node::Health;

use super::program::{NO_REASON, Program};

/// Who reads it, and how they run this program.
pub(crate) struct Reader<'a> {
    pub(crate) identity: &'a str,
    pub(crate) program: &'a Program,
}

/// What can be done about `node`, and the command for it.
pub(crate) fn all(
    node: &str,
    lease: Option<&NodeLease>,
    row: Option<&NodeRow>,
    health: Option<&Health>,
    reader: &Reader<'_>,
    now: Now,
) -> Vec<(&'static str, String)> {
    let Reader { identity, program } = reader;
    let holder = lease.and_then(NodeLease::holder);
    let own = lease.is_some_and(|lease| lease.is_held_by(identity));
    let is_fenced = lease.is_some_and(NodeLease::is_fenced)
        || matches!(
            health,
            Some(Health::OutOfService { .. } | Health::Restarted { .. })
        );
    let state = lease.map_or(State::Free, |lease| lease.state(now));
    let is_finished =
        row.is_none_or(|row| check_finished(state, row.is_ready(), row.is_cordoned()).is_ok());
    let mut commands: Vec<(&'static str, String)> = match (state, own) {
        _ if holder.is_some_and(|holder| program.is_under(holder)) => vec![(
            "This runs under it",
            "end the command of `with` to release the lock".to_owned(),
        )],
        _ if is_fenced => vec![("After its restart", format!("{program} unfence {node}"))],
        (State::Free, _) => vec![(
            "Lock it",
            format!("{program} acquire {node} -m {NO_REASON}"),
        )],
        (State::Held { .. }, true) => vec![
            ("Extend it", format!("{program} renew {node}")),
            ("Release it", format!("{program} release {node}")),
        ],
        (State::Held { .. }, false) => vec![
            (
                "Wait for it",
                format!("{program} acquire {node} --wait -m {NO_REASON}"),
            ),
            (
                "If nobody works there",
                format!("{program} release {node} --force -m {NO_REASON}"),
            ),
        ],
        (State::Expired { .. }, true) => vec![
            ("Continue", format!("{program} renew {node}")),
            ("Release it", format!("{program} release {node}")),
        ],
        (State::Expired { .. }, false) => vec![(
            "Check what is left to do, then",
            match is_finished {
                true => format!("{program} acquire {node} -m {NO_REASON}"),
                false => format!("{program} acquire {node} -m {NO_REASON} --take-expired"),
            },
        )],
        (State::AdminHold, true) => vec![("End the hold", format!("{program} unhold {node}"))],
        (State::AdminHold, false) => vec![
            (
                "Wait for it",
                format!("{program} acquire {node} --wait -m {NO_REASON}"),
            ),
            ("If nobody works there", format!("{program} unhold {node}")),
        ],
    };
    if matches!(
        health,
        Some(Health::NotReady { .. } | Health::Unreachable { .. } | Health::OutOfService { .. })
    ) {
        commands.push((
            "See what is stuck there",
            format!("{program} status --pods {node}"),
        ));
    }
    commands
}
