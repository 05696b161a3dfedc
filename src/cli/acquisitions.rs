//! `MAINT_TOKEN`: the acquisitions that the environment names, as `with` sets it for its command.

use std::collections::BTreeMap;

use connect::Environment;
use maintenance_lease::protocol::Token;

use super::nodes::Selection;
use crate::failure::Failure;

/// One token, or NODE=TOKEN for each of several nodes, separated by spaces.
pub(crate) const VARIABLE: &str = "MAINT_TOKEN";
/// The node that the one token is for, where that is known.
const NODE: &str = "MAINT_NODE";

/// Acquisitions by node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Acquisitions {
    /// Of whichever node the caller means.
    OfAny(Token),
    /// Of these nodes and no others.
    Of(BTreeMap<String, Token>),
}

impl Acquisitions {
    /// Those of the environment, if it names any.
    ///
    /// # Errors
    /// Where the variable is there with something else, also with nothing.
    pub(crate) fn of(environment: &Environment) -> Result<Option<Self>, Failure> {
        let Some(value) = environment.set_os(VARIABLE) else {
            return Ok(None);
        };
        if value.is_empty() {
            return Err(unusable(format!("{VARIABLE} is set, but empty")));
        }
        let parsed = value.to_str().and_then(|value| match value.parse() {
            Ok(token) => Some(match environment.get(NODE) {
                Some(node) => Self::Of(BTreeMap::from([(node.to_owned(), token)])),
                None => Self::OfAny(token),
            }),
            Err(_) => pairs(value).map(Self::Of),
        });
        match parsed {
            Some(acquisitions) => Ok(Some(acquisitions)),
            None => Err(unusable(format!("{VARIABLE} is not the token of a lock"))),
        }
    }

    /// That of `node`, if it is among them.
    pub(crate) fn of_node(&self, node: &str) -> Option<&Token> {
        match self {
            Self::OfAny(token) => Some(token),
            Self::Of(tokens) => tokens.get(node),
        }
    }

    /// The acquisition that is demanded of `selection`. A script may work on other nodes than those
    /// that it runs under: nothing is demanded of them.
    ///
    /// # Errors
    /// Where several nodes are meant, and what is named here may be one of them.
    pub(crate) fn demanded(&self, selection: &Selection) -> Result<Option<Token>, Failure> {
        match selection {
            Selection::Named(nodes) if nodes.len() == 1 => Ok(self.of_node(&nodes[0]).cloned()),
            Selection::Named(nodes) if nodes.iter().all(|node| self.of_node(node).is_none()) => {
                Ok(None)
            }
            _ => Err(not_of_one(VARIABLE)),
        }
    }
}

/// Says that `source` can't be demanded of several nodes.
pub(crate) fn not_of_one(source: &str) -> Failure {
    Failure::usage(
        format!("{source} is for one node only"),
        match source {
            VARIABLE => {
                format!("name that node only, or put `env -u {VARIABLE}` before the command")
            }
            _ => format!("name that node only, or remove {source}"),
        },
    )
}

fn pairs(value: &str) -> Option<BTreeMap<String, Token>> {
    let pairs = value.split_whitespace().map(|pair| {
        let (node, token) = pair.split_once('=')?;
        Some((node.to_owned(), token.parse().ok()?))
    });
    let pairs: Option<BTreeMap<_, _>> = pairs.collect();
    pairs.filter(|pairs| !pairs.is_empty())
}

fn unusable(message: String) -> Failure {
    Failure::usage(
        message,
        format!("unset {VARIABLE}, or set it to the second word that `acquire -o token` prints"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "0f8fad5b-d9cb-469f-a165-70867728950e.7.k3v9";
    const OTHER: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7.1.m2x4";

    fn acquisitions(variables: &[(&str, &str)]) -> Result<Option<Acquisitions>, String> {
        Acquisitions::of(&Environment::of_variables(variables.iter().copied()))
            .map_err(|failure| failure.to_string())
    }

    /// What is demanded of these nodes.
    fn demanded(variables: &[(&str, &str)], nodes: &[&str]) -> Result<Option<String>, String> {
        let selection = Selection::Named(nodes.iter().map(|&node| node.to_owned()).collect());
        let acquisitions = acquisitions(variables)?.expect("a token");
        acquisitions
            .demanded(&selection)
            .map(|token| token.map(|token| token.to_string()))
            .map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_token_alone_is_of_the_node_that_is_meant() {
        assert_eq!(demanded(&[(VARIABLE, ONE)], &["a"]), Ok(Some(ONE.into())));
        assert_eq!(
            demanded(&[(VARIABLE, ONE)], &["a", "b"]),
            Err("MAINT_TOKEN is for one node only".into())
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
    fn what_is_no_token_is_not_passed_over() {
        assert_eq!(acquisitions(&[]), Ok(None));
        for (value, why) in [
            ("", "MAINT_TOKEN is set, but empty"),
            ("secret", "MAINT_TOKEN is not the token of a lock"),
            ("a=secret", "MAINT_TOKEN is not the token of a lock"),
            (" ", "MAINT_TOKEN is not the token of a lock"),
        ] {
            assert_eq!(
                acquisitions(&[(VARIABLE, value)]),
                Err(why.into()),
                "{value:?}"
            );
        }
        let one_is_none = format!("a={ONE} b=secret");
        assert!(acquisitions(&[(VARIABLE, &one_is_none)]).is_err());
    }
}
