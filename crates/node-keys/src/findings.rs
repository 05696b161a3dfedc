//! What other tools are doing to a node, or are about to do, from its Node alone.
//!
//! [`SIGNS`] has one entry for each key. To add a tool, add an entry, an [`Activity`], its sentence in the plugin, and
//! an example to the test.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use k8s_openapi::jiff::Timestamp;
use maintenance_lease::MEDIK8S_LEASES;
use maintenance_lease::protocol::{Instant, Now, Span, has_expired};

use crate::managed_fields::{is_only_ours, is_ours, owners};

/// What a tool does to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activity {
    /// cluster-autoscaler deletes it. It reads no key any more.
    AutoscalerDeletes,
    /// cluster-autoscaler may delete it soon.
    AutoscalerMayDelete,
    /// Karpenter replaces or deletes it.
    KarpenterDisrupts,
    /// Cluster API is going to replace its Machine, because the template changed.
    ClusterApiWillReplace,
    /// kured reboots it.
    KuredReboots,
    /// The Flatcar update operator wants to reboot it, and waits for the hooks before that.
    FlatcarWillReboot,
    /// The Flatcar update operator allowed its reboot.
    FlatcarMayReboot,
    /// The Flatcar update agent drains and reboots it.
    FlatcarReboots,
    /// The machine config operator of OpenShift changes it. The state is in the detail.
    MachineConfigChanges,
    /// The machine config operator of OpenShift drains it.
    MachineConfigDrains,
    /// medik8s' node maintenance operator drains it.
    NodeMaintenanceDrains,
    /// medik8s' fence agents operator powers it off.
    FenceAgentsPowerOff,
    /// A medik8s operator holds its Lease of the node: the one in the detail.
    Medik8sWorks,
    /// KubeVirt moves its virtual machines away.
    KubeVirtEvacuates,
    /// The termination handler of AWS drains it, because the instance ends. The event is in the detail.
    AwsEnds,
    /// AKS repairs it.
    AksRepairs,
    /// Somebody tainted it as out of service without `fence`, so Kubernetes deletes its pods.
    OutOfService,
    /// It is cordoned. The field manager that did that is in the detail.
    Cordoned,
}

/// Something that a tool does to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What.
    pub activity: Activity,
    /// The key on the Node that shows it, or the field.
    pub key: String,
    /// Since when, if that is known.
    pub since: Option<Instant>,
    /// A text from the Node, by [`Activity`]. It may come from any user.
    pub detail: Option<String>,
}

/// The part of the Node that shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Taint,
    Annotation,
    Label,
}

/// Which values are a sign.
#[derive(Clone, Copy, Debug)]
enum Value {
    Any,
    Is(&'static str),
    /// None of these, and not empty.
    IsNot(&'static [&'static str]),
}

/// What the value tells beside that, and how it is written.
#[derive(Clone, Copy, Debug)]
enum ValueFormat {
    Nothing,
    /// When it began, in seconds since 1970.
    UnixTime,
    /// When it began, as RFC 3339.
    Time,
    Detail,
}

/// A key that shows what a tool does.
struct Sign {
    place: Place,
    /// A key that ends in `/` stands for all keys that begin so.
    key: &'static str,
    value: Value,
    format: ValueFormat,
    activity: Activity,
}

const fn taint(key: &'static str, format: ValueFormat, activity: Activity) -> Sign {
    Sign {
        place: Place::Taint,
        key,
        value: Value::Any,
        format,
        activity,
    }
}

const fn annotation(
    key: &'static str,
    value: Value,
    format: ValueFormat,
    activity: Activity,
) -> Sign {
    Sign {
        place: Place::Annotation,
        key,
        value,
        format,
        activity,
    }
}

/// The states of the machine config operator in which it does nothing.
const MACHINE_CONFIG_IDLE: &[&str] = &["Done"];

