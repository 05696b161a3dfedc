//! `volume-attached` and `volume-unguarded`: what prevents two pods from writing to the same data.
//! `volume-deleted`: what is deleted with the pod.

use super::verdict::Verdict;
use crate::constants::FORCED_DETACH;
use crate::facts::{DeletedClaim, Volume};
use crate::known::{Known, Why};
use crate::words::age;

const ATTACHED: &str = "volume-attached";
const UNGUARDED: &str = "volume-unguarded";

/// The id of the check for data that is deleted with the pod.
pub(super) const DELETED: &str = "volume-deleted";

/// The verdict on the claims that only pods like this one keep.
pub(super) fn check_deleted(claims: &Known<Vec<DeletedClaim>>) -> Option<Verdict> {
    let claims = match claims {
        Known::Unknown(why) => {
            let what = "whether its claims are being deleted";
            return Some(Verdict::unread(DELETED, what, why));
        }
        Known::Yes(claims) if claims.is_empty() => return None,
        Known::Yes(claims) => claims,
    };
    let names = claims.iter().map(|claim| {
        let volume = match claim.with_volume {
            Known::Yes(true) => " and its volume (reclaimPolicy Delete)",
            Known::Yes(false) => "",
            Known::Unknown(_) => ", perhaps with its volume",
        };
        format!("pvc/{}{volume}", claim.name)
    });
    let verdict = Verdict::risk(
        DELETED,
        "a claim that is being deleted goes with the last pod that uses it",
    );
    Some(verdict.of(names))
}

/// The verdict on the volumes that are created for this pod alone.
pub(super) fn check_ephemeral(volumes: &[String]) -> Option<Verdict> {
    let verdict = Verdict::info(
        DELETED,
        "the data of its ephemeral volumes is deleted with it",
    );
    (!volumes.is_empty()).then(|| verdict.of(volumes))
}

pub(super) fn check(volumes: &[Volume], node: &str) -> Vec<Verdict> {
    if volumes.is_empty() {
        return vec![Verdict::ok(
            ATTACHED,
            "it writes to no volume that other nodes can reach",
        )];
    }
    if node.is_empty() {
        return vec![Verdict::ok(
            ATTACHED,
            "it never ran, so it wrote to no volume",
        )];
    }
    let mut verdicts = Vec::new();
    let unguarded: Vec<String> = volumes
        .iter()
        .filter_map(|volume| {
            let kind = volume.unguarded.value()?.as_ref()?;
            Some(format!("{} ({kind})", volume.name))
        })
        .collect();
    if !unguarded.is_empty() {
        verdicts.push(Verdict::risk(
            UNGUARDED,
            "NOTHING PREVENTS TWO WRITERS: if the old pod is still running, both write, and the data may be corrupted",
        ).of(unguarded));
    } else if let Some((name, why)) = first_unknown(volumes, |volume| &volume.unguarded) {
        let what = format!("whether anything prevents two writers on {name}");
        verdicts.push(Verdict::unread(UNGUARDED, &what, why));
    }
    let attached = volumes.iter();
    let attached = attached.filter(|volume| matches!(volume.attached, Known::Yes(Some(_))));
    let attached: Vec<&Volume> = attached.collect();
    if !attached.is_empty() {
        let names = attached.iter().map(|volume| match &volume.modes[..] {
            [] => volume.name.clone(),
            modes => format!("{} ({})", volume.name, modes.join(", ")),
        });
        let writes_after_detach = attached
            .iter()
            .find_map(|volume| volume.writes_after_detach);
        let writes_after_detach = writes_after_detach.map_or_else(String::new, |kind| {
            format!("; the old pod can still write to {kind} after the detach")
        });
        verdicts.push(Verdict::risk(
            ATTACHED,
            format!(
                "attached to {node}: by default detached by force {} after the pod is gone, if the node is \
                 not ready then; the last writes may be incomplete{writes_after_detach}",
                age(FORCED_DETACH)
            ),
        ).of(names));
    } else if let Some((_, why)) = first_unknown(volumes, |volume| &volume.attached) {
        let what = format!("whether its volumes are attached to {node}");
        verdicts.push(Verdict::unread(ATTACHED, &what, why));
    }
    if verdicts.is_empty() {
        let names = volumes.iter().map(|volume| &volume.name);
        let verdict = Verdict::ok(ATTACHED, format!("not attached to {node}"));
        verdicts.push(verdict.of(names));
    }
    verdicts
}

