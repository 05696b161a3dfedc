//! Opt-outs: what tells other tools to leave a node alone, on the Node, on its Machine or in its medik8s Lease.
//!
//! [`OPT_OUTS`] has one entry for each tool. To add a tool, add an entry and an example to the test.

use std::collections::BTreeMap;
use std::str::FromStr;

use k8s_openapi::api::core::v1::Node;

use crate::machine::{CLUSTER_API, MachineApi, MachineRef, OPENSHIFT};
use crate::machine_record::MachineRecord;
use crate::managed_fields::owners;
use crate::node_keys::{CORDON, NodeKeys, SET, annotation, is_own_entry, own_entry};

/// What tells a tool to leave a node alone.
#[derive(Debug)]
struct OptOut {
    /// The tool, as `--opt-outs` names it.
    tool: &'static str,
    place: Place,
}

/// Where a tool looks.
#[derive(Debug)]
enum Place {
    /// A key on the Node.
    Node {
        /// A label; otherwise an annotation.
        is_label: bool,
        key: &'static str,
        value: &'static str,
        /// The beginning of the keys that the tool sets on its Nodes; `None`: it sets none, so nobody can know.
        prefix: Option<&'static str>,
    },
    /// The Machine that the Node belongs to.
    Machine(&'static MachineApi),
    /// The medik8s Lease of the Node. Only who names the tool takes it: it is another lock, and nobody else can work on the
    /// node until it is released.
    Medik8sLease,
}

/// The opt-outs that are known.
const OPT_OUTS: [OptOut; 7] = [
    OptOut {
        tool: "cluster-autoscaler",
        place: Place::Node {
            is_label: false,
            key: "cluster-autoscaler.kubernetes.io/scale-down-disabled",
            value: "true",
            prefix: None,
        },
    },
    OptOut {
        tool: "karpenter",
        place: Place::Node {
            is_label: false,
            key: "karpenter.sh/do-not-disrupt",
            value: "true",
            prefix: Some("karpenter.sh/"),
        },
    },
    OptOut {
        tool: "node-healthcheck",
        place: Place::Node {
            is_label: true,
            key: "remediation.medik8s.io/exclude-from-remediation",
            value: "true",
            prefix: None,
        },
    },
    OptOut {
        tool: "fluo",
        place: Place::Node {
            is_label: false,
            key: "flatcar-linux-update.v1.flatcar-linux.net/reboot-paused",
            value: "true",
            prefix: Some("flatcar-linux-update.v1.flatcar-linux.net/"),
        },
    },
    OptOut {
        tool: CLUSTER_API.tool,
        place: Place::Machine(&CLUSTER_API),
    },
    OptOut {
        tool: OPENSHIFT.tool,
        place: Place::Machine(&OPENSHIFT),
    },
    OptOut {
        tool: MEDIK8S,
        place: Place::Medik8sLease,
    },
];

/// The tool whose opt-out is a Lease.
pub const MEDIK8S: &str = "medik8s";

/// Which opt-outs to set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OptOuts {
    /// None.
    None,
    /// Those of the tools that work on the Node, and of the tools of which nobody can know.
    #[default]
    Auto,
    /// Those of these tools.
    Of(Vec<&'static str>),
}

/// A tool without a known opt-out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTool(pub String);

impl FromStr for OptOuts {
    type Err = UnknownTool;

    fn from_str(text: &str) -> Result<Self, UnknownTool> {
        let known = |name: &str| {
            let mut tools = tools();
            let tool = tools.find(|tool| *tool == name);
            tool.ok_or_else(|| UnknownTool(name.to_owned()))
        };
        match text {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::None),
            list => list
                .split(',')
                .map(known)
                .collect::<Result<_, _>>()
                .map(Self::Of),
        }
    }
}

/// Whether a hold has set this key, or [`CORDON`], on the Node or on the one that it is a copy of. A user who can annotate
/// the Node may have edited the list, so only the keys that locks set count.
pub(crate) fn is_listed(node: &Node, key: &str) -> bool {
    let is_ours =
        |opt_out: &OptOut| matches!(opt_out.place, Place::Node { key: ours, .. } if ours == key);
    let listed = annotation(&node.metadata, SET).into_iter();
    (key == CORDON || OPT_OUTS.iter().any(is_ours))
        && listed.flat_map(|set| set.split(',')).any(|set| set == key)
}

/// Whether a lock has set this key in `map`, which is `labels` or `annotations`, and nobody has changed it since. A copy
/// has no entry of ours, so there the list and the value count.
pub(crate) fn is_set_by_lock(node: &Node, map: &str, key: &str) -> bool {
    let metadata = &node.metadata;
    let found = match map {
        "labels" => &metadata.labels,
        _ => &metadata.annotations,
    };
    let found = found.as_ref().and_then(|found| found.get(key));
    let has_our_value = |opt_out: &OptOut| {
        matches!(opt_out.place, Place::Node { key: ours, value, .. }
            if ours == key && found.is_some_and(|found| found == value))
    };
    is_listed(node, key)
        && OPT_OUTS.iter().any(has_our_value)
        && (own_entry(metadata).is_none()
            || owners(metadata, &["metadata", map, key]).any(is_own_entry))
}

