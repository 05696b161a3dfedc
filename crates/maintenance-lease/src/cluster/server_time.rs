//! The API server's time, bounded by the `Date` headers of its answers.
//!
//! A request sent at `sent` whose answer came at `received` was answered while the server's clock
//! showed a time in `[Date, Date + 1 s)`. So the offset of server time from boot time lies in
//! `[Date − received, Date + 1 s − sent]`. The answers of the last five minutes bound it together. Bounds are kept
//! against the boot clock, so that steps of the local wall clock leave them valid.
//!
//! If a machine was paused, its boot clock stood still while server time continued. The low bounds stay true,
//! but the high bounds of every request that was sent before the pause was noticed are void.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, header};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::wire;
use crate::bugs::{self, Bug};
use crate::env::Env;
use crate::protocol::{BootInstant, Instant, Now, SKEW_BUDGET, Span};

/// In an interval no wider than this, the local wall clock may choose the point. Two clients that choose
/// opposite ends still agree within the clock budget.
const NARROW: i64 = 1_400_000;

/// Bounds widen by their age divided by this: 200 ppm, more than the drift of any clock in use.
const DRIFT: i64 = 5_000;

/// Older bounds are ignored, except for the newest answer's.
const MEMORY: Span = Span::seconds(300);

/// How many of the latest answers are kept.
const CAPACITY: usize = 64;

/// How far the wall clock may run ahead of the boot clock, in microseconds, before a pause of the machine is
/// suspected. Both are slewed alike and differ only by steps. It is short, because a holder believes for that
/// much too long.
const STEP: i64 = 100_000;

/// How far an answer may be above the known bounds before a pause is suspected, in microseconds: the precision
/// of `Date`.
const MAX_DATE_JUMP: i64 = 1_000_000;

/// How far answers may contradict each other before a warning, in microseconds.
const DISAGREEMENT: i64 = 1_000_000;

/// A running estimate of the API server's time. Clones share it.
#[derive(Clone)]
pub struct ServerTime {
    env: Arc<dyn Env>,
    bounds: Arc<Mutex<Bounds>>,
    /// Notified whenever a pause of the machine is suspected.
    pause_suspected: Arc<Notify>,
    on_suspected_pause: OnSuspectedPause,
}

/// Called when a pause of the machine is suspected.
pub(crate) type OnSuspectedPause = Arc<dyn Fn() + Send + Sync>;

/// When a request was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sending {
    /// The boot clock before it was sent.
    at: BootInstant,
    /// How many pauses of the machine had been suspected by then. If there was one since, the boot clock may
    /// not have counted all the time since [`at`](Self::at).
    suspected_pauses: u64,
}

struct Bounds {
    samples: VecDeque<Sample>,
    /// How many pauses were suspected.
    suspected_pauses: u64,
    /// The least that the wall clock has been ahead of the boot clock, in microseconds. So pauses that are too
    /// short to be noticed one by one add up.
    wall_ahead: i64,
}

/// Bounds of server time minus boot time, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Sample {
    taken: BootInstant,
    low: i64,
    /// `None`: a pause was noticed since the request was sent.
    high: Option<i64>,
}

/// The combined bounds of all answers, of server time minus boot time, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offset {
    low: i64,
    /// `None`: there was no answer since the last pause.
    high: Option<i64>,
    /// By how much answers contradict each other.
    disagreement: i64,
}

/// What the estimate shows of the clocks involved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockWarning {
    /// The local clock is off by more than the clock budget.
    LocalClock {
        /// How far it is ahead of the server's; negative if it is behind.
        ahead: Span,
    },
    /// Answers contradict each other by more than a second: several API servers, or a proxy with a clock
    /// of its own.
    ServersDisagree {
        /// How far they are apart.
        by: Span,
    },
}

impl Bounds {
    /// A pause is suspected: how late it may be is not known until a request from now on is answered.
    fn suspect_pause(&mut self) {
        self.suspected_pauses += 1;
        for sample in &mut self.samples {
            sample.high = None;
        }
    }

    /// Suspects a pause if the wall clock ran ahead of the boot clock, and notifies.
    fn detect_pause(&mut self, env: &dyn Env) -> bool {
        let (at_least, at_most) = wall_ahead(env);
        let ran_ahead = at_least - self.wall_ahead > STEP;
        if ran_ahead {
            self.suspect_pause();
            self.wall_ahead = at_most;
        } else {
            self.wall_ahead = self.wall_ahead.min(at_most);
        }
        ran_ahead
    }

