//! `--token`, which names two things: kubectl's bearer token and, for verbs that can demand one, an
//! acquisition.
//!
//! Behind a verb that can demand an acquisition, `--token` is that and nothing else: a slip there must
//! not drop the demand. Before the verb they are told apart by their form, so that a script may give
//! both. What looks like the token of an acquisition never goes to the server as a credential.

use std::collections::BTreeMap;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use maintenance_lease::protocol::Token;

use super::acquisitions::{Acquisitions, VARIABLE, not_of_one};
use super::connection::HEADING;
use super::nodes::Selection;
use crate::failure::Failure;
use connect::Environment;

const ID: &str = "token";

const OF_LOCK: &str =
    "Act only on the lock with this token, from acquire -o token [env: MAINT_TOKEN]";
const BEARER_GOES_FIRST: &str = "The token is the second word that acquire -o token prints. To pass a bearer token for the API server, \
                                 put --token before the command.";

/// The verbs that can demand an acquisition.
const DEMANDING: [&str; 3] = ["renew", "release", "verify"];

/// What `--token` said, before and behind the verb.
#[derive(Clone, Debug, Default)]
pub(crate) struct TokenArgs {
    /// The bearer token to authenticate with.
    pub(crate) bearer: Option<String>,
    acquisition: Option<Token>,
}

impl TokenArgs {
    /// The acquisition that the caller demands, by flag or by variable.
    ///
    /// # Errors
    /// Where the variable is there with something else, also with nothing, or other nodes than one are
    /// meant.
    pub(crate) fn acquisition(
        &self,
        environment: &Environment,
        selection: &Selection,
    ) -> Result<Option<Token>, Failure> {
        match (&self.acquisition, Acquisitions::of(environment)) {
            (Some(token), _) if matches!(selection, Selection::Named(names) if names.len() == 1) => {
                Ok(Some(token.clone()))
            }
            (Some(_), _) => Err(not_of_one("--token")),
            (None, variable) => match variable? {
                Some(acquisitions) => acquisitions.demanded(selection),
                None => Ok(None),
            },
        }
    }

    /// Says that a token, of an acquisition of the caller's, does not go with what `other` says.
    pub(crate) fn conflict(&self, other: &str) -> Failure {
        match self.acquisition {
            Some(_) => Failure::usage(
                format!("{other}, and a token names your own"),
                "do without one of them",
            ),
            None => Failure::usage(
                format!("{other}, and {VARIABLE} names your own"),
                format!("do without one of them: put `env -u {VARIABLE}` before the command"),
            ),
        }
    }

    /// The acquisitions that are to be verified, by node: that of `node`, else all that are named.
    ///
    /// # Errors
    /// Where none is named, or not that of the node.
    pub(crate) fn to_verify(
        &self,
        environment: &Environment,
        node: Option<String>,
    ) -> Result<BTreeMap<String, Token>, Failure> {
        let named = match &self.acquisition {
            Some(token) => Some(Acquisitions::OfAny(token.clone())),
            None => Acquisitions::of(environment)?,
        };
        let Some(named) = named else {
            return Err(Failure::usage(
                "no acquisition is given",
                "take the second word of acquire -o token for --token; `with` sets MAINT_TOKEN",
            ));
        };
        match (node, named) {
            (Some(node), named) => match named.of_node(&node) {
                Some(token) => Ok(BTreeMap::from([(node, token.clone())])),
                None => Err(Failure::usage(
                    format!("{VARIABLE} has no acquisition of node/{node}"),
                    "it is of the nodes that `with` has locked",
                )),
            },
            (None, Acquisitions::Of(tokens)) => Ok(tokens),
            (None, Acquisitions::OfAny(_)) => Err(Failure::usage(
                "no node is given",
                "name the node whose acquisition it is",
            )),
        }
    }