/// All known signs.
const SIGNS: &[Sign] = &[
    taint(
        "ToBeDeletedByClusterAutoscaler",
        ValueFormat::UnixTime,
        Activity::AutoscalerDeletes,
    ),
    taint(
        "DeletionCandidateOfClusterAutoscaler",
        ValueFormat::UnixTime,
        Activity::AutoscalerMayDelete,
    ),
    taint(
        "karpenter.sh/disrupted",
        ValueFormat::Nothing,
        Activity::KarpenterDisrupts,
    ),
    taint(
        "node.cluster.x-k8s.io/outdated-revision",
        ValueFormat::Nothing,
        Activity::ClusterApiWillReplace,
    ),
    annotation(
        "weave.works/kured-reboot-in-progress",
        Value::Any,
        ValueFormat::Time,
        Activity::KuredReboots,
    ),
    Sign {
        place: Place::Label,
        key: "flatcar-linux-update.v1.flatcar-linux.net/before-reboot",
        value: Value::Is("true"),
        format: ValueFormat::Nothing,
        activity: Activity::FlatcarWillReboot,
    },
    annotation(
        "flatcar-linux-update.v1.flatcar-linux.net/reboot-ok",
        Value::Is("true"),
        ValueFormat::Nothing,
        Activity::FlatcarMayReboot,
    ),
    annotation(
        "flatcar-linux-update.v1.flatcar-linux.net/reboot-in-progress",
        Value::Is("true"),
        ValueFormat::Nothing,
        Activity::FlatcarReboots,
    ),
    annotation(
        "machineconfiguration.openshift.io/state",
        Value::IsNot(MACHINE_CONFIG_IDLE),
        ValueFormat::Detail,
        Activity::MachineConfigChanges,
    ),
    taint(
        "medik8s.io/drain",
        ValueFormat::Nothing,
        Activity::NodeMaintenanceDrains,
    ),
    taint(
        "remediation.medik8s.io/fence-agents-remediation",
        ValueFormat::Nothing,
        Activity::FenceAgentsPowerOff,
    ),
    taint(
        "kubevirt.io/drain",
        ValueFormat::Nothing,
        Activity::KubeVirtEvacuates,
    ),
    taint(
        "aws-node-termination-handler/",
        ValueFormat::Detail,
        Activity::AwsEnds,
    ),
    taint(
        "remediator.aks.microsoft.com/unschedulable",
        ValueFormat::Nothing,
        Activity::AksRepairs,
    ),
    taint(OUT_OF_SERVICE, ValueFormat::Nothing, Activity::OutOfService),
];

const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// The annotation with the record of a fencing, which adds that taint itself.
const FENCED: &str = "kubectl-maint.dev/fenced";

impl Sign {
    fn has(&self, key: &str) -> bool {
        match self.key.strip_suffix('/') {
            Some(_) => key.starts_with(self.key),
            None => key == self.key,
        }
    }

    fn accepts(&self, value: &str) -> bool {
        match self.value {
            Value::Any => true,
            Value::Is(wanted) => value == wanted,
            Value::IsNot(idle) => !value.is_empty() && !idle.contains(&value),
        }
    }

    fn finding(&self, key: &str, value: &str) -> Finding {
        let detail = match self.format {
            ValueFormat::Detail if self.key.ends_with('/') => key.strip_prefix(self.key),
            ValueFormat::Detail => Some(value),
            ValueFormat::Nothing | ValueFormat::UnixTime | ValueFormat::Time => None,
        };
        Finding {
            activity: self.activity,
            key: key.to_owned(),
            since: match self.format {
                ValueFormat::UnixTime => value.parse().ok().and_then(unix_time),
                ValueFormat::Time => value.parse().ok().map(instant),
                ValueFormat::Nothing | ValueFormat::Detail => None,
            },
            detail: detail.map(ToOwned::to_owned),
        }
    }
}

