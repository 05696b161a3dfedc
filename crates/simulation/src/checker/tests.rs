//! Histories that are bad, each in one way, and good ones beside them.

use std::time::Duration;

use super::{Rule, check};
use crate::history::{
    Acquisition, BeliefId, Call, ClientId, Ending, Entry, Event, Freeze, OpId, Record, RequestId,
};
use crate::time::{EPOCH, Time};

const ALICE: ClientId = ClientId(0);
const BOB: ClientId = ClientId(1);

/// A history that is made up: one node, and everything in whole seconds.
#[derive(Default)]
struct Story {
    entries: Vec<Entry>,
    at: i64,
    version: u64,
    requests: u32,
    ops: u32,
    lease: Option<Record>,
}

impl Story {
    /// Alice and Bob, and nothing else.
    fn begins() -> Self {
        let mut story = Self {
            version: 10,
            ..Self::default()
        };
        for (client, identity) in [(ALICE, "alice"), (BOB, "bob")] {
            story.happens(Event::Lives {
                client,
                identity: identity.into(),
            });
        }
        story
    }

    fn at(&mut self, seconds: i64) -> &mut Self {
        assert!(seconds >= self.at, "time goes on");
        self.at = seconds;
        self
    }

    fn happens(&mut self, event: Event) -> &mut Self {
        let at = Time::from_micros(self.at * 1_000_000);
        self.entries.push(Entry { at, event });
        self
    }

    fn calls(&mut self, client: ClientId, call: Call) -> OpId {
        self.ops += 1;
        let op = OpId(self.ops);
        self.happens(Event::Called {
            op,
            client,
            node: "n".into(),
            call,
        });
        op
    }

    /// A write of a client's that leaves `lease` there.
    fn writes(&mut self, client: ClientId, op: Option<OpId>, lease: Record) -> RequestId {
        let request = self.sends(client, op);
        self.lands(request, Some(lease));
        request
    }

    fn sends(&mut self, client: ClientId, op: Option<OpId>) -> RequestId {
        self.requests += 1;
        let request = RequestId(self.requests);
        self.happens(Event::Sent {
            request,
            client,
            op,
            what: String::new(),
        });
        request
    }

    fn lands(&mut self, request: RequestId, lease: Option<Record>) -> &mut Self {
        let version = self.version + 1;
        self.happens(Event::Served {
            request,
            status: 200,
            wrote: Some(version),
        });
        self.commits(lease)
    }

    /// A change; from outside, if no request of a client's wrote it.
    fn commits(&mut self, lease: Option<Record>) -> &mut Self {
        self.version += 1;
        self.lease.clone_from(&lease);
        let version = self.version;
        self.happens(Event::Committed {
            node: "n".into(),
            version,
            lease,
        })
    }

    /// A whole acquisition, with its belief for ten seconds.
    fn acquires(&mut self, client: ClientId, call: Call) -> Acquisition {
        let op = self.calls(client, call);
        let transitions = self.lease.as_ref().map_or(0, |lease| lease.transitions) + 1;
        let lease = self.held(client, transitions);
        let acquisition = lease.acquisition().expect("held");
        self.writes(client, Some(op), lease);
        let fencing = self.version;
        self.returns(
            op,
            Ending::Acquired {
                acquisition: acquisition.clone(),
                fencing,
                settled: false,
            },
        );
        self.believes(client, &acquisition, 10);
        acquisition
    }

    fn held(&self, client: ClientId, transitions: u32) -> Record {
        let now = EPOCH + self.at * 1_000_000;
        Record {
            uid: "u".into(),
            holder: Some(if client == ALICE { "alice" } else { "bob" }.into()),
            acquired: Some(now),
            renewed: Some(now),
            duration: 10,
            transitions,
            nonce: Some(format!("nonce-{transitions}").into()),
        }
    }

    fn released(&self) -> Record {
        let lease = self.lease.clone().expect("a Lease");
        Record {
            holder: None,
            nonce: None,
            duration: 1,
            ..lease
        }
    }

    fn returns(&mut self, op: OpId, ending: Ending) -> &mut Self {
        self.happens(Event::Returned { op, ending })
    }

    fn believes(&mut self, client: ClientId, acquisition: &Acquisition, seconds: u64) -> BeliefId {
        let number = self
            .entries
            .iter()
            .filter(|entry| matches!(entry.event, Event::Believes { .. }))
            .count();
        let belief = BeliefId(u32::try_from(number).expect("few"));
        let until = Time::from_micros(self.at * 1_000_000) + Duration::from_secs(seconds);
        self.happens(Event::Believes {
            belief,
            client,
            node: "n".into(),
            acquisition: acquisition.clone(),
            until: Some(until),
        });
        belief
    }

