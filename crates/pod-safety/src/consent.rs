//! Compares the risks and blockers that a person accepted with a report.

use std::collections::{BTreeMap, BTreeSet};

use crate::bugs::{self, Bug};
use crate::checks::{Level, Verdict};
use crate::report::Report;

/// The value of `--accept-risk` if there is no risk to accept.
pub const NONE: &str = "none";

/// The risks that a person accepted with `--accept-risk`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Confirmed {
    /// The flag was not given: only report.
    #[default]
    Nothing,
    /// All risks that the report shows.
    All,
    /// The risks with these ids.
    These(BTreeSet<String>),
}

/// The risks that a person accepted, and the blockers that they overrode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Consent {
    /// The risks that were accepted.
    confirmed: Confirmed,
    /// The ids of the blockers that were overridden.
    overridden: BTreeSet<String>,
    /// The worst level that was shown for each check; empty if no report was shown yet.
    shown: BTreeMap<&'static str, Level>,
}

/// What prevents a deletion from starting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// The ids of the risks that must be accepted.
    pub unaccepted: Vec<&'static str>,
    /// The ids of the blockers that were not overridden.
    pub blocked: Vec<&'static str>,
    /// No risk was accepted and no blocker was overridden.
    pub nothing_accepted: bool,
}

impl Consent {
    /// The consent that was given on the command line, before a report was shown.
    #[must_use]
    pub fn new(confirmed: Confirmed, overridden: BTreeSet<String>) -> Self {
        Self {
            confirmed,
            overridden,
            shown: BTreeMap::new(),
        }
    }

    /// What is missing for all of `reports`; `None` if nothing is missing.
    #[must_use]
    pub fn missing<'a>(&self, reports: impl IntoIterator<Item = &'a Report>) -> Option<Missing> {
        let mut missing = Missing {
            nothing_accepted: self.confirmed == Confirmed::Nothing && self.overridden.is_empty(),
            ..Missing::default()
        };
        for verdict in reports.into_iter().flat_map(|report| &report.checks) {
            let (ids, id, is_given) = match verdict.accepted_as() {
                Some(id) => {
                    let is_given = self.names(id) && !self.is_worse(verdict);
                    let is_given = is_given || self.is_covered(verdict);
                    (&mut missing.unaccepted, id, is_given)
                }
                None if verdict.level == Level::Blocker => {
                    let is_final = verdict.is_final && !bugs::active(Bug::FinalIsOverridden);
                    let is_given = !is_final && self.overridden.contains(verdict.id);
                    (&mut missing.blocked, verdict.id, is_given)
                }
                None => continue,
            };
            if !is_given && !ids.contains(&id) {
                ids.push(id);
            }
        }
        let goes_on = !missing.nothing_accepted
            && missing.unaccepted.is_empty()
            && missing.blocked.is_empty();
        (!goes_on).then_some(missing)
    }

    fn names(&self, id: &str) -> bool {
        match &self.confirmed {
            Confirmed::Nothing => false,
            Confirmed::All => true,
            Confirmed::These(ids) => ids.contains(id),
        }
    }

    /// The check was shown as a risk and accepted. It stays accepted even if it now cannot be read.
    fn is_covered(&self, verdict: &Verdict) -> bool {
        self.shown.get(verdict.id) == Some(&Level::Risk) && self.names(verdict.id)
    }

    /// The finding is worse than the one that was shown, so it was not accepted. An unread check must have
    /// been shown as unread, because one id accepts all unread checks.
    fn is_worse(&self, verdict: &Verdict) -> bool {
        match self.shown.get(verdict.id) {
            Some(shown) => *shown < verdict.level && !bugs::active(Bug::WorseIsAccepted),
            None => verdict.level == Level::Unread && !self.shown.is_empty(),
        }
    }

    /// The same consent after a report without findings: a new finding is accepted only if its id was named.
    #[must_use]
    pub fn bound_to_nothing(&self) -> Self {
        self.bound_to_ids(BTreeSet::new())
    }

    fn bound_to_ids(&self, ids: BTreeSet<String>) -> Self {
        let confirmed = match &self.confirmed {
            Confirmed::All => Confirmed::These(ids),
            other => other.clone(),
        };
        Self {
            confirmed,
            ..self.clone()
        }
    }

    /// The same consent, limited to what `report` shows. A finding that gets worse later is not accepted. A
    /// finding that first appears later is accepted only if its id was named.
    #[must_use]
    pub fn bound_to(&self, report: &Report) -> Self {
        let ids = report.to_accept().into_iter().map(ToOwned::to_owned);
        Self {
            shown: report.worst(),
            ..self.bound_to_ids(ids.collect())
        }
    }
}

