//! Names from the cluster, within a time limit.

use std::ffi::OsString;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command, FromArgMatches as _};
use clap_complete::engine::CompletionCandidate;
use connect::{Environment, KubeconfigNames, Notices, connect, names_of};
use maintenance_lease::protocol::{Now, State};
use maintenance_lease::{Maintenance, NodeLease, RowDetail};
use pod_safety::cluster::Reader;
use pod_safety::fencing::{is_of_fencing, protects_fencing};
use tokio::time::timeout;

use crate::args::connection::{ConnectionArgs, USER_AGENT};
use crate::args::default_holder::HolderArgs;
use crate::object::{self, Kind, kind_and_name};
use crate::words::holder_name::of_node;
use crate::words::usage;

/// How long to wait for names. The total limit is two seconds, which includes ending a plugin, the shell
/// and kubectl.
const LIMIT: Duration = Duration::from_millis(1400);

/// How long ending a slow request or plugin may take.
const END: Duration = Duration::from_millis(400);

/// A name and its description.
type Row = (String, String);

/// What an object of `kind` is for `verb`; `None` if the verb takes none.
fn described(kind: Kind, verb: &str) -> Option<&'static str> {
    match (verb, kind) {
        ("force-delete" | "why", Kind::Pod) => Some("A pod"),
        ("force-delete", Kind::Node) => Some(usage::NODE_WITH_PODS),
        ("why", Kind::Claim) => Some("A PersistentVolumeClaim"),
        ("why", Kind::Namespace) => Some("A namespace"),
        _ => None,
    }
}

/// The nodes that may complete `typed` on this command line; `None` if the line or the cluster does not
/// show them.
pub(super) fn nodes(
    definition: fn() -> Command,
    words: Vec<OsString>,
    typed: &str,
) -> Option<Vec<CompletionCandidate>> {
    let line = Line::read(definition, words)?;
    match kind_and_name(typed) {
        None | Some((Some(Kind::Node), _)) => line.complete(Kind::Node, typed),
        _ => None,
    }
}

/// The completions of `typed` in the form `KIND/NAME`: a kind, then the names. `None` if the line or the
/// cluster does not show them.
pub(super) fn targets(
    definition: fn() -> Command,
    words: Vec<OsString>,
    typed: &str,
) -> Option<Vec<CompletionCandidate>> {
    let line = Line::read(definition, words)?;
    // The word that is being typed counts as one.
    let is_alone = line.names.iter().all(|other| other == typed);
    let kind = match kind_and_name(typed) {
        Some((kind, _)) => Some(kind?),
        None => line.kind.filter(|_| !is_alone),
    };
    if let Some(kind) = kind {
        described(kind, &line.verb)?;
        return line.complete(kind, typed);
    }
    let all = [Kind::Pod, Kind::Claim, Kind::Namespace, Kind::Node];
    let offered = all.into_iter().filter_map(|kind| {
        // Only pods can be named together.
        let is_possible = is_alone || (line.verb != "why" && kind == Kind::Pod);
        let about = described(kind, &line.verb).filter(|_| is_possible)?;
        let beginning = format!("{}/", kind.word());
        let is_typed = beginning.starts_with(typed);
        is_typed.then(|| CompletionCandidate::new(beginning).help(Some(about.into())))
    });
    (!line.is_selected).then(|| offered.collect())
}

/// The names in the kubeconfig of this command line; `None` if it cannot be read.
pub(super) fn kubeconfig(
    definition: fn() -> Command,
    words: Vec<OsString>,
) -> Option<KubeconfigNames> {
    let matches = read(definition, words)?;
    let flags = ConnectionArgs::from_arg_matches(&matches).ok()?.flags;
    in_time(move || names_of(&flags, &Environment::of_this_process()).ok())?
}

/// The result of `ask`, unless it takes too long: a thread that hangs on a disk ends with the process.
fn in_time<T: Send + 'static>(ask: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (done, answer) = mpsc::sync_channel(1);
    thread::Builder::new()
        .spawn(move || done.send(ask()))
        .ok()?;
    answer.recv_timeout(LIMIT + END).ok()
}

/// What is typed so far; `None` if it can't be understood.
fn read(definition: fn() -> Command, words: Vec<OsString>) -> Option<ArgMatches> {
    let definition = definition().ignore_errors(true);
    definition.try_get_matches_from(words).ok()
}

/// The contents of a half-typed command line.
struct Line {
    verb: String,
    connection: ConnectionArgs,
    holder: HolderArgs,
    /// The nodes or other objects, without their kind.
    names: Vec<String>,
    /// The kind that is the first word, as in `pod web-0`.
    kind: Option<Kind>,
    /// The nodes are selected by a flag, which can't be combined with names.
    is_selected: bool,
    force: bool,
}

