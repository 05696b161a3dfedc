//! Which nodes: typed, selected by labels, all of them, listed in a file, or those that the caller holds.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use maintenance_lease::is_object_name;

use crate::error::{Failure, InputError, NothingFound};
use crate::object::{Kind, kind_and_name, leading_kind};

/// The nodes that a verb is for.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct NodeArgs {
    /// Node names, as NAME, node/NAME or node NAME
    #[arg(value_name = "NODE")]
    pub(crate) nodes: Vec<String>,

    /// Select nodes by label (e.g. pool=gpu,zone!=a)
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub(crate) selector: Option<String>,

    /// Select all nodes
    #[arg(long)]
    pub(crate) all: bool,

    /// Read node names from a file, or - for stdin
    ///
    /// One node per line. Empty lines and lines that begin with # are ignored.
    #[arg(long, value_name = "FILE")]
    pub(crate) nodes_from: Option<PathBuf>,
}

/// The selected nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// These, without duplicates, in the order given.
    Named(Vec<String>),
    /// Those that match this label selector.
    Labeled(String),
    /// All.
    All,
    /// Those whose Lease the caller holds.
    Mine,
}

impl Selection {
    /// Whether one node was named.
    pub(crate) fn is_single(&self) -> bool {
        self.names().len() == 1
    }

    /// The nodes that were named.
    pub(crate) fn names(&self) -> &[String] {
        match self {
            Self::Named(names) => names,
            Self::Labeled(_) | Self::All | Self::Mine => &[],
        }
    }
}

/// The longest list of nodes that is accepted, in bytes.
const LONGEST_LIST: u64 = 16 << 20;

/// The longest selector, in bytes. Escaped in a URL it may be three times as long, and servers accept URLs
/// of up to 64 KiB.
const LONGEST_SELECTOR: usize = 16 << 10;

impl NodeArgs {
    /// The selected nodes; `mine` is the verb's own flag, `None` if it has none.
    ///
    /// # Errors
    /// If ways to select nodes are mixed, none is used, or a name is not valid for a node.
    pub(crate) fn selection(
        &self,
        mine: Option<bool>,
        stdin: impl Read,
    ) -> Result<Selection, Failure> {
        let ways = [
            (!self.nodes.is_empty(), "NODE"),
            (self.selector.is_some(), "-l"),
            (self.all, "--all"),
            (self.nodes_from.is_some(), "--nodes-from"),
            (mine == Some(true), "--mine"),
        ];
        let used: Vec<&str> = ways
            .iter()
            .filter_map(|&(used, way)| used.then_some(way))
            .collect();
        match used[..] {
            [] => {
                let mine = mine.is_some();
                return Err(InputError::NoNodes { mine }.into());
            }
            [_] => {}
            _ => return Err(InputError::ManySelections(used).into()),
        }
        if let Some(selector) = &self.selector {
            if selector.trim().is_empty() {
                return Err(InputError::EmptySelector.into());
            }
            if selector.len() > LONGEST_SELECTOR {
                let most = LONGEST_SELECTOR;
                return Err(InputError::LongSelector { most }.into());
            }
            return Ok(Selection::Labeled(selector.clone()));
        }
        if self.all {
            return Ok(Selection::All);
        }
        if mine == Some(true) {
            return Ok(Selection::Mine);
        }
        let names = match &self.nodes_from {
            Some(path) => listed(path, stdin)?,
            None => {
                let names = match (leading_kind(&self.nodes), &self.nodes[..]) {
                    (Some((Kind::Node, names)), _) => names,
                    (_, [name]) => return Ok(Selection::Named(vec![single_node(name)?])),
                    (_, names) => names,
                };
                let names = names.iter().map(|typed| node_name(typed));
                names.collect::<Result<_, _>>()?
            }
        };
        let mut met = HashSet::new();
        Ok(Selection::Named(
            names
                .into_iter()
                .filter(|name| met.insert(name.clone()))
                .collect(),
        ))
    }

    /// Whether the nodes are read from standard input, which then can't answer a prompt.
    pub(crate) fn reads_stdin(&self) -> bool {
        self.nodes_from.as_deref() == Some(Path::new("-"))
    }
}

/// The nodes in a list.
fn listed(path: &Path, stdin: impl Read) -> Result<Vec<String>, Failure> {
    let bytes =
        read_list(path, stdin).with_context(|| format!("--nodes-from {}", path.display()))?;
    let list = || path.to_owned();
    let not_a_list = |longest| InputError::NotAList {
        list: list(),
        longest,
    };
    if bytes.len() as u64 > LONGEST_LIST {
        return Err(not_a_list(Some(LONGEST_LIST)).into());
    }
    let text = String::from_utf8(bytes).map_err(|_| not_a_list(None))?;
    let lines = text.lines().map(str::trim).enumerate();
    let named = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let names = named.map(|(index, line)| {
        node_name(line).map_err(|error| InputError::Line {
            list: list(),
            number: index + 1,
            error: Box::new(error),
        })
    });
    let names: Vec<String> = names.collect::<Result<_, _>>()?;
    match names.is_empty() {
        true => Err(NothingFound::Listed(list()).into()),
        false => Ok(names),
    }
}