/// The flags that accept all risks in `reports` and the risk `also`, and that override `blockers`.
#[must_use]
pub fn flags<'a, 'b>(
    reports: impl IntoIterator<Item = &'a Report>,
    also: Option<&'static str>,
    blockers: impl IntoIterator<Item = &'b str>,
) -> String {
    let mut ids: Vec<&str> = Vec::new();
    for id in reports.into_iter().flat_map(Report::to_accept).chain(also) {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    let blockers: Vec<&str> = blockers.into_iter().collect();
    let risks = match &ids[..] {
        [] => format!("--accept-risk={NONE}"),
        ids => format!("--accept-risk={}", ids.join(",")),
    };
    match &blockers[..] {
        [] => risks,
        blockers => format!("{risks} --override={}", blockers.join(",")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::DeletionTarget;

    fn report(verdicts: &[(&'static str, Level, bool)]) -> Report {
        Report {
            target: DeletionTarget {
                kind: "pod",
                namespace: None,
                name: "web-0".to_owned(),
                uid: "u-1".to_owned(),
                resource_version: "7".to_owned(),
                node: None,
            },
            checks: verdicts
                .iter()
                .map(|&(id, level, is_final)| Verdict {
                    id,
                    level,
                    words: String::new(),
                    names: Vec::new(),
                    is_final,
                })
                .collect(),
        }
    }

    fn these(ids: &[&str]) -> Confirmed {
        Confirmed::These(ids.iter().map(|&id| id.to_owned()).collect())
    }

    fn missing(confirmed: Confirmed, overridden: &[&str], report: &Report) -> Option<Missing> {
        let overridden = overridden.iter().map(|&id| id.to_owned()).collect();
        Consent::new(confirmed, overridden).missing([report])
    }

    #[test]
    fn only_named_risks_are_accepted() {
        let report = report(&[
            ("target", Level::Ok, false),
            ("node-unreachable", Level::Info, false),
            ("owner", Level::Risk, false),
            ("lease", Level::Unread, false),
        ]);
        assert_eq!(flags([&report], None, None), "--accept-risk=owner,unread");
        assert_eq!(
            flags([&report], Some("unread"), ["in-grace", "lease"]),
            "--accept-risk=owner,unread --override=in-grace,lease"
        );
        let nothing = missing(Confirmed::Nothing, &[], &report).expect("it is not confirmed");
        assert!(nothing.nothing_accepted);
        assert_eq!(nothing.unaccepted, ["owner", "unread"]);
        let half = missing(these(&["owner"]), &[], &report).expect("half is missing");
        assert_eq!(half.unaccepted, ["unread"]);
        assert_eq!(missing(these(&["owner", "unread"]), &[], &report), None);
        assert_eq!(missing(Confirmed::All, &[], &report), None);
    }

    #[test]
    fn refusals_take_an_override_each_and_some_have_none() {
        let refusing = report(&[("node-alive", Level::Blocker, false)]);
        let refused = |missing: Option<Missing>| missing.map(|missing| missing.blocked);
        assert_eq!(
            refused(missing(Confirmed::All, &[], &refusing)),
            Some(vec!["node-alive"])
        );
        assert_eq!(
            refused(missing(these(&["node-alive"]), &["lease"], &refusing)),
            Some(vec!["node-alive"])
        );
        assert_eq!(missing(Confirmed::All, &["node-alive"], &refusing), None);
        let mirror = report(&[("mirror", Level::Blocker, true)]);
        assert_eq!(
            refused(missing(Confirmed::All, &["mirror"], &mirror)),
            Some(vec!["mirror"])
        );
    }

    #[test]
    fn risks_that_appear_after_the_report_were_not_accepted() {
        let all = Consent::new(Confirmed::All, BTreeSet::new());
        let shown = report(&[("owner", Level::Risk, false)]);
        let later = report(&[
            ("owner", Level::Risk, false),
            ("volume-attached", Level::Risk, false),
        ]);
        let bound = all.bound_to(&shown);
        assert_eq!(bound.missing([&shown]), None);
        let missing = bound.missing([&later]).expect("something appeared");
        assert_eq!(missing.unaccepted, ["volume-attached"]);
    }

    #[test]
    fn risks_that_get_worse_after_the_report_were_not_accepted() {
        use Level::{Info, Ok, Risk, Unread};
        let one = |level| report(&[("volume-unguarded", level, false)]);
        for (shown, later, goes_on) in [
            (Unread, Risk, false),
            (Info, Risk, false),
            (Info, Unread, false),
            (Ok, Risk, false),
            (Risk, Risk, true),
            (Risk, Unread, true),
            (Unread, Unread, true),
            (Risk, Info, true),
        ] {
            for confirmed in [Confirmed::All, these(&["volume-unguarded", "unread"])] {
                let consent = Consent::new(confirmed, BTreeSet::new()).bound_to(&one(shown));
                let missing = consent.missing([&one(later)]);
                assert_eq!(
                    missing.is_none(),
                    goes_on,
                    "{shown:?}, {later:?}: {missing:?}"
                );
            }
        }
    }

    #[test]
    fn facts_that_can_no_longer_be_read_were_not_accepted() {
        let consent = Consent::new(these(&["unread"]), BTreeSet::new());
        let shown = report(&[("lease", Level::Unread, false)]);
        let bound = consent.bound_to(&shown);
        assert_eq!(bound.missing([&shown]), None);
        let more = report(&[("remediation", Level::Unread, false)]);
        let missing = bound.missing([&more]).expect("it could be read before");
        assert_eq!(missing.unaccepted, ["unread"]);
    }

    #[test]
    fn an_accepted_risk_covers_that_it_can_no_longer_be_read() {
        let consent = Consent::new(these(&["owner"]), BTreeSet::new());
        let shown = report(&[("owner", Level::Risk, false)]);
        let later = report(&[("owner", Level::Unread, false)]);
        assert_eq!(consent.bound_to(&shown).missing([&later]), None);
    }

    #[test]
    fn an_override_alone_is_a_decision() {
        let blocked = report(&[("lease", Level::Blocker, false)]);
        assert_eq!(missing(Confirmed::Nothing, &["lease"], &blocked), None);
        let risky = report(&[("owner", Level::Risk, false)]);
        assert!(missing(Confirmed::Nothing, &["lease"], &risky).is_some());
    }

    #[test]
    fn of_several_findings_of_a_check_the_worst_is_what_was_shown() {
        let consent = Consent::new(these(&["volume-attached", "unread"]), BTreeSet::new());
        let mixed = report(&[
            ("volume-attached", Level::Risk, false),
            ("volume-attached", Level::Unread, false),
        ]);
        assert_eq!(consent.bound_to(&mixed).missing([&mixed]), None);
    }

    #[test]
    fn risks_without_a_report_are_accepted_only_by_name() {
        let owner = report(&[("owner", Level::Risk, false)]);
        let missing = |confirmed| {
            let consent = Consent::new(confirmed, BTreeSet::new());
            consent.bound_to_nothing().missing([&owner])
        };
        assert_eq!(missing(these(&["owner"])), None);
        assert!(missing(Confirmed::All).is_some());
    }

    #[test]
    fn the_flag_is_none_if_there_are_no_risks() {
        let fine = report(&[("target", Level::Ok, false)]);
        assert_eq!(flags([&fine], None, None), "--accept-risk=none");
        assert_eq!(missing(these(&[NONE]), &[], &fine), None);
    }
}
