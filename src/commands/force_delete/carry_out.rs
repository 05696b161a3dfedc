//! The course of a forced deletion: look, agree, lock, look again, delete, and see what became of it.

use std::cell::RefCell;
use std::collections::BTreeMap;

use futures::future::join_all;
use maintenance_lease::{ApiError, Error};
use pod_safety::cluster::{Aftermath, Deletion, Exactly, Reader};
use pod_safety::consent::{Consent, Missing};
use pod_safety::facts::{Facts, Owner, Promise};
use pod_safety::known::Known;
use pod_safety::report::{Report, Target};

use super::ForceDeleteArgs;
use super::asked::Asked;
use super::locks::Locks;
use super::look::{Key, Look, is_forbidden, key};
use crate::cli::writing::DryRunMode;
use crate::commands::many::or_interrupted;
use crate::exit::Code;
use crate::failure::Failure;
use crate::report::safety::Outcome;
use crate::session::Session;

/// How often the checks are repeated for what keeps changing.
const TRIES: usize = 3;

/// A run of the verb.
pub(super) struct Work<'a> {
    pub(super) session: &'a Session<'a>,
    pub(super) reader: &'a Reader,
    pub(super) args: &'a ForceDeleteArgs,
    pub(super) asked: &'a Asked,
    /// What a request to delete was sent for that has not been answered.
    pub(super) under_way: RefCell<Option<String>>,
}

/// What was deleted, with what was known of it before.
pub(super) struct Deleted {
    pub(super) report: Report,
    pub(super) facts: Option<Facts>,
    pub(super) outcome: Outcome,
}

/// What was confirmed of each target, by what the report showed of it.
type Consents = BTreeMap<Key, Consent>;