/// What other tools are doing to `node`, in the order of the table. Its cordon comes last, unless it is part of the
/// lock.
#[must_use]
pub fn findings(node: &Node) -> Vec<Finding> {
    let metadata = &node.metadata;
    let spec = node.spec.as_ref();
    let taints = spec.and_then(|spec| spec.taints.as_deref());
    let taints = taints.unwrap_or_default();
    let pairs = |place| -> Vec<(&str, &str)> {
        let map = match place {
            Place::Taint => return taints.iter().map(pair).collect(),
            Place::Annotation => &metadata.annotations,
            Place::Label => &metadata.labels,
        };
        let pairs = map.iter().flatten();
        pairs
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect()
    };
    let mut findings: Vec<Finding> = Vec::new();
    for sign in SIGNS {
        let mut of_sign = pairs(sign.place).into_iter();
        let found = of_sign.find(|(key, value)| sign.has(key) && sign.accepts(value));
        findings.extend(found.map(|(key, value)| sign.finding(key, value)));
    }
    let annotations = metadata.annotations.as_ref();
    if annotations.is_some_and(|all| all.contains_key(FENCED)) {
        findings.retain(|finding| finding.activity != Activity::OutOfService);
    }
    findings.extend(machine_config_drain(node));
    findings.extend(cordon(node));
    findings
}

fn pair(taint: &Taint) -> (&str, &str) {
    (&taint.key, taint.value.as_deref().unwrap_or_default())
}

/// The machine config operator asks itself for a drain, and records the last one that it did.
fn machine_config_drain(node: &Node) -> Option<Finding> {
    const WANTED: &str = "machineconfiguration.openshift.io/desiredDrain";
    const APPLIED: &str = "machineconfiguration.openshift.io/lastAppliedDrain";
    let annotations = node.metadata.annotations.as_ref()?;
    let wanted = annotations.get(WANTED)?;
    let is_drain = wanted.starts_with("drain-") && annotations.get(APPLIED) != Some(wanted);
    is_drain.then(|| Finding {
        activity: Activity::MachineConfigDrains,
        key: WANTED.to_owned(),
        since: None,
        detail: None,
    })
}

/// The cordon of `node`, unless only locks have set it.
fn cordon(node: &Node) -> Option<Finding> {
    node.spec.as_ref()?.unschedulable.filter(|&is_on| is_on)?;
    let path = ["spec", "unschedulable"];
    if is_only_ours(&node.metadata, &path) {
        return None;
    }
    // The server's name for those that it did not record.
    let is_known = |entry: &&ManagedFieldsEntry| {
        !is_ours(entry) && entry.manager.as_deref() != Some("before-first-apply")
    };
    let owner = owners(&node.metadata, &path).find(is_known);
    Some(Finding {
        activity: Activity::Cordoned,
        key: "spec.unschedulable".to_owned(),
        since: owner
            .and_then(|entry| entry.time.as_ref())
            .map(|time| instant(time.0)),
        detail: owner.and_then(|entry| entry.manager.clone()),
    })
}

/// The path of medik8s' Lease for a node. It may not exist, or be unreadable.
#[must_use]
pub fn medik8s_lease_path(node: &str) -> String {
    let name = format!("node-{node}");
    let name = maintenance_lease::escape(&name);
    format!("/apis/coordination.k8s.io/v1/namespaces/{MEDIK8S_LEASES}/leases/{name}")
}

/// What medik8s' Lease of a node says, while it is valid.
#[must_use]
pub fn medik8s_finding(lease: &Lease, now: Now) -> Option<Finding> {
    let spec = lease.spec.as_ref()?;
    let holder = spec.holder_identity.clone();
    let holder = holder.filter(|holder| !holder.is_empty())?;
    let renewed = spec.renew_time.as_ref().or(spec.acquire_time.as_ref())?;
    let seconds = u32::try_from(spec.lease_duration_seconds.unwrap_or(0)).unwrap_or(0);
    let has_expired = has_expired(instant(renewed.0) + Span::seconds(seconds), now);
    (!has_expired).then(|| Finding {
        activity: Activity::Medik8sWorks,
        key: MEDIK8S_LEASES.to_owned(),
        since: spec.acquire_time.as_ref().map(|time| instant(time.0)),
        detail: Some(holder),
    })
}

fn instant(time: Timestamp) -> Instant {
    Instant::from_micros(time.as_microsecond())
}

