//! `acquire`: take the lock of nodes that nobody holds.

use std::collections::BTreeMap;

use clap::Args;
use maintenance_lease::{Acquire, Aside, Change, Done, NodeEvent, Release};

use super::problems::{Problems, is_contention};
use super::targets::{Target, Targets};
use super::{events, many, targets};
use crate::cli::duration;
use crate::cli::holder::HolderArgs;
use crate::cli::nodes::NodeArgs;
use crate::cli::output::{Format, OutputArgs};
use crate::cli::writing::{WriteArgs, reason};
use crate::exit::Code;
use crate::failure::Failure;
use crate::report::item::Item;
use crate::report::{change, print};
use crate::session::{Session, Start};
use crate::terminal::escape;

/// Take the maintenance lock of nodes
///
/// Takes nodes that nobody holds, and nodes whose lease expired: then somebody did not finish, and
/// it says who. Whoever holds a node is named with the reason, since when and until when; exit
/// code 3.
///
/// Several nodes are taken all or none: what this very call took is given back where one is refused.
/// --partial keeps what it can get.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  kubectl maint acquire worker-1 -m \"new kernel\"
  kubectl maint acquire -l pool=gpu --duration 1h -m \"driver update\"
  TOKEN=$(kubectl maint acquire worker-1 -o token | cut -d' ' -f2)")]
pub(crate) struct AcquireArgs {
    #[command(flatten)]
    pub(crate) nodes: NodeArgs,

    /// Why, for everybody who meets the lock
    #[arg(short = 'm', long, value_name = "REASON", value_parser = reason)]
    pub(crate) message: Option<String>,

    /// For how long: a whole number of seconds up to 1h, such as 90s, 30m or 1h
    #[arg(
        long,
        value_name = "TIME",
        default_value = "30m",
        allow_hyphen_values = true,
        value_parser = duration::lease
    )]
    pub(crate) duration: std::time::Duration,

    /// Accept nodes that you hold already, as a renewal of that acquisition
    #[arg(long)]
    pub(crate) reentry: bool,

    /// Refuse nodes whose lease expired
    #[arg(long)]
    pub(crate) free_only: bool,

    /// Of several nodes, keep those that can be had
    #[arg(long)]
    pub(crate) partial: bool,

    #[command(flatten)]
    pub(crate) write: WriteArgs,

    #[command(flatten)]
    pub(crate) holder: HolderArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What became of each node, by name.
type Results = BTreeMap<String, Result<Change, Failure>>;

pub(crate) async fn run(args: &AcquireArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let selection = args.nodes.selection(false, std::io::stdin())?;
    let session = start.writing(&args.holder, &args.write).await?;
    let mut options = Acquire::new()
        .duration(args.duration)
        .reentry(args.reentry)
        .free_only(args.free_only);
    if let Some(reason) = &args.message {
        options = options.reason(reason);
    }
    let targets = targets::find(&session, selection.clone(), true, &|_| false).await?;
    super::confirm::all_nodes(&session, &selection, &targets, "acquire", args.write.yes)?;

    let work = Work {
        session: &session,
        args,
        options,
    };
    let all_or_none = !args.partial && targets.nodes.len() > 1;
    let mut results = if all_or_none {
        work.all_or_none(targets.nodes.clone()).await
    } else {
        work.each(targets.nodes.clone(), args.nodes.parallel).await
    };
    work.report(&targets, &mut results).await
}

struct Work<'a> {
    session: &'a Session<'a>,
    args: &'a AcquireArgs,
    options: Acquire,
}

