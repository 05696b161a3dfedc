//! `--lock-id` and `MAINT_LOCK_ID`: the exact lock that a command must act on.

use std::collections::BTreeMap;

use clap::Args;
use connect::Environment;
use maintenance_lease::protocol::LockId;

use super::nodes::Selection;
use super::token::TokenArgs;
use crate::error::{InputError, InvalidValue};

/// One lock id, or NODE=ID for each of several nodes, separated by spaces, as `with` sets it. The lines
/// NODE ID that `acquire -o lock-id` prints for several nodes are read too.
pub(crate) const VARIABLE: &str = "MAINT_LOCK_ID";
/// The deprecated name.
pub(crate) const DEPRECATED: &str = "MAINT_TOKEN";
/// The node that a single lock id belongs to, if known.
pub(crate) const NODE: &str = "MAINT_NODE";

const FLAG: &str = "--lock-id";

/// The lock that a command acts on.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct LockIdArgs {
    /// Act only on the lock with this id, from acquire -o lock-id [env: MAINT_LOCK_ID]
    #[arg(long, value_name = "ID", value_parser = lock_id)]
    lock_id: Option<LockId>,
}

impl LockIdArgs {
    /// The lock ids that the caller gave, by flag or by variable.
    ///
    /// # Errors
    /// If the variable is empty or invalid.
    pub(crate) fn given(
        &self,
        token: &TokenArgs,
        environment: &Environment,
    ) -> Result<Option<LockIds>, InputError> {
        match self.lock_id.as_ref().or(token.lock_id()) {
            Some(id) => Ok(Some(LockIds {
                source: FLAG,
                of_any: Some(id.clone()),
                by_node: BTreeMap::new(),
            })),
            None => LockIds::of(environment),
        }
    }
}

fn lock_id(typed: &str) -> Result<LockId, InvalidValue> {
    typed.parse().map_err(|_| InvalidValue::NotALockId)
}

/// The lock ids that a command was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LockIds {
    /// The flag or the variable.
    pub(crate) source: &'static str,
    /// The id for whichever node the caller selects.
    pub(super) of_any: Option<LockId>,
    /// The ids for these nodes only.
    by_node: BTreeMap<String, LockId>,
}

impl LockIds {
    /// The lock ids in the environment, if it has any.
    ///
    /// # Errors
    /// If the variable is set but empty or invalid.
    pub(crate) fn of(environment: &Environment) -> Result<Option<Self>, InputError> {
        let set = |name| environment.set_os(name).map(|value| (name, value));
        let Some((variable, value)) = set(VARIABLE).or_else(|| set(DEPRECATED)) else {
            return Ok(None);
        };
        if value.is_empty() {
            return Err(InputError::EmptyLockId { variable });
        }
        let node = environment.get(NODE);
        let value = value.to_str().unwrap_or_default();
        let (of_any, by_node) = match (value.parse(), node) {
            (Ok(id), Some(node)) => (None, BTreeMap::from([(node.to_owned(), id)])),
            (Ok(id), None) => (Some(id), BTreeMap::new()),
            (Err(_), _) => {
                let ids = pairs(value).ok_or(InputError::NotALockId { variable })?;
                (None, ids)
            }
        };
        Ok(Some(Self {
            source: VARIABLE,
            of_any,
            by_node,
        }))
    }

    /// The lock id of `node`, if there is one.
    pub(crate) fn of_node(&self, node: &str) -> Option<&LockId> {
        self.by_node.get(node).or(self.of_any.as_ref())
    }