    /// Reads what was typed; each word with whether it stands behind the verb.
    fn read(typed: &[(String, bool)], verb: Option<&str>) -> Result<Self, &'static str> {
        let demanding = verb.is_some_and(|verb| DEMANDING.contains(&verb));
        let mut args = Self::default();
        for (word, is_behind) in typed {
            match Form::of(word) {
                Form::Mistyped => {
                    return Err("it looks like the token of an acquisition and is none: \
                                give the second word of acquire -o token");
                }
                Form::Bearer if demanding && *is_behind => {
                    return Err(
                        "it is not the token of an acquisition\nhint: that is the second \
                                word of acquire -o token; a bearer token goes before the verb",
                    );
                }
                Form::Empty if demanding => {
                    return Err("it is empty: without a token this would be for whichever \
                                acquisition stands there");
                }
                Form::Acquisition(_) if !demanding => {
                    return Err("it is the token of an acquisition, which only renew, \
                                release and verify take");
                }
                Form::Acquisition(_) if args.acquisition.is_some() => {
                    return Err("several acquisitions are given, and each is of one node");
                }
                Form::Acquisition(token) => args.acquisition = Some(token),
                Form::Bearer | Form::Empty => args.bearer = Some(word.clone()),
            }
        }
        Ok(args)
    }
}

/// What a word is, going by its looks.
#[derive(Debug, PartialEq, Eq)]
enum Form {
    Acquisition(Token),
    Mistyped,
    Bearer,
    Empty,
}

impl Form {
    fn of(word: &str) -> Self {
        let parts: Vec<&str> = word.split('.').collect();
        let is_count = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        match (word.parse(), &parts[..]) {
            (Ok(token), _) => Self::Acquisition(token),
            _ if word.is_empty() => Self::Empty,
            (_, [first, _, ..]) if ends_in_uid(first) => Self::Mistyped,
            (_, [_, count, _]) if is_count(count) => Self::Mistyped,
            _ => Self::Bearer,
        }
    }
}

