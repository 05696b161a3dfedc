//! `volume-attached` and `volume-unguarded`: what prevents two pods from writing to the same data.

use super::verdict::Verdict;
use crate::constants::FORCED_DETACH;
use crate::facts::Volume;
use crate::known::{Known, Why};
use crate::words::age;

const ATTACHED: &str = "volume-attached";
const UNGUARDED: &str = "volume-unguarded";

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
    fn pods_that_never_ran_wrote_nothing() {
        let volumes = [volume(Known::Yes(Some("NFS")), forbidden())];
        let verdicts = check(&volumes, "");
        assert_eq!(verdicts.len(), 1, "{verdicts:?}");
        assert_eq!((verdicts[0].id, verdicts[0].level), (ATTACHED, Level::Ok));
    }
}
