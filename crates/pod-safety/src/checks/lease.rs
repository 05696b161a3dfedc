//! `lease`, `lease-expired` and `remediation`: no other person and no operator works on the node.

use maintenance_lease::protocol::identity::{person, visible};
use maintenance_lease::protocol::{Instant, Now, Span};

use super::verdict::Verdict;
use crate::facts::{FencingProgress, Lock, Remediation};
use crate::known::Known;
use crate::words::age;

/// Somebody else holds the lock, or the caller's own lock expires soon.
pub const LEASE: &str = "lease";
const EXPIRED: &str = "lease-expired";
const DELETED: &str = "lease-deleted";
const FENCED: &str = "fenced the node and has it on hold until it is unfenced";
const FENCING: &str = "is fencing the node and has it on hold until it is unfenced";
/// An operator is repairing the node.
pub const REMEDIATION: &str = "remediation";

pub(super) fn check(
    lock: &Known<Lock>,
    remediation: &Known<Remediation>,
    now: Now,
) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    match lock {
        Known::Yes(Lock::Another {
            holder,
            why,
            since,
            until,
            fencing,
        }) => {
            let why = why.as_ref().map(|why| format!(", \"{why}\""));
            let (has_it, way_on) = match fencing {
                Some(FencingProgress::Fenced) => (FENCED.to_owned(), "or run unfence"),
                Some(FencingProgress::Begun) => (
                    FENCING.to_owned(),
                    "or run unfence if their fence no longer runs",
                ),
                None => (has_it(*since, *until, now), "or wait until it is unlocked"),
            };
            verdicts.push(Verdict::blocker(
                LEASE,
                format!(
                    "{} {has_it}{}: ask them, {way_on}",
                    visible(person(holder)),
                    why.unwrap_or_default()
                ),
            ));
        }
        Known::Yes(own @ Lock::Own { .. }) => verdicts.push(match own.short(now) {
            None => Verdict::ok(LEASE, "you hold the node's lock"),
            Some(left) if left > Span::ZERO => {
                let left = age(left);
                Verdict::blocker(
                    LEASE,
                    format!("your lock on the node expires in {left}: renew it first"),
                )
            }
            Some(_) => Verdict::blocker(LEASE, "your lock on the node has expired: renew it first"),
        }),
        Known::Yes(Lock::Expired { holder }) => verdicts.push(Verdict::risk(
            EXPIRED,
            format!(
                "the lock of {} has expired, so they may not have finished: ask them",
                visible(person(holder))
            ),
        )),
        Known::Yes(Lock::Free) => {
            verdicts.push(Verdict::ok(LEASE, "the node is not locked"));
        }
        Known::Unknown(why) => {
            verdicts.push(Verdict::unread(LEASE, "whether the node is locked", why));
        }
    }
    match remediation {
        Known::Yes(Remediation::Running { holder }) => verdicts.push(Verdict::blocker(
            REMEDIATION,
            format!(
                "{} is repairing the node (its lease in medik8s-leases): let it finish",
                visible(holder)
            ),
        )),
        Known::Yes(Remediation::Tainted { taint }) => verdicts.push(Verdict::blocker(
            REMEDIATION,
            format!("an operator is repairing the node (its taint {taint}): let it finish"),
        )),
        Known::Yes(Remediation::None) => {}
        Known::Unknown(why) => verdicts.push(Verdict::unread(
            REMEDIATION,
            "whether an operator is repairing the node",
            why,
        )),
    }
    verdicts
}

/// The maintenance Lease of a deleted Node is deleted too. If somebody else holds it, they lose the lock and
/// are not notified.
pub(super) fn check_if_node_is_deleted(lock: &Known<Lock>, now: Now) -> Verdict {
    match lock {
        Known::Yes(Lock::Another { holder, until, .. }) => {
            let until = match until {
                None => ", because a hold does not expire: tell them".to_owned(),
                Some(Instant::UNREADABLE) => ": tell them".to_owned(),
                Some(until) => format!(" for up to {}: tell them", age(*until - now.latest)),
            };
            Verdict::info(
                DELETED,
                format!(
                    "the lock is deleted with the Node, and {} may still act{until}",
                    visible(person(holder))
                ),
            )
        }
        Known::Yes(Lock::Free | Lock::Own { .. } | Lock::Expired { .. }) => Verdict::ok(
            DELETED,
            "the lock is deleted with the Node, and nobody else holds it",
        ),
        Known::Unknown(_) => Verdict::info(
            DELETED,
            "the lock is deleted with the Node, and its holder is unknown",
        ),
    }
}

