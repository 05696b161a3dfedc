//! Histories that are bad, each in one way, and good ones beside them.

use std::sync::Arc;
use std::time::Duration;

use super::outcomes::WATCHES;
use super::{Rule, check};
use crate::history::{
    Acquisition, BeliefEnd, BeliefId, Call, CallOutcome, ClientId, Entry, Event, Freeze, LockSet,
    OnConflict, OpId, Record, RequestFault, RequestId,
};
use crate::time::{EPOCH, Time};

const ALICE: ClientId = ClientId(0);
const BOB: ClientId = ClientId(1);

/// A history that is made up: one node, and everything in whole seconds.
#[derive(Default)]
struct HistoryBuilder {
    entries: Vec<Entry>,
    at: i64,
    version: u64,
    requests: u32,
    ops: u32,
    lease: Option<Record>,
    /// The node that all of it is about, unless that is "n".
    node: Option<&'static str>,
}

impl HistoryBuilder {
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

    fn node(&self) -> Arc<str> {
        self.node.unwrap_or("n").into()
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
            node: self.node(),
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
            node: Some(self.node()),
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
            node: self.node(),
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
            CallOutcome::Acquired {
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
            owner: None,
            reason: None,
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

    fn returns(&mut self, op: OpId, ending: CallOutcome) -> &mut Self {
        self.happens(Event::Returned { op, ending })
    }

    fn believes(&mut self, client: ClientId, acquisition: &Acquisition, seconds: u64) -> BeliefId {
        let until = Time::from_micros(self.at * 1_000_000) + Duration::from_secs(seconds);
        self.believes_as(client, acquisition, BeliefEnd::Deadline(until))
    }

    fn believes_as(
        &mut self,
        client: ClientId,
        acquisition: &Acquisition,
        ends: BeliefEnd,
    ) -> BeliefId {
        let number = self
            .entries
            .iter()
            .filter(|entry| matches!(entry.event, Event::Believes { .. }))
            .count();
        let belief = BeliefId(u32::try_from(number).expect("few"));
        self.happens(Event::Believes {
            belief,
            client,
            node: self.node(),
            acquisition: acquisition.clone(),
            ends,
        });
        belief
    }

    /// The server's answer to a request that changes nothing.
    fn is_answered(&mut self, request: RequestId) -> &mut Self {
        self.happens(Event::Answered { request })
    }

    /// What a client says of the server's time: so many microseconds ahead of the truth.
    fn knows(&mut self, client: ClientId, earliest: i64, latest: i64) -> &mut Self {
        let now = EPOCH + self.at * 1_000_000;
        self.happens(Event::Knows {
            client,
            earliest: now + earliest,
            latest: Some(now + latest),
        })
    }

    /// Another story with the same beginning.
    fn fork(&self) -> Self {
        Self {
            entries: self.entries.clone(),
            lease: self.lease.clone(),
            ..*self
        }
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
    let mut story = HistoryBuilder::begins();
    story.acquires(ALICE, ACQUIRE);
    story.at(14).acquires(BOB, ACQUIRE);
    assert_eq!(story.breaks(), []);
}

#[test]
fn two_may_not_believe_at_once() {
    let mut story = HistoryBuilder::begins();
    let acquisition = story.acquires(ALICE, ACQUIRE);
    // Released behind the back of its own belief.
    let op = story.at(5).calls(ALICE, Call::Release(Some(acquisition)));
    let free = story.released();
    story.writes(ALICE, Some(op), free);
    story.returns(op, CallOutcome::Released { settled: false });
    story.at(6).acquires(BOB, ACQUIRE);
    assert_eq!(story.breaks(), [Rule::OneBeliever]);
}

#[test]
fn the_holder_of_a_lock_that_was_broken_may_believe_to_its_end() {
    let mut story = HistoryBuilder::begins();
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
        CallOutcome::Acquired {
            acquisition: acquisition.clone(),
            fencing,
            settled: false,
        },
    );
    story.believes(BOB, &acquisition, 10);
    assert_eq!(story.breaks(), []);
}

/// A Node of the lock's name; no uid: it is gone.
fn node_changed(uid: Option<&str>, terminating: bool) -> Event {
    Event::NodeChanged {
        node: "n".into(),
        uid: uid.map(Into::into),
        terminating,
    }
}

/// Alice acquires the lock for the Node `owner`.
fn acquires_for(story: &mut HistoryBuilder, owner: &str) {
    let op = story.calls(ALICE, ACQUIRE);
    let transitions = story.lease.as_ref().map_or(0, |lease| lease.transitions) + 1;
    let lease = Record {
        owner: Some(owner.into()),
        ..story.held(ALICE, transitions)
    };
    story.writes(ALICE, Some(op), lease);
}

#[test]
fn a_lock_belongs_to_a_node_that_its_client_could_have_read() {
    for (at, breaks) in [(35, vec![]), (60, vec![Rule::Owner])] {
        let mut replaced = HistoryBuilder::begins();
        replaced.happens(node_changed(Some("old"), false));
        replaced.at(10).happens(node_changed(None, false));
        replaced.happens(node_changed(Some("new"), false));
        acquires_for(replaced.at(at), "old");
        assert_eq!(replaced.breaks(), breaks, "replaced, at {at}");

        let mut terminating = HistoryBuilder::begins();
        terminating.happens(node_changed(Some("old"), false));
        terminating.at(10).happens(node_changed(Some("old"), true));
        acquires_for(terminating.at(at), "old");
        assert_eq!(terminating.breaks(), breaks, "terminating, at {at}");
    }
    let mut asleep = HistoryBuilder::begins();
    asleep.happens(node_changed(Some("old"), false));
    asleep.at(10).happens(node_changed(None, false));
    asleep.at(20).happens(Event::Froze {
        client: ALICE,
        how: Freeze::Suspended,
    });
    asleep.at(55).happens(Event::Thawed { client: ALICE });
    acquires_for(asleep.at(60), "old");
    assert_eq!(asleep.breaks(), []);
}

#[test]
fn the_present_owner_is_not_replaced_by_an_earlier_node() {
    for (at, breaks) in [(12, vec![]), (25, vec![Rule::Owner])] {
        let mut story = HistoryBuilder::begins();
        story.happens(node_changed(Some("old"), false));
        story.at(8).happens(node_changed(None, false));
        story.at(10).happens(node_changed(Some("new"), false));
        story.commits(None);
        let free = Record {
            owner: Some("new".into()),
            holder: None,
            nonce: None,
            ..story.held(BOB, 1)
        };
        story.commits(Some(free));
        acquires_for(story.at(at), "old");
        assert_eq!(story.breaks(), breaks, "at {at}");
    }
}

#[test]
fn but_not_on_renewals_that_nobody_committed() {
    let mut story = HistoryBuilder::begins();
    let acquisition = story.acquires(ALICE, ACQUIRE);
    story.at(9).believes(ALICE, &acquisition, 10);
    assert_eq!(story.breaks(), [Rule::Founded, Rule::Covered]);
}

#[test]
fn a_belief_ends_with_its_process() {
    let mut story = HistoryBuilder::begins();
    let acquisition = story.acquires(ALICE, ACQUIRE);
    story.at(1).happens(Event::Crashed { client: ALICE });
    let op = story.at(2).calls(BOB, Call::ForceRelease(acquisition));
    let free = story.released();
    story.writes(BOB, Some(op), free);
    story.returns(op, CallOutcome::Released { settled: false });
    story.at(3).acquires(BOB, ACQUIRE);
    assert_eq!(story.breaks(), []);
}

#[test]
fn a_stopped_command_does_not_act() {
    let mut story = HistoryBuilder::begins();
    let acquisition = story.acquires(ALICE, ACQUIRE);
    let belief = BeliefId(9);
    story.happens(Event::Believes {
        belief,
        client: ALICE,
        node: "n".into(),
        acquisition,
        ends: BeliefEnd::Guard,
    });
    story.at(5).happens(Event::Froze {
        client: ALICE,
        how: Freeze::Stopped,
    });
    story.at(30).acquires(BOB, ACQUIRE);
    story.at(35).happens(Event::Thawed { client: ALICE });
    let mut acts = HistoryBuilder {
        entries: story.entries.clone(),
        at: 35,
        ..HistoryBuilder::default()
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
    let mut story = HistoryBuilder::begins();
    story.acquires(ALICE, ACQUIRE);
    story.happens(Event::Crashed { client: ALICE });
    story.at(9).acquires(BOB, ACQUIRE);
    assert_eq!(story.breaks(), [Rule::TakenInTime]);
}

#[test]
fn a_break_is_for_what_was_confirmed() {
    let mut story = HistoryBuilder::begins();
    let confirmed = story.acquires(ALICE, ACQUIRE);
    story.at(14).acquires(ALICE, ACQUIRE);
    let op = story.at(15).calls(BOB, Call::ForceRelease(confirmed));
    let free = story.released();
    story.writes(BOB, Some(op), free);
    story.returns(op, CallOutcome::Released { settled: false });
    assert_eq!(story.breaks(), [Rule::Meant]);
}

#[test]
fn acknowledged_writes_were_committed() {
    let mut story = HistoryBuilder::begins();
    let op = story.calls(ALICE, ACQUIRE);
    let acquisition = story.held(ALICE, 1).acquisition().expect("held");
    story.returns(
        op,
        CallOutcome::Acquired {
            acquisition,
            fencing: 11,
            settled: false,
        },
    );
    assert_eq!(story.breaks(), [Rule::Acknowledged]);
}

#[test]
fn refused_writes_do_not_come_later() {
    let mut story = HistoryBuilder::begins();
    let op = story.calls(ALICE, ACQUIRE);
    let request = story.sends(ALICE, Some(op));
    story.returns(op, CallOutcome::Refused("held".to_owned()));
    let lease = story.held(ALICE, 1);
    story.at(3).lands(request, Some(lease));
    assert_eq!(story.breaks(), [Rule::Refused]);
}

#[test]
fn a_refused_creation_takes_effect_only_if_another_lease_was_deleted_meanwhile() {
    for (sent_before, broken) in [(true, &[][..]), (false, &[Rule::Refused])] {
        let mut story = HistoryBuilder::begins();
        let theirs = story.held(BOB, 1);
        story.commits(Some(theirs));
        let op = story.calls(ALICE, ACQUIRE);
        let early = sent_before.then(|| story.sends(ALICE, Some(op)));
        story.at(3).commits(None);
        story.at(4);
        let request = early.unwrap_or_else(|| story.sends(ALICE, Some(op)));
        let lease = story.held(ALICE, 1);
        story.lands(request, Some(lease));
        story.returns(op, CallOutcome::Refused("too many requests".to_owned()));
        assert_eq!(story.breaks(), broken, "sent before: {sent_before}");
    }
}

#[test]
fn unknown_writes_may_come_later() {
    let mut story = HistoryBuilder::begins();
    let op = story.calls(ALICE, ACQUIRE);
    let request = story.sends(ALICE, Some(op));
    story.returns(op, CallOutcome::Unknown("no answer".to_owned()));
    let lease = story.held(ALICE, 1);
    story.at(3).lands(request, Some(lease));
    assert_eq!(story.breaks(), []);
}

#[test]
fn acquisitions_count_up_by_one() {
    let mut story = HistoryBuilder::begins();
    story.acquires(ALICE, ACQUIRE);
    let op = story.at(14).calls(BOB, ACQUIRE);
    let lease = story.held(BOB, 3);
    story.writes(BOB, Some(op), lease);
    assert_eq!(story.breaks(), [Rule::Transitions]);
}

#[test]
fn a_fencing_number_is_no_later_acquisitions() {
    let mut story = HistoryBuilder::begins();
    let op = story.calls(ALICE, ACQUIRE);
    let lease = story.held(ALICE, 1);
    let acquisition = lease.acquisition().expect("held");
    story.writes(ALICE, Some(op), lease);
    let fencing = story.version + 1;
    story.returns(
        op,
        CallOutcome::Acquired {
            acquisition,
            fencing,
            settled: true,
        },
    );
    story.at(14).acquires(BOB, ACQUIRE);
    assert_eq!(story.breaks(), [Rule::Fencing]);
}

#[test]
fn time_is_added_once_to_what_was_there() {
    let mut story = HistoryBuilder::begins();
    let acquisition = story.acquires(ALICE, ACQUIRE);
    let op = story.at(4).calls(ALICE, Call::Extend(5, None));
    // Ten seconds were acquired, and six of them are left.
    let until = |story: &HistoryBuilder, duration| Record {
        renewed: Some(EPOCH + story.at * 1_000_000),
        duration,
        ..story.lease.clone().expect("held")
    };
    let extended = until(&story, 11);
    story.writes(ALICE, Some(op), extended);
    let once = until(story.at(5), 10);
    let twice = until(&story, 16);
    for (lease, broken) in [(once, &[][..]), (twice, &[Rule::AddedOnce])] {
        let mut story = story.fork();
        let renewed = lease.renewed.expect("set");
        story.writes(ALICE, Some(op), lease);
        let acquisition = acquisition.clone();
        story.returns(
            op,
            CallOutcome::Renewed {
                acquisition,
                renewed,
            },
        );
        assert_eq!(story.breaks(), broken);
    }
}

#[test]
fn a_keeper_renews_nothing_that_is_being_released() {
    let mut story = HistoryBuilder::begins();
    let acquisition = story.acquires(ALICE, ACQUIRE);
    let op = story.at(3).calls(ALICE, Call::Release(Some(acquisition)));
    let renewed = story.at(4).held(ALICE, 1);
    story.writes(ALICE, None, renewed);
    let free = story.released();
    story.writes(ALICE, Some(op), free);
    story.returns(op, CallOutcome::Released { settled: false });
    assert_eq!(story.breaks(), [Rule::Released]);
}

#[test]
fn lost_locks_stay_lost() {
    let mut story = HistoryBuilder::begins();
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
fn a_waiter_acquires_the_lock() {
    let mut story = HistoryBuilder::begins();
    story.happens(Event::Healed);
    story.happens(Event::Waits {
        client: ALICE,
        due: Time::from_micros(20_000_000),
    });
    let mut late = story.fork();
    story.at(19).happens(Event::GotIn { client: ALICE });
    assert_eq!(story.breaks(), []);
    late.at(21).happens(Event::GotIn { client: ALICE });
    assert_eq!(late.breaks(), [Rule::Progress]);
}

/// What alice says of the server's time, after she heard of it; `clocks` are the API servers'.
fn knowing(clocks: &[i64], earliest: i64, latest: i64) -> Vec<Rule> {
    let mut story = HistoryBuilder::begins();
    story.happens(Event::ServerClocks {
        ahead: clocks.to_vec(),
    });
    // Before the first answer nobody knows better than their own clock.
    story.knows(ALICE, 9_000_000_000, 9_000_000_000);
    let request = story.at(1).sends(ALICE, None);
    story
        .is_answered(request)
        .at(2)
        .knows(ALICE, earliest, latest);
    story.breaks()
}

#[test]
fn an_interval_has_its_ends_in_order_and_some_servers_time_in_it() {
    assert_eq!(knowing(&[0], -200_000, 300_000), []);
    assert_eq!(knowing(&[0], 1, 0), [Rule::Interval]);
    assert_eq!(knowing(&[0], 100_000, 300_000), [Rule::Interval], "ahead");
    assert_eq!(
        knowing(&[0], -300_000, -100_000),
        [Rule::Interval],
        "behind"
    );
    assert_eq!(
        knowing(&[0, 900_000], 700_000, 950_000),
        [],
        "of the other server"
    );
    assert_eq!(
        knowing(&[0], 1_200_000, 1_200_000),
        [],
        "a point of a narrow interval"
    );
    assert_eq!(
        knowing(&[0], 1_500_000, 1_500_000),
        [Rule::Interval],
        "of none"
    );
}

#[test]
fn a_time_range_from_before_a_pause_is_behind_until_the_next_answer() {
    let mut story = HistoryBuilder::begins();
    let request = story.sends(ALICE, None);
    story.is_answered(request);
    for event in [
        Event::Froze {
            client: ALICE,
            how: Freeze::Paused,
        },
        Event::Thawed { client: ALICE },
    ] {
        story.at(story.at + 5).happens(event);
    }
    story.knows(ALICE, -5_000_000, -4_000_000);
    let mut heard = story.fork();
    assert_eq!(story.breaks(), []);
    let request = heard.sends(ALICE, None);
    heard
        .is_answered(request)
        .knows(ALICE, -5_000_000, -4_000_000);
    assert_eq!(heard.breaks(), [Rule::Interval]);
}

#[test]
fn a_lease_stands_for_as_long_as_its_holder_believes() {
    let mut story = HistoryBuilder::begins();
    let op = story.calls(ALICE, ACQUIRE);
    let lease = Record {
        // Written in the past.
        renewed: Some(EPOCH - 4_000_000),
        ..story.held(ALICE, 1)
    };
    let acquisition = lease.acquisition().expect("held");
    story.writes(ALICE, Some(op), lease);
    story.believes(ALICE, &acquisition, 9);
    let mut longer = story.fork();
    assert_eq!(story.breaks(), []);
    longer.believes(ALICE, &acquisition, 10);
    assert_eq!(longer.breaks(), [Rule::Covered]);
}

#[test]
fn success_is_reported_with_a_third_of_the_duration_left() {
    for (seconds, broken) in [(6, &[][..]), (7, &[Rule::TimeLeft])] {
        let mut story = HistoryBuilder::begins();
        let op = story.calls(ALICE, ACQUIRE);
        let lease = story.held(ALICE, 1);
        let acquisition = lease.acquisition().expect("held");
        story.writes(ALICE, Some(op), lease);
        let fencing = story.version;
        story.at(seconds).returns(
            op,
            CallOutcome::Acquired {
                acquisition,
                fencing,
                settled: true,
            },
        );
        assert_eq!(story.breaks(), broken, "after {seconds} s");
    }
}

/// Alice works under a lease, beside her keeper or guarded by it, and stands still from 2 to 4.
fn paused(ends: BeliefEnd, how: Freeze) -> (HistoryBuilder, BeliefId) {
    let mut story = HistoryBuilder::begins();
    let acquisition = story.acquires(ALICE, ACQUIRE);
    let belief = story.believes_as(ALICE, &acquisition, ends);
    story.at(2).happens(Event::Froze { client: ALICE, how });
    story.at(4).happens(Event::Thawed { client: ALICE });
    (story, belief)
}

#[test]
fn nothing_goes_on_after_a_pause_before_a_check_was_answered() {
    let (mut story, belief) = paused(BeliefEnd::Guard, Freeze::Paused);
    let mut checked = story.fork();
    story.happens(Event::Acts { belief });
    story.sends(ALICE, None);
    story.happens(Event::Ceases { belief, why: "" });
    assert_eq!(story.breaks(), [Rule::NoWorkInDoubt]);
    let request = checked.sends(ALICE, None);
    checked.at(5).is_answered(request);
    checked.happens(Event::Acts { belief });
    checked.happens(Event::Ceases { belief, why: "" });
    assert_eq!(checked.breaks(), []);

    let (mut story, belief) = paused(BeliefEnd::Guard, Freeze::Suspended);
    story.happens(Event::Acts { belief });
    story.happens(Event::Ceases { belief, why: "" });
    assert_eq!(story.breaks(), [], "its boot clock went on");
}

#[test]
fn parallel_work_is_stopped_by_the_next_check_and_does_not_begin() {
    let (mut story, belief) = paused(BeliefEnd::Notification, Freeze::Paused);
    story.at(5).sends(ALICE, None);
    let mut late = story.fork();
    story.happens(Event::Acts { belief });
    story.happens(Event::Ceases { belief, why: "" });
    assert_eq!(story.breaks(), []);
    late.at(6).happens(Event::Acts { belief });
    late.happens(Event::Ceases { belief, why: "" });
    assert_eq!(late.breaks(), [Rule::NoWorkInDoubt]);

    let mut story = HistoryBuilder::begins();
    let acquisition = story.acquires(ALICE, ACQUIRE);
    story.at(2).happens(Event::Froze {
        client: ALICE,
        how: Freeze::Paused,
    });
    story.at(4).happens(Event::Thawed { client: ALICE });
    let belief = story.believes_as(ALICE, &acquisition, BeliefEnd::Notification);
    story.happens(Event::Ceases { belief, why: "" });
    assert_eq!(story.breaks(), [Rule::NoWorkInDoubt], "it begins");
}

#[test]
fn a_check_is_sent_at_once() {
    for (at, broken) in [(6, &[][..]), (7, &[Rule::Checked])] {
        let (mut story, belief) = paused(BeliefEnd::Guard, Freeze::Paused);
        story.at(at).sends(ALICE, None);
        story.happens(Event::Ceases { belief, why: "" });
        assert_eq!(story.breaks(), broken, "at {at}");
    }
}

#[test]
fn an_undetected_pause_is_allowed_until_the_next_answer() {
    let (mut story, belief) = paused(BeliefEnd::Guard, Freeze::Halted);
    story.at(20).acquires(BOB, ACQUIRE);
    story.happens(Event::Acts { belief });
    let mut heard = story.fork();
    story.at(22).happens(Event::Ceases { belief, why: "" });
    assert_eq!(story.breaks(), []);
    let request = heard.sends(ALICE, None);
    heard.is_answered(request);
    for at in [22, 23] {
        heard.at(at).happens(Event::Acts { belief });
    }
    heard.at(23).happens(Event::Ceases { belief, why: "" });
    assert_eq!(heard.breaks(), [Rule::Founded, Rule::OneBeliever]);
}

#[test]
fn released_locks_do_not_stand() {
    for meant in [true, false] {
        let mut story = HistoryBuilder::begins();
        let acquisition = story.acquires(ALICE, ACQUIRE);
        let call = Call::Release(meant.then_some(acquisition));
        let op = story.at(3).calls(ALICE, call);
        story.at(4).returns(op, CallOutcome::Nothing);
        assert_eq!(story.breaks(), [Rule::Reported], "meant: {meant}");
    }
    let mut story = HistoryBuilder::begins();
    story.acquires(BOB, ACQUIRE);
    let op = story.at(3).calls(ALICE, Call::Release(None));
    story.at(4).returns(op, CallOutcome::Nothing);
    assert_eq!(story.breaks(), [], "it is another's");
}

#[test]
fn a_lock_said_to_be_the_callers_is_of_another_attempt() {
    let mut story = HistoryBuilder::begins();
    story.acquires(ALICE, ACQUIRE);
    let op = story.at(3).calls(ALICE, ACQUIRE);
    story.returns(op, CallOutcome::HeldByCaller("held".to_owned()));
    assert_eq!(story.breaks(), []);

    let mut story = HistoryBuilder::begins();
    let op = story.calls(ALICE, ACQUIRE);
    let lease = story.held(ALICE, 1);
    story.writes(ALICE, Some(op), lease);
    story.returns(op, CallOutcome::HeldByCaller("held".to_owned()));
    assert_eq!(story.breaks(), [Rule::Refused, Rule::Reported]);
}

#[test]
fn broken_locks_are_not_acquired_again_by_the_same_attempt() {
    for (same_nonce, deleted) in [(true, false), (false, false), (true, true)] {
        let mut story = HistoryBuilder::begins();
        let op = story.calls(ALICE, ACQUIRE);
        let first = story.held(ALICE, 1);
        story.writes(ALICE, Some(op), first.clone());
        let confirmed = first.acquisition().expect("held");
        let free = story.released();
        match deleted {
            true => {
                story.at(2).commits(None);
            }
            false => {
                let op = story.at(2).calls(BOB, Call::ForceRelease(confirmed));
                story.writes(BOB, Some(op), free);
                story.returns(op, CallOutcome::Released { settled: false });
            }
        }
        let mut second = story.at(3).held(ALICE, if deleted { 1 } else { 2 });
        if same_nonce {
            second.nonce = first.nonce;
        }
        if deleted {
            second.uid = "u2".into();
        }
        story.writes(ALICE, Some(op), second);
        let broken: &[Rule] = if deleted { &[] } else { &[Rule::NotRetaken] };
        assert_eq!(story.breaks(), broken, "{same_nonce} {deleted}");
    }
}

/// "a" and "b", and other locks are waited for.
fn both() -> LockSet {
    LockSet {
        nodes: vec!["a".into(), "b".into()],
        seconds: Some(10),
        manner: OnConflict::Waiting,
        reentry: false,
        confirmed: Vec::new(),
        reason: "after".into(),
    }
}

/// Alice wants "a" and "b".
fn wants_both(story: &mut HistoryBuilder) -> OpId {
    story.node = Some("a");
    story.calls(ALICE, Call::AcquireAll(both()))
}

/// A part of what a call for several nodes acquires.
fn takes(story: &mut HistoryBuilder, op: OpId, node: &'static str) -> Acquisition {
    story.node = Some(node);
    let lease = Record {
        uid: node.into(),
        ..story.held(ALICE, 1)
    };
    let acquisition = lease.acquisition().expect("held");
    let request = story.writes(ALICE, Some(op), lease);
    story.is_answered(request);
    acquisition
}

#[test]
fn a_set_that_is_refused_leaves_nothing_behind() {
    let mut story = HistoryBuilder::begins();
    let op = wants_both(&mut story);
    takes(&mut story, op, "a");
    let mut astray = story.fork();
    let mut given_back = story.fork();
    story
        .at(1)
        .returns(op, CallOutcome::Refused("b is held".to_owned()));
    assert_eq!(story.breaks(), [Rule::AllOrNone]);

    let request = astray.at(1).sends(ALICE, Some(op));
    astray.happens(Event::RequestFailed {
        request,
        fault: RequestFault::Lost,
    });
    astray.returns(op, CallOutcome::Refused("b is held".to_owned()));
    assert_eq!(astray.breaks(), [], "its release was lost");

    let free = given_back.released();
    given_back.at(1).writes(ALICE, Some(op), free);
    given_back.returns(op, CallOutcome::Refused("b is held".to_owned()));
    assert_eq!(given_back.breaks(), []);
}

#[test]
fn a_set_that_was_acquired_was_acquired_whole() {
    for whole in [true, false] {
        let mut story = HistoryBuilder::begins();
        let op = wants_both(&mut story);
        let mut all = vec![("a".into(), takes(&mut story, op, "a"))];
        if whole {
            all.push(("b".into(), takes(&mut story, op, "b")));
        }
        story.returns(op, CallOutcome::AcquiredAll(all));
        let broken: &[Rule] = if whole { &[] } else { &[Rule::Acknowledged] };
        assert_eq!(story.breaks(), broken, "whole: {whole}");
    }
}

/// A write of Alice's that leaves her lock of `node` with this reason.
fn writes_reason(
    story: &mut HistoryBuilder,
    op: OpId,
    node: &'static str,
    reason: &str,
) -> Acquisition {
    story.node = Some(node);
    let lease = Record {
        uid: node.into(),
        reason: Some(reason.into()),
        ..story.held(ALICE, 1)
    };
    let acquisition = lease.acquisition().expect("held");
    let request = story.writes(ALICE, Some(op), lease);
    story.is_answered(request);
    acquisition
}

/// Alice has "a", and asks for "a" and "b" for another reason.
fn wants_one_more() -> (HistoryBuilder, OpId) {
    let mut story = HistoryBuilder::begins();
    story.node = Some("a");
    let op = story.calls(ALICE, ACQUIRE);
    let acquisition = writes_reason(&mut story, op, "a", "before");
    let fencing = story.version;
    story.returns(
        op,
        CallOutcome::Acquired {
            acquisition,
            fencing,
            settled: false,
        },
    );
    let set = LockSet {
        reentry: true,
        ..both()
    };
    let op = story.at(1).calls(ALICE, Call::AcquireAll(set));
    (story, op)
}

#[test]
fn a_set_releases_nothing_that_its_caller_had_before() {
    let (mut story, op) = wants_one_more();
    let free = story.released();
    story.at(2).writes(ALICE, Some(op), free);
    story.returns(op, CallOutcome::Refused("b is held".to_owned()));
    assert_eq!(story.breaks(), [Rule::LeftAsFound]);
}

#[test]
fn a_set_rewrites_earlier_locks_after_it_has_all_nodes() {
    for (order, broken) in [(["a", "b"], &[Rule::DetailsKept][..]), (["b", "a"], &[])] {
        let (mut story, op) = wants_one_more();
        let mut all = Vec::new();
        for node in order {
            all.push((node.into(), writes_reason(&mut story, op, node, "after")));
        }
        story.returns(op, CallOutcome::AcquiredAll(all));
        assert_eq!(story.breaks(), broken, "{order:?}");
    }
}

/// Bob has "b", and Alice wants "a" and "b".
fn wants_what_bob_has(holder: &str) -> (HistoryBuilder, OpId) {
    let mut story = HistoryBuilder::begins();
    story.node = Some("b");
    let held = Record {
        holder: Some(holder.into()),
        ..story.held(BOB, 1)
    };
    story.commits(Some(held));
    let op = wants_both(story.at(1));
    (story, op)
}

#[test]
fn a_set_writes_nothing_while_others_hold_one_of_its_nodes() {
    let (mut story, op) = wants_what_bob_has("kubeadm:bob");
    takes(&mut story, op, "a");
    story.returns(op, CallOutcome::Unknown("b is on hold".to_owned()));
    assert_eq!(story.breaks(), [Rule::LooksFirst]);
}

#[test]
fn a_set_that_waits_acquires_free_nodes_in_name_order() {
    for (order, broken) in [(["b", "a"], &[Rule::NameOrder][..]), (["a", "b"], &[])] {
        let mut story = HistoryBuilder::begins();
        let op = wants_both(&mut story);
        let all = order.map(|node| (node.into(), takes(&mut story, op, node)));
        story.returns(op, CallOutcome::AcquiredAll(all.to_vec()));
        assert_eq!(story.breaks(), broken, "{order:?}");
    }
}

#[test]
fn a_set_that_waits_holds_nothing() {
    for (seconds, broken) in [(8, &[Rule::WaitsWithNothing][..]), (5, &[])] {
        let (mut story, op) = wants_what_bob_has("bob");
        takes(&mut story, op, "a");
        let free = story.released();
        story.at(seconds).writes(ALICE, Some(op), free);
        story.returns(op, CallOutcome::Refused("b is held".to_owned()));
        assert_eq!(story.breaks(), broken, "released after {seconds} s");
    }
}

#[test]
fn a_list_has_everything_that_was_there_all_the_time() {
    let listed = |nodes: &[&str]| Event::Listed {
        client: BOB,
        since: Time::from_micros(1_000_000),
        nodes: nodes.iter().map(|&node| node.into()).collect(),
    };
    let mut story = HistoryBuilder::begins();
    story.acquires(ALICE, ACQUIRE);
    let (mut whole, mut deleted) = (story.fork(), story.fork());
    story.at(2).happens(listed(&[]));
    assert_eq!(story.breaks(), [Rule::Listed]);
    whole.at(2).happens(listed(&["n"]));
    assert_eq!(whole.breaks(), []);
    deleted.at(2).commits(None).happens(listed(&[]));
    assert_eq!(deleted.breaks(), [], "it went meanwhile");
}

#[test]
fn nobody_watches_again_and_again() {
    for (number, broken) in [(WATCHES, &[][..]), (WATCHES + 1, &[Rule::Requests])] {
        let mut story = HistoryBuilder::begins();
        for request in 0..number {
            story.happens(Event::Sent {
                request: RequestId(u32::try_from(request).expect("few")),
                client: ALICE,
                op: None,
                node: None,
                what: "GET leases watch".to_owned(),
            });
        }
        assert_eq!(story.breaks(), broken, "{number} watches");
    }
}

#[test]
fn nothing_panics() {
    let mut story = HistoryBuilder::begins();
    story.happens(Event::Panicked { client: ALICE });
    assert_eq!(story.breaks(), [Rule::NoPanic]);
}
