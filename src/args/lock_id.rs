//! `--lock-id`: the exact lock that a command must act on. And `--token`, kubectl's bearer token.
//!
//! For one release `--token` still accepts a lock id on the commands that have `--lock-id`, with a warning.
//! A value that looks like a lock id is never sent to the server as a credential.

use std::collections::BTreeMap;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use connect::Environment;
use maintenance_lease::protocol::LockId;

use super::HEADING;
use super::lock_ids::{LockIds, VARIABLE};
use super::nodes::Selection;
use crate::error::InputError;

const ID: &str = "token";
const FLAG: &str = "--lock-id";

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
    /// The lock id that the caller requires, by flag or by variable.
    ///
    /// # Errors
    /// If the variable is empty or invalid, or if not exactly one node is selected.
    pub(crate) fn demanded(
        &self,
        token: &TokenArgs,
        environment: &Environment,
        selection: &Selection,
    ) -> Result<Option<LockId>, InputError> {
        match (self.typed(token), LockIds::of(environment)) {
            (Some(id), _) if matches!(selection, Selection::Named(names) if names.len() == 1) => {
                Ok(Some(id.clone()))
            }
            (Some(_), _) => Err(InputError::LockIdOfMany { source: FLAG }),
            (None, variable) => match variable? {
                Some(ids) => ids.demanded(selection),
                None => Ok(None),
            },
        }
    }

    /// What a lock id that the caller requires was given with.
    pub(crate) fn source(&self, token: &TokenArgs) -> &'static str {
        self.typed(token).map_or(VARIABLE, |_| FLAG)
    }

    /// The lock ids to verify, by node: that of `node`, else all that are given.
    ///
    /// # Errors
    /// If none is given, or none for this node.
    pub(crate) fn to_verify(
        &self,
        token: &TokenArgs,
        environment: &Environment,
        node: Option<String>,
    ) -> Result<BTreeMap<String, LockId>, InputError> {
        let named = match self.typed(token) {
            Some(id) => Some(LockIds::OfAny(id.clone())),
            None => LockIds::of(environment)?,
        };
        let variable = VARIABLE;
        let named = named.ok_or(InputError::MissingLockId { variable })?;
        match (node, named) {
            (Some(node), named) => match named.of_node(&node) {
                Some(id) => Ok(BTreeMap::from([(node, id.clone())])),
                None => Err(InputError::NoLockIdOf { variable, node }),
            },
            (None, LockIds::Of(ids)) => Ok(ids),
            (None, LockIds::OfAny(_)) => Err(InputError::NoNodeOfLockId),
        }
    }

    fn typed<'a>(&'a self, token: &'a TokenArgs) -> Option<&'a LockId> {
        self.lock_id.as_ref().or(token.lock_id.as_ref())
    }
}

fn lock_id(typed: &str) -> Result<LockId, &'static str> {
    typed
        .parse()
        .map_err(|_| "not a lock id (see acquire -o lock-id)")
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
    ) -> Result<Self, &'static str> {
        let takes_lock_id = command.is_some_and(|command| TAKING.contains(&command));
        let mut args = Self::default();
        for word in typed {
            match Form::of(word) {
                Form::Mistyped => {
                    return Err(
                        "it looks like a lock id, but is not one: use --lock-id with the \
                                output of acquire -o lock-id",
                    );
                }
                // An empty variable in a script must not drop the check of the lock id.
                Form::Empty if takes_lock_id => {
                    return Err("it is empty");
                }
                Form::LockId(_) if !takes_lock_id => {
                    return Err("it is a lock id, which only renew, release and verify take");
                }
                Form::LockId(_) if args.lock_id.is_some() => {
                    return Err("more than one lock id given");
                }
                Form::LockId(id) => args.lock_id = Some(id),
                Form::Bearer | Form::Empty => args.bearer = Some(word.clone()),
            }
        }
        Ok(args)
    }
}

/// What a word is, judged by its form.
#[derive(Debug, PartialEq, Eq)]
enum Form {
    LockId(LockId),
    Mistyped,
    Bearer,
    Empty,
}

impl Form {
    fn of(word: &str) -> Self {
        let parts: Vec<&str> = word.split('.').collect();
        let is_count = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        match (word.parse(), &parts[..]) {
            (Ok(id), _) => Self::LockId(id),
            _ if word.is_empty() => Self::Empty,
            (_, [first, _, ..]) if ends_in_uid(first) => Self::Mistyped,
            (_, [_, count, _]) if is_count(count) => Self::Mistyped,
            _ => Self::Bearer,
        }
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
            clap::Error::raw(
                ErrorKind::ValueValidation,
                format!("invalid value for '--token <TOKEN>': {problem}\n"),
            )
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
        let lock_id = args.typed(&token).map(ToString::to_string);
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

    #[test]
    fn the_variable_counts_if_no_flag_does() {
        let one = Selection::Named(vec!["n".into()]);
        let two = Selection::Named(vec!["n".into(), "m".into()]);
        let variable = |value: &str| Environment::of_variables([(VARIABLE, value)]);
        let demanded = |flag: Option<&str>, value: &str, selection: &Selection| {
            let args = LockIdArgs {
                lock_id: flag.map(|flag| flag.parse().expect("a lock id")),
            };
            args.demanded(&TokenArgs::default(), &variable(value), selection)
                .map(|id| id.map(|id| id.to_string()))
                .map_err(|error| Failure::Input(error).to_string())
        };
        let id = |id: &str| Ok(Some(id.to_owned()));
        assert_eq!(demanded(None, LOCK_ID, &one), id(LOCK_ID));
        assert_eq!(demanded(Some(OTHER), LOCK_ID, &one), id(OTHER));
        assert_eq!(
            demanded(None, "", &one),
            Err("MAINT_LOCK_ID is set, but empty".into())
        );
        assert_eq!(
            demanded(None, LOCK_ID, &two),
            Err("MAINT_LOCK_ID is for one node only".into())
        );
        assert_eq!(
            demanded(Some(OTHER), "", &Selection::Mine),
            Err("--lock-id is for one node only".into())
        );
    }
}
