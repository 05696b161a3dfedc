//! `--lock-id` and `MAINT_LOCK_ID`: the exact lock that a command must act on. And `--token`, kubectl's
//! bearer token.
//!
//! For one release `--token` still accepts a lock id on the commands that have `--lock-id`, with a warning.
//! A value that looks like a lock id is never sent to the server as a credential.

use std::collections::BTreeMap;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use connect::Environment;
use maintenance_lease::protocol::LockId;

use super::nodes::Selection;
use crate::error::{InputError, InvalidValue};
use crate::words::hint_command::HEADING;
use crate::words::value::invalid_token;

/// One lock id, or NODE=ID for each of several nodes, separated by spaces, as `with` sets it. The lines
/// NODE ID that `acquire -o lock-id` prints for several nodes are read too.
pub(crate) const VARIABLE: &str = "MAINT_LOCK_ID";
/// The deprecated name.
pub(crate) const DEPRECATED: &str = "MAINT_TOKEN";
/// The node that a single lock id belongs to, if known.
pub(crate) const NODE: &str = "MAINT_NODE";

const FLAG: &str = "--lock-id";
const ID: &str = "token";

/// The commands that accept a lock id.
pub(super) const TAKING: [&str; 3] = ["renew", "release", "verify"];

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
        match self.lock_id.as_ref().or(token.lock_id.as_ref()) {
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
    of_any: Option<LockId>,
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

/// The values of `--token`, before and after the command.
#[derive(Clone, Debug, Default)]
pub(crate) struct TokenArgs {
    /// The bearer token to authenticate with.
    pub(crate) bearer: Option<String>,
    /// A lock id, given as earlier releases accepted it.
    lock_id: Option<LockId>,
}

impl TokenArgs {
    /// Whether a lock id was given as earlier releases accepted it.
    pub(crate) fn is_deprecated(&self) -> bool {
        self.lock_id.is_some()
    }

    /// Reads what was typed for the command of this name.
    fn read<'a>(
        typed: impl Iterator<Item = &'a String>,
        command: Option<&str>,
    ) -> Result<Self, InvalidValue> {
        let takes_lock_id = command.is_some_and(|command| TAKING.contains(&command));
        let mut args = Self::default();
        for word in typed {
            match word.parse() {
                Ok(_) if !takes_lock_id => return Err(InvalidValue::LockIdAsToken),
                Ok(_) if args.lock_id.is_some() => return Err(InvalidValue::ManyLockIds),
                Ok(id) => args.lock_id = Some(id),
                Err(_) if is_mistyped(word) => return Err(InvalidValue::LikeALockId),
                // An empty variable in a script must not drop the check of the lock id.
                Err(_) if word.is_empty() && takes_lock_id => return Err(InvalidValue::EmptyToken),
                Err(_) => args.bearer = Some(word.clone()),
            }
        }
        Ok(args)
    }
}

/// Whether a word has the form of a lock id, although it is none.
fn is_mistyped(word: &str) -> bool {
    let parts: Vec<&str> = word.split('.').collect();
    let is_count = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    match &parts[..] {
        [first, _, ..] if ends_in_uid(first) => true,
        [_, count, _] => is_count(count),
        _ => false,
    }
}

