use chrono::{DateTime, Utc};
use serde_json::Value;

use super::column::{AGE, Column, NAME, age_of};
use crate::object;

pub(super) const COLUMNS: &[Column] = &[
    NAME,
    Column::new("Ready", "How many of the containers are ready."),
    Column::new("Status", "What the pod is doing."),
    Column::new("Restarts", "How often its containers were restarted."),
    AGE,
    Column::wide("IP", "The address of the pod."),
    Column::wide("Node", "The node that the pod runs on."),
    Column::wide(
        "Nominated Node",
        "The node that is being cleared for the pod.",
    ),
    Column::wide("Readiness Gates", "How many readiness gates are passed."),
];

pub(super) fn cells(pod: &Value, now: DateTime<Utc>) -> Vec<Value> {
    let or_none = |pointer: &str| match object::text(pod, pointer) {
        "" => "<none>",
        text => text,
    };
    let statuses = object::array(pod, "/status/containerStatuses");
    let ready = statuses.iter().filter(|c| c["ready"] == true).count();
    let containers = object::array(pod, "/spec/containers").len();
    let restarts: u64 = statuses
        .iter()
        .filter_map(|container| container["restartCount"].as_u64())
        .sum();
    let status = if object::is_terminating(pod) {
        "Terminating"
    } else {
        match object::text(pod, "/status/reason") {
            "" => object::text(pod, "/status/phase"),
            reason => reason,
        }
    };
    vec![
        object::name(pod).into(),
        format!("{ready}/{containers}").into(),
        status.into(),
        restarts.to_string().into(),
        age_of(pod, now),
        or_none("/status/podIP").into(),
        or_none("/spec/nodeName").into(),
        or_none("/status/nominatedNodeName").into(),
        "<none>".into(),
    ]
}
