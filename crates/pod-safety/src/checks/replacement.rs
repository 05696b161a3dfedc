//! `replacement`: why no new pod would be created, or why it would not run, once this one is gone.

use super::verdict::Verdict;
use crate::facts::Obstacle;

const ID: &str = "replacement";

pub(super) fn check(obstacles: &[Obstacle]) -> Vec<Verdict> {
    let verdicts = obstacles.iter().map(|obstacle| match obstacle {
        Obstacle::Surplus { set } => {
            Verdict::info(ID, "no replacement comes: its set has fewer members").of([set])
        }
        Obstacle::Order { unready } => Verdict::info(
            ID,
            "its replacement comes only after the members before it are ready",
        )
        .of(unready),
        Obstacle::Bound { claims } => Verdict::info(
            ID,
            "its replacement stays Pending: no other ready node can reach its volume",
        )
        .of(claims),
        Obstacle::Quota(full) => Verdict::info(
            ID,
            match full.is_certain {
                true => "its replacement is not created: a quota is used up",
                false => {
                    "its replacement may not be created: a quota is used up, or may still count this pod"
                }
            },
        )
        .of([&full.what]),
    });
    verdicts.collect()
}