    /// The bounds at `boot`; `None` before the first answer.
    fn offset(&self, boot: BootInstant) -> Option<Offset> {
        let lows = self
            .samples
            .iter()
            .map(|sample| sample.low - drift(boot, sample));
        let highs = || {
            self.samples
                .iter()
                .filter_map(|sample| Some(sample.high? + drift(boot, sample)))
        };
        let low = lows.clone().max()?;
        let Some(high) = highs().min() else {
            return Some(Offset {
                low,
                high: None,
                disagreement: 0,
            });
        };
        if low <= high || bugs::active(Bug::InvertedInterval) {
            return Some(Offset {
                low,
                high: Some(high),
                disagreement: 0,
            });
        }
        Some(Offset {
            low: lows.min()?,
            // An answer from before a pause bounds the time from below, not from above.
            high: highs().max().map(|high| high.max(low)),
            disagreement: low - high,
        })
    }

    fn push(&mut self, sample: Sample) {
        let is_old = |oldest: &Sample| sample.taken.since(oldest.taken) > MEMORY;
        while self.samples.len() >= CAPACITY || self.samples.front().is_some_and(is_old) {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// The samples that count at `boot`: the recent ones, and the newest in any case.
    fn forget_old(&mut self, boot: BootInstant) {
        while self.samples.len() > 1
            && self
                .samples
                .front()
                .is_some_and(|oldest| boot.since(oldest.taken) > MEMORY)
        {
            self.samples.pop_front();
        }
    }
}

/// By how much a bound has widened since it was taken.
fn drift(boot: BootInstant, sample: &Sample) -> i64 {
    boot.since(sample.taken).as_micros().max(0) / DRIFT
}

/// How far the wall clock is ahead of the boot clock, at least and at most: a process that is stopped between
/// the readings must not take that for a pause of the machine.
fn wall_ahead(env: &dyn Env) -> (i64, i64) {
    let before = env.boot().as_micros();
    let wall = env.wall().as_micros();
    (wall - env.boot().as_micros(), wall - before)
}

impl ServerTime {
    /// An estimate without answers, which trusts the local clock until the first dated answer. Calls
    /// `on_suspected_pause` whenever a pause of the machine is suspected.
    pub(crate) fn new(env: Arc<dyn Env>, on_suspected_pause: OnSuspectedPause) -> Self {
        let bounds = Bounds {
            samples: VecDeque::new(),
            suspected_pauses: 0,
            wall_ahead: wall_ahead(&*env).1,
        };
        Self {
            env,
            bounds: Arc::new(Mutex::new(bounds)),
            pause_suspected: Arc::default(),
            on_suspected_pause,
        }
    }

    /// Completes at the next suspicion of a pause, counted from this call.
    pub(crate) fn pause_suspected(&self) -> Notified<'_> {
        self.pause_suspected.notified()
    }

    /// Notifies everybody that a pause is suspected.
    fn notify_suspected_pause(&self) {
        self.pause_suspected.notify_waiters();
        (self.on_suspected_pause)();
    }

    /// The point in time of a request that is about to be sent.
    pub(crate) fn sending(&self) -> Sending {
        // Read the clock before the count: a pause in between makes the request older than it says.
        let at = self.env.boot();
        Sending {
            at,
            suspected_pauses: self.suspected_pauses(),
        }
    }

    /// How many pauses of the machine were suspected so far, including one that was just detected: the wall
    /// clock ran ahead of the boot clock, or an answer was later than possible.
    #[must_use]
    pub fn suspected_pauses(&self) -> u64 {
        self.checked().suspected_pauses
    }

    /// Takes an answer's headers into account.
    pub(crate) fn observe(&self, sent: Sending, received: BootInstant, headers: &HeaderMap) {
        let Some(date) = headers
            .get(header::DATE)
            .and_then(|value| value.to_str().ok())
            .and_then(wire::parse_http_date)
        else {
            return;
        };
        let mut bounds = self.checked();
        let low = date.as_micros() - received.as_micros();
        let known = bounds.offset(received).and_then(|known| known.high);
        if known.is_some_and(|high| low > high + MAX_DATE_JUMP) {
            bounds.suspect_pause();
            self.notify_suspected_pause();
        }
        let is_valid = sent.suspected_pauses == bounds.suspected_pauses
            || bugs::active(Bug::StraddlingAnswerBelieved);
        let high = date.as_micros() + 1_000_000 - sent.at.as_micros();
        bounds.push(Sample {
            taken: received,
            low,
            high: is_valid.then_some(high),
        });
    }

    /// The present, in server time.
    #[must_use]
    pub fn now(&self) -> Now {
        let mut bounds = self.checked();
        let boot = self.env.boot();
        let local = self.env.wall().as_micros() - boot.as_micros();
        bounds.forget_old(boot);
        let at = |offset: i64| Instant::from_micros(boot.as_micros().saturating_add(offset));
        match bounds.offset(boot) {
            None => Now::at(at(local)),
            Some(Offset { high: None, .. }) if bugs::active(Bug::LocalClockAfterPause) => {
                Now::at(at(local))
            }
            Some(Offset {
                low, high: None, ..
            }) => Now {
                earliest: at(low),
                latest: at(low),
                bounded: false,
            },
            Some(Offset {
                low,
                high: Some(high),
                ..
            }) if high - low <= NARROW && low <= high => Now::at(at(local.clamp(low, high))),
            Some(Offset {
                low,
                high: Some(high),
                ..
            }) => Now::between(at(low), at(high)),
        }
    }

    /// What people should know about the clocks, if anything.
    #[must_use]
    pub fn warning(&self) -> Option<ClockWarning> {
        let bounds = self.checked();
        let boot = self.env.boot();
        let local = self.env.wall().as_micros() - boot.as_micros();
        let offset = bounds.offset(boot)?;
        if offset.disagreement > DISAGREEMENT {
            return Some(ClockWarning::ServersDisagree {
                by: Span::micros(offset.disagreement),
            });
        }
        let ahead = local - local.clamp(offset.low, offset.high?.max(offset.low));
        (ahead.abs() > SKEW_BUDGET.as_micros()).then_some(ClockWarning::LocalClock {
            ahead: Span::micros(ahead),
        })
    }

    /// The bounds, after the clocks were checked: no decision uses bounds that a pause made void.
    fn checked(&self) -> MutexGuard<'_, Bounds> {
        let mut bounds = self.bounds.lock().unwrap_or_else(PoisonError::into_inner);
        if bounds.detect_pause(&*self.env) {
            self.notify_suspected_pause();
        }
        bounds
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};
    use std::time::Duration;