impl Work<'_> {
    /// The namespace of the pods: that of `-n`, else of the context.
    pub(super) fn namespace(&self) -> &str {
        self.session.connection.client.default_namespace()
    }

    pub(super) async fn run(&self) -> Result<Code, Failure> {
        let look = or_interrupted(self.look(None)).await?;
        let consent = self.args.consent();
        self.show(&look.reports);
        if let Some(missing) = consent.missing(&look.reports) {
            self.show_data(&look.reports, &[])?;
            return Ok(self.ask(&look, &missing, 0));
        }
        let locks = match self.args.write.dry_run {
            DryRunMode::None => match or_interrupted(self.take(&look)).await {
                Err(Failure::Lock(Error::Refused(refused))) => return Ok(self.taken(&refused)),
                Err(Failure::Lock(error)) if is_forbidden(&error) => {
                    return Ok(self.not_taken(&look, &error));
                }
                taken => taken?,
            },
            DryRunMode::Client | DryRunMode::Server => Locks::default(),
        };
        let consents = look.reports.iter();
        let consents = consents
            .map(|report| (key(&report.target), consent.bound_to(report)))
            .collect();
        let mut deleted = Vec::new();
        let course = self.delete(&look, &consents, &locks, &mut deleted);
        let result = or_interrupted(course).await;
        if let Some(target) = self.under_way.take() {
            let line = format!("the deletion of {target} was under way: it may have taken effect");
            self.session.terminal.warn(line);
        }
        if self.args.write.dry_run == DryRunMode::None {
            self.see_what_became(&mut deleted).await;
        }
        for one in &deleted {
            self.tell(&one.report.target, &one.outcome);
        }
        match self.asked {
            // The lease goes with the Node.
            Asked::Node(_) if !deleted.is_empty() => locks.leave(),
            _ => self.give_back(locks).await,
        }
        self.show_data(&look.reports, &deleted)?;
        if self.args.write.dry_run == DryRunMode::None {
            self.leave_events(&deleted).await;
        }
        result
    }

    /// Deletes what was agreed to, looking again before each try; what has changed by then has to be
    /// within what was agreed to.
    async fn delete(
        &self,
        seen: &Look,
        consents: &Consents,
        locks: &Locks,
        deleted: &mut Vec<Deleted>,
    ) -> Result<Code, Failure> {
        let mut first = seen.first();
        for _ in 0..TRIES {
            let look = self.look(Some(&first)).await?;
            self.tell_gone(&mut first, &look);
            if let Some((report, missing)) = self.first_missing(&look, consents) {
                self.show_change(report);
                return Ok(self.ask(&look, &missing, deleted.len()));
            }
            let mut changed = false;
            for (index, report) in self.targets(&look).iter().enumerate() {
                if let Some(failure) = locks.lost() {
                    return Err(failure);
                }
                self.under_way.replace(Some(report.target.to_string()));
                let sent = self.delete_one(&report.target).await;
                self.under_way.take();
                let sent = sent?;
                if sent == Deletion::Changed {
                    changed = true;
                    continue;
                }
                first.remove(&key(&report.target));
                deleted.push(Deleted {
                    facts: match self.asked {
                        Asked::Node(_) => None,
                        _ => look.pods.get(index).cloned(),
                    },
                    outcome: match (sent, self.args.write.dry_run) {
                        (Deletion::AlreadyGone, _) => Outcome::WasGone,
                        (_, DryRunMode::None) => Outcome::Deleted,
                        (_, DryRunMode::Client | DryRunMode::Server) => Outcome::WouldBeDeleted,
                    },
                    report: report.clone(),
                });
            }
            if !changed {
                return Ok(Code::DONE);
            }
        }
        Err(Failure::input(format!(
            "it kept changing: not deleted in {TRIES} tries"
        )))
    }

    /// The first target of which more is given up now than was agreed to. A pod that came to the node
    /// meanwhile was in no report.
    fn first_missing<'l>(
        &self,
        look: &'l Look,
        consents: &Consents,
    ) -> Option<(&'l Report, Missing)> {
        look.reports.iter().find_map(|report| {
            let missing = match consents.get(&key(&report.target)) {
                Some(consent) => consent.missing([report]),
                None => self.args.consent().bound_to_nothing().missing([report]),
            };
            Some((report, missing?))
        })
    }

    /// What a request to delete is sent for.
    fn targets<'l>(&self, look: &'l Look) -> &'l [Report] {
        match self.asked {
            Asked::Node(_) => &look.reports[..1],
            Asked::Pods(_) | Asked::Labelled(_) => &look.reports,
        }
    }

    async fn delete_one(&self, target: &Target) -> Result<Deletion, Failure> {
        if self.args.write.dry_run == DryRunMode::Client {
            return Ok(Deletion::Done);
        }
        let dry_run = self.args.write.dry_run == DryRunMode::Server;
        let sent = match &target.namespace {
            Some(namespace) => {
                let exactly = Exactly {
                    uid: &target.uid,
                    version: Some(&target.resource_version),
                    grace: Some(0),
                    dry_run,
                };
                self.reader
                    .delete_pod(namespace, &target.name, exactly)
                    .await
            }
            // What moves the version of a silent Node may be its kubelet, back again; that of a live one
            // moves it all the time.
            None => {
                let lives = self.args.overrides.iter().any(|id| id == "node-alive");
                let exactly = Exactly {
                    uid: &target.uid,
                    version: (!lives).then_some(&*target.resource_version),
                    grace: None,
                    dry_run,
                };
                self.reader.delete_node(&target.name, exactly).await
            }
        };
        match sent {
            Err(error) if error.leaves_writes_unknown() => self.settle(target, error).await,
            sent => Ok(sent?),
        }
    }

    /// A deletion whose answer was lost: whether it took effect.
    async fn settle(&self, target: &Target, error: ApiError) -> Result<Deletion, Failure> {
        let uid = match &target.namespace {
            Some(namespace) => {
                let pod = self.reader.pod(namespace, &target.name).await?;
                pod.and_then(|pod| pod.metadata.uid)
            }
            None => {
                let node = self.reader.node(&target.name).await?;
                node.and_then(|node| node.metadata.uid)
            }
        };
        match uid {
            Some(uid) if uid == target.uid => Err(Failure::input(format!(
                "unknown whether {target} was deleted: it is still there, and the request may still \
                 take effect ({error})"
            ))),
            _ => Ok(Deletion::Done),
        }
    }

    /// Waits until it is known what became of the pods, all at once.
    async fn see_what_became(&self, deleted: &mut [Deleted]) {
        let seeing = deleted.iter().map(|one| async move {
            match &one.facts {
                Some(facts) if one.outcome == Outcome::Deleted => self.became(facts).await,
                _ => one.outcome.clone(),
            }
        });
        let outcomes = join_all(seeing).await;
        for (one, outcome) in deleted.iter_mut().zip(outcomes) {
            one.outcome = outcome;
        }
    }

    async fn became(&self, facts: &Facts) -> Outcome {
        let one_name = Known::Yes(Promise::OneOfEachName);
        let expected =
            matches!(&facts.owner, Owner::Controller { promise, .. } if *promise == one_name);
        let aftermath = self
            .reader
            .aftermath(&facts.pod, expected, self.args.timeout);
        match aftermath.await {
            Ok(Aftermath::Gone) if expected => Outcome::Unreplaced,
            Ok(Aftermath::Gone) => Outcome::Deleted,
            Ok(Aftermath::Held { finalizers }) => Outcome::Held { finalizers },
            Ok(Aftermath::Replaced { uid, node }) => Outcome::Replaced { uid, node },
            Err(error) => Outcome::Unseen {
                error: error.to_string(),
            },
        }
    }
}
