//! `replacement`: why no new pod would be created, or why it would not run, once this one is gone.

use super::verdict::Verdict;
use crate::facts::Obstacle;

const ID: &str = "replacement";

pub(super) fn check(obstacles: &[Obstacle]) -> Vec<Verdict> {
    let verdicts = obstacles.iter().map(|obstacle| match obstacle {
        Obstacle::SetEnding { set } => {
            Verdict::info(ID, "it will not be replaced: its set is being deleted").of([set])
        }
        Obstacle::Surplus { set } => {
            Verdict::info(ID, "it will not be replaced: its set has fewer replicas").of([set])
        }
        Obstacle::Order { unready } => Verdict::info(
            ID,
            "it will be replaced only after the members before it are ready",
        )
        .of(unready),
        Obstacle::Bound { claims } => Verdict::info(
            ID,
            "its replacement will stay Pending: no other ready node can reach its volume",
        )
        .of(claims),
        Obstacle::Quota(full) => Verdict::info(
            ID,
            match full.is_certain {
                true => "it will not be replaced: a quota is used up",
                false => {
                    "it might not be replaced: a quota is used up, or may still count this pod"
                }
            },
        )
        .of([&full.what]),
    });
    verdicts.collect()
}