fn unix_time(seconds: i64) -> Option<Instant> {
    let time = Timestamp::from_second(seconds).ok()?;
    Some(instant(time))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::managed_fields::FIELD_MANAGER;

    /// 2026-03-01T12:00:00Z
    const NOON: Instant = Instant::from_micros(1_772_366_400_000_000);

    fn node(json: &Json) -> Node {
        serde_json::from_value(json.clone()).expect("a Node")
    }

    fn tainted(key: &str, value: &str) -> Json {
        json!({"spec": {"taints": [
            {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},
            {"key": key, "value": value, "effect": "NoSchedule"},
        ]}})
    }

    fn annotated(key: &str, value: &str) -> Json {
        json!({"metadata": {"annotations": {key: value, "example.com/a": "b"}}})
    }

    /// One example for each entry of the table, as the tool writes it.
    #[test]
    fn every_sign_is_found() {
        use Activity as A;
        const FLATCAR: &str = "flatcar-linux-update.v1.flatcar-linux.net";
        let before = format!("{FLATCAR}/before-reboot");
        let cases = [
            (
                tainted("ToBeDeletedByClusterAutoscaler", "1772366400"),
                A::AutoscalerDeletes,
                Some(NOON),
                None,
            ),
            (
                tainted("DeletionCandidateOfClusterAutoscaler", "1772366400"),
                A::AutoscalerMayDelete,
                Some(NOON),
                None,
            ),
            (
                tainted("karpenter.sh/disrupted", ""),
                A::KarpenterDisrupts,
                None,
                None,
            ),
            (
                tainted("node.cluster.x-k8s.io/outdated-revision", ""),
                A::ClusterApiWillReplace,
                None,
                None,
            ),
            (
                annotated(
                    "weave.works/kured-reboot-in-progress",
                    "2026-03-01T12:00:00Z",
                ),
                A::KuredReboots,
                Some(NOON),
                None,
            ),
            (
                json!({"metadata": {"labels": {before: "true"}}}),
                A::FlatcarWillReboot,
                None,
                None,
            ),
            (
                annotated(&format!("{FLATCAR}/reboot-ok"), "true"),
                A::FlatcarMayReboot,
                None,
                None,
            ),
            (
                annotated(&format!("{FLATCAR}/reboot-in-progress"), "true"),
                A::FlatcarReboots,
                None,
                None,
            ),
            (
                annotated("machineconfiguration.openshift.io/state", "Working"),
                A::MachineConfigChanges,
                None,
                Some("Working"),
            ),
            (
                annotated(
                    "machineconfiguration.openshift.io/desiredDrain",
                    "drain-rendered-1",
                ),
                A::MachineConfigDrains,
                None,
                None,
            ),
            (
                tainted("medik8s.io/drain", ""),
                A::NodeMaintenanceDrains,
                None,
                None,
            ),
            (
                tainted("remediation.medik8s.io/fence-agents-remediation", ""),
                A::FenceAgentsPowerOff,
                None,
                None,
            ),
            (
                tainted("kubevirt.io/drain", "draining"),
                A::KubeVirtEvacuates,
                None,
                None,
            ),
            (
                tainted("aws-node-termination-handler/spot-itn", "spot-itn-1"),
                A::AwsEnds,
                None,
                Some("spot-itn"),
            ),
            (
                tainted("remediator.aks.microsoft.com/unschedulable", ""),
                A::AksRepairs,
                None,
                None,
            ),
            (
                tainted(OUT_OF_SERVICE, "nodeshutdown"),
                A::OutOfService,
                None,
                None,
            ),
        ];
        for (json, activity, since, detail) in &cases {
            let found = findings(&node(json));
            let [finding] = &found[..] else {
                panic!("{json}: {found:?}");
            };
            assert_eq!(finding.activity, *activity, "{json}");
            assert_eq!(finding.since, *since, "{json}");
            assert_eq!(finding.detail.as_deref(), *detail, "{json}");
            assert!(json.to_string().contains(&finding.key), "{finding:?}");
        }
        let shown = |sign: &&Sign| cases.iter().any(|case| case.1 == sign.activity);
        assert_eq!(SIGNS.iter().filter(shown).count(), SIGNS.len());
    }

    #[test]
    fn other_values_are_no_signs() {
        const FLATCAR: &str = "flatcar-linux-update.v1.flatcar-linux.net";
        for json in [
            json!({}),
            annotated("machineconfiguration.openshift.io/state", "Done"),
            annotated(
                "machineconfiguration.openshift.io/desiredDrain",
                "uncordon-rendered-1",
            ),
            json!({"metadata": {"annotations": {
                "machineconfiguration.openshift.io/desiredDrain": "drain-rendered-1",
                "machineconfiguration.openshift.io/lastAppliedDrain": "drain-rendered-1",
            }}}),
            annotated(&format!("{FLATCAR}/reboot-ok"), "false"),
            annotated(&format!("{FLATCAR}/reboot-in-progress"), "false"),
            // A label's key on a taint, and the other way round.
            tainted("weave.works/kured-reboot-in-progress", "x"),
            annotated("ToBeDeletedByClusterAutoscaler", "1772366400"),
            json!({"spec": {"unschedulable": false}}),
        ] {
            assert_eq!(findings(&node(&json)), [], "{json}");
        }
    }

    #[test]
    fn the_taint_of_a_fencing_is_no_sign() {
        let mut fenced = tainted(OUT_OF_SERVICE, "nodeshutdown");
        fenced["metadata"] = json!({"annotations": {FENCED: "{}"}});
        assert_eq!(findings(&node(&fenced)), []);
    }

    #[test]
    fn a_time_that_cannot_be_read_is_left_out() {
        for value in ["soon", "", "99999999999999999"] {
            let found = findings(&node(&tainted("ToBeDeletedByClusterAutoscaler", value)));
            assert_eq!(found[0].since, None, "{value}");
        }
    }

    #[test]
    fn a_cordon_names_its_manager_unless_it_is_ours() {
        let cordoned = |managers: &[&str]| {
            let entries = managers.iter().map(|manager| {
                let is_ours = *manager == FIELD_MANAGER;
                json!({
                    "manager": manager, "operation": if is_ours { "Apply" } else { "Update" },
                    "time": "2026-03-01T12:00:00Z",
                    "fieldsV1": {"f:spec": {"f:unschedulable": {}}},
                })
            });
            let entries: Vec<Json> = entries.collect();
            let json =
                json!({"metadata": {"managedFields": entries}, "spec": {"unschedulable": true}});
            let mut found = findings(&node(&json));
            assert!(found.len() < 2);
            let finding = found.pop()?;
            assert_eq!(finding.activity, Activity::Cordoned);
            Some((finding.detail, finding.since))
        };
        let kubectl = Some((Some("kubectl-cordon".to_owned()), Some(NOON)));
        assert_eq!(cordoned(&["kubectl-cordon"]), kubectl);
        assert_eq!(cordoned(&[FIELD_MANAGER, "kubectl-cordon"]), kubectl);
        assert_eq!(cordoned(&[FIELD_MANAGER]), None);
        assert_eq!(cordoned(&[]), Some((None, None)));
        assert_eq!(cordoned(&["before-first-apply"]), Some((None, None)));
    }

    #[test]
    fn a_lease_of_medik8s_counts_while_it_is_valid() {
        let lease = |holder: &str, seconds: i32| -> Lease {
            serde_json::from_value(json!({"spec": {
                "holderIdentity": holder,
                "acquireTime": "2026-03-01T11:00:00.000000Z",
                "renewTime": "2026-03-01T12:00:00.000000Z",
                "leaseDurationSeconds": seconds,
            }}))
            .expect("a Lease")
        };
        let now = Now::at(NOON + Span::seconds(60));
        let found = medik8s_finding(&lease("node-healthcheck", 600), now).expect("a finding");
        assert_eq!(found.detail.as_deref(), Some("node-healthcheck"));
        assert_eq!(found.since, Some(NOON - Span::seconds(3600)));
        assert_eq!(medik8s_finding(&lease("node-healthcheck", 30), now), None);
        assert_eq!(medik8s_finding(&lease("", 600), now), None);
        let path = medik8s_lease_path("worker-1");
        assert!(path.ends_with("/namespaces/medik8s-leases/leases/node-worker-1"));
    }
}
