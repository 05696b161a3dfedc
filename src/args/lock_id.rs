//! `--lock-id` and `MAINT_LOCK_ID`: the exact lock that a command must act on.

use std::collections::BTreeMap;
use std::str::FromStr;

use clap::Args;
use connect::Environment;
use maintenance_lease::protocol::LockId;

use super::nodes::Selection;
use crate::error::{InputError, InvalidValue};

/// Lock ids in one of the [forms](Ids) that are accepted.
pub(crate) const VARIABLE: &str = "MAINT_LOCK_ID";
/// The node that a single lock id belongs to, if known.
pub(crate) const NODE: &str = "MAINT_NODE";

const FLAG: &str = "--lock-id";

/// The locks that a command acts on.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct LockIdArgs {
    /// Act only on the lock with this id, from acquire -o lock-id [env: MAINT_LOCK_ID]
    ///
    /// If the node has another lock by now, nothing is changed (exit code 3). For multiple nodes, give the whole output of
    /// acquire: one line for each node, with its name and its id.
    #[arg(long, value_name = "ID")]
    lock_id: Option<Ids>,
}

impl LockIdArgs {
    /// The lock ids that the caller gave, by flag or by variable.
    ///
    /// # Errors
    /// If the variable is invalid.
    pub(crate) fn given(&self, environment: &Environment) -> Result<Option<LockIds>, InputError> {
        match self.lock_id.clone() {
            Some(ids) => Ok(Some(LockIds { source: FLAG, ids })),
            None => LockIds::of(environment),
        }
    }

    /// The lock ids that the caller gave for the nodes of `selection`; `None`: these nodes need none.
    ///
    /// # Errors
    /// As [`given`](Self::given), and if it is not clear which node a lock id is for, or if a node has none.
    pub(crate) fn given_for(
        &self,
        selection: &Selection,
        environment: &Environment,
    ) -> Result<Option<LockIds>, InputError> {
        match self.given(environment)? {
            Some(ids) => ids.only_for(selection),
            None => Ok(None),
        }
    }
}

/// Lock ids as they are given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    /// The id for whichever node the caller selects.
    Single(LockId),
    /// `NODE=ID` for each node, separated by white space, as `with` sets it; or a line `NODE ID` for each, as
    /// `acquire -o lock-id` prints it.
    ByNode(BTreeMap<String, LockId>),
}

impl FromStr for Ids {
    type Err = InvalidValue;

    fn from_str(typed: &str) -> Result<Self, Self::Err> {
        if let Ok(id) = typed.parse() {
            return Ok(Self::Single(id));
        }
        let lines = typed.lines().filter(|line| !line.trim().is_empty());
        let ids: Option<BTreeMap<_, _>> = match typed.contains('=') {
            true => typed
                .split_whitespace()
                .map(|pair| of_one(pair.split_once('=')?))
                .collect(),
            false => lines.map(|line| of_one(line.split_once(' ')?)).collect(),
        };
        let ids = ids.filter(|ids| !ids.is_empty());
        ids.map(Self::ByNode).ok_or(InvalidValue::NotALockId)
    }
}

fn of_one((node, id): (&str, &str)) -> Option<(String, LockId)> {
    Some((node.to_owned(), id.trim().parse().ok()?))
}

/// The lock ids that a command was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LockIds {
    /// The flag or the variable.
    pub(crate) source: &'static str,
    ids: Ids,
}

impl LockIds {
    /// The lock ids in the environment, if it has any.
    ///
    /// # Errors
    /// If the variable is set but invalid.
    pub(crate) fn of(environment: &Environment) -> Result<Option<Self>, InputError> {
        let Some(value) = environment.set_os(VARIABLE) else {
            return Ok(None);
        };
        let ids = value.to_str().unwrap_or_default().parse();
        let ids = match (ids, environment.get(NODE)) {
            (Ok(Ids::Single(id)), Some(node)) => Ids::ByNode([(node.to_owned(), id)].into()),
            (ids, _) => ids.map_err(|_| InputError::NotALockId { variable: VARIABLE })?,
        };
        Ok(Some(Self {
            source: VARIABLE,
            ids,
        }))
    }

    /// The lock id of `node`, if there is one.
    pub(crate) fn of_node(&self, node: &str) -> Option<&LockId> {
        match &self.ids {
            Ids::Single(id) => Some(id),
            Ids::ByNode(ids) => ids.get(node),
        }
    }

    fn missing(&self, node: &str) -> InputError {
        InputError::NoLockIdOf {
            source: self.source,
            node: node.to_owned(),
        }
    }

    fn only_for(self, selection: &Selection) -> Result<Option<Self>, InputError> {
        let source = self.source;
        match (&self.ids, selection) {
            (Ids::Single(_), Selection::Named(nodes)) if nodes.len() == 1 => Ok(Some(self)),
            (Ids::Single(_), _) => Err(InputError::LockIdOfMany { source }),
            (Ids::ByNode(_), Selection::Named(nodes)) => {
                let has_one = |node: &&String| self.of_node(node).is_some();
                match nodes.iter().find(|node| !has_one(node)) {
                    // Set for other nodes, for example by `with`.
                    Some(_) if source != FLAG && !nodes.iter().any(|node| has_one(&node)) => {
                        Ok(None)
                    }
                    Some(node) => Err(self.missing(node)),
                    None => Ok(Some(self)),
                }
            }
            (Ids::ByNode(_), _) => Err(InputError::LockIdsOfUnnamed { source }),
        }
    }

