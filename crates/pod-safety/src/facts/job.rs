//! Whether a Job fails if its pod is deleted by force. Such a pod gets the phase Failed and the condition
//! `DisruptionTarget`, and its Job counts it as failed.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::{
    Job, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule,
};
use k8s_openapi::api::core::v1::Pod;

use super::evidence::{DeletedTogether, NamespaceEvidence};
use super::owner::{Promise, promise_of_job};
use super::pod::PodSnapshot;
use crate::bugs::{self, Bug};
use crate::controller::{Kind, controller, shown_as};

/// The default of a Job's `backoffLimit`.
const BACKOFF_LIMIT: i32 = 6;

/// How often the pods of this index have failed before (`JobIndexFailureCountAnnotation`).
const INDEX_FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";

/// What the failure of a pod does to its Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFailure {
    /// The Job, such as `Job/web`.
    pub job: String,
    /// What fails.
    pub fails: Failing,
}

/// What fails if a pod is counted as failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failing {
    /// The Job. It then deletes its active pods, without this one.
    Job {
        /// The number of its other active pods.
        others: usize,
    },
    /// The index of the pod. The Job never runs it again.
    Index,
}

/// Those of `pods` that are deleted together, by the uid of their controller.
pub(crate) fn deleted_together(pods: &[Pod]) -> BTreeMap<String, DeletedTogether> {
    let mut all: BTreeMap<String, DeletedTogether> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| PodSnapshot::of(pod).job_waits) {
        if let Some(owner) = controller(&pod.metadata) {
            let together = all.entry(owner.uid.clone()).or_default();
            together.pods += 1;
            together.active += usize::from(pod.metadata.deletion_timestamp.is_none());
        }
    }
    all
}

/// What fails if `pod` is deleted by force, with these other pods; `None` if nothing does. A Job that does not wait for the phase of
/// its pods counts a pod as soon as it is terminating, and a Job that is ending counts no more.
pub(super) fn failure(
    pod: &Pod,
    together: &BTreeMap<String, DeletedTogether>,
    namespace: &NamespaceEvidence,
) -> Option<JobFailure> {
    let reference = controller(&pod.metadata).filter(|owner| Kind::of(owner) == Kind::Job)?;
    // If the Jobs could not be read, the check `owner` reports it.
    let mut jobs = namespace.jobs.value()?.iter();
    let job = jobs.find(|job| job.metadata.uid.as_deref() == Some(&*reference.uid))?;
    let counts = PodSnapshot::of(pod).job_waits && promise_of_job(job) == Promise::NoneBeforeTheEnd;
    let fails = counts
        .then(|| failing(pod, *together.get(&reference.uid)?, job))
        .flatten()?;
    Some(JobFailure {
        job: shown_as(reference),
        fails,
    })
}

/// Same rules as `syncJob` and `isIndexFailed` of the job controller.
fn failing(pod: &Pod, together: DeletedTogether, job: &Job) -> Option<Failing> {
    let (spec, status) = (job.spec.as_ref()?, job.status.as_ref());
    let number = |count: Option<i32>| usize::try_from(count.unwrap_or(0)).unwrap_or(0);
    let active = number(status.and_then(|status| status.active));
    let others = active.saturating_sub(together.active);
    let rules = { spec.pod_failure_policy.iter() }.flat_map(|policy| &policy.rules);
    let mut matching = rules.filter(|rule| applies(rule, pod));
    let action = matching.next().map(|rule| &*rule.action);
    if action == Some("FailJob") {
        return Some(Failing::Job { others });
    }
    if action == Some("Ignore") || bugs::active(Bug::JobForgivesDeletion) {
        return None;
    }
    let failed = number(status.and_then(|status| status.failed)) + together.pods;
    if failed > number(Some(spec.backoff_limit.unwrap_or(BACKOFF_LIMIT))) {
        return Some(Failing::Job { others });
    }
    let limit = spec.backoff_limit_per_index?;
    let annotations = pod.metadata.annotations.iter().flatten();
    let mut failures = annotations.filter(|(key, _)| *key == INDEX_FAILURES);
    let failures = failures.next().and_then(|(_, count)| count.parse().ok());
    if action != Some("FailIndex") && failures.unwrap_or(0) < limit {
        return None;
    }
    let indexes = status.and_then(|status| status.failed_indexes.as_deref());
    let is_over = { spec.max_failed_indexes }
        .is_some_and(|most| indexes_in(indexes.unwrap_or_default()) >= number(Some(most)));
    Some(match is_over {
        true => Failing::Job { others },
        false => Failing::Index,
    })
}

