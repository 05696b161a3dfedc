//! Reads what happened to pods after they were removed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use futures::future::{join, join_all};
use k8s_openapi::api::core::v1::Pod;
use maintenance_lease::Error;
use serde_json::Value;
use tokio::time;

use super::Reader;
use crate::facts::pod::full_name;
use crate::outcome::Outcome;
use crate::removed::Removed;
use crate::replacement::{Group, Replacements};

type PodsOfGroups<'a> = BTreeMap<Group<'a>, Result<Vec<Pod>, Error>>;

/// The time between two reads of the pods.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

impl Reader {
    /// What happened to the removed pods. Waits until every outcome is final, for at most `limit`, or until
    /// `interrupted` completes. Reads that fail for a temporary reason are retried until then.
    pub async fn outcomes(
        &self,
        removed: &[Removed],
        limit: Duration,
        interrupted: impl Future<Output = ()>,
    ) -> Vec<Outcome> {
        let mut outcomes = vec![Outcome::Unwatched; removed.len()];
        let following = async {
            let begun = time::Instant::now();
            let mut taken = Replacements::new();
            loop {
                let may_pass;
                (outcomes, may_pass) = self.read_outcomes(removed, &mut taken).await;
                let mut all = removed.iter().zip(&outcomes);
                let goes_on = may_pass || !all.all(|(pod, outcome)| pod.is_settled(outcome));
                let rest = limit.saturating_sub(begun.elapsed());
                if !goes_on || rest.is_zero() {
                    return;
                }
                time::sleep(POLL_INTERVAL.min(rest)).await;
            }
        };
        tokio::select! {
            biased;
            () = interrupted => {}
            () = following => return outcomes,
        }
        let all = removed.iter().zip(outcomes);
        all.map(|(pod, outcome)| match pod.is_settled(&outcome) {
            true => outcome,
            false => Outcome::Unwatched,
        })
        .collect()
    }

    /// Whether pods with these `uids` remain after their Node was deleted. PodGC does not delete them while
    /// another Node with that name exists.
    pub async fn pods_left(&self, node: &str, uids: &[&str]) -> Outcome {
        let (pods, node) = join(self.pods_of_node(node), self.node(node)).await;
        let unseen = |error: &dyn fmt::Display| Outcome::Unseen {
            error: error.to_string(),
        };
        let (pods, node) = match (pods, node) {
            (Ok(pods), Ok(node)) => (pods, node),
            (Err(error), _) => return unseen(&error),
            (_, Err(error)) => return unseen(&error),
        };
        let is_of_node = |pod: &&Pod| {
            let uid = pod.metadata.uid.as_deref();
            uid.is_some_and(|uid| uids.contains(&uid))
        };
        let left: Vec<String> = pods.iter().filter(is_of_node).map(full_name).collect();
        match left.is_empty() {
            true => Outcome::Deleted,
            false => Outcome::PodsLeft {
                pods: left,
                registered_again: node.is_some(),
            },
        }
    }

    /// Reads the pods of some `groups`, with one request for each group.
    async fn pods_of<'a>(
        &self,
        groups: &BTreeMap<Group<'a>, BTreeSet<&str>>,
        of: impl Iterator<Item = Group<'a>>,
    ) -> PodsOfGroups<'a> {
        let reading = of.map(|group| async move {
            let (namespace, label) = group;
            let values: Vec<&str> = groups[&group].iter().copied().collect();
            let selector = label.map(|label| format!("{label} in ({})", values.join(",")));
            let pods = self.pods(namespace, &selector.unwrap_or_default()).await;
            (group, pods)
        });
        join_all(reading).await.into_iter().collect()
    }

    /// What has happened to the pods by now, and whether a read failed for a temporary reason. Sends one
    /// request for each namespace and kind of controller, and one for each controller whose pod is missing.
    /// If a controller wants no replacement, its pods are read once more.
    async fn read_outcomes(
        &self,
        removed: &[Removed],
        taken: &mut Replacements,
    ) -> (Vec<Outcome>, bool) {
        let mut groups: BTreeMap<Group<'_>, BTreeSet<&str>> = BTreeMap::new();
        for pod in removed {
            let (group, value) = pod.group();
            groups.entry(group).or_default().insert(value);
        }
        let pods = self.pods_of(&groups, groups.keys().copied()).await;
        let may_pass =
            |read: &Result<_, Error>| matches!(read, Err(Error::Api(error)) if error.may_pass());
        let has_open = pods.values().any(may_pass);
        let mut outcomes: Vec<Outcome> = { removed.iter() }
            .map(|pod| match &pods[&pod.group().0] {
                Ok(pods) => pod.outcome(pods, taken),
                Err(error) if pod.is_expected => Outcome::Unseen {
                    error: error.to_string(),
                },
                // No replacement was expected.
                Err(_) => Outcome::Deleted,
            })
            .collect();
        let all = || removed.iter().zip(&outcomes);
        let missing = all().filter(|(_, outcome)| matches!(outcome, Outcome::Unreplaced { .. }));
        let paths: BTreeSet<String> = missing
            .filter_map(|(pod, _)| pod.controller_path())
            .collect();
        let reading = paths.into_iter().map(|path| async move {
            let read = self.get::<Value>(&path).await;
            (path, read)
        });
        let controllers: BTreeMap<_, _> = join_all(reading).await.into_iter().collect();
        let is_unwanted = |pod: &Removed, outcome: &Outcome, pods: &PodsOfGroups<'_>| {
            let path = pod.controller_path();
            matches!(outcome, Outcome::Unreplaced { .. })
                && path
                    .and_then(|path| controllers.get(&path))
                    .is_some_and(|read| {
                        let pods = pods.get(&pod.group().0);
                        matches!(pods, Some(Ok(pods)) if !pod.is_wanted(read, pods))
                    })
        };
        let unwanted = removed.iter().zip(&outcomes);
        let unwanted = unwanted.filter(|(pod, outcome)| is_unwanted(pod, outcome, &pods));
        let again: BTreeSet<Group<'_>> = unwanted.map(|(pod, _)| pod.group().0).collect();
        // The controller may have counted pods that ended after the first list.
        let pods = self.pods_of(&groups, again.into_iter()).await;
        for (pod, outcome) in removed.iter().zip(&mut outcomes) {
            if is_unwanted(pod, outcome, &pods) {
                *outcome = Outcome::Deleted;
            }
        }
        (outcomes, has_open)
    }
}