/// Whether the cordon of `node` is that of a lock: a user may have uncordoned and cordoned it since. A copy has no entry of
/// ours, so there the list counts.
pub(crate) fn owns_cordon(node: &Node) -> bool {
    match own_entry(&node.metadata) {
        Some(own) => own["f:spec"]["f:unschedulable"].is_object(),
        None => is_listed(node, CORDON),
    }
}

impl OptOuts {
    /// The tools among these that were named, have opt-outs on Machines, and are not that of the node's `machine`.
    #[must_use]
    pub fn without_machine(&self, machine: Option<&MachineRef>) -> Vec<&'static str> {
        let Self::Of(named) = self else {
            return Vec::new();
        };
        let is_missing = |opt_out: &&OptOut| match opt_out.place {
            Place::Machine(api) => {
                named.contains(&opt_out.tool) && machine.is_none_or(|machine| machine.api != api)
            }
            Place::Node { .. } | Place::Medik8sLease => false,
        };
        OPT_OUTS
            .iter()
            .filter(is_missing)
            .map(|it| it.tool)
            .collect()
    }

    /// The keys for `node`.
    #[must_use]
    pub fn keys(&self, node: &Node) -> NodeKeys {
        let mut keys = NodeKeys::default();
        for OptOut { tool, place } in &OPT_OUTS {
            let Place::Node {
                is_label,
                key,
                value,
                prefix,
            } = *place
            else {
                continue;
            };
            let shows = || prefix.is_none_or(|prefix| has_key(node, prefix));
            if self.wants(tool, shows) {
                let map = match is_label {
                    true => &mut keys.labels,
                    false => &mut keys.annotations,
                };
                map.insert(key.to_owned(), value.to_owned());
            }
        }
        keys
    }

    /// Whether opt-outs are to be set on this Machine.
    #[must_use]
    pub fn include(&self, machine: &MachineRef) -> bool {
        self.wants(machine.api.tool, || true)
    }

    /// Whether they name a tool that reads them on other objects than the Node.
    #[must_use]
    pub fn name_other_objects(&self) -> bool {
        self.include_medik8s_lease() || !self.without_machine(None).is_empty()
    }

    /// Whether the lock is to hold the medik8s Lease of its Node.
    #[must_use]
    pub fn include_medik8s_lease(&self) -> bool {
        self.wants(MEDIK8S, || false)
    }

    fn wants(&self, tool: &str, shows: impl FnOnce() -> bool) -> bool {
        match self {
            Self::None => false,
            Self::Auto => shows(),
            Self::Of(tools) => tools.contains(&tool),
        }
    }
}

impl NodeKeys {
    /// The tools whose opt-outs are among these keys.
    pub fn opted_out_of(&self) -> impl Iterator<Item = &'static str> {
        let is_set = |opt_out: &&OptOut| match opt_out.place {
            Place::Node { key, .. } => {
                self.labels.contains_key(key) || self.annotations.contains_key(key)
            }
            Place::Machine(_) | Place::Medik8sLease => false,
        };
        let set = OPT_OUTS.iter().filter(is_set);
        set.map(|opt_out| opt_out.tool)
    }
}

/// The names of the tools that have opt-outs.
pub fn tools() -> impl Iterator<Item = &'static str> {
    OPT_OUTS.iter().map(|opt_out| opt_out.tool)
}

/// The Machine that `node` belongs to, if it names one. No key on a Node stops Cluster API or the Machine API of OpenShift:
/// they read Machines, which may be in another cluster.
#[must_use]
pub fn machine_of(node: &Node) -> Option<MachineRef> {
    apis().find_map(|api| api.machine_of(node))
}

impl MachineRecord {
    /// The Machine; `None`: an API that this release does not know.
    #[must_use]
    pub fn machine(&self) -> Option<MachineRef> {
        let api = apis().find(|api| api.tool == self.tool)?;
        Some(MachineRef {
            api,
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            provider_id: None,
        })
    }
}

fn apis() -> impl Iterator<Item = &'static MachineApi> {
    OPT_OUTS.iter().filter_map(|opt_out| match opt_out.place {
        Place::Machine(api) => Some(api),
        Place::Node { .. } | Place::Medik8sLease => None,
    })
}