/// The flags that select nodes.
const SELECTING: [&str; 4] = ["selector", "all", "nodes_from", "mine"];

impl Line {
    fn read(definition: fn() -> Command, words: Vec<OsString>) -> Option<Self> {
        let matches = read(definition, words)?;
        let (verb, of_verb) = matches.subcommand()?;
        let typed = |id: &str| -> Vec<String> {
            let values = of_verb.try_get_many::<String>(id).ok().flatten();
            values.into_iter().flatten().cloned().collect()
        };
        let objects = ["nodes", "targets", "object"].iter();
        let objects: Vec<String> = objects.flat_map(|id| typed(id)).collect();
        Some(Self {
            verb: verb.to_owned(),
            connection: ConnectionArgs::from_arg_matches(&matches).ok()?,
            holder: HolderArgs::from_arg_matches(&matches).ok()?,
            kind: objects.first().and_then(|word| Kind::of(word)),
            names: objects
                .iter()
                .map(|typed| object::name(typed).to_owned())
                .collect(),
            is_selected: SELECTING.iter().any(|flag| is_typed(of_verb, flag)),
            force: is_typed(of_verb, "force"),
        })
    }

    /// The names that begin as `typed` does and are not on the line yet.
    fn complete(self, kind: Kind, typed: &str) -> Option<Vec<CompletionCandidate>> {
        if self.is_selected {
            return None;
        }
        let begun = object::name(typed);
        let before = typed.strip_suffix(begun).unwrap_or_default();
        let on_the_line = self.names.clone();
        let rows = in_time(move || self.ask(kind))??;
        let rows = rows.into_iter().filter(|(name, _)| {
            name.starts_with(begun) && (name == begun || !on_the_line.contains(name))
        });
        let candidates = rows.map(|(name, about)| {
            CompletionCandidate::new(format!("{before}{name}")).help(Some(about.into()))
        });
        Some(candidates.collect())
    }

    /// The objects that make sense for the verb, each with its description.
    fn ask(&self, kind: Kind) -> Option<Vec<Row>> {
        in_a_runtime(async {
            let (locks, namespace) = self.locks().await?;
            let reader = Reader::new(locks.requests().clone());
            let rows = match kind {
                Kind::Node => return self.nodes(&locks).await,
                Kind::Pod => reader.pod_rows(&namespace).await,
                Kind::Claim => reader.claim_rows(&namespace).await,
                Kind::Namespace => reader.namespace_rows().await,
            };
            let is_stuck = |(_, status): &Row| match &*self.verb {
                "why" => !["Running", "Completed", "Bound", "Active"].contains(&status.as_str()),
                _ => status == "Terminating",
            };
            let (stuck, others): (Vec<Row>, Vec<Row>) = rows.ok()?.into_iter().partition(is_stuck);
            Some(if stuck.is_empty() { others } else { stuck })
        })
    }

    /// The nodes that make sense for the verb, else all that it is not refused for.
    async fn nodes(&self, locks: &Maintenance) -> Option<Vec<Row>> {
        let mut refused = Vec::new();
        if self.is_for_locked_nodes() {
            let leases = locks.list().await.ok()?;
            let now = locks.server_time().now();
            let wanted = self.wanted(locks, leases.values(), now);
            if !wanted.is_empty() || self.verb == "unfence" {
                return Some(wanted);
            }
            let of_fencing = leases.values().filter(|lease| is_of_fencing(lease, now));
            refused.extend(of_fencing.map(|lease| lease.node().to_owned()));
        }
        let rows = locks.nodes(None, RowDetail::Cells).await.ok()?;
        let rows = rows.into_iter().filter(|row| !refused.contains(&row.name));
        Some(rows.map(|row| (row.name, row.status)).collect())
    }

    /// The connection and the namespace.
    async fn locks(&self) -> Option<(Maintenance, String)> {
        let environment = Environment::of_this_process();
        let nobody: Notices = Arc::new(|_| ());
        let connection = connect(&self.connection.flags, &environment, USER_AGENT, &nobody)
            .await
            .ok()?;
        let namespace = connection.client.default_namespace().to_owned();
        let holder = self.holder.of(&connection.api_user, &environment);
        let locks = Maintenance::builder(connection.client, holder)
            .request_timeout(Some(LIMIT))
            .build();
        Some((locks.ok()?, namespace))
    }

    fn is_for_locked_nodes(&self) -> bool {
        matches!(
            self.verb.as_str(),
            "release" | "renew" | "unhold" | "unfence"
        )
    }