/// Since when somebody has the lock, and until when.
fn has_it(since: Option<Instant>, until: Option<Instant>, now: Now) -> String {
    let since = since.filter(|&since| since <= now.latest && since != Instant::UNREADABLE);
    let ago = since.map(|since| format!("{} ago", age(now.latest - since)));
    let until = match until {
        Some(Instant::UNREADABLE) => Some("until an unreadable time".to_owned()),
        Some(until) => Some(format!("for {} more", age(until - now.latest))),
        None => None,
    };
    match (ago, until) {
        (Some(ago), Some(until)) => format!("locked the node {ago}, {until}"),
        (None, Some(until)) => format!("has the lock {until}"),
        (Some(ago), None) => format!("put the node on hold {ago}"),
        (None, None) => "has the node on hold".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Level::{self, Blocker, Ok, Risk, Unread};
    use crate::checks::testing::{NOW, forbidden};

    #[test]
    fn a_lock_is_a_blocker_and_unknown_facts_are_reported() {
        let bob = || Lock::Another {
            holder: "bob@laptop".to_owned(),
            why: Some("disk".to_owned()),
            since: None,
            until: None,
            fencing: None,
        };
        let running = || {
            Known::Yes(Remediation::Running {
                holder: "node-maintenance".to_owned(),
            })
        };
        let tainted = || {
            Known::Yes(Remediation::Tainted {
                taint: "medik8s.io/remediation".to_owned(),
            })
        };
        let idle = || Known::Yes(Remediation::None);
        let expired = Lock::Expired {
            holder: "bob@laptop".to_owned(),
        };
        type Case = (
            Known<Lock>,
            Known<Remediation>,
            &'static [(&'static str, Level)],
        );
        let cases: [Case; 9] = [
            (Known::Yes(Lock::Free), idle(), &[(LEASE, Ok)]),
            (
                Known::Yes(Lock::Own { until: None }),
                idle(),
                &[(LEASE, Ok)],
            ),
            (Known::Yes(expired), idle(), &[(EXPIRED, Risk)]),
            (Known::Yes(bob()), idle(), &[(LEASE, Blocker)]),
            (
                Known::Yes(Lock::Free),
                running(),
                &[(LEASE, Ok), (REMEDIATION, Blocker)],
            ),
            (
                Known::Yes(Lock::Free),
                tainted(),
                &[(LEASE, Ok), (REMEDIATION, Blocker)],
            ),
            (forbidden(), idle(), &[(LEASE, Unread)]),
            (
                Known::Yes(Lock::Free),
                forbidden(),
                &[(LEASE, Ok), (REMEDIATION, Unread)],
            ),
            (
                Known::Yes(bob()),
                forbidden(),
                &[(LEASE, Blocker), (REMEDIATION, Unread)],
            ),
        ];
        for (lock, remediation, expected) in cases {
            let found: Vec<_> = check(&lock, &remediation, Now::at(NOW))
                .iter()
                .map(|verdict| (verdict.id, verdict.level))
                .collect();
            assert_eq!(found, expected, "{lock:?} {remediation:?}");
        }
    }

    #[test]
    fn the_holder_of_a_hold_has_the_same_name_everywhere() {
        let words = |fencing| {
            let hold = Lock::Another {
                holder: "kubeadm:carol@c".to_owned(),
                why: Some("disk".to_owned()),
                since: Some(NOW - Span::seconds(600)),
                until: None,
                fencing,
            };
            let none = Known::Yes(Remediation::None);
            check(&Known::Yes(hold), &none, Now::at(NOW))[0]
                .words
                .clone()
        };
        assert_eq!(
            words(None),
            "carol@c put the node on hold 10m ago, \"disk\": ask them, or wait until it is unlocked"
        );
        assert_eq!(
            words(Some(FencingProgress::Fenced)),
            "carol@c fenced the node and has it on hold until it is unfenced, \"disk\": ask them, or \
             run unfence"
        );
        assert_eq!(
            words(Some(FencingProgress::Begun)),
            "carol@c is fencing the node and has it on hold until it is unfenced, \"disk\": ask them, or \
             run unfence if their fence no longer runs"
        );
    }

    #[test]
    fn a_lock_says_since_when_and_until_when() {
        let (since, until) = (NOW - Span::seconds(300), NOW + Span::seconds(1_740));
        let words = |since, until| has_it(since, until, Now::at(NOW));
        assert_eq!(
            words(Some(since), Some(until)),
            "locked the node 5m ago, for 29m more"
        );
        assert_eq!(words(None, Some(until)), "has the lock for 29m more");
        // The holder's clock may be ahead.
        assert_eq!(
            words(Some(until), Some(Instant::UNREADABLE)),
            "has the lock until an unreadable time"
        );
    }

    #[test]
    fn an_own_lease_lasts_as_long_as_a_request_may() {
        let own = |left: Span| {
            let until = Some(NOW + left);
            let verdicts = check(
                &Known::Yes(Lock::Own { until }),
                &Known::Yes(Remediation::None),
                Now::at(NOW),
            );
            (verdicts[0].level, verdicts[0].words.clone())
        };
        let enough = Span::seconds(10);
        assert_eq!(own(enough).0, Ok);
        let (level, words) = own(Span::micros(9_999_999));
        assert_eq!(level, Blocker);
        assert!(words.contains("expires in 9s"), "{words}");
        // The lease stays held for the 3 s of clock skew after that, but its holder may no longer act.
        let (level, words) = own(Span::ZERO);
        assert_eq!(level, Blocker);
        assert!(words.contains("has expired"), "{words}");
    }

    #[test]
    fn a_holder_whose_lease_is_deleted_with_its_node_may_still_act() {
        let another = |until| {
            let holder = "carol@c".to_owned();
            Known::Yes(Lock::Another {
                holder,
                why: None,
                since: None,
                until,
                fencing: None,
            })
        };
        let goes = |lock: &Known<Lock>| {
            let verdict = check_if_node_is_deleted(lock, Now::at(NOW));
            (verdict.level, verdict.words)
        };
        for (until, may) in [
            (Some(NOW + Span::seconds(600)), " for up to 10m: tell them"),
            (Some(Instant::UNREADABLE), ": tell them"),
            (None, ", because a hold does not expire: tell them"),
        ] {
            let (level, words) = goes(&another(until));
            assert_eq!(level, Level::Info);
            assert!(
                words.contains(&format!("carol@c may still act{may}")),
                "{words}"
            );
        }
        assert_eq!(goes(&Known::Yes(Lock::Free)).0, Ok);
        assert_eq!(goes(&forbidden()).0, Level::Info);
    }
}
