//! When the taints of a node evict a pod.

use k8s_openapi::api::core::v1::Pod;
use maintenance_lease::protocol::{Now, Span};

use super::Reason;
use crate::taint::NoExecute;

/// When the taint-eviction controller evicts `pod`: at once if it does not tolerate a taint, otherwise after
/// the shortest `tolerationSeconds` of the tolerations used.
pub(super) fn taint_eviction(pod: &Pod, taints: &[NoExecute], now: Now) -> Reason {
    if taints.is_empty() {
        return Reason::Unevicted;
    }
    let spec = pod.spec.as_ref();
    let tolerations = spec.and_then(|spec| spec.tolerations.as_deref());
    let ends = taints.iter().filter_map(|taint| {
        let added = taint.added.unwrap_or(now.latest);
        let mut used = { tolerations.unwrap_or_default().iter() }
            .filter(|toleration| taint.is_tolerated_by(toleration));
        match used.next() {
            None => Some(added),
            Some(toleration) => {
                let seconds = toleration.toleration_seconds?.max(0);
                Some(added + Span::micros(seconds.saturating_mul(1_000_000)))
            }
        }
    });
    ends.min()
        .map_or(Reason::NeverEvicted, |at| Reason::Evicted { at })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{PodSpec, Toleration};
    use maintenance_lease::protocol::Instant;

    use super::*;

    const NOW: Instant = Instant::from_micros(1_000_000_000);
    const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

    fn taints(taints: &[(&str, u32)]) -> Vec<NoExecute> {
        let taints = taints.iter().map(|&(key, added)| NoExecute {
            key: key.to_owned(),
            value: String::new(),
            added: Some(NOW - Span::seconds(added)),
        });
        taints.collect()
    }

    fn tolerates(key: &str, seconds: Option<i64>) -> Toleration {
        Toleration {
            key: (!key.is_empty()).then(|| key.to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some("NoExecute".to_owned()),
            toleration_seconds: seconds,
            ..Toleration::default()
        }
    }

    #[test]
    fn a_toleration_says_when_it_is_evicted() {
        let evicted = |seconds: i64| Reason::Evicted {
            at: NOW + Span::micros(seconds * 1_000_000),
        };
        let down = taints(&[(UNREACHABLE, 108)]);
        let both = taints(&[(UNREACHABLE, 108), ("example.com/other", 50)]);
        for (tolerations, taints, expected) in [
            (vec![], &down, evicted(-108)),
            (vec![tolerates(UNREACHABLE, Some(300))], &down, evicted(192)),
            (vec![tolerates(UNREACHABLE, Some(60))], &down, evicted(-48)),
            (vec![tolerates(UNREACHABLE, Some(-5))], &down, evicted(-108)),
            (
                vec![tolerates(UNREACHABLE, None)],
                &down,
                Reason::NeverEvicted,
            ),
            (vec![tolerates("", None)], &both, Reason::NeverEvicted),
            // For each taint, only the first matching toleration counts, as in Kubernetes.
            (
                vec![tolerates("", None), tolerates(UNREACHABLE, Some(300))],
                &down,
                Reason::NeverEvicted,
            ),
            (vec![tolerates("other", None)], &down, evicted(-108)),
            // All taints must be tolerated.
            (vec![tolerates(UNREACHABLE, Some(300))], &both, evicted(-50)),
            (vec![], &vec![], Reason::Unevicted),
        ] {
            let pod = Pod {
                spec: Some(PodSpec {
                    tolerations: Some(tolerations.clone()),
                    ..PodSpec::default()
                }),
                ..Pod::default()
            };
            assert_eq!(
                taint_eviction(&pod, taints, Now::at(NOW)),
                expected,
                "{tolerations:?}"
            );
        }
    }
}