    /// The nodes whose lock the verb can end or extend.
    fn wanted<'a>(
        &self,
        locks: &Maintenance,
        leases: impl Iterator<Item = &'a NodeLease>,
        now: Now,
    ) -> Vec<Row> {
        let is_wanted = |lease: &&NodeLease| match (self.verb.as_str(), lease.state(now)) {
            // A fencing that did not finish has left only its hold.
            ("unfence", _) => lease.is_fenced() || is_of_fencing(lease, now),
            ("release" | "unhold", _) if protects_fencing(lease, now) => false,
            ("unhold", state) => state == State::AdminHold,
            (_, State::Held { .. } | State::Expired { .. }) => self.force || locks.is_own(lease),
            ("release", State::AdminHold) => locks.is_own(lease),
            (_, State::Free | State::AdminHold) => false,
        };
        let mut named: Vec<Row> = leases
            .filter(is_wanted)
            .map(|lease| (lease.node().to_owned(), about(lease)))
            .collect();
        named.sort();
        named
    }
}

/// The result of `asking` if it comes in time. Ends a credential plugin that is still running by then.
fn in_a_runtime<T>(asking: impl Future<Output = Option<T>>) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    let answer = runtime.block_on(async { timeout(LIMIT, asking).await.ok()? });
    runtime.shutdown_background();
    answer
}

fn is_typed(matches: &ArgMatches, flag: &str) -> bool {
    let is_known = matches!(matches.try_contains_id(flag), Ok(true));
    is_known && matches.value_source(flag) == Some(ValueSource::CommandLine)
}

/// Who has the lock and why, on one line.
fn about(lease: &NodeLease) -> String {
    let words = [
        lease.holder().map(of_node),
        lease.reason().map(crate::text::escape),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::app::Cli;

    fn typed(words: &[&str]) -> Vec<OsString> {
        let mut line = vec![OsString::from("kubectl_complete-maint")];
        line.extend(words.iter().map(Into::into));
        line
    }

    fn read(words: &[&str]) -> Line {
        Line::read(Cli::command, typed(words)).expect("a verb")
    }

    #[test]
    fn names_of_the_kubeconfig_need_no_verb() {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = scratch.path().join("config");
        let config = "contexts: [{name: prod, context: {cluster: c, user: u}}]";
        std::fs::write(&path, config).expect("a file");
        let path = path.display().to_string();
        for words in [
            &["--kubeconfig", &path, "--context", ""][..],
            &["--kubeconfig", &path, "--context=p"],
            &["acquire", "--kubeconfig", &path, "--context", ""],
        ] {
            let names = kubeconfig(Cli::command, typed(words)).expect("names");
            assert_eq!(names.contexts, ["prod"], "{words:?}");
        }
    }

    #[test]
    fn flags_count_wherever_they_stand() {
        for words in [
            ["--context", "prod", "release", "a", ""],
            ["release", "--context=prod", "a", "--force", ""],
            ["release", "a", "--context", "prod", "no"],
        ] {
            let line = read(&words);
            assert_eq!(
                line.connection.flags.context.as_deref(),
                Some("prod"),
                "{words:?}"
            );
            assert_eq!(line.verb, "release");
            assert_eq!(line.names[0], "a");
            assert_eq!(line.force, words.contains(&"--force"));
        }
    }

    #[test]
    fn an_unfinished_line_is_read_up_to_its_end() {
        assert_eq!(read(&["unlock", "a", ""]).verb, "release");
        let line = read(&["acquire", "--kubeconfig", "/k", "node/a", "-m", ""]);
        assert_eq!(
            line.connection.flags.kubeconfig.as_deref(),
            Some("/k".as_ref())
        );
        assert_eq!(line.names, ["a"]);
        let line = read(&["acquire", "-s", "https://h", "--duration", "soon", "b"]);
        assert_eq!(line.connection.flags.server.as_deref(), Some("https://h"));
    }

    #[test]
    fn a_holder_given_by_name_counts() {
        assert_eq!(
            read(&["release", "--holder", "me", ""])
                .holder
                .holder
                .as_deref(),
            Some("me")
        );
    }

    #[test]
    fn nodes_that_are_selected_have_no_names_to_complete() {
        for words in [
            &["release", "--mine", ""][..],
            &["hold", "-l", "pool=gpu", "-m", "why", ""],
            &["acquire", "", "--all"],
            &["renew", "--nodes-from=-", "no"],
            &["force-delete", "-l", "app=web", ""],
        ] {
            assert!(read(words).is_selected, "{words:?}");
        }
        for words in [&["release", "a", ""][..], &["with", "a", "--reentry", ""]] {
            assert!(!read(words).is_selected, "{words:?}");
        }
        let line = ["x", "force-delete", "-l", "app=web", ""];
        assert_eq!(
            targets(Cli::command, line.map(OsString::from).into(), ""),
            None
        );
    }

    #[test]
    fn words_that_are_no_node_have_no_candidates() {
        assert_eq!(
            nodes(Cli::command, vec!["x".into(), "acquire".into()], "pod/a"),
            None
        );
    }
}
