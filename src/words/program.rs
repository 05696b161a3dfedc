//! How this program was run, which is how the next command begins.

use std::fmt;

use clap::ArgMatches;
use clap::parser::ValueSource;
use maintenance_lease::protocol::identity;

use super::command_line::{Again, NO_REASON};
use crate::text::for_shell;

/// How users run it.
pub(crate) const NAME: &str = "kubectl maint";

/// The name of its file, for use without kubectl.
pub(crate) const FILE: &str = "kubectl-maint";

/// The flags for cluster and user that the next command repeats if they were typed. Each is written as it
/// precedes its value. kubectl has all of them.
const PLACE: [(&str, &str); 14] = [
    ("kubeconfig", "--kubeconfig "),
    ("context", "--context "),
    ("cluster", "--cluster "),
    ("user", "--user "),
    ("server", "-s "),
    ("impersonate", "--as "),
    ("impersonate_groups", "--as-group "),
    ("impersonate_uid", "--as-uid "),
    ("impersonate_extra", "--as-user-extra "),
    ("certificate_authority", "--certificate-authority "),
    ("client_certificate", "--client-certificate "),
    ("client_key", "--client-key "),
    ("insecure_skip_tls_verify", "--insecure-skip-tls-verify="),
    ("tls_server_name", "--tls-server-name "),
];
const HOLDER: (&str, &str) = ("holder", "--holder ");

/// How this program was run. Its text is the start of the next command, for the same cluster and the same
/// holder.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    place: String,
    holder: String,
    again: Again,
    /// The holder of the `with` that this runs under.
    outer: Option<String>,
}

impl Program {
    /// The program, run with `matches`.
    pub(crate) fn new(matches: &ArgMatches) -> Self {
        let again = |(id, flag)| -> Option<String> {
            let is_typed = matches.value_source(id) == Some(ValueSource::CommandLine);
            let values = matches.get_raw(id).filter(|_| is_typed)?;
            let values = values.map(|value| for_shell(&value.to_string_lossy()));
            Some(values.map(|value| format!(" {flag}{value}")).collect())
        };
        Self {
            place: PLACE.into_iter().filter_map(again).collect(),
            holder: again(HOLDER).unwrap_or_default(),
            again: Again::new(matches),
            outer: None,
        }
    }

    /// Sets the holder of the `with` that this runs under, if any.
    pub(crate) fn under(self, holder: Option<&str>) -> Self {
        Self {
            outer: holder.map(ToOwned::to_owned),
            ..self
        }
    }

    /// Whether this runs under the lock of `holder`, which may be a hold.
    pub(crate) fn is_under(&self, holder: &str) -> bool {
        self.outer.as_deref() == Some(identity::person(holder))
    }

    /// The same program and request, for `nodes` only.
    pub(crate) fn narrowed(&self, nodes: &[String]) -> Self {
        Self {
            again: self.again.narrowed(nodes),
            ..self.clone()
        }
    }

    /// What it was asked to do.
    pub(crate) fn asked(&self) -> &Again {
        &self.again
    }

    /// The command again, with `flag`, for the given nodes, else for `node`.
    pub(crate) fn again(&self, node: &str, flag: &str) -> String {
        format!("{self} {}", self.again.line(node, flag))
    }

    /// The whole command again, with `flag`.
    pub(crate) fn whole(&self, node: &str, flag: &str) -> String {
        format!("{self} {}", self.again.whole(node, flag))
    }

    /// The whole command again, which also accepts the risk `id`. That requires a reason.
    pub(crate) fn accepting(&self, node: &str, id: &str) -> String {
        let reason = match self.again.has_reason() {
            true => String::new(),
            false => format!(" -m \"{NO_REASON}\""),
        };
        self.whole(node, &format!("--accept-risk={id}{reason}"))
    }

    /// The start of a command as `holder`.
    pub(crate) fn as_holder(&self, holder: &str) -> Self {
        Self {
            holder: format!(" {}{}", HOLDER.1, for_shell(holder)),
            ..self.clone()
        }
    }

    /// The start of a kubectl command for the same cluster.
    pub(crate) fn kubectl(&self) -> String {
        format!("kubectl{}", self.place)
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, holder, .. } = self;
        write!(f, "{NAME}{place}{holder}")
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::app::Cli;

    fn run_with(words: &[&str]) -> Program {
        let line = std::iter::once("kubectl-maint").chain(words.iter().copied());
        let matches = Cli::command().try_get_matches_from(line);
        Program::new(&matches.expect("a line"))
    }

    #[test]
    fn a_next_command_goes_where_this_one_went() {
        let program = run_with(&[
            "--context",
            "prod",
            "acquire",
            "a",
            "--holder",
            "me you",
            "-s",
            "https://h",
            "-v6",
        ]);
        assert_eq!(
            program.to_string(),
            "kubectl maint --context prod -s https://h --holder 'me you'"
        );
        assert_eq!(
            program.as_holder("bob@laptop").to_string(),
            "kubectl maint --context prod -s https://h --holder bob@laptop"
        );
        assert_eq!(program.kubectl(), "kubectl --context prod -s https://h");
        // The hint is a command line, so parse it as one.
        run_with(&[
            "--context",
            "prod",
            "-s",
            "https://h",
            "--holder",
            "me",
            "renew",
            "a",
        ]);
    }

    #[test]
    fn a_next_command_is_by_whom_this_one_was() {
        let line = [
            "status",
            "--as=dev",
            "--as-group",
            "one",
            "--as-group",
            "other",
            "--insecure-skip-tls-verify",
        ];
        assert_eq!(
            run_with(&line).to_string(),
            "kubectl maint --as dev --as-group one --as-group other \
             --insecure-skip-tls-verify=true"
        );
    }

    #[test]
    fn what_was_not_typed_is_not_repeated() {
        assert_eq!(run_with(&["acquire", "a"]).to_string(), "kubectl maint");
        let secret = run_with(&["--token", "secret", "status"]);
        assert_eq!(secret.to_string(), "kubectl maint");
    }
}