    /// The rules that it breaks.
    fn breaks(&mut self) -> Vec<Rule> {
        self.at(self.at + 100)
            .happens(Event::Note("the end".to_owned()));
        let mut rules: Vec<Rule> = check(&self.entries)
            .into_iter()
            .map(|violation| violation.rule)
            .collect();
        rules.dedup();
        rules
    }
}

const ACQUIRE: Call = Call::Acquire(10);

#[test]
fn one_after_the_other_is_fine() {
    let mut story = Story::begins();
    story.acquires(ALICE, ACQUIRE);
    story.at(14).acquires(BOB, ACQUIRE);
    assert_eq!(story.breaks(), []);
}

#[test]
fn two_may_not_believe_at_once() {
    let mut story = Story::begins();
    let acquisition = story.acquires(ALICE, ACQUIRE);
    // Released behind the back of its own belief.
    let op = story.at(5).calls(ALICE, Call::Release(Some(acquisition)));
    let free = story.released();
    story.writes(ALICE, Some(op), free);
    story.returns(op, Ending::Released { settled: false });
    story.at(6).acquires(BOB, ACQUIRE);
    assert_eq!(story.breaks(), [Rule::OneBeliever]);
}

#[test]
fn the_holder_of_a_lock_that_was_broken_may_believe_to_its_end() {
    let mut story = Story::begins();
    story.acquires(ALICE, ACQUIRE);
    story.at(4).commits(None);
    story.lease = None;
    let op = story.at(5).calls(BOB, ACQUIRE);
    let lease = Record {
        uid: "u2".into(),
        ..story.held(BOB, 1)
    };
    let acquisition = lease.acquisition().expect("held");
    story.writes(BOB, Some(op), lease);
    let fencing = story.version;
    story.returns(
        op,
        Ending::Acquired {
            acquisition: acquisition.clone(),
            fencing,
            settled: false,
        },
    );
    story.believes(BOB, &acquisition, 10);
    assert_eq!(story.breaks(), []);
}

#[test]
fn but_not_on_renewals_that_nobody_committed() {
    let mut story = Story::begins();
    let acquisition = story.acquires(ALICE, ACQUIRE);
    story.at(9).believes(ALICE, &acquisition, 10);
    assert_eq!(story.breaks(), [Rule::Founded]);
}

#[test]
fn a_belief_ends_with_its_process() {
    let mut story = Story::begins();
    let acquisition = story.acquires(ALICE, ACQUIRE);
    story.at(1).happens(Event::Crashed { client: ALICE });
    let op = story.at(2).calls(BOB, Call::ForceRelease(acquisition));
    let free = story.released();
    story.writes(BOB, Some(op), free);
    story.returns(op, Ending::Released { settled: false });
    story.at(3).acquires(BOB, ACQUIRE);
    assert_eq!(story.breaks(), []);
}

#[test]
fn who_stands_still_does_not_act() {
    let mut story = Story::begins();
    let acquisition = story.acquires(ALICE, ACQUIRE);
    let belief = BeliefId(9);
    story.happens(Event::Believes {
        belief,
        client: ALICE,
        node: "n".into(),
        acquisition,
        until: None,
    });
    story.at(5).happens(Event::Froze {
        client: ALICE,
        how: Freeze::Stopped,
    });
    story.at(30).acquires(BOB, ACQUIRE);
    story.at(35).happens(Event::Thawed { client: ALICE });
    let mut acts = Story {
        entries: story.entries.clone(),
        at: 35,
        ..Story::default()
    };
    story.happens(Event::Ceases {
        belief,
        why: "dropped",
    });
    assert_eq!(story.breaks(), []);
    acts.happens(Event::Acts { belief });
    assert_eq!(acts.breaks(), [Rule::Founded, Rule::OneBeliever]);
}

#[test]
fn nothing_may_be_taken_before_its_end() {
    let mut story = Story::begins();
    story.acquires(ALICE, ACQUIRE);
    story.happens(Event::Crashed { client: ALICE });
    story.at(9).acquires(BOB, ACQUIRE);
    assert_eq!(story.breaks(), [Rule::TakenInTime]);
}

#[test]
fn a_break_is_for_what_was_confirmed() {
    let mut story = Story::begins();
    let confirmed = story.acquires(ALICE, ACQUIRE);
    story.at(14).acquires(ALICE, ACQUIRE);
    let op = story.at(15).calls(BOB, Call::ForceRelease(confirmed));
    let free = story.released();
    story.writes(BOB, Some(op), free);
    story.returns(op, Ending::Released { settled: false });
    assert_eq!(story.breaks(), [Rule::Meant]);
}

