//! What another tool does to a node, as data.

use node_keys::Finding;
use schemars::JsonSchema;
use serde::Serialize;

use super::data::Time;

/// What another tool does to a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OtherTool {
    /// What it does, such as `KuredReboots`. Values may be added.
    activity: String,
    /// The key on the Node that shows it, or the field.
    key: String,
    /// Since when, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Time>,
    /// A name or a state that the tool wrote there.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

impl OtherTool {
    pub(super) fn of(finding: &Finding) -> Self {
        Self {
            activity: format!("{:?}", finding.activity),
            key: finding.key.clone(),
            since: finding.since.and_then(Time::of),
            detail: finding.detail.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use node_keys::Activity;

    use super::*;

    #[test]
    fn what_tools_do_keeps_its_names() {
        for (activity, name) in [
            (Activity::AutoscalerDeletes, "AutoscalerDeletes"),
            (Activity::AutoscalerMayDelete, "AutoscalerMayDelete"),
            (Activity::KarpenterDisrupts, "KarpenterDisrupts"),
            (Activity::ClusterApiWillReplace, "ClusterApiWillReplace"),
            (Activity::KuredReboots, "KuredReboots"),
            (Activity::FlatcarWillReboot, "FlatcarWillReboot"),
            (Activity::FlatcarMayReboot, "FlatcarMayReboot"),
            (Activity::FlatcarReboots, "FlatcarReboots"),
            (Activity::MachineConfigChanges, "MachineConfigChanges"),
            (Activity::MachineConfigDrains, "MachineConfigDrains"),
            (Activity::NodeMaintenanceDrains, "NodeMaintenanceDrains"),
            (Activity::FenceAgentsPowerOff, "FenceAgentsPowerOff"),
            (Activity::Medik8sWorks, "Medik8sWorks"),
            (Activity::KubeVirtEvacuates, "KubeVirtEvacuates"),
            (Activity::AwsEnds, "AwsEnds"),
            (Activity::AksRepairs, "AksRepairs"),
            (Activity::OutOfService, "OutOfService"),
            (Activity::Cordoned, "Cordoned"),
        ] {
            let finding = Finding {
                activity,
                key: String::new(),
                since: None,
                detail: None,
            };
            assert_eq!(OtherTool::of(&finding).activity, name);
        }
    }
}