/// Whether the last word of `text` is a uid; the name of the node may have come along.
fn ends_in_uid(text: &str) -> bool {
    let word = text.split_whitespace().next_back().unwrap_or_default();
    let groups: Vec<&str> = word.split('-').collect();
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups.concat().bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Gives a verb its `--token`.
pub(crate) fn on_verb(verb: Command) -> Command {
    let arg = match DEMANDING.contains(&verb.get_name()) {
        true => bearer()
            .help_heading(None::<&str>)
            .hide_short_help(false)
            .hide_long_help(false)
            .help(OF_LOCK)
            .long_help(format!("{OF_LOCK}\n\n{BEARER_GOES_FIRST}")),
        false => bearer(),
    };
    // Of a flag that is given twice the last one counts, as in kubectl.
    verb.arg(arg).args_override_self(true)
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

/// From the matches of the whole line: of two bearer tokens the later counts, as for kubectl.
impl FromArgMatches for TokenArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let verb = matches.subcommand();
        let levels = [
            (Some(matches), false),
            (verb.map(|(_, matches)| matches), true),
        ];
        let typed: Vec<(String, bool)> = levels
            .into_iter()
            .filter_map(|(level, is_behind)| {
                Some((level?.try_get_many::<String>(ID).ok()??, is_behind))
            })
            .flat_map(|(words, is_behind)| words.map(move |word| (word.clone(), is_behind)))
            .collect();
        Self::read(&typed, verb.map(|(name, _)| name)).map_err(|problem| {
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
    use crate::cli::Cli;

    const ACQUISITION: &str = "0f8fad5b-d9cb-469f-a165-70867728950e.7.k3v9";
    const OTHER: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7.1.m2x4";

    /// Bearer token and acquisition of a line.
    fn read(words: &[&str]) -> Result<(Option<String>, Option<String>), String> {
        let line = std::iter::once("kubectl-maint").chain(words.iter().copied());
        let tokens = Cli::try_parse_from(line)
            .map_err(|error| error.to_string())?
            .connection
            .token;
        let acquisition = tokens.acquisition.map(|token| token.to_string());
        Ok((tokens.bearer, acquisition))
    }

    fn both(bearer: &str, acquisition: &str) -> Result<(Option<String>, Option<String>), String> {
        let given = |word: &str| (!word.is_empty()).then(|| word.to_owned());
        Ok((given(bearer), given(acquisition)))
    }

    #[test]
    fn bearer_and_acquisition_may_both_be_given() {
        for verb in DEMANDING {
            for line in [
                ["--token", "secret", verb, "n", "--token", ACQUISITION],
                ["--token", "secret", "--token", ACQUISITION, verb, "n"],
            ] {
                assert_eq!(read(&line), both("secret", ACQUISITION), "{line:?}");
            }
        }
    }

    #[test]
    fn behind_a_verb_that_demands_nothing_but_an_acquisition_will_do() {
        for verb in DEMANDING {
            for word in ["garbage", "worker-1", "0f8fad5b", "7.k3v9"] {
                let error = read(&[verb, "n", "--token", word]).expect_err(word);
                assert!(error.contains("not the token of an acquisition"), "{error}");
                assert!(!error.contains(word), "it may be a secret: {error}");
            }
            let error = read(&["--token", ACQUISITION, verb, "n", "--token", "secret"]);
            assert!(error.is_err(), "{error:?}");
        }
    }

    #[test]
    fn one_alone_is_not_the_other() {
        assert_eq!(
            read(&["release", "n", "--token", ACQUISITION]),
            both("", ACQUISITION)
        );
        assert_eq!(
            read(&["--token", ACQUISITION, "release", "n"]),
            both("", ACQUISITION)
        );
        assert_eq!(
            read(&["--token", "secret", "release", "n"]),
            both("secret", "")
        );
        assert_eq!(read(&["release", "n"]), both("", ""));
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
            assert_eq!(read(&["acquire", "n", "--token", bearer]), both(bearer, ""));
        }
        assert_eq!(
            read(&["--token", "one", "acquire", "n", "--token", "two"]),
            both("two", "")
        );
    }

    #[test]
    fn a_mistyped_acquisition_is_no_credential() {
        for mistyped in [
            "0f8fad5b-d9cb-469f-a165-70867728950e.7",
            "0f8fad5b-d9cb-469f-a165-70867728950e.7.",
            "0f8fad5b-d9cb-469f-a165-70867728950e.seven.k3v9",
            "worker-1 0f8fad5b-d9cb-469f-a165-70867728950e.7.k3v9",
            "node/x.7.k3v9",
        ] {
            for verb in ["release", "acquire"] {
                let error = read(&[verb, "n", "--token", mistyped]).expect_err(mistyped);
                assert!(error.contains("looks like the token"), "{error}");
                assert!(!error.contains(mistyped), "{error}");
            }
        }
    }

    #[test]
    fn what_would_act_on_the_wrong_acquisition_is_refused() {
        for (line, why) in [
            (&["release", "n", "--token", ""][..], "it is empty"),
            (&["--token", "", "renew", "n"], "it is empty"),
            (
                &["acquire", "n", "--token", ACQUISITION],
                "only renew, release and verify",
            ),
            (
                &["--token", ACQUISITION, "acquire", "n"],
                "only renew, release and verify",
            ),
            (
                &["release", "n", "--token", ACQUISITION, "--token", OTHER],
                "several",
            ),
        ] {
            let error = read(line).expect_err("refused");
            assert!(error.contains(why), "{line:?}: {error}");
        }
        assert_eq!(
            read(&["acquire", "n", "--token", ""]).map(|(_, acquisition)| acquisition),
            Ok(None),
            "as for kubectl"
        );
    }

    #[test]
    fn the_variable_counts_where_no_flag_does() {
        let one = Selection::Named(vec!["n".into()]);
        let two = Selection::Named(vec!["n".into(), "m".into()]);
        let variable = |value: &str| Environment::of_variables([(VARIABLE, value)]);
        let demanded = |flag: Option<&str>, value: &str, selection: &Selection| {
            let args = TokenArgs {
                bearer: None,
                acquisition: flag.map(|flag| flag.parse().expect("a token")),
            };
            args.acquisition(&variable(value), selection)
                .map(|token| token.map(|token| token.to_string()))
                .map_err(|failure| failure.to_string())
        };
        let token = |token: &str| Ok(Some(token.to_owned()));
        assert_eq!(demanded(None, ACQUISITION, &one), token(ACQUISITION));
        assert_eq!(demanded(Some(OTHER), ACQUISITION, &one), token(OTHER));
        assert_eq!(
            demanded(None, "", &one),
            Err("MAINT_TOKEN is set and empty".into())
        );
        let unset = Environment::of_variables::<&str, &str>([]);
        assert_eq!(
            TokenArgs::default()
                .acquisition(&unset, &two)
                .map_err(|failure| failure.to_string()),
            Ok(None)
        );
        assert_eq!(
            demanded(None, "secret", &one),
            Err("MAINT_TOKEN has no token of an acquisition".into())
        );
        assert_eq!(
            demanded(None, ACQUISITION, &two),
            Err("MAINT_TOKEN names one acquisition of one node".into())
        );
        assert_eq!(
            demanded(Some(OTHER), "", &Selection::Mine),
            Err("--token names one acquisition of one node".into())
        );
    }
}