fn first_unknown(
    volumes: &[Volume],
    fact: impl Fn(&Volume) -> &Known<Option<String>>,
) -> Option<(&str, &Why)> {
    volumes.iter().find_map(|volume| match fact(volume) {
        Known::Unknown(why) => Some((&*volume.name, why)),
        Known::Yes(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Level;
    use crate::checks::testing::forbidden;

    fn volume(unguarded: Known<Option<&str>>, attached: Known<Option<&str>>) -> Volume {
        let owned = |fact: Known<Option<&str>>| fact.map(|text| text.map(ToOwned::to_owned));
        Volume {
            name: "data".to_owned(),
            modes: vec!["ReadWriteOnce".to_owned()],
            writes_after_detach: None,
            unguarded: owned(unguarded),
            attached: owned(attached),
        }
    }

    fn verdicts(volumes: &[Volume]) -> Vec<(&'static str, Level)> {
        check(volumes, "worker-1")
            .iter()
            .map(|verdict| (verdict.id, verdict.level))
            .collect()
    }

    #[test]
    fn each_kind_of_volume_has_its_guarantee() {
        let no = || Known::Yes(None);
        for (volumes, expected) in [
            (vec![], vec![(ATTACHED, Level::Ok)]),
            (vec![volume(no(), no())], vec![(ATTACHED, Level::Ok)]),
            (
                vec![volume(no(), Known::Yes(Some("va-1")))],
                vec![(ATTACHED, Level::Risk)],
            ),
            (
                vec![volume(Known::Yes(Some("NFS")), no())],
                vec![(UNGUARDED, Level::Risk)],
            ),
            (
                vec![volume(forbidden(), Known::Yes(Some("va-1")))],
                vec![(UNGUARDED, Level::Unread), (ATTACHED, Level::Risk)],
            ),
            (
                vec![volume(no(), forbidden())],
                vec![(ATTACHED, Level::Unread)],
            ),
            (
                vec![volume(no(), no()), volume(forbidden(), forbidden())],
                vec![(UNGUARDED, Level::Unread), (ATTACHED, Level::Unread)],
            ),
            // A known risk is reported, even if other facts are unknown.
            (
                vec![
                    volume(forbidden(), forbidden()),
                    volume(Known::Yes(Some("NFS")), no()),
                ],
                vec![(UNGUARDED, Level::Risk), (ATTACHED, Level::Unread)],
            ),
        ] {
            assert_eq!(verdicts(&volumes), expected, "{volumes:?}");
        }
    }

    #[test]
    fn a_claim_that_is_being_deleted_goes_with_its_volume_if_that_is_its_policy() {
        let verdict = |with_volume| {
            let name = "data".to_owned();
            let claims = vec![DeletedClaim { name, with_volume }];
            let verdict = check_deleted(&Known::Yes(claims)).expect("a verdict");
            assert_eq!((verdict.id, verdict.level), (DELETED, Level::Risk));
            verdict.names.join(", ")
        };
        let with = "pvc/data and its volume (reclaimPolicy Delete)";
        assert_eq!(verdict(Known::Yes(true)), with);
        assert_eq!(verdict(Known::Yes(false)), "pvc/data");
        assert_eq!(verdict(forbidden()), "pvc/data, perhaps with its volume");
        assert_eq!(check_deleted(&Known::Yes(Vec::new())), None);
        let unread = check_deleted(&forbidden()).expect("a verdict");
        assert_eq!((unread.id, unread.level), (DELETED, Level::Unread));
    }

    #[test]
    fn pods_that_never_ran_wrote_nothing() {
        let volumes = [volume(Known::Yes(Some("NFS")), forbidden())];
        let verdicts = check(&volumes, "");
        assert_eq!(verdicts.len(), 1, "{verdicts:?}");
        assert_eq!((verdicts[0].id, verdicts[0].level), (ATTACHED, Level::Ok));
    }
}