/// At most one byte more than is accepted.
fn read_list(path: &Path, stdin: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = LONGEST_LIST + 1;
    if path == Path::new("-") {
        stdin.take(most).read_to_end(&mut bytes)?;
    } else {
        File::open(path)?.take(most).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Parses `NAME` or `node/NAME` if it is the only node. The kind alone is not taken for a name.
pub(crate) fn single_node(typed: &str) -> Result<String, InputError> {
    match Kind::of(typed) {
        Some(Kind::Node) => Err(InputError::MissingName {
            kind: typed.to_owned(),
        }),
        _ => node_name(typed),
    }
}

/// Parses `NAME` or `node/NAME`.
pub(crate) fn node_name(typed: &str) -> Result<String, InputError> {
    let name = match kind_and_name(typed) {
        Some((Some(Kind::Node), name)) => name,
        Some(_) => return Err(InputError::NotANode(typed.to_owned())),
        None => typed,
    };
    match name.split_once([',', ';', ' ']) {
        Some((first, _)) if is_object_name(first) => Err(InputError::NodeNames(name.to_owned())),
        _ => object_name(Kind::Node, name),
    }
}

/// `name`, if objects of `kind` may have it.
pub(crate) fn object_name(kind: Kind, name: &str) -> Result<String, InputError> {
    let name = name.to_owned();
    match is_object_name(&name) {
        true => Ok(name),
        false => Err(InputError::ObjectName { kind, name }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select(args: &NodeArgs, stdin: &str) -> Result<Selection, String> {
        args.selection(None, stdin.as_bytes())
            .map_err(|failure| failure.to_string())
    }

    fn named(nodes: &[&str]) -> NodeArgs {
        NodeArgs {
            nodes: nodes.iter().map(|&node| node.to_owned()).collect(),
            ..NodeArgs::default()
        }
    }

    fn listed_in(stdin: &str) -> Result<Selection, String> {
        let args = NodeArgs {
            nodes_from: Some("-".into()),
            ..NodeArgs::default()
        };
        select(&args, stdin)
    }

    #[test]
    fn names_are_taken_once_and_in_order() {
        assert_eq!(
            select(&named(&["b", "node/a", "b", "nodes/c"]), ""),
            Ok(Selection::Named(vec!["b".into(), "a".into(), "c".into()]))
        );
    }

    #[test]
    fn the_kind_may_come_first_as_for_kubectl() {
        let names = |names: &[&str]| {
            let names = names.iter().map(|&name| name.to_owned()).collect();
            Ok(Selection::Named(names))
        };
        for (typed, selected) in [
            (&["node", "a"][..], &["a"][..]),
            (&["node/nodes"], &["nodes"]),
            (&["node/node", "a"], &["node", "a"]),
            (&["node", "node/a"], &["node", "a"]),
        ] {
            assert_eq!(select(&named(typed), ""), names(selected), "{typed:?}");
        }
        assert_eq!(
            select(&named(&["node"]), ""),
            Err("missing NAME after node".into())
        );
        assert_eq!(
            listed_in("node\na\n"),
            names(&["node", "a"]),
            "a list has names only"
        );
        assert_eq!(
            select(&named(&["pod", "web-0/x"]), ""),
            Err("\"web-0/x\" is not a node".into())
        );
    }

    #[test]
    fn a_list_may_have_blank_lines_and_comments() {
        assert_eq!(
            listed_in("# rack 7\n\nnode/a\r\n  b  \n"),
            Ok(Selection::Named(vec!["a".into(), "b".into()]))
        );
        assert_eq!(
            listed_in("a\nB!\n"),
            Err("--nodes-from -, line 2: \"B!\" is not a valid node name".into())
        );
        assert_eq!(listed_in(""), Err("--nodes-from - has no nodes".into()));
        let long = "a\n".repeat((8 << 20) + 1);
        assert_eq!(
            listed_in(&long),
            Err("--nodes-from -: longer than 16 MiB".into())
        );
        assert_eq!(
            listed_in("a b"),
            Err("--nodes-from -, line 1: \"a b\" is not a valid node name".into())
        );
    }

    #[test]
    fn ways_are_not_mixed_and_one_is_needed() {
        let mut args = named(&["a"]);
        args.all = true;
        assert_eq!(
            select(&args, ""),
            Err("NODE and --all cannot be combined".into())
        );
        assert_eq!(select(&NodeArgs::default(), ""), Err("missing NODE".into()));
    }

    #[test]
    fn an_empty_selector_is_not_all_nodes() {
        let args = NodeArgs {
            selector: Some(" ".into()),
            ..NodeArgs::default()
        };
        assert_eq!(select(&args, ""), Err("the selector of -l is empty".into()));
    }

    #[test]
    fn invalid_node_names_are_refused() {
        for (typed, why) in [
            ("", "a node name must not be empty"),
            ("node/", "a node name must not be empty"),
            ("pod/web-0", "\"pod/web-0\" is not a node"),
            ("Worker", "\"Worker\" is not a valid node name"),
            ("a..b", "\"a..b\" is not a valid node name"),
            ("-a", "\"-a\" is not a valid node name"),
        ] {
            assert_eq!(select(&named(&[typed]), ""), Err(why.into()), "{typed:?}");
        }
        let long = "a".repeat(120 << 10);
        let error = select(&named(&[&long]), "").expect_err("too long");
        assert!(error.len() < 200, "{} bytes", error.len());
    }
}