#[test]
fn what_is_acknowledged_was_committed() {
    let mut story = Story::begins();
    let op = story.calls(ALICE, ACQUIRE);
    let acquisition = story.held(ALICE, 1).acquisition().expect("held");
    story.returns(
        op,
        Ending::Acquired {
            acquisition,
            fencing: 11,
            settled: false,
        },
    );
    assert_eq!(story.breaks(), [Rule::Acknowledged]);
}

#[test]
fn what_was_refused_does_not_come_later() {
    let mut story = Story::begins();
    let op = story.calls(ALICE, ACQUIRE);
    let request = story.sends(ALICE, Some(op));
    story.returns(op, Ending::Refused("held".to_owned()));
    let lease = story.held(ALICE, 1);
    story.at(3).lands(request, Some(lease));
    assert_eq!(story.breaks(), [Rule::Refused]);
}

#[test]
fn a_creation_that_was_refused_stands_only_where_it_was_under_way_when_another_lease_was_deleted() {
    for (sent_before, broken) in [(true, &[][..]), (false, &[Rule::Refused])] {
        let mut story = Story::begins();
        let theirs = story.held(BOB, 1);
        story.commits(Some(theirs));
        let op = story.calls(ALICE, ACQUIRE);
        let early = sent_before.then(|| story.sends(ALICE, Some(op)));
        story.at(3).commits(None);
        story.at(4);
        let request = early.unwrap_or_else(|| story.sends(ALICE, Some(op)));
        let lease = story.held(ALICE, 1);
        story.lands(request, Some(lease));
        story.returns(op, Ending::Refused("too many requests".to_owned()));
        assert_eq!(story.breaks(), broken, "sent before: {sent_before}");
    }
}

#[test]
fn what_is_unknown_may_come_later() {
    let mut story = Story::begins();
    let op = story.calls(ALICE, ACQUIRE);
    let request = story.sends(ALICE, Some(op));
    story.returns(op, Ending::Unknown("no answer".to_owned()));
    let lease = story.held(ALICE, 1);
    story.at(3).lands(request, Some(lease));
    assert_eq!(story.breaks(), []);
}

#[test]
fn acquisitions_count_up_by_one() {
    let mut story = Story::begins();
    story.acquires(ALICE, ACQUIRE);
    let op = story.at(14).calls(BOB, ACQUIRE);
    let lease = story.held(BOB, 3);
    story.writes(BOB, Some(op), lease);
    assert_eq!(story.breaks(), [Rule::Transitions]);
}

#[test]
fn a_fencing_number_is_no_later_acquisitions() {
    let mut story = Story::begins();
    let op = story.calls(ALICE, ACQUIRE);
    let lease = story.held(ALICE, 1);
    let acquisition = lease.acquisition().expect("held");
    story.writes(ALICE, Some(op), lease);
    let fencing = story.version + 1;
    story.returns(
        op,
        Ending::Acquired {
            acquisition,
            fencing,
            settled: true,
        },
    );
    story.at(14).acquires(BOB, ACQUIRE);
    assert_eq!(story.breaks(), [Rule::Fencing]);
}

#[test]
fn a_keeper_renews_nothing_that_is_being_released() {
    let mut story = Story::begins();
    let acquisition = story.acquires(ALICE, ACQUIRE);
    let op = story.at(3).calls(ALICE, Call::Release(Some(acquisition)));
    let renewed = story.at(4).held(ALICE, 1);
    story.writes(ALICE, None, renewed);
    let free = story.released();
    story.writes(ALICE, Some(op), free);
    story.returns(op, Ending::Released { settled: false });
    assert_eq!(story.breaks(), [Rule::Released]);
}

#[test]
fn what_is_lost_is_lost() {
    let mut story = Story::begins();
    let acquisition = story.acquires(ALICE, ACQUIRE);
    story.at(3).happens(Event::Lost {
        client: ALICE,
        node: "n".into(),
        acquisition,
        by_time: false,
        how: String::new(),
    });
    assert_eq!(story.breaks(), [Rule::Lost]);
}

#[test]
fn who_waits_gets_in() {
    let mut story = Story::begins();
    let due = Time::from_micros(20_000_000);
    story.happens(Event::Healed { due });
    story.happens(Event::Waits {
        client: ALICE,
        done: false,
    });
    let mut late = Story {
        entries: story.entries.clone(),
        ..Story::default()
    };
    story.at(19).happens(Event::Waits {
        client: ALICE,
        done: true,
    });
    assert_eq!(story.breaks(), []);
    late.at(21).happens(Event::Waits {
        client: ALICE,
        done: true,
    });
    assert_eq!(late.breaks(), [Rule::Progress]);
}