impl Work<'_> {
    /// Takes what can be had of `targets`.
    async fn each(&self, targets: Vec<Target>, parallel: u16) -> Results {
        let mut results = Results::new();
        many::in_order(
            targets,
            parallel,
            |target| async move {
                let acquired = self
                    .session
                    .locks
                    .try_acquire_seen(&target.node, &self.options, target.seen)
                    .await?;
                Ok(acquired)
            },
            |node, result| {
                results.insert(node.to_owned(), result);
            },
        )
        .await;
        results
    }

    /// Takes all of `targets` or none.
    ///
    /// The first in name order is taken alone, the others then in parallel. Where that is refused
    /// on the way, everything is given back, and tried once more one after another in name order:
    /// of callers who overlap, the one that gets the first common node gets all.
    async fn all_or_none(&self, mut targets: Vec<Target>) -> Results {
        let refused: Results = targets
            .iter()
            .filter_map(|target| {
                let seen = target.seen.as_ref()?;
                let refusal = self
                    .session
                    .locks
                    .check_acquire(seen, &self.options)
                    .err()?;
                Some((target.node.clone(), Err(refusal.into())))
            })
            .collect();
        if !refused.is_empty() {
            return refused;
        }
        targets.sort_by(|one, other| one.node.cmp(&other.node));
        let rest = targets.split_off(1);
        let mut results = self.each(targets.clone(), 1).await;
        if results.values().all(Result::is_ok) {
            results.extend(self.each(rest.clone(), self.args.nodes.parallel).await);
        }
        if results.values().all(Result::is_ok) {
            return results;
        }
        let contended = results
            .values()
            .filter_map(|result| result.as_ref().err())
            .all(is_contention);
        if !self.give_back(&mut results).await || !contended {
            return results;
        }
        let mut results = Results::new();
        for target in targets.into_iter().chain(rest) {
            let again = Target {
                seen: None,
                ..target
            };
            results.extend(self.each(vec![again], 1).await);
            if results.values().any(Result::is_err) {
                self.give_back(&mut results).await;
                break;
            }
        }
        results
    }

    /// Gives back just what this call took, and takes it out of `results`. Returns whether all of
    /// it was given back; what was not stays, as the failure that it is.
    async fn give_back(&self, results: &mut Results) -> bool {
        let (taken, others): (Results, Results) = std::mem::take(results)
            .into_iter()
            .partition(|(_, result)| matches!(result, Ok(change) if change.done == Done::Acquired));
        *results = others;
        results.retain(|_, result| result.is_err());
        let targets = taken
            .keys()
            .map(|node| Target {
                node: node.clone(),
                seen: None,
            })
            .collect();
        let mut complete = true;
        many::in_order(
            targets,
            self.args.nodes.parallel,
            |target| {
                let token = match &taken[&target.node] {
                    Ok(change) => change.token(),
                    Err(_) => None,
                };
                async move {
                    let mut options = Release::new();
                    if let Some(token) = token {
                        options = options.token(token);
                    }
                    self.session.locks.release(&target.node, &options).await?;
                    Ok(())
                }
            },
            |node, result| {
                if let Err(failure) = result {
                    complete = false;
                    results.insert(node.to_owned(), Err(failure));
                }
            },
        )
        .await;
        complete
    }

    /// Prints the results in the order in which the nodes went in, and what to know about them.
    async fn report(&self, targets: &Targets, results: &mut Results) -> Result<Code, Failure> {
        let Self { session, args, .. } = self;
        let terminal = session.terminal;
        let problems = Problems::new(session);
        let format = args.output.format();
        let mut items = Vec::new();
        let mut held = Vec::new();
        let mut events = Vec::new();
        let mut asides = Vec::new();
        for target in &targets.nodes {
            let now = session.locks.server_time().now();
            match results.remove(&target.node) {
                None => {}
                Some(Err(failure)) => problems.tell(&failure),
                Some(Ok(change)) => {
                    for &aside in &change.asides {
                        // The same aside on many nodes is said once.
                        if !asides.contains(&aside) {
                            asides.push(aside);
                            tell_aside(session, aside, &change.node);
                        }
                    }
                    if let Some(takeover) = change::takeover(&change, now) {
                        terminal.warn(takeover);
                        events.push(takeover_event(&change));
                    }
                    items.push(Item::of_change(&change, now));
                    if format == Format::Text || format == Format::Wide {
                        terminal.result(change::line(&change, now, args.write.dry_run));
                    }
                    held.push(change);
                }
            }
        }
        if let Some(text) = print::items(items, targets.single, format)? {
            terminal.data(text);
        }
        self.conclude(targets, &held);
        events::post(session, events, args.write.dry_run.into()).await;
        Ok(problems.end().await)
    }

    /// Says what is held now and what comes then.
    fn conclude(&self, targets: &Targets, held: &[Change]) {
        let terminal = self.session.terminal;
        let program = self.session.program;
        if !targets.single {
            let names: Vec<&str> = held.iter().map(|change| change.node.as_str()).collect();
            terminal.remark(match (names.len(), targets.nodes.len()) {
                (0, _) => "nothing was acquired".to_owned(),
                (some, all) if some == all => format!("all {all} nodes are held now"),
                (some, all) => format!("held now, {some} of {all} nodes: {}", names.join(", ")),
            });
        }
        if held
            .iter()
            .any(|change| matches!(change.done, Done::Acquired | Done::Renewed))
        {
            terminal.remark(format!(
                "then anyone may take it; longer: {program} renew, or {program} hold"
            ));
        }
    }
}

fn tell_aside(session: &Session<'_>, aside: Aside, node: &str) {
    match aside {
        Aside::NodeUnreadable => session.terminal.warn(change::aside(aside, node)),
        Aside::NamespaceCreated | Aside::AnswerLost => {
            session.terminal.remark(change::aside(aside, node));
        }
        Aside::LeaseCreated => {}
    }
}

fn takeover_event(change: &Change) -> NodeEvent {
    let holder = |lease: &Option<maintenance_lease::NodeLease>| {
        lease
            .as_ref()
            .and_then(maintenance_lease::NodeLease::holder)
            .map(escape)
            .unwrap_or_default()
    };
    events::of_change(
        change,
        "MaintenanceTakeover",
        format!(
            "{} took the maintenance lock over the expired lease of {}",
            holder(&change.lease),
            holder(&change.before)
        ),
        true,
    )
}
