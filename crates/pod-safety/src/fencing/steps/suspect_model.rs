//! An exhaustive model of a suspect node over a few seconds. The suspect keeps reporting with a wrong clock,
//! and a pod that nothing recreates is scheduled to it.

use maintenance_lease::protocol::{BootInstant, Now, Span};

use super::fixtures::{NOW, unreachable};
use super::{AcceptedRisks, Step};
use crate::fencing::UnchangedHeartbeat;
use crate::known::Known;
use crate::node_health::Heartbeat;

/// The length of a history in seconds.
const SECONDS: u32 = 9;

/// The duration of a heartbeat in seconds.
const LASTS: u32 = 3;

/// What `fence` knows about the heartbeat after a read.
type Rule = fn(
    Option<UnchangedHeartbeat>,
    &Known<Option<Heartbeat>>,
    BootInstant,
) -> Option<UnchangedHeartbeat>;

fn at(second: u32) -> BootInstant {
    BootInstant::from_micros(i64::from(second) * 1_000_000)
}

/// The second in which a suspect is recorded, if it is. The kubelet reports in the seconds in `beats`, and
/// `fence` reads in the seconds in `reads` (bit masks). The node's clock is far behind, so its heartbeats
/// always look old and the control plane reports it as unreachable. Only changes of the heartbeat show that
/// it is alive.
fn recorded(beats: u32, reads: u32, rule: Rule) -> Option<u32> {
    let mut unchanged = None;
    (0..SECONDS).find(|second| {
        let before = beats & ((1 << (second + 1)) - 1);
        let heartbeat = Known::Yes(Some(Heartbeat {
            at: NOW - Span::seconds(900) + Span::seconds(before.count_ones()),
            duration: Span::seconds(LASTS),
        }));
        if reads & (1 << second) == 0 {
            return false;
        }
        unchanged = rule(unchanged.take(), &heartbeat, at(*second));
        let mut evidence = unreachable();
        evidence.state.heartbeat = heartbeat;
        evidence.is_suspect = true;
        evidence.has_stopped_reporting = unchanged
            .as_ref()
            .is_none_or(|unchanged| unchanged.is_over(at(*second)));
        let step = evidence.next(Now::at(NOW), AcceptedRisks::default());
        assert!(
            matches!(step, Ok(Step::AwaitReportsToStop | Step::Record)),
            "{step:?}"
        );
        step == Ok(Step::Record)
    })
}

/// The first history in which a suspect is recorded although it reported less than [`LASTS`] ago.
fn too_early(rule: Rule) -> Option<(u32, u32, u32)> {
    let all = 0..1 << SECONDS;
    let histories = all
        .clone()
        .flat_map(|beats| all.clone().map(move |reads| (beats, reads)));
    histories.into_iter().find_map(|(beats, reads)| {
        let second = recorded(beats, reads, rule)?;
        let recently = (0..=second).filter(|beat| beat + LASTS > second);
        let reported = { recently }.any(|beat| beats & (1 << beat) != 0);
        reported.then_some((beats, reads, second))
    })
}

fn watched(
    earlier: Option<UnchangedHeartbeat>,
    read: &Known<Option<Heartbeat>>,
    at: BootInstant,
) -> Option<UnchangedHeartbeat> {
    Some(UnchangedHeartbeat::after(earlier, read, at))
}

/// The first history in which a suspect is recorded although a pod that nothing recreates came to it in
/// second `arrives`. At a read, `fence` knows the pod if it came by the second that `sees` returns.
fn loses_a_pod(sees: fn(u32, u32) -> u32) -> Option<(u32, u32, u32)> {
    let histories = (0..1 << SECONDS).flat_map(|reads| (0..SECONDS).map(move |at| (reads, at)));
    histories
        .into_iter()
        .find_map(|(reads, arrives): (u32, u32)| {
            let first = reads.trailing_zeros();
            (first..SECONDS).find_map(|second| {
                if reads & (1 << second) == 0 {
                    return None;
                }
                let mut evidence = unreachable();
                evidence.is_suspect = true;
                evidence.has_stopped_reporting = second >= first + LASTS;
                if arrives <= sees(first, second) {
                    evidence.no_owner = vec!["shop/tool".to_owned()];
                }
                let step = evidence.next(Now::at(NOW), AcceptedRisks::default());
                let is_lost = step == Ok(Step::Record) && arrives <= second;
                is_lost.then_some((reads, arrives, second))
            })
        })
}

/// The pods are checked right before the record is written. The pods before the hook do not count.
#[test]
fn a_pod_that_nothing_recreates_is_not_lost_if_it_comes_late() {
    assert_eq!(loses_a_pod(|_, second| second), None);
    assert!(loses_a_pod(|first, _| first).is_some());
}

#[test]
fn a_suspect_is_recorded_only_after_its_heartbeat_stood_still_for_one_lease_duration() {
    assert_eq!(too_early(watched), None);
    // It is recorded as soon as the heartbeat has stood still long enough.
    let every_second = (1 << SECONDS) - 1;
    assert_eq!(recorded(0, every_second, watched), Some(LASTS));
    assert_eq!(recorded(0b100, every_second, watched), Some(2 + LASTS));
    assert_eq!(recorded(every_second, every_second, watched), None);
}

#[test]
fn a_taint_before_that_is_found() {
    let without_wait: Rule = |_, _, _| None;
    assert!(too_early(without_wait).is_some());
    // This rule counts from the first read, even if the heartbeat changes later.
    let from_the_start: Rule = |earlier, read, at| earlier.or(watched(None, read, at));
    assert!(too_early(from_the_start).is_some());
}
