//! `MAINT_LOCK_ID`: the lock ids in the environment, as `with` sets them for its command.

use std::collections::BTreeMap;

use connect::Environment;
use maintenance_lease::protocol::LockId;

use super::nodes::Selection;
use crate::error::InputError;

/// One lock id, or NODE=ID for each of several nodes, separated by spaces. The lines NODE ID that
/// `acquire -o lock-id` prints for several nodes are read too.
pub(crate) const VARIABLE: &str = "MAINT_LOCK_ID";
/// The deprecated name.
pub(crate) const DEPRECATED: &str = "MAINT_TOKEN";
/// The node that a single lock id belongs to, if known.
pub(crate) const NODE: &str = "MAINT_NODE";

/// Lock ids by node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LockIds {
    /// The id for whichever node the caller selects.
    OfAny(LockId),
    /// The ids for these nodes only.
    Of(BTreeMap<String, LockId>),
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
        let parsed = value.to_str().and_then(|value| match value.parse() {
            Ok(id) => Some(match environment.get(NODE) {
                Some(node) => Self::Of(BTreeMap::from([(node.to_owned(), id)])),
                None => Self::OfAny(id),
            }),
            Err(_) => pairs(value).map(Self::Of),
        });
        let ids = parsed.ok_or(InputError::NotALockId { variable })?;
        Ok(Some(ids))
    }

    /// The lock id of `node`, if there is one.
    pub(crate) fn of_node(&self, node: &str) -> Option<&LockId> {
        match self {
            Self::OfAny(id) => Some(id),
            Self::Of(ids) => ids.get(node),
        }
    }

    /// The lock id required for `selection`. A script may also work on nodes that it has no lock id for:
    /// none is required for those.
    ///
    /// # Errors
    /// If several nodes are selected, and one of them may have a lock id here.
    pub(crate) fn demanded(&self, selection: &Selection) -> Result<Option<LockId>, InputError> {
        match selection {
            Selection::Named(nodes) if nodes.len() == 1 => Ok(self.of_node(&nodes[0]).cloned()),
            Selection::Named(nodes) if nodes.iter().all(|node| self.of_node(node).is_none()) => {
                Ok(None)
            }
            _ => Err(InputError::LockIdOfMany { source: VARIABLE }),
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

    const ONE: &str = "0f8fad5b-d9cb-469f-a165-70867728950e.7.k3v9";
    const OTHER: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7.1.m2x4";

    fn lock_ids(variables: &[(&str, &str)]) -> Result<Option<LockIds>, String> {
        LockIds::of(&Environment::of_variables(variables.iter().copied()))
            .map_err(|error| Failure::Input(error).to_string())
    }

    /// The lock id that is required for these nodes.
    fn demanded(variables: &[(&str, &str)], nodes: &[&str]) -> Result<Option<String>, String> {
        let selection = Selection::Named(nodes.iter().map(|&node| node.to_owned()).collect());
        let lock_ids = lock_ids(variables)?.expect("a lock id");
        lock_ids
            .demanded(&selection)
            .map(|id| id.map(|id| id.to_string()))
            .map_err(|error| Failure::Input(error).to_string())
    }

    #[test]
    fn a_lock_id_alone_is_of_the_node_that_is_meant() {
        assert_eq!(demanded(&[(VARIABLE, ONE)], &["a"]), Ok(Some(ONE.into())));
        assert_eq!(
            demanded(&[(VARIABLE, ONE)], &["a", "b"]),
            Err("MAINT_LOCK_ID is for one node only".into())
        );
    }

    #[test]
    fn under_with_it_is_of_its_nodes_and_no_others() {
        let one = [(VARIABLE, ONE), (NODE, "a")];
        assert_eq!(demanded(&one, &["a"]), Ok(Some(ONE.into())));
        assert_eq!(demanded(&one, &["b"]), Ok(None));
        assert_eq!(demanded(&one, &["b", "c"]), Ok(None));
        assert!(demanded(&one, &["a", "b"]).is_err());
        let two = [(VARIABLE, &*format!("a={ONE} b={OTHER}"))];
        assert_eq!(demanded(&two, &["b"]), Ok(Some(OTHER.into())));
        assert_eq!(demanded(&two, &["c"]), Ok(None));
        assert!(demanded(&two, &["a", "b"]).is_err());
    }

    #[test]
    fn what_acquire_prints_for_several_nodes_is_read() {
        let printed = format!("a {ONE}\nb {OTHER}\n");
        let variables = [(VARIABLE, &*printed)];
        assert_eq!(demanded(&variables, &["b"]), Ok(Some(OTHER.into())));
        assert_eq!(demanded(&variables, &["c"]), Ok(None));
    }

    #[test]
    fn the_earlier_name_counts_if_the_new_one_is_not_set() {
        assert_eq!(demanded(&[(DEPRECATED, ONE)], &["a"]), Ok(Some(ONE.into())));
        let both = [(DEPRECATED, ONE), (VARIABLE, OTHER)];
        assert_eq!(demanded(&both, &["a"]), Ok(Some(OTHER.into())));
        let why = "MAINT_TOKEN is not a lock id";
        assert_eq!(lock_ids(&[(DEPRECATED, "secret")]), Err(why.into()));
    }

    #[test]
    fn what_is_no_lock_id_is_not_passed_over() {
        assert_eq!(lock_ids(&[]), Ok(None));
        for (value, why) in [
            ("", "MAINT_LOCK_ID is set, but empty"),
            ("secret", "MAINT_LOCK_ID is not a lock id"),
            ("a=secret", "MAINT_LOCK_ID is not a lock id"),
            (" ", "MAINT_LOCK_ID is not a lock id"),
        ] {
            assert_eq!(lock_ids(&[(VARIABLE, value)]), Err(why.into()), "{value:?}");
        }
        let one_is_none = format!("a={ONE} b=secret");
        assert!(lock_ids(&[(VARIABLE, &one_is_none)]).is_err());
    }
}
