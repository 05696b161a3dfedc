//! What other tools do to a node, in words.

use maintenance_lease::protocol::Now;
use node_keys::{Activity, Finding};
use pod_safety::words::age;

use crate::text::escape;

/// One finding, such as `kured is rebooting it (4m)`.
pub(crate) fn sentence(finding: &Finding, now: Now) -> String {
    let since = finding.since.map(|since| age(now.latest - since));
    let detail = finding.detail.as_deref().map(escape);
    let detail = detail.as_deref();
    let sentence = match finding.activity {
        Activity::AutoscalerDeletes => "cluster-autoscaler is deleting this node",
        Activity::AutoscalerMayDelete => "cluster-autoscaler may delete this node soon",
        Activity::KarpenterDisrupts => "Karpenter is draining it and will delete it",
        Activity::ClusterApiWillReplace => "Cluster API will replace its Machine",
        Activity::KuredReboots => "kured is rebooting it",
        Activity::FlatcarWillReboot => "the Flatcar update operator will reboot it",
        Activity::FlatcarMayReboot => "the Flatcar update operator has allowed its reboot",
        Activity::FlatcarReboots => "the Flatcar update agent is rebooting it",
        Activity::MachineConfigChanges => {
            let state = detail.unwrap_or_default();
            return format!("the machine config operator is changing it (state {state})");
        }
        Activity::MachineConfigDrains => "the machine config operator is draining it",
        Activity::NodeMaintenanceDrains => "medik8s node maintenance is draining it",
        Activity::FenceAgentsPowerOff => "medik8s fence agents are powering it off",
        Activity::Medik8sWorks => {
            let holder = detail.unwrap_or_default();
            return format!("{holder} holds its medik8s Lease");
        }
        Activity::KubeVirtEvacuates => "KubeVirt is moving virtual machines away from it",
        Activity::AwsEnds => {
            let event = detail.unwrap_or_default();
            return format!("its AWS instance will be stopped or replaced ({event})");
        }
        Activity::AksRepairs => "AKS is repairing it",
        Activity::OutOfService => {
            "somebody marked it out of service without `fence`: Kubernetes deletes its pods"
        }
        Activity::Cordoned => {
            let by = detail.map(|by| format!(" by {by}")).unwrap_or_default();
            let ago = since.map(|since| format!(" {since} ago"));
            return format!("cordoned{by}{}", ago.unwrap_or_default());
        }
    };
    match since {
        Some(since) => format!("{sentence} ({since})"),
        None => sentence.to_owned(),
    }
}

/// All of them in one line; `None` if there are none.
pub(crate) fn sentences(findings: &[Finding], now: Now) -> Option<String> {
    let all: Vec<String> = findings
        .iter()
        .map(|finding| sentence(finding, now))
        .collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Why nodes are refused: other tools work on them, or nobody knows (`None`).
pub(crate) fn refusal(nodes: &[(String, Option<Vec<Finding>>)], now: Now) -> String {
    let each = nodes.iter().map(|(node, findings)| {
        let findings = findings.as_deref();
        let unread = || "no permission to read it".to_owned();
        let why = findings.and_then(|findings| sentences(findings, now));
        format!("node/{node}: {}", why.unwrap_or_else(unread))
    });
    let each: Vec<String> = each.collect();
    format!(
        "nothing was locked, because of --strict: {}",
        each.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use maintenance_lease::protocol::{Instant, Span};

    use super::*;

    const NOW: Instant = Instant::from_micros(1_772_366_400_000_000);

    fn finding(activity: Activity, minutes: Option<u32>, detail: Option<&str>) -> Finding {
        Finding {
            activity,
            key: String::new(),
            since: minutes.map(|minutes| NOW - Span::seconds(60 * minutes)),
            detail: detail.map(ToOwned::to_owned),
        }
    }

    #[test]
    fn sentences_have_the_time_and_escape_texts_of_others() {
        use Activity as A;
        for (activity, minutes, detail, expected) in [
            (
                A::AutoscalerDeletes,
                Some(4),
                None,
                "cluster-autoscaler is deleting this node (4m)",
            ),
            (A::KuredReboots, None, None, "kured is rebooting it"),
            (
                A::Cordoned,
                Some(12),
                Some("kubectl-cordon"),
                "cordoned by kubectl-cordon 12m ago",
            ),
            (A::Cordoned, None, None, "cordoned"),
            (
                A::MachineConfigChanges,
                None,
                Some("Work\u{1b}ing"),
                r"the machine config operator is changing it (state Work\u{1b}ing)",
            ),
        ] {
            let finding = finding(activity, minutes, detail);
            assert_eq!(sentence(&finding, Now::at(NOW)), expected);
        }
        let both = [
            finding(A::KuredReboots, None, None),
            finding(A::Cordoned, None, None),
        ];
        let now = Now::at(NOW);
        assert_eq!(
            sentences(&both, now).as_deref(),
            Some("kured is rebooting it; cordoned")
        );
        assert_eq!(sentences(&[], now), None);
    }
}