    /// The lock id required for `selection`. Nodes without a lock id are allowed, and need none.
    ///
    /// # Errors
    /// If several nodes are selected, and one of them may have a lock id here.
    pub(crate) fn demanded(&self, selection: &Selection) -> Result<Option<LockId>, InputError> {
        match selection {
            Selection::Named(nodes) if nodes.len() == 1 => Ok(self.of_node(&nodes[0]).cloned()),
            Selection::Named(nodes) if nodes.iter().all(|node| self.of_node(node).is_none()) => {
                Ok(None)
            }
            _ => Err(InputError::LockIdOfMany {
                source: self.source,
            }),
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
        match node {
            Some(node) => match self.of_node(&node).cloned() {
                Some(id) => Ok(BTreeMap::from([(node, id)])),
                None => Err(InputError::NoLockIdOf {
                    variable: VARIABLE,
                    node,
                }),
            },
            None if self.of_any.is_none() => Ok(self.by_node),
            None => Err(InputError::NoNodeOfLockId),
        }
    }
}

fn pairs(value: &str) -> Option<BTreeMap<String, LockId>> {
    let lines = value.lines().filter(|line| !line.trim().is_empty());
    let pairs: Option<BTreeMap<_, _>> = match value.contains('=') {
        true => value
            .split_whitespace()
            .map(|pair| pair_of(pair.split_once('=')?))
            .collect(),
        false => lines.map(|line| pair_of(line.split_once(' ')?)).collect(),
    };
    pairs.filter(|pairs| !pairs.is_empty())
}

fn pair_of((node, id): (&str, &str)) -> Option<(String, LockId)> {
    Some((node.to_owned(), id.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Failure;

    const LOCK_ID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e.7.k3v9";
    const OTHER: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7.1.m2x4";

    /// The lock id that is required for these nodes.
    fn demanded(
        flag: Option<&str>,
        variables: &[(&str, &str)],
        nodes: &[&str],
    ) -> Result<Option<String>, String> {
        let args = LockIdArgs {
            lock_id: flag.map(|flag| flag.parse().expect("a lock id")),
        };
        let selection = match nodes {
            [] => Selection::Mine,
            nodes => Selection::Named(nodes.iter().map(|&node| node.to_owned()).collect()),
        };
        let environment = Environment::of_variables(variables.iter().copied());
        let given = args.given(&TokenArgs::default(), &environment);
        let demanded = given.and_then(|given| match given {
            Some(ids) => ids.demanded(&selection),
            None => Ok(None),
        });
        demanded
            .map(|id| id.map(|id| id.to_string()))
            .map_err(|error| Failure::Input(error).to_string())
    }

    #[test]
    fn the_variable_counts_if_no_flag_does() {
        let id = |id: &str| Ok(Some(id.to_owned()));
        let set = [(VARIABLE, LOCK_ID)];
        let for_one = |source| Err(format!("{source} is for one node only"));
        assert_eq!(demanded(None, &[], &["n"]), Ok(None));
        assert_eq!(demanded(None, &set, &["n"]), id(LOCK_ID));
        assert_eq!(demanded(Some(OTHER), &set, &["n"]), id(OTHER));
        assert_eq!(demanded(None, &set, &["n", "m"]), for_one(VARIABLE));
        let empty = [(VARIABLE, "")];
        assert_eq!(demanded(Some(OTHER), &empty, &[]), for_one("--lock-id"));
        assert_eq!(
            demanded(Some(OTHER), &empty, &["n", "m"]),
            for_one("--lock-id")
        );
    }

    #[test]
    fn under_with_a_lock_id_is_of_its_nodes_and_no_others() {
        let one = [(VARIABLE, LOCK_ID), (NODE, "a")];
        let pairs = format!("a={LOCK_ID} b={OTHER}");
        // As acquire prints them.
        let lines = format!("a {LOCK_ID}\nb {OTHER}\n");
        let (pairs, lines) = ([(VARIABLE, &*pairs)], [(VARIABLE, &*lines)]);
        assert_eq!(demanded(None, &one, &["a"]), Ok(Some(LOCK_ID.into())));
        assert_eq!(demanded(None, &one, &["b", "c"]), Ok(None));
        for variables in [&pairs, &lines] {
            assert_eq!(demanded(None, variables, &["b"]), Ok(Some(OTHER.into())));
            assert_eq!(demanded(None, variables, &["c"]), Ok(None));
        }
        for variables in [&one[..], &pairs] {
            assert!(demanded(None, variables, &["a", "b"]).is_err());
        }
    }

    #[test]
    fn the_earlier_name_counts_if_the_new_one_is_not_set() {
        let earlier = [(DEPRECATED, LOCK_ID), (VARIABLE, OTHER)];
        assert_eq!(
            demanded(None, &earlier[..1], &["a"]),
            Ok(Some(LOCK_ID.into()))
        );
        assert_eq!(demanded(None, &earlier, &["a"]), Ok(Some(OTHER.into())));
    }

    #[test]
    fn a_variable_without_a_lock_id_is_not_passed_over() {
        let one_is_none = format!("a={LOCK_ID} b=secret");
        for (name, value, why) in [
            (VARIABLE, "", "is set, but empty"),
            (VARIABLE, "secret", "is not a lock id"),
            (VARIABLE, &*one_is_none, "is not a lock id"),
            (VARIABLE, " ", "is not a lock id"),
            (DEPRECATED, "secret", "is not a lock id"),
        ] {
            let refused = Err(format!("{name} {why}"));
            assert_eq!(
                demanded(None, &[(name, value)], &["a"]),
                refused,
                "{value:?}"
            );
        }
    }
}
