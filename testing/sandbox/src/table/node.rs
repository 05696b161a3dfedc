use chrono::{DateTime, Utc};
use serde_json::Value;

use super::column::{AGE, Column, NAME, age_of};
use crate::object;

pub(super) const COLUMNS: &[Column] = &[
    NAME,
    Column::new(
        "Status",
        "Whether the node is ready, and may be scheduled onto.",
    ),
    Column::new("Roles", "The roles that the node's labels give it."),
    AGE,
    Column::new("Version", "The version of the kubelet."),
    Column::wide("Internal-IP", "The first address inside the cluster."),
    Column::wide("External-IP", "The first address outside the cluster."),
    Column::wide("OS-Image", "The operating system, as the kubelet names it."),
    Column::wide("Kernel-Version", "The kernel, as the kubelet names it."),
    Column::wide(
        "Container-Runtime",
        "The container runtime and its version.",
    ),
];

pub(super) fn cells(node: &Value, now: DateTime<Utc>) -> Vec<Value> {
    let info = |key: &str| object::text(node, &format!("/status/nodeInfo/{key}"));
    let known = |text: &str| -> String { if text.is_empty() { "<unknown>" } else { text }.into() };
    let mut kernel = known(info("kernelVersion"));
    if !info("architecture").is_empty() {
        kernel = format!("{kernel} ({})", info("architecture"));
    }
    vec![
        object::name(node).into(),
        status(node).into(),
        roles(node).into(),
        age_of(node, now),
        info("kubeletVersion").into(),
        address(node, "InternalIP").into(),
        address(node, "ExternalIP").into(),
        known(info("osImage")).into(),
        kernel.into(),
        known(info("containerRuntimeVersion")).into(),
    ]
}

fn status(node: &Value) -> String {
    let ready = object::array(node, "/status/conditions")
        .iter()
        .find(|condition| object::text(condition, "/type") == "Ready")
        .map(|condition| object::text(condition, "/status"));
    let mut status = match ready {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if node.pointer("/spec/unschedulable") == Some(&Value::Bool(true)) {
        status.push_str(",SchedulingDisabled");
    }
    status
}

fn roles(node: &Value) -> String {
    let labels = node.pointer("/metadata/labels").and_then(Value::as_object);
    let mut roles: Vec<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.as_str() {
            "kubernetes.io/role" => value.as_str(),
            key => key.strip_prefix("node-role.kubernetes.io/"),
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    if roles.is_empty() {
        "<none>".to_owned()
    } else {
        roles.join(",")
    }
}

fn address<'a>(node: &'a Value, kind: &str) -> &'a str {
    object::array(node, "/status/addresses")
        .iter()
        .find(|address| object::text(address, "/type") == kind)
        .map_or("<none>", |address| object::text(address, "/address"))
}
