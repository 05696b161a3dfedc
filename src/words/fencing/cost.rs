//! What a fencing costs.

use pod_safety::facts::Obstacle;
use pod_safety::fencing::Cost;
use pod_safety::words::few;

use super::remains::{count, list};

/// The question for the reason, if a risk was accepted on a terminal.
pub(crate) const REASON: &str = "Reason, recorded on the node";

/// What the fencing of `node` costs, one line per kind of loss.
pub(crate) fn cost(node: &str, cost: &Cost) -> Vec<String> {
    let lines = [
        (&cost.no_owner, "will be deleted and not recreated"),
        (&cost.scratch, "will lose emptyDir data"),
        (
            &cost.twice,
            "may run twice, because the node is only cut off",
        ),
        (
            &cost.staying,
            "will not be deleted (static, or tolerating the taint)",
        ),
    ];
    let lines = { lines.into_iter() }
        .map(|(pods, what)| (pods.clone(), what))
        .chain(blocked(cost))
        .filter(|(pods, _)| !pods.is_empty());
    let lines = lines.map(|(pods, what)| {
        format!(
            "node/{node}: {} {what}: {}",
            count(pods.len(), "pod"),
            list(&pods)
        )
    });
    lines.collect()
}

/// The pods by what keeps their replacements from coming or running.
fn blocked(cost: &Cost) -> Vec<(Vec<String>, &'static str)> {
    let mut lines: Vec<(Vec<String>, &'static str)> = Vec::new();
    for pod in &cost.blocked {
        for obstacle in &pod.obstacles {
            let (what, detail) = (obstacle_words(obstacle), detail(obstacle));
            let pod = format!("{}/{}{detail}", pod.namespace, pod.name);
            match lines.iter_mut().find(|(_, other)| *other == what) {
                Some((pods, _)) => pods.push(pod),
                None => lines.push((vec![pod], what)),
            }
        }
    }
    lines
}

fn obstacle_words(obstacle: &Obstacle) -> &'static str {
    match obstacle {
        Obstacle::Bound { .. } => {
            "will stay Pending when recreated, because no other ready node can reach the volume"
        }
        Obstacle::Order { .. } => {
            "will be replaced only after earlier pods of the StatefulSet are ready"
        }
        Obstacle::SetEnding { .. } => {
            "will not be replaced, because the StatefulSet is being deleted"
        }
        Obstacle::Surplus { .. } => {
            "will not be replaced, because the StatefulSet has fewer replicas"
        }
        Obstacle::Quota(full) if full.is_certain => {
            "will not be replaced, because a quota is used up"
        }
        Obstacle::Quota(_) => {
            "might not be replaced, because a quota is used up, maybe by pods that are being deleted"
        }
    }
}

/// What the pod waits for, after its name.
fn detail(obstacle: &Obstacle) -> String {
    match obstacle {
        Obstacle::Bound { claims } => format!(" with {}", few(claims)),
        Obstacle::Order { unready } => format!(" after {}", few(unready)),
        Obstacle::SetEnding { .. } | Obstacle::Surplus { .. } => String::new(),
        Obstacle::Quota(full) => format!(" by {}", full.what),
    }
}

/// An obstacle, in a sentence.
pub(crate) fn obstacle_sentence(obstacle: &Obstacle) -> String {
    match obstacle {
        Obstacle::Bound { claims } => {
            format!("No other ready node can reach its volume: {}.", few(claims))
        }
        Obstacle::Order { unready } => {
            format!("These pods must be ready first: {}.", few(unready))
        }
        Obstacle::SetEnding { set } => format!("Its set is being deleted: {set}."),
        Obstacle::Surplus { set } => format!("Its StatefulSet has fewer replicas: {set}."),
        Obstacle::Quota(full) if full.is_certain => format!("A quota is used up: {}.", full.what),
        Obstacle::Quota(full) => {
            format!(
                "A quota is used up, or may still count this pod: {}.",
                full.what
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use pod_safety::facts::Blocked;
    use pod_safety::facts::quotas::Full;

    use super::*;

    #[test]
    fn pods_are_listed_by_what_keeps_their_replacements() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let blocked = |name: &str, obstacle: Obstacle| Blocked {
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            obstacles: vec![obstacle],
        };
        let bound = |claim: &str| Obstacle::Bound {
            claims: names(&[claim]),
        };
        let full = |is_certain| {
            Obstacle::Quota(Full {
                what: "ResourceQuota/small".to_owned(),
                is_certain,
            })
        };
        let found = Cost {
            blocked: vec![
                blocked("db-0", bound("data-db-0")),
                blocked(
                    "web-2",
                    Obstacle::Order {
                        unready: names(&["web-0", "web-1"]),
                    },
                ),
                blocked("old-0", bound("data-old-0")),
                blocked(
                    "cut-3",
                    Obstacle::Surplus {
                        set: "StatefulSet/cut".to_owned(),
                    },
                ),
                blocked("big-0", full(true)),
                blocked("big-1", full(false)),
            ],
            ..Cost::default()
        };
        assert_eq!(
            cost("n", &found),
            [
                "node/n: 2 pods will stay Pending when recreated, because no other ready node can reach the volume: \
                 shop/db-0 with data-db-0, shop/old-0 with data-old-0",
                "node/n: 1 pod will be replaced only after earlier pods of the StatefulSet are ready: \
                 shop/web-2 after web-0, web-1",
                "node/n: 1 pod will not be replaced, because the StatefulSet has fewer replicas: shop/cut-3",
                "node/n: 1 pod will not be replaced, because a quota is used up: shop/big-0 by ResourceQuota/small",
                "node/n: 1 pod might not be replaced, because a quota is used up, maybe by pods that are being deleted: \
                 shop/big-1 by ResourceQuota/small",
            ]
        );
    }
}