    /// The lock ids to verify, by node: that of `node`, else all.
    ///
    /// # Errors
    /// If there is none for this node, or if the node is not known.
    pub(crate) fn into_verified(
        self,
        node: Option<String>,
    ) -> Result<BTreeMap<String, LockId>, InputError> {
        let Some(node) = node else {
            return match self.ids {
                Ids::ByNode(ids) => Ok(ids),
                Ids::Single(_) => Err(InputError::NoNodeOfLockId),
            };
        };
        match self.of_node(&node).cloned() {
            Some(id) => Ok(BTreeMap::from([(node, id)])),
            None => Err(self.missing(&node)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Failure;

    const LOCK_ID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e.7.k3v9";
    const OTHER: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7.1.m2x4";

    /// The lock id that each of these nodes must have, or none.
    fn demanded(
        flag: Option<&str>,
        variables: &[(&str, &str)],
        nodes: &[&str],
    ) -> Result<Vec<Option<String>>, String> {
        let args = LockIdArgs {
            lock_id: flag.map(|flag| flag.parse().expect("lock ids")),
        };
        let selection = match nodes {
            [] => Selection::Mine,
            nodes => Selection::Named(nodes.iter().map(|&node| node.to_owned()).collect()),
        };
        let environment = Environment::of_variables(variables.iter().copied());
        let ids = args
            .given_for(&selection, &environment)
            .map_err(|error| Failure::Input(error).to_string())?;
        let id = |node: &&str| Some(ids.as_ref()?.of_node(node)?.to_string());
        Ok(nodes.iter().map(id).collect())
    }

    fn ids<const N: usize>(ids: [&str; N]) -> Result<Vec<Option<String>>, String> {
        Ok(ids.map(|id| Some(id.to_owned())).into())
    }

    #[test]
    fn the_variable_counts_if_no_flag_does() {
        let set = [(VARIABLE, LOCK_ID)];
        let for_one = |source| Err(format!("{source} is for one node only"));
        assert_eq!(demanded(None, &[], &["n"]), Ok(vec![None]));
        assert_eq!(demanded(None, &set, &["n"]), ids([LOCK_ID]));
        assert_eq!(demanded(Some(OTHER), &set, &["n"]), ids([OTHER]));
        assert_eq!(demanded(None, &set, &["n", "m"]), for_one(VARIABLE));
        let empty = [(VARIABLE, "")];
        assert_eq!(demanded(Some(OTHER), &empty, &[]), for_one(FLAG));
        assert_eq!(demanded(Some(OTHER), &empty, &["n", "m"]), for_one(FLAG));
    }

    #[test]
    fn each_node_gets_its_own_lock_id() {
        let pairs = format!("a={LOCK_ID} b={OTHER}");
        // As acquire prints them.
        let lines = format!("a {LOCK_ID}\nb {OTHER}\n");
        for typed in [&*pairs, &lines] {
            let variable = [(VARIABLE, typed)];
            let given = [(Some(typed), &[][..], FLAG), (None, &variable, VARIABLE)];
            for (flag, variables, source) in given {
                let demanded = |nodes: &[&str]| demanded(flag, variables, nodes);
                assert_eq!(demanded(&["b"]), ids([OTHER]));
                assert_eq!(demanded(&["b", "a"]), ids([OTHER, LOCK_ID]));
                let missing = Err(format!("{source} has no lock id for node/c"));
                assert_eq!(demanded(&["a", "c"]), missing);
                let unnamed = Err(format!("{source} is only for nodes that you name"));
                assert_eq!(demanded(&[]), unnamed);
            }
        }
    }

    #[test]
    fn only_a_variable_may_be_for_other_nodes() {
        let one = [(VARIABLE, LOCK_ID), (NODE, "a")];
        assert_eq!(demanded(None, &one, &["a"]), ids([LOCK_ID]));
        assert_eq!(demanded(None, &one, &["b", "c"]), Ok(vec![None, None]));
        assert!(demanded(None, &one, &["a", "b"]).is_err());
        let flag = format!("a={LOCK_ID}");
        let missing = Err("--lock-id has no lock id for node/b".to_owned());
        assert_eq!(demanded(Some(&flag), &one, &["b"]), missing);
    }

    #[test]
    fn a_variable_without_a_lock_id_is_not_passed_over() {
        let one_is_none = format!("a={LOCK_ID} b=secret");
        for (name, value) in [
            (VARIABLE, ""),
            (VARIABLE, "secret"),
            (VARIABLE, &*one_is_none),
            (VARIABLE, " "),
        ] {
            let refused = Err(format!("{name} is not a lock id"));
            assert_eq!(
                demanded(None, &[(name, value)], &["a"]),
                refused,
                "{value:?}"
            );
        }
    }
}