    use futures::future::BoxFuture;

    use super::*;

    /// A machine whose clocks show what the test sets, in microseconds.
    #[derive(Default)]
    struct Clocks {
        wall: AtomicI64,
        boot: AtomicI64,
    }

    impl Env for Clocks {
        fn wall(&self) -> Instant {
            Instant::from_micros(self.wall.load(Ordering::Relaxed))
        }
        fn boot(&self) -> BootInstant {
            BootInstant::from_micros(self.boot.load(Ordering::Relaxed))
        }
        fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
            Box::pin(std::future::ready(()))
        }
        fn random(&self, _: &mut [u8]) {}
    }

    const SECOND: i64 = 1_000_000;
    /// 1994-11-06T08:49:37Z
    const EPOCH: i64 = 784_111_777 * SECOND;

    /// The estimate and its clocks, both at 100 s since boot, the wall clock ahead by `ahead`.
    fn at(ahead: i64) -> (ServerTime, Arc<Clocks>) {
        let clocks = Arc::new(Clocks::default());
        clocks.boot.store(100 * SECOND, Ordering::Relaxed);
        clocks.wall.store(EPOCH + ahead, Ordering::Relaxed);
        (ServerTime::new(clocks.clone(), Arc::new(|| ())), clocks)
    }

    /// An answer whose Date is `date` seconds after the epoch of these tests, to a request that was sent
    /// after the last suspected pause.
    fn answer(time: &ServerTime, sent: i64, received: i64, date: u32) {
        let sent = Sending {
            at: BootInstant::from_micros(sent),
            suspected_pauses: time.suspected_pauses(),
        };
        answer_to(time, sent, received, date);
    }

    fn answer_to(time: &ServerTime, sent: Sending, received: i64, date: u32) {
        let mut headers = HeaderMap::new();
        let (minute, second) = ((37 + date) / 60 + 49, (37 + date) % 60);
        let date = format!("Sun, 06 Nov 1994 08:{minute:02}:{second:02} GMT");
        headers.insert(header::DATE, date.parse().expect("a header value"));
        time.observe(sent, BootInstant::from_micros(received), &headers);
    }

    fn epoch_and(micros: i64) -> Instant {
        Instant::from_micros(EPOCH + micros)
    }

    #[test]
    fn without_answers_the_local_clock_counts() {
        let (time, _) = at(7 * SECOND);
        assert_eq!(time.now(), Now::at(epoch_and(7 * SECOND)));
        assert_eq!(time.warning(), None);
    }

    #[test]
    fn a_clock_within_the_interval_is_not_corrected() {
        let (time, _) = at(SECOND / 2);
        answer(&time, 100 * SECOND, 100 * SECOND + 1000, 0);
        assert_eq!(time.now(), Now::at(epoch_and(SECOND / 2)));
    }

    #[test]
    fn a_clock_outside_is_corrected_to_the_nearer_end() {
        for (ahead, corrected, warned) in [(10, 1, 9), (-10, 0, -10)] {
            let (time, _) = at(ahead * SECOND);
            answer(&time, 100 * SECOND, 100 * SECOND, 0);
            assert_eq!(time.now(), Now::at(epoch_and(corrected * SECOND)));
            let ahead = Span::micros(warned * SECOND);
            assert_eq!(time.warning(), Some(ClockWarning::LocalClock { ahead }));
        }
    }

    #[test]
    fn several_answers_narrow_the_estimate() {
        let (time, _) = at(10 * SECOND);
        answer(&time, 100 * SECOND, 100 * SECOND, 0);
        // 0.3 s later the server's clock has passed to the next second.
        answer(&time, 100 * SECOND + 300_000, 100 * SECOND + 300_000, 1);
        assert_eq!(time.now(), Now::at(epoch_and(SECOND)));
        answer(&time, 100 * SECOND + 100_000, 100 * SECOND + 100_000, 0);
        assert_eq!(time.now(), Now::at(epoch_and(900_000)));
    }

    #[test]
    fn a_slow_answer_alone_leaves_the_present_as_wide_as_it_is() {
        let (time, clocks) = at(3_600 * SECOND);
        clocks.boot.store(102 * SECOND, Ordering::Relaxed);
        clocks.wall.store(EPOCH + 3_602 * SECOND, Ordering::Relaxed);
        answer(&time, 100 * SECOND, 102 * SECOND, 1);
        let present = Now::between(epoch_and(SECOND), epoch_and(4 * SECOND));
        assert_eq!(time.now(), present);
        assert!(present.is_narrow());
        let ahead = Span::micros(3_598 * SECOND);
        assert_eq!(time.warning(), Some(ClockWarning::LocalClock { ahead }));
    }

    #[test]
    fn bounds_widen_with_their_age() {
        let (time, clocks) = at(-3_600 * SECOND);
        answer(&time, 100 * SECOND, 100 * SECOND, 0);
        clocks.boot.store(350 * SECOND, Ordering::Relaxed);
        clocks.wall.store(EPOCH - 3_350 * SECOND, Ordering::Relaxed);
        // 250 s at 200 ppm, at either end.
        assert_eq!(time.now(), Now::at(epoch_and(250 * SECOND - 50_000)));
        clocks.boot.store(1_200 * SECOND, Ordering::Relaxed);
        clocks.wall.store(EPOCH - 2_500 * SECOND, Ordering::Relaxed);
        let now = time.now();
        let wide = Now::between(
            epoch_and(1_100 * SECOND - 220_000),
            epoch_and(1_101 * SECOND + 220_000),
        );
        assert_eq!(
            now, wide,
            "1.44 s are too wide for the local clock to choose"
        );
    }

    #[test]
    fn of_old_answers_only_the_newest_counts() {
        let (time, clocks) = at(-SECOND);
        answer(&time, 100 * SECOND, 100 * SECOND, 20);
        answer(&time, 100 * SECOND, 100 * SECOND, 0);
        clocks.boot.store(500 * SECOND, Ordering::Relaxed);
        clocks.wall.store(EPOCH + 399 * SECOND, Ordering::Relaxed);
        assert_eq!(time.now(), Now::at(epoch_and(400 * SECOND - 80_000)));
    }

    #[test]
    fn contradicting_answers_keep_the_present_apart() {
        let (time, _) = at(0);
        answer(&time, 100 * SECOND, 100 * SECOND, 0);
        // The other server's first answer may as well follow a pause: the next one tells.
        answer(&time, 100 * SECOND, 100 * SECOND, 20);
        assert!(!time.now().bounded);
        for date in [20, 0, 20] {
            answer(&time, 100 * SECOND, 100 * SECOND, date);
        }
        assert_eq!(time.suspected_pauses(), 1, "both are known by now");
        let now = time.now();
        assert_eq!(now, Now::between(epoch_and(0), epoch_and(21 * SECOND)));
        assert!(!now.is_narrow());
        let by = Span::seconds(19);
        assert_eq!(time.warning(), Some(ClockWarning::ServersDisagree { by }));
    }

    #[test]
    fn servers_a_second_apart_are_no_matter_for_people() {
        let (time, _) = at(0);
        answer(&time, 100 * SECOND, 100 * SECOND, 2);
        answer(&time, 100 * SECOND, 100 * SECOND, 0);
        assert_eq!(
            time.now(),
            Now::between(epoch_and(0), epoch_and(3 * SECOND))
        );
        assert_eq!(time.warning(), None);
    }

    #[test]
    fn after_a_pause_the_local_clock_decides_nothing() {
        let (time, clocks) = at(3_600 * SECOND);
        answer(&time, 100 * SECOND, 100 * SECOND, 0);
        clocks.wall.store(EPOCH + 3_605 * SECOND, Ordering::Relaxed);
        let now = time.now();
        assert_eq!((now.earliest, now.bounded), (epoch_and(0), false));
        answer(&time, 100 * SECOND, 100 * SECOND, 5);
        assert_eq!(time.now(), Now::at(epoch_and(6 * SECOND)));
    }

    #[test]
    fn an_answer_that_was_under_way_during_a_pause_says_only_how_early_it_is() {
        let (time, clocks) = at(0);
        let sent = time.sending();
        clocks.wall.store(EPOCH + 9 * SECOND, Ordering::Relaxed);
        // The server answered before the pause.
        answer_to(&time, sent, 100 * SECOND, 0);
        let now = time.now();
        assert_eq!((now.earliest, now.bounded), (epoch_and(0), false));
        assert_eq!(time.suspected_pauses(), 1);
    }

    #[test]
    fn a_pause_that_no_local_clock_shows_is_noticed_by_the_next_answer() {
        let (time, _) = at(0);
        answer(&time, 100 * SECOND, 100 * SECOND, 0);
        let sent = time.sending();
        answer_to(&time, sent, 100 * SECOND, 2);
        assert_eq!(
            time.suspected_pauses(),
            0,
            "it may be the precision of the header"
        );
        answer_to(&time, sent, 100 * SECOND, 30);
        assert_eq!(time.suspected_pauses(), 1);
        assert!(!time.now().bounded, "it was sent before");
        answer(&time, 100 * SECOND, 100 * SECOND, 30);
        let now = time.now();
        assert!(
            now.bounded && now.latest >= epoch_and(30 * SECOND),
            "{now:?}"
        );
    }

    #[test]
    fn short_pauses_add_up_until_they_are_noticed() {
        let (time, clocks) = at(0);
        let suspected_pauses: Vec<u64> = (1..=4)
            .map(|pauses| {
                clocks
                    .wall
                    .store(EPOCH + pauses * 40_000, Ordering::Relaxed);
                time.suspected_pauses()
            })
            .collect();
        assert_eq!(suspected_pauses, [0, 0, 1, 1]);
    }

    #[test]
    fn a_step_back_of_the_wall_clock_does_not_hide_a_pause_after_it() {
        let (time, clocks) = at(0);
        clocks.wall.store(EPOCH - 9 * SECOND, Ordering::Relaxed);
        assert_eq!(time.suspected_pauses(), 0);
        clocks.wall.store(EPOCH - 5 * SECOND, Ordering::Relaxed);
        assert_eq!(time.suspected_pauses(), 1);
    }
}