/// Whether the last word of `text` is a uid; the node's name may precede it.
fn ends_in_uid(text: &str) -> bool {
    let word = text.split_whitespace().next_back().unwrap_or_default();
    let groups: Vec<&str> = word.split('-').collect();
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups.concat().bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Gives a command its `--token`.
pub(crate) fn on_verb(command: Command) -> Command {
    // If a flag is given twice, the last one counts, as in kubectl.
    command.arg(bearer()).args_override_self(true)
}

fn bearer() -> Arg {
    Arg::new(ID)
        .long("token")
        .value_name("TOKEN")
        .action(ArgAction::Append)
        .help_heading(HEADING)
        .hide_short_help(true)
        .hide_long_help(true)
        .help("Bearer token to authenticate with")
}

impl Args for TokenArgs {
    fn augment_args(command: Command) -> Command {
        command.arg(bearer())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// From the matches of the whole line: of two bearer tokens the later one counts, as in kubectl.
impl FromArgMatches for TokenArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let command = matches.subcommand();
        let levels = [Some(matches), command.map(|(_, matches)| matches)];
        let typed = levels
            .into_iter()
            .filter_map(|level| level?.try_get_many::<String>(ID).ok()?)
            .flatten();
        Self::read(typed, command.map(|(name, _)| name)).map_err(|problem| {
            clap::Error::raw(ErrorKind::ValueValidation, invalid_token(&problem))
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::app::{Cli, VerbArgs};
    use crate::error::Failure;

    const LOCK_ID: &str = "0f8fad5b-d9cb-469f-a165-70867728950e.7.k3v9";
    const OTHER: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7.1.m2x4";

    /// Bearer token and lock id of a line, and whether the lock id was given as `--token`.
    fn read(words: &[&str]) -> Result<(String, String, bool), String> {
        let line = std::iter::once("kubectl-maint").chain(words.iter().copied());
        let cli = Cli::try_parse_from(line).map_err(|error| error.to_string())?;
        let token = cli.connection.token;
        let none = LockIdArgs::default();
        let args = match &cli.verb {
            VerbArgs::Renew(args) => &args.lock_id,
            VerbArgs::Release(args) => &args.lock_id,
            VerbArgs::Verify(args) => &args.lock_id,
            _ => &none,
        };
        let given = args.given(&token, &Environment::of_variables([("", ""); 0]));
        let given = given.map_err(|error| Failure::Input(error).to_string())?;
        let lock_id = given.and_then(|ids| ids.of_any).map(|id| id.to_string());
        Ok((
            token.bearer.clone().unwrap_or_default(),
            lock_id.unwrap_or_default(),
            token.is_deprecated(),
        ))
    }

    fn both(bearer: &str, lock_id: &str) -> Result<(String, String, bool), String> {
        Ok((bearer.to_owned(), lock_id.to_owned(), false))
    }

    #[test]
    fn bearer_token_and_lock_id_may_both_be_given() {
        for command in TAKING {
            for line in [
                ["--token", "secret", command, "n", "--lock-id", LOCK_ID],
                [command, "n", "--token", "secret", "--lock-id", LOCK_ID],
            ] {
                assert_eq!(read(&line), both("secret", LOCK_ID), "{line:?}");
            }
        }
    }

    #[test]
    fn the_earlier_flag_still_takes_a_lock_id() {
        let earlier = Ok((String::new(), LOCK_ID.to_owned(), true));
        assert_eq!(read(&["release", "n", "--token", LOCK_ID]), earlier);
        assert_eq!(read(&["--token", LOCK_ID, "release", "n"]), earlier);
        let with_bearer = read(&["--token", "secret", "renew", "n", "--token", LOCK_ID]);
        assert_eq!(with_bearer, Ok(("secret".into(), LOCK_ID.into(), true)));
    }

    #[test]
    fn what_is_no_lock_id_is_refused() {
        for command in TAKING {
            for word in ["garbage", "worker-1", "0f8fad5b", "7.k3v9", ""] {
                let error = read(&[command, "n", "--lock-id", word]).expect_err(word);
                assert!(error.contains("not a lock id"), "{error}");
            }
        }
    }

    #[test]
    fn bearer_tokens_of_all_kinds_stay_what_they_are() {
        for bearer in [
            "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl",
            "07401b.f395accd246ae52d",
            "sha256~2Cx5kJ",
            "0f8fad5b-d9cb-469f-a165-70867728950e",
            "31ada4fd-adec-460c-809a-9e56ceb75269",
            "k8s-aws-v1.aHR0cHM6Ly9zdHM",
        ] {
            assert_eq!(read(&["--token", bearer, "release", "n"]), both(bearer, ""));
            assert_eq!(read(&["release", "n", "--token", bearer]), both(bearer, ""));
            assert_eq!(read(&["acquire", "n", "--token", bearer]), both(bearer, ""));
        }
        assert_eq!(
            read(&["--token", "one", "acquire", "n", "--token", "two"]),
            both("two", "")
        );
    }

    #[test]
    fn a_mistyped_lock_id_is_no_credential() {
        for mistyped in [
            "0f8fad5b-d9cb-469f-a165-70867728950e.7",
            "0f8fad5b-d9cb-469f-a165-70867728950e.7.",
            "0f8fad5b-d9cb-469f-a165-70867728950e.seven.k3v9",
            "worker-1 0f8fad5b-d9cb-469f-a165-70867728950e.7.k3v9",
            "node/x.7.k3v9",
        ] {
            for command in ["release", "acquire"] {
                let error = read(&[command, "n", "--token", mistyped]).expect_err(mistyped);
                assert!(error.contains("looks like a lock id"), "{error}");
                assert!(!error.contains(mistyped), "{error}");
            }
        }
    }

    #[test]
    fn what_would_act_on_the_wrong_lock_is_refused() {
        for (line, why) in [
            (&["release", "n", "--token", ""][..], "it is empty"),
            (&["--token", "", "renew", "n"], "it is empty"),
            (
                &["acquire", "n", "--token", LOCK_ID],
                "only renew, release and verify",
            ),
            (
                &["--token", LOCK_ID, "acquire", "n"],
                "only renew, release and verify",
            ),
            (
                &["release", "n", "--token", LOCK_ID, "--token", OTHER],
                "more than one",
            ),
        ] {
            let error = read(line).expect_err("refused");
            assert!(error.contains(why), "{line:?}: {error}");
        }
        assert_eq!(
            read(&["acquire", "n", "--token", ""]),
            both("", ""),
            "as for kubectl"
        );
    }

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
