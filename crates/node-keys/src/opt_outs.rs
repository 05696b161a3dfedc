//! Opt-outs: keys on the Node that tell other tools to leave it alone.
//!
//! [`OPT_OUTS`] has one entry for each tool. To add a tool, add an entry and an example to the test.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use k8s_openapi::api::core::v1::Node;

/// What tells a tool to leave a node alone: a key on the Node.
#[derive(Debug)]
pub(crate) struct OptOut {
    /// The tool, as `--opt-outs` names it.
    pub(crate) tool: &'static str,
    /// A label; otherwise an annotation.
    pub(crate) is_label: bool,
    pub(crate) key: &'static str,
    /// The beginning of the keys that the tool sets on its Nodes; `None`: it sets none, so nobody can know.
    prefix: Option<&'static str>,
}

/// The value of all opt-outs.
pub(crate) const OPTED_OUT: &str = "true";

/// The name of [`OptOuts::Auto`].
const AUTO: &str = "auto";

/// The opt-outs that are known.
pub(crate) static OPT_OUTS: [OptOut; 4] = [
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
            AUTO => Ok(Self::Auto),
            "none" => Ok(Self::None),
            list => list
                .split(',')
                .map(known)
                .collect::<Result<_, _>>()
                .map(Self::Of),
        }
    }
}

/// As `--opt-outs` and the annotation `keys` of a Lease name them.
impl fmt::Display for OptOuts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Auto => f.write_str(AUTO),
            Self::Of(tools) => f.write_str(&tools.join(",")),
        }
    }
}

impl OptOuts {
    /// Those among the words of the annotation `keys`. Unknown ones may be those of another release.
    pub(crate) fn among(words: &[&str]) -> Self {
        let named: Vec<&str> = tools().filter(|tool| words.contains(tool)).collect();
        match named.is_empty() {
            _ if words.contains(&AUTO) => Self::Auto,
            true => Self::None,
            false => Self::Of(named),
        }
    }

    /// The opt-outs for `node`.
    pub(crate) fn on(&self, node: &Node) -> impl Iterator<Item = &'static OptOut> {
        OPT_OUTS.iter().filter(move |opt_out| match self {
            Self::None => false,
            Self::Auto => opt_out.prefix.is_none_or(|prefix| has_key(node, prefix)),
            Self::Of(tools) => tools.contains(&opt_out.tool),
        })
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
            let opt_outs: OptOuts = tool.parse().expect("a tool");
            let on = opt_outs
                .on(&any)
                .map(|opt_out| (opt_out.key, opt_out.is_label));
            assert_eq!(on.collect::<Vec<_>>(), [(key, is_label)]);
        }
        assert_eq!(tools().count(), 4);
    }

    #[test]
    fn auto_sets_those_of_tools_that_show_on_the_node() {
        let keys = |opt_outs: OptOuts, metadata: &Value| -> Vec<&str> {
            opt_outs
                .on(&node(metadata))
                .map(|opt_out| opt_out.key)
                .collect()
        };
        let auto = |metadata: Value| keys(OptOuts::Auto, &metadata);
        assert_eq!(auto(json!({})), [AUTOSCALER, EXCLUDE]);
        let karpenter = json!({"labels": {"karpenter.sh/nodepool": "default"}});
        assert!(keys(OptOuts::None, &karpenter).is_empty());
        assert_eq!(auto(karpenter), [AUTOSCALER, KARPENTER, EXCLUDE]);
        // Our own key is no sign of the tool.
        let own = json!({"annotations": {KARPENTER: "true"}});
        assert_eq!(auto(own), [AUTOSCALER, EXCLUDE]);
        let flatcar = "flatcar-linux-update.v1.flatcar-linux.net/version";
        let flatcar = json!({"annotations": {flatcar: "4081.2.0"}});
        assert!(auto(flatcar).contains(&FLATCAR));
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
    fn a_lease_names_those_that_it_asks_for() {
        for (words, expected) in [
            ("held", OptOuts::None),
            ("held,cordon,auto", OptOuts::Auto),
            ("held,fluo,later-tool", OptOuts::Of(vec!["fluo"])),
        ] {
            let words: Vec<&str> = words.split(',').collect();
            assert_eq!(OptOuts::among(&words), expected);
        }
    }
}
