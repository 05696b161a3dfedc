//! Confirmations: what will change, in which cluster, whose locks are affected, and the question.

use std::collections::HashMap;

use maintenance_lease::protocol::Now;
use maintenance_lease::{NodeLease, TakeOver, Target};
use node_keys::Asked;
use pod_safety::cluster::Reader;
use pod_safety::fencing::{is_of_fencing, protects_fencing};

use super::lock_command::LockCommand;
use super::session::Session;
use super::targets::names;
use crate::args::nodes::Selection;
use crate::args::take_expired::TakeExpiredArgs;
use crate::error::{Failure, Unconfirmed, Verb};
use crate::ui::Terminal;
use crate::words::confirmation::{self, dry_run_question, question, taken_over};
use crate::words::fencing::{count, taken_while_running};
use crate::words::holder_name::person;

/// The number of nodes that a selector may put on hold without a confirmation.
const HELD_UNASKED: usize = 10;

/// The locks of others that the operator has seen and wants to take over, by node. Only these exact
/// acquisitions may be taken over.
pub(crate) type Confirmed = HashMap<String, NodeLease>;

impl LockCommand<'_> {
    /// Asks before a change of many nodes: all nodes, or more holds than a selector was probably meant
    /// for.
    ///
    /// # Errors
    /// If the answer is no, or if nobody can answer.
    pub(super) async fn confirm_many(
        &self,
        selection: &Selection,
        targets: &[Target],
    ) -> Result<(), Failure> {
        let Some(change) = self.change_of_many(selection, targets.len()) else {
            return Ok(());
        };
        let facts = self.facts(&change, [].into_iter());
        self.ask(targets, &facts, &question(&change)).await
    }

    /// The change of many nodes, such as `release all 40 nodes`; `None` if they are not many.
    fn change_of_many(&self, selection: &Selection, nodes: usize) -> Option<String> {
        let all = match selection {
            Selection::All => "all ",
            Selection::Labeled(_) if self.verb == Verb::Hold && nodes > HELD_UNASKED => "",
            _ => return None,
        };
        let (verb, nodes) = (self.verb.name(), count(nodes, "node"));
        Some(format!("{verb} {all}{nodes}"))
    }

    /// Reads the nodes in `selection`, and asks before locks of others are taken over. The question shows
    /// who holds them, since when, until when and why. Returns the nodes and the confirmed locks. Asks
    /// only once, even if there are many nodes.
    ///
    /// # Errors
    /// If they can't be found or read, if the answer is no, or if nobody can answer.
    pub(crate) async fn targets_to_take_over(
        &self,
        selection: &Selection,
        with_nodes: bool,
        by: TakeOver,
    ) -> Result<(Vec<Target>, Confirmed), Failure> {
        let targets = self.find(selection, with_nodes).await?;
        let targets = self.without_own_holds(selection, targets);
        let targets = self.read(targets, with_nodes).await?;
        let locks = &self.session.locks;
        let now = locks.server_time().now();
        let seen = targets.iter().filter_map(|target| target.seen.as_ref());
        let taken: Vec<&NodeLease> = seen
            .filter_map(|seen| seen.lease.as_ref())
            .filter(|lease| locks.takes_over(lease, by))
            // It is refused in any case, so there is nothing to ask.
            .filter(|lease| by == TakeOver::Hold || !protects_fencing(lease, now))
            .collect();
        let nodes = count(taken.len(), "node");
        let many = self.change_of_many(selection, targets.len());
        let (change, question) = match (many, &taken[..]) {
            (None, []) => return Ok((targets, Confirmed::default())),
            (Some(change), _) => (change.clone(), question(&change)),
            (None, [lease]) => (nodes, self.verb.breaks_one(lease.node(), &person(lease))),
            (None, leases) => (nodes, self.verb.breaks_many(leases.len())),
        };
        for lease in &taken {
            self.warn_of_hook(lease, now).await;
        }
        let program = self.session.program;
        // A hold replaces the label and the opt-outs, and keeps the cordon.
        let undoes = |lease: &NodeLease| by != TakeOver::Hold && Asked::of(lease).is_some();
        let lines = { taken.iter() }.map(|lease| taken_over(lease, undoes(lease), now, program));
        self.ask(&targets, &self.facts(&change, lines), &question)
            .await?;
        let by_node = |lease: &NodeLease| (lease.node().to_owned(), lease.clone());
        let confirmed = taken.into_iter().map(by_node).collect();
        Ok((targets, confirmed))
    }

    /// Warns if the lock in `lease` is the hold of a fencing whose hook may still be running. If the Node
    /// can't be read, there is no warning: only the lock is taken over, and `fence` checks the hook again.
    async fn warn_of_hook(&self, lease: &NodeLease, now: Now) {
        let Session {
            locks,
            terminal,
            program,
            ..
        } = &self.session;
        if is_of_fencing(lease, now)
            && let Ok(Some(evidence)) = Reader::new(locks.requests().clone())
                .evidence(lease.node())
                .await
            && let Some(hook) = evidence.attempt().filter(|hook| hook.may_run(now))
        {
            let node = lease.node();
            let is_fenced = evidence.state.out_of_service.is_asserted();
            let warning = taken_while_running(node, is_fenced, &hook, now.latest, program);
            terminal.warn(warning);
        }
    }

    /// Reads `targets`, refuses them if --strict demands it, and asks before expired locks are taken whose nodes are NotReady or cordoned. Returns
    /// the targets and the locks that were confirmed: none if nobody can answer, if no question is needed, or
    /// if the answer is no and `partial` lets the other nodes be locked. The library then refuses them.
    ///
    /// # Errors
    /// If something can't be read, or if the answer is no.
    pub(crate) async fn confirm_unfinished(
        &self,
        targets: Vec<Target>,
        take: TakeExpiredArgs,
        partial: bool,
    ) -> Result<(Vec<Target>, Vec<NodeLease>), Failure> {
        let targets = self.read(targets, true).await?;
        if take.strict {
            self.refuse_other_tools(&targets).await?;
        }
        let now = self.session.locks.server_time().now();
        let seen = targets.iter().filter_map(|target| target.seen.as_ref());
        let unfinished: Vec<_> = seen.filter_map(|seen| seen.unfinished(now)).collect();
        let is_asked = self.can_ask() && !take.take_expired;
        let nodes = count(unfinished.len(), "node");
        let question = match &unfinished[..] {
            [(lease, _)] if is_asked => self.verb.question(&format!("node/{}", lease.node())),
            [_, ..] if is_asked => self.verb.question(&format!("these {nodes}")),
            _ => return Ok((targets, Vec::new())),
        };
        let lines = unfinished.iter();
        let lines = lines.map(|(lease, row)| confirmation::unfinished(lease, row, now));
        let facts = self.facts(&nodes, lines);
        let confirmed = match self.answer(&facts, &question).await {
            Err(Failure::Declined) if partial => Vec::new(),
            answer => {
                self.report_failure(&names(&targets), answer)?;
                let leases = unfinished.into_iter().map(|(lease, _)| lease.clone());
                let leases: Vec<_> = leases.collect();
                // A dry run shows only the question.
                if !self.is_dry_run() {
                    self.session.remember_shown(&leases);
                }
                leases
            }
        };
        // A node may have been cordoned before the user answered.
        let unread = targets.into_iter().map(|target| Target::from(target.node));
        Ok((self.read(unread.collect(), true).await?, confirmed))
    }

    /// Asks whether to create the namespace of the locks, for `nodes`.
    ///
    /// # Errors
    /// If the answer is not yes. That was reported.
    pub(super) async fn confirm_namespace(&self, nodes: &[String]) -> Result<(), Failure> {
        let facts = self.facts(confirmation::NO_NAMESPACE, [].into_iter());
        let answer = self.answer(&facts, confirmation::CREATE_NAMESPACE).await;
        self.report_failure(nodes, answer)
    }

    /// Whether to ask a question that --yes does not answer, such as whether to create the namespace.
    pub(super) fn can_ask(&self) -> bool {
        !self.args.yes && !self.args.nodes.reads_stdin() && Terminal::can_ask()
    }

    /// The cluster and what would change there, and a line for each lock.
    fn facts(&self, change: &str, lines: impl ExactSizeIterator<Item = String>) -> Vec<String> {
        confirmation::facts(&self.session.place(), change, lines)
    }

    /// Asks, and reports the failure for all of `targets` if the answer is not yes.
    async fn ask(
        &self,
        targets: &[Target],
        facts: &[String],
        question: &str,
    ) -> Result<(), Failure> {
        let answer = self.answer(facts, question).await;
        self.report_failure(&names(targets), answer)
    }

    /// A dry run changes nothing and needs no confirmation: it reports the question instead.
    async fn answer(&self, facts: &[String], question: &str) -> Result<(), Failure> {
        let (terminal, yes) = (self.session.terminal, self.args.yes);
        if self.is_dry_run() {
            if !yes {
                terminal.remark(dry_run_question(question));
            }
            return Ok(());
        }
        if self.args.nodes.reads_stdin() && !yes {
            for fact in facts {
                terminal.raw_stderr(fact);
            }
            return Err(Failure::Unconfirmed(Unconfirmed::StdinInUse));
        }
        terminal.confirm(facts, question, yes).await
    }
}
