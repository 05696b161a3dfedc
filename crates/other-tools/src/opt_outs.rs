//! Opt-outs: keys on the Node that tell other tools to leave it alone.
//!
//! [`OPT_OUTS`] has one entry for each tool. To add a tool, add an entry and an example to the test.

use std::collections::BTreeMap;
use std::str::FromStr;

use k8s_openapi::api::core::v1::Node;

use crate::managed_fields::owners;
use crate::node_keys::{CORDON, NodeKeys, SET, annotation, is_own_entry, own_entry};

/// What tells a tool to leave a node alone: a key on the Node.
#[derive(Debug)]
struct OptOut {
    /// The tool, as `--opt-outs` names it.
    tool: &'static str,
    /// A label; otherwise an annotation.
    is_label: bool,
    key: &'static str,
    /// The beginning of the keys that the tool sets on its Nodes; `None`: it sets none, so nobody can know.
    prefix: Option<&'static str>,
}

/// The value of all opt-outs.
const OPTED_OUT: &str = "true";

/// The opt-outs that are known.
const OPT_OUTS: [OptOut; 4] = [
    OptOut {
        tool: "cluster-autoscaler",
        is_label: false,
        key: "cluster-autoscaler.kubernetes.io/scale-down-disabled",
        prefix: None,
    },
    OptOut {
        tool: "karpenter",
        is_label: false,
        key: "karpenter.sh/do-not-disrupt",
        prefix: Some("karpenter.sh/"),
    },
    OptOut {
        tool: "node-healthcheck",
        is_label: true,
        key: "remediation.medik8s.io/exclude-from-remediation",
        prefix: None,
    },
    OptOut {
        tool: "fluo",
        is_label: false,
        key: "flatcar-linux-update.v1.flatcar-linux.net/reboot-paused",
        prefix: Some("flatcar-linux-update.v1.flatcar-linux.net/"),
    },
];

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
    let listed = annotation(&node.metadata, SET).into_iter();
    (key == CORDON || is_opt_out(key))
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
    is_listed(node, key)
        && is_opt_out(key)
        && found.is_some_and(|found| found == OPTED_OUT)
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
    /// The keys for `node`.
    #[must_use]
    pub fn keys(&self, node: &Node) -> NodeKeys {
        let mut keys = NodeKeys::default();
        for opt_out in &OPT_OUTS {
            let shows = || opt_out.prefix.is_none_or(|prefix| has_key(node, prefix));
            if self.wants(opt_out.tool, shows) {
                let map = match opt_out.is_label {
                    true => &mut keys.labels,
                    false => &mut keys.annotations,
                };
                map.insert(opt_out.key.to_owned(), OPTED_OUT.to_owned());
            }
        }
        keys
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
        let is_set = |opt_out: &&OptOut| {
            self.labels.contains_key(opt_out.key) || self.annotations.contains_key(opt_out.key)
        };
        let set = OPT_OUTS.iter().filter(is_set);
        set.map(|opt_out| opt_out.tool)
    }
}

/// The names of the tools that have opt-outs.
pub fn tools() -> impl Iterator<Item = &'static str> {
    OPT_OUTS.iter().map(|opt_out| opt_out.tool)
}

fn is_opt_out(key: &str) -> bool {
    OPT_OUTS.iter().any(|opt_out| opt_out.key == key)
}

/// Whether the Node has a label or annotation with this prefix, other than our opt-outs.
fn has_key(node: &Node, prefix: &str) -> bool {
    let maps = [&node.metadata.labels, &node.metadata.annotations];
    let mut keys = maps.into_iter().flatten().flat_map(BTreeMap::keys);
    keys.any(|key| key.starts_with(prefix) && !is_opt_out(key))
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
        assert_eq!(tools().count(), 4);
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
}
