//! What to delete: pods by name or label, or one Node.

use super::args::{ALL, ForceDeleteArgs, risks};
use crate::args::nodes::{node_name, object_name};
use crate::error::InputError;
use crate::object::{Kind, kind_and_name, leading_kind};
use crate::text::for_shell;

/// What is to be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Targets {
    /// These pods of the namespace.
    Pods(Vec<String>),
    /// The pods of the namespace that match this selector.
    Labeled(String),
    /// A Node with all its pods.
    Node(String),
}

impl Targets {
    /// What was typed.
    ///
    /// # Errors
    /// If nothing is named, if the arguments don't go together, or if a name is not in kubectl's form.
    pub(super) fn of(args: &ForceDeleteArgs) -> Result<Self, InputError> {
        if let Some(selector) = &args.selector {
            if selector.trim().is_empty() {
                return Err(InputError::EmptyPodSelector);
            }
            return Ok(Self::Labeled(selector.clone()));
        }
        let mut pods: Vec<String> = Vec::new();
        let mut nodes = Vec::new();
        for typed in with_kinds(&args.targets) {
            let typed = typed.as_str();
            match kind_and_name(typed) {
                Some((Some(Kind::Pod), name)) => {
                    let name = object_name(Kind::Pod, name)?;
                    if !pods.contains(&name) {
                        pods.push(name);
                    }
                }
                Some((Some(Kind::Node), name)) => nodes.push(node_name(name)?),
                _ => {
                    let is_risk = args.accepts(ALL) && risks(typed).is_ok();
                    let is_kind = matches!(Kind::of(typed), Some(Kind::Pod | Kind::Node));
                    let typed = typed.to_owned();
                    return Err(match is_kind && !is_risk {
                        true => InputError::MissingName { kind: typed },
                        false => InputError::NotATarget { typed, is_risk },
                    });
                }
            }
        }
        match (&pods[..], &nodes[..]) {
            ([], []) => Err(InputError::NoTargets),
            ([], [node]) => Ok(Self::Node(node.clone())),
            (_, []) => Ok(Self::Pods(pods)),
            _ => Err(InputError::NodeNotAlone),
        }
    }

    /// The arguments that name the same targets again, for a line to paste.
    pub(super) fn typed(&self, namespace: &str) -> String {
        let namespace = for_shell(namespace);
        match self {
            Self::Pods(pods) => {
                let pods: Vec<String> = pods.iter().map(|pod| format!("pod/{pod}")).collect();
                format!("{} -n {namespace}", pods.join(" "))
            }
            Self::Labeled(selector) => format!("-l {} -n {namespace}", for_shell(selector)),
            Self::Node(node) => format!("node/{node}"),
        }
    }
}

/// The targets as `KIND/NAME`, if their kind was typed once before all names.
fn with_kinds(typed: &[String]) -> Vec<String> {
    match leading_kind(typed) {
        Some((Kind::Pod | Kind::Node, names)) => {
            let names = names.iter();
            names.map(|name| format!("{}/{name}", typed[0])).collect()
        }
        _ => typed.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::app::{Cli, VerbArgs};

    fn targets(words: &[&str]) -> Result<Targets, InputError> {
        let line = ["kubectl-maint", "force-delete"].iter().chain(words);
        match Cli::parse_from(line).verb {
            VerbArgs::ForceDelete(args) => Targets::of(&args),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn targets_are_named_as_kubectl_does() {
        let pods =
            |names: &[&str]| Ok(Targets::Pods(names.iter().map(|&n| n.to_owned()).collect()));
        assert_eq!(targets(&["pod/a", "po/b", "pods/a"]), pods(&["a", "b"]));
        assert_eq!(targets(&["node/a"]), Ok(Targets::Node("a".to_owned())));
        assert_eq!(targets(&["pod", "a", "b"]), pods(&["a", "b"]));
        assert_eq!(targets(&["po", "pod"]), pods(&["pod"]));
        assert_eq!(targets(&["node", "a"]), Ok(Targets::Node("a".to_owned())));
        assert_eq!(
            targets(&["-l", "a=b"]),
            Ok(Targets::Labeled("a=b".to_owned()))
        );
        for bad in [
            &[][..],
            &["a"],
            &["pod/"],
            &["pod/A b"],
            &["deployment/a"],
            &["deployment", "a"],
            &["pod"],
            &["pod", "pod/a"],
            &["node", "a", "b"],
            &["pod/a", "node/a"],
            &["node/a", "node/b"],
            &["-l", " "],
        ] {
            assert!(targets(bad).is_err(), "{bad:?}");
        }
    }
}