/// The number of indexes in a list such as `1,3-5`.
fn indexes_in(list: &str) -> usize {
    let intervals = list.split(',').filter(|interval| !interval.is_empty());
    let count = |interval: &str| {
        let (first, last) = interval.split_once('-').unwrap_or((interval, interval));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        Some((last + 1).saturating_sub(first))
    };
    intervals.filter_map(count).sum()
}

/// Whether a rule of a failure policy applies to `pod` once it is marked as failed and disrupted
/// (`matchPodFailurePolicy`).
fn applies(rule: &PodFailurePolicyRule, pod: &Pod) -> bool {
    if let Some(requirement) = &rule.on_exit_codes {
        return has_exited(pod, requirement);
    }
    let status = pod.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_deref());
    let conditions = conditions.unwrap_or_default().iter();
    let others = conditions.filter(|one| one.type_ != "DisruptionTarget");
    let mut conditions: Vec<(&str, &str)> = others.map(|one| (&*one.type_, &*one.status)).collect();
    conditions.push(("DisruptionTarget", "True"));
    let mut patterns = rule.on_pod_conditions.iter().flatten();
    patterns.any(|one| {
        let status = one.status.as_deref().unwrap_or("True");
        conditions.contains(&(&*one.type_, status))
    })
}

/// Whether a container of `pod` has failed with such an exit code.
fn has_exited(pod: &Pod, requirement: &PodFailurePolicyOnExitCodesRequirement) -> bool {
    let status = pod.status.as_ref();
    let containers = status.and_then(|status| status.container_statuses.as_deref());
    let init = status.and_then(|status| status.init_container_statuses.as_deref());
    let all = [containers, init].into_iter().flatten().flatten();
    let name = requirement.container_name.as_ref();
    let mut codes = all
        .filter(|container| name.is_none_or(|name| *name == container.name))
        .filter_map(|container| Some(container.state.as_ref()?.terminated.as_ref()?.exit_code));
    codes.any(|code| {
        let is_listed = requirement.values.contains(&code);
        code != 0
            && match &*requirement.operator {
                "In" => is_listed,
                "NotIn" => !is_listed,
                _ => false,
            }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::constants::JOB_TRACKING;
    use crate::known::Known;

    /// What fails if `count` pods with this change are deleted, whose Job has this spec and status.
    fn fails_if(count: usize, spec: &Value, status: &Value, change: &Value) -> Option<Failing> {
        let mut pod = json!({
            "metadata": {
                "finalizers": [JOB_TRACKING], "deletionTimestamp": "2026-01-02T03:04:05Z",
                "ownerReferences": [{
                    "apiVersion": "batch/v1", "kind": "Job", "name": "web", "uid": "j-1",
                    "controller": true,
                }],
            },
            "status": {"phase": "Running"},
        });
        for (part, fields) in change.as_object().expect("a change") {
            let fields = fields.as_object().expect("fields").clone();
            pod[part].as_object_mut().expect("fields").extend(fields);
        }
        let mut job = json!({
            "metadata": {"uid": "j-1"},
            "spec": {"template": {}, "podReplacementPolicy": "Failed"}, "status": status,
        });
        let fields = spec.as_object().expect("fields").clone();
        job["spec"].as_object_mut().expect("fields").extend(fields);
        let namespace = NamespaceEvidence {
            jobs: Known::Yes(serde_json::from_value(json!([job])).expect("a Job")),
            ..NamespaceEvidence::default()
        };
        let pod: Pod = serde_json::from_value(pod).expect("a pod");
        let together = deleted_together(&vec![pod.clone(); count]);
        failure(&pod, &together, &namespace).map(|failure| failure.fails)
    }

    fn fails(spec: &Value, status: &Value, change: &Value) -> Option<Failing> {
        fails_if(1, spec, status, change)
    }

    #[test]
    fn pods_that_are_deleted_together_are_counted_together() {
        let (limit, none) = (json!({"backoffLimit": 2}), json!({}));
        let status = json!({"failed": 0, "active": 5});
        assert_eq!(fails_if(2, &limit, &status, &none), None);
        let others = |others| Some(Failing::Job { others });
        assert_eq!(fails_if(3, &limit, &status, &none), others(5));
        let running = json!({"metadata": {"deletionTimestamp": null}});
        assert_eq!(fails_if(3, &limit, &status, &running), others(2));
    }

    #[test]
    fn a_job_fails_if_the_pod_is_counted_and_the_limit_is_reached() {
        let job = Some(Failing::Job { others: 2 });
        let status = |failed: i32| json!({"failed": failed, "active": 2});
        let limit = |limit: i32| json!({"backoffLimit": limit});
        let none = json!({});
        assert_eq!(fails(&limit(0), &status(0), &none), job);
        assert_eq!(fails(&limit(2), &status(1), &none), None);
        assert_eq!(fails(&limit(2), &status(2), &none), job);
        assert_eq!(fails(&none, &status(5), &none), None);
        assert_eq!(fails(&none, &status(6), &none), job);
        // The pod itself is one of the active pods.
        let running = json!({"metadata": {"deletionTimestamp": null}});
        let one = Some(Failing::Job { others: 1 });
        assert_eq!(fails(&limit(0), &status(0), &running), one);
        // It was counted before.
        let loose = json!({"backoffLimit": 0, "podReplacementPolicy": "TerminatingOrFailed"});
        assert_eq!(fails(&loose, &status(0), &none), None);
        let counted = json!({"metadata": {"finalizers": []}});
        assert_eq!(fails(&limit(0), &status(0), &counted), None);
        let failed = json!({"status": {"phase": "Failed"}});
        assert_eq!(fails(&limit(0), &status(0), &failed), None);
    }

    #[test]
    fn the_first_rule_of_its_policy_that_applies_decides() {
        let job = Some(Failing::Job { others: 0 });
        let disrupted = |action: &str| {
            let condition = json!({"type": "DisruptionTarget", "status": "True"});
            json!({"action": action, "onPodConditions": [condition]})
        };
        let exited = |operator: &str, code: i32| {
            let codes = json!({"operator": operator, "values": [code]});
            json!({"action": "FailJob", "onExitCodes": codes})
        };
        let ended = |code: i32| {
            let state = json!({"terminated": {"exitCode": code}});
            let container = json!({
                "name": "main", "image": "none", "imageID": "", "ready": false, "restartCount": 0,
                "state": state,
            });
            json!({"status": {"containerStatuses": [container]}})
        };
        let other =
            json!({"action": "FailJob", "onPodConditions": [{"type": "Ready", "status": "True"}]});
        let none = json!({});
        for (rules, change, limit, expected) in [
            (json!([disrupted("FailJob")]), &none, 9, job),
            (json!([disrupted("Ignore")]), &none, 0, None),
            (json!([disrupted("Count")]), &none, 0, job),
            (json!([disrupted("Count")]), &none, 1, None),
            (
                json!([disrupted("Ignore"), disrupted("FailJob")]),
                &none,
                9,
                None,
            ),
            (json!([other, disrupted("Ignore")]), &none, 0, None),
            (
                json!([exited("In", 3), disrupted("Ignore")]),
                &ended(3),
                9,
                job,
            ),
            (
                json!([exited("In", 3), disrupted("Ignore")]),
                &ended(4),
                9,
                None,
            ),
            (
                json!([exited("NotIn", 3), disrupted("Ignore")]),
                &ended(4),
                9,
                job,
            ),
            (
                json!([exited("NotIn", 3), disrupted("Ignore")]),
                &ended(0),
                9,
                None,
            ),
        ] {
            let spec = json!({"backoffLimit": limit, "podFailurePolicy": {"rules": rules}});
            assert_eq!(fails(&spec, &none, change), expected, "{rules} {change}");
        }
    }

    #[test]
    fn an_index_fails_by_its_own_limit() {
        let (job, index) = (Some(Failing::Job { others: 0 }), Some(Failing::Index));
        let failed = |count: &str| json!({"metadata": {"annotations": {INDEX_FAILURES: count}}});
        let spec = |most: Option<i32>| {
            json!({
                "backoffLimit": 1000, "backoffLimitPerIndex": 1, "completions": 9,
                "maxFailedIndexes": most,
            })
        };
        let none = json!({});
        assert_eq!(fails(&spec(None), &none, &none), None);
        assert_eq!(fails(&spec(None), &none, &failed("0")), None);
        assert_eq!(fails(&spec(None), &none, &failed("1")), index);
        let before = json!({"failedIndexes": "1,3-5"});
        assert_eq!(fails(&spec(Some(5)), &before, &failed("1")), index);
        assert_eq!(fails(&spec(Some(4)), &before, &failed("1")), job);
        let rules = json!([{
            "action": "FailIndex", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
        }]);
        let mut policy = spec(None);
        policy["podFailurePolicy"] = json!({"rules": rules});
        assert_eq!(fails(&policy, &none, &none), index);
    }
}