/// Whether the Node has a label or annotation with this prefix, other than our opt-outs.
fn has_key(node: &Node, prefix: &str) -> bool {
    let maps = [&node.metadata.labels, &node.metadata.annotations];
    let is_own = |found: &str| {
        let mut all = OPT_OUTS.iter();
        all.any(|opt_out| matches!(opt_out.place, Place::Node { key, .. } if key == found))
    };
    let mut keys = maps.into_iter().flatten().flat_map(BTreeMap::keys);
    keys.any(|key| key.starts_with(prefix) && !is_own(key))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(metadata: &Value) -> Node {
        serde_json::from_value(json!({"metadata": metadata})).expect("a Node")
    }

    fn names(keys: &NodeKeys) -> Vec<&str> {
        let all = keys.annotations.keys().chain(keys.labels.keys());
        all.map(String::as_str).collect()
    }

    const AUTOSCALER: &str = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
    const KARPENTER: &str = "karpenter.sh/do-not-disrupt";
    const EXCLUDE: &str = "remediation.medik8s.io/exclude-from-remediation";
    const FLATCAR: &str = "flatcar-linux-update.v1.flatcar-linux.net/reboot-paused";

    #[test]
    fn each_tool_has_its_key_in_the_right_place() {
        let any = node(&json!({}));
        for (tool, key, is_label) in [
            ("cluster-autoscaler", AUTOSCALER, false),
            ("karpenter", KARPENTER, false),
            ("node-healthcheck", EXCLUDE, true),
            ("fluo", FLATCAR, false),
        ] {
            let keys = tool.parse::<OptOuts>().expect("a tool").keys(&any);
            let (used, empty) = match is_label {
                true => (keys.labels, keys.annotations),
                false => (keys.annotations, keys.labels),
            };
            assert_eq!(used, BTreeMap::from([(key.to_owned(), "true".to_owned())]));
            assert!(empty.is_empty(), "{tool}");
        }
        assert_eq!(tools().count(), 7);
    }

    #[test]
    fn auto_sets_those_of_tools_that_show_on_the_node() {
        let plain = node(&json!({}));
        assert_eq!(names(&OptOuts::Auto.keys(&plain)), [AUTOSCALER, EXCLUDE]);
        let karpenter = node(&json!({"labels": {"karpenter.sh/nodepool": "default"}}));
        let expected = [AUTOSCALER, KARPENTER, EXCLUDE];
        assert_eq!(names(&OptOuts::Auto.keys(&karpenter)), expected);
        // Our own key is no sign of the tool.
        let own = node(&json!({"annotations": {KARPENTER: "true"}}));
        assert_eq!(names(&OptOuts::Auto.keys(&own)), [AUTOSCALER, EXCLUDE]);
        let flatcar = "flatcar-linux-update.v1.flatcar-linux.net/version";
        let flatcar = node(&json!({"annotations": {flatcar: "4081.2.0"}}));
        assert!(names(&OptOuts::Auto.keys(&flatcar)).contains(&FLATCAR));
        assert!(OptOuts::None.keys(&karpenter).is_empty());
    }

    #[test]
    fn the_medik8s_lease_is_held_only_if_it_is_named() {
        let any = node(&json!({}));
        for (list, expected) in [
            ("medik8s", true),
            ("karpenter,medik8s", true),
            ("karpenter", false),
            ("auto", false),
            ("none", false),
        ] {
            let opt_outs: OptOuts = list.parse().expect("opt-outs");
            assert_eq!(opt_outs.include_medik8s_lease(), expected, "{list}");
        }
        let medik8s: OptOuts = MEDIK8S.parse().expect("opt-outs");
        assert!(medik8s.keys(&any).is_empty());
    }

    #[test]
    fn a_list_names_tools_and_nothing_else() {
        let parse = str::parse::<OptOuts>;
        let both = OptOuts::Of(vec!["karpenter", "fluo"]);
        assert_eq!(parse("karpenter,fluo"), Ok(both));
        assert_eq!(parse("auto"), Ok(OptOuts::Auto));
        assert_eq!(parse("none"), Ok(OptOuts::None));
        for wrong in ["", "kured", "karpenter,", "karpenter,none"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_machine_of_a_node_is_opted_out_if_its_tool_is_wanted() {
        let cluster_api = "cluster.x-k8s.io/machine";
        for (tool, annotations) in [
            ("cluster-api", json!({cluster_api: "m-1"})),
            (
                "openshift",
                json!({"machine.openshift.io/machine": "ns/m-1"}),
            ),
        ] {
            let node = node(&json!({"annotations": annotations}));
            let machine = machine_of(&node).expect("a Machine");
            assert_eq!((machine.api.tool, &*machine.name), (tool, "m-1"));
            let included = |list: &str| {
                let opt_outs: OptOuts = list.parse().expect("opt-outs");
                // Nothing on the Node would stop the tool.
                assert!(list == "auto" || opt_outs.keys(&node).is_empty());
                opt_outs.include(&machine)
            };
            assert!(included("auto") && included(tool) && !included("none"));
            assert!(!included(if tool == "openshift" {
                "cluster-api"
            } else {
                "openshift"
            }));
        }
        assert_eq!(machine_of(&node(&json!({}))), None);
    }
}
