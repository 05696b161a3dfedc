//! `--token`, kubectl's bearer token.
//!
//! For one release it still accepts a lock id on the commands that have `--lock-id`, with a warning. A value that
//! looks like a lock id is never sent to the server as a credential.

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use maintenance_lease::protocol::LockId;

use crate::error::InvalidValue;
use crate::words::hint_command::HEADING;
use crate::words::value::invalid_token;

const ID: &str = "token";

/// The commands that accept a lock id.
pub(super) const TAKING: [&str; 3] = ["renew", "release", "verify"];

/// The values of `--token`, before and after the command.
#[derive(Clone, Debug, Default)]
pub(crate) struct TokenArgs {
    /// The bearer token to authenticate with.
    pub(crate) bearer: Option<String>,
    /// A lock id, given as earlier releases accepted it.
    lock_id: Option<LockId>,
}

impl TokenArgs {
    /// The lock id, if one was given as earlier releases accepted it.
    pub(crate) fn lock_id(&self) -> Option<&LockId> {
        self.lock_id.as_ref()
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
    use connect::Environment;

    use super::*;
    use crate::app::{Cli, VerbArgs};
    use crate::args::lock_id::LockIdArgs;
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
        let lock_id = given.and_then(|ids| Some(ids.of_node("n")?.to_string()));
        Ok((
            token.bearer.clone().unwrap_or_default(),
            lock_id.unwrap_or_default(),
            token.lock_id().is_some(),
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
    fn invalid_lock_ids_are_refused() {
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
    fn ambiguous_lock_ids_are_refused() {
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
}
