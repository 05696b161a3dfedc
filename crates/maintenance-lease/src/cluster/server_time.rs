//! The API server's time, estimated from the `Date` headers of its answers.
//!
//! An answer that carries `Date`, sent for at `sent` and received at `received`, was written while
//! the server's clock showed a time in `[Date, Date + 1 s)`. So the server's clock was ahead of ours
//! by something in `[Date − received, Date + 1 s − sent]`. Intersecting these intervals narrows the
//! estimate to a fraction of a second. The intervals are kept against the boot clock, so that steps
//! of the local wall clock leave them valid.
//!
//! Of an interval that is narrow enough one point is as good as any other: two clients who picked
//! theirs at opposite ends still agree within the clock budget. Slow answers make wide intervals.
//! They still bound the present, and a local clock that may be wrong by hours does not, so that
//! where nothing better is known the present is the whole interval: its start to judge expiry by,
//! its end to write.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response, header};
use tower::{Layer, Service};

use super::wire;
use crate::env::Env;
use crate::protocol::{BootInstant, Instant, Now, SKEW_BUDGET, Span};

/// A quick answer. Two intervals of a second and what such answers took, less what they took one
/// way, are within the clock budget.
const QUICK: Span = Span::micros(400_000);

/// Older intervals are forgotten, since clocks drift.
const MEMORY: Span = Span::seconds(300);

/// As many of the latest intervals are kept.
const CAPACITY: usize = 64;

/// A running estimate of the API server's time. Clones share it.
#[derive(Clone)]
pub struct ServerTime {
    env: Arc<dyn Env>,
    samples: Arc<Mutex<VecDeque<Sample>>>,
}

/// Server time less boot time lies between these.
#[derive(Clone, Copy, Debug)]
struct Sample {
    taken: BootInstant,
    low: i64,
    high: i64,
    quick: bool,
}

/// What the answers say together of server time less boot time.
enum Offset {
    /// Nothing was heard.
    Unknown,
    /// It lies between these, close enough for any point to do.
    Narrow(i64, i64),
    /// It lies between these.
    Wide(i64, i64),
    /// The answers contradict each other: it may be anything from the one to the other.
    Disputed(i64, i64),
}

/// What the estimate shows of the clocks involved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockWarning {
    /// The local clock is off by more than the clock budget.
    LocalClock {
        /// How far it is ahead of the server's; negative where it is behind.
        ahead: Span,
    },
    /// Answers contradict each other: several API servers, or a proxy with a clock of its own.
    ServersDisagree {
        /// How far they are apart.
        by: Span,
    },
}

impl ServerTime {
    /// An estimate that knows nothing yet and so trusts the local clock.
    #[must_use]
    pub fn new(env: Arc<dyn Env>) -> Self {
        Self {
            env,
            samples: Arc::default(),
        }
    }

    /// Takes an answer's headers into account.
    pub fn observe(&self, sent: BootInstant, received: BootInstant, headers: &HeaderMap) {
        let Some(date) = headers
            .get(header::DATE)
            .and_then(|value| value.to_str().ok())
            .and_then(wire::parse_http_date)
        else {
            return;
        };
        let sample = Sample {
            taken: received,
            low: date.as_micros() - received.as_micros(),
            high: date.as_micros() + 1_000_000 - sent.as_micros(),
            quick: received.since(sent) <= QUICK,
        };
        let mut samples = self.lock();
        while samples.len() >= CAPACITY
            || samples
                .front()
                .is_some_and(|oldest| received.since(oldest.taken) > MEMORY)
        {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    /// How far the server's time is ahead of the boot clock at most, in microseconds; `None` where
    /// no answer has said so.
    pub(crate) fn ahead_of_boot(&self) -> Option<i64> {
        let local = self.local_offset(self.env.boot());
        match self.offset(local) {
            Offset::Unknown => None,
            Offset::Narrow(low, high) => Some(local.clamp(low, high)),
            Offset::Wide(_, high) | Offset::Disputed(_, high) => Some(high),
        }
    }

    /// Forgets what was learnt: the boot clock may have stood still since.
    pub(crate) fn forget(&self) {
        self.lock().clear();
    }

    /// The present, in server time.
    #[must_use]
    pub fn now(&self) -> Now {
        let boot = self.env.boot();
        let local = self.local_offset(boot);
        let (earliest, latest) = match self.offset(local) {
            Offset::Unknown => (local, local),
            Offset::Narrow(low, high) => {
                let nearest = local.clamp(low, high);
                (nearest, nearest)
            }
            Offset::Wide(low, high) | Offset::Disputed(low, high) => (low, high),
        };
        let at = |offset: i64| Instant::from_micros(boot.as_micros().saturating_add(offset));
        Now {
            earliest: at(earliest),
            latest: at(latest),
        }
    }

    /// What people should know of the clocks, if anything.
    #[must_use]
    pub fn warning(&self) -> Option<ClockWarning> {
        let local = self.local_offset(self.env.boot());
        let (low, high) = match self.offset(local) {
            Offset::Unknown => return None,
            Offset::Disputed(low, high) => {
                let by = Span::micros(high - low);
                return Some(ClockWarning::ServersDisagree { by });
            }
            Offset::Narrow(low, high) | Offset::Wide(low, high) => (low, high),
        };
        let ahead = Span::micros(local - local.clamp(low, high));
        (ahead > SKEW_BUDGET || Span::micros(-ahead.as_micros()) > SKEW_BUDGET)
            .then_some(ClockWarning::LocalClock { ahead })
    }

    /// A `tower` layer that feeds the estimate from every answer of a client's stack.
    #[must_use]
    pub fn layer(&self) -> ServerTimeLayer {
        ServerTimeLayer { time: self.clone() }
    }

    fn local_offset(&self, boot: BootInstant) -> i64 {
        self.env.wall().as_micros() - boot.as_micros()
    }

    /// What is known where the local clock's offset from boot time is `local`.
    fn offset(&self, local: i64) -> Offset {
        let samples = self.lock();
        let low = samples.iter().map(|sample| sample.low).max();
        let high = samples.iter().map(|sample| sample.high).min();
        let (Some(low), Some(high)) = (low, high) else {
            return Offset::Unknown;
        };
        if low > high {
            // As each would have it alone.
            let ends = samples.iter().map(|sample| {
                if sample.quick {
                    let nearest = local.clamp(sample.low, sample.high);
                    (nearest, nearest)
                } else {
                    (sample.low, sample.high)
                }
            });
            let (low, high) = ends.fold((i64::MAX, i64::MIN), |so_far, (low, high)| {
                (so_far.0.min(low), so_far.1.max(high))
            });
            Offset::Disputed(low, high)
        } else if samples.iter().any(|sample| sample.quick) {
            Offset::Narrow(low, high)
        } else {
            Offset::Wide(low, high)
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Sample>> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`ServerTime::layer`].
#[derive(Clone)]
pub struct ServerTimeLayer {
    time: ServerTime,
}

impl<S> Layer<S> for ServerTimeLayer {
    type Service = ServerTimeService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        ServerTimeService {
            time: self.time.clone(),
            inner,
        }
    }
}

/// A service whose answers feed a [`ServerTime`].
#[derive(Clone)]
pub struct ServerTimeService<S> {
    time: ServerTime,
    inner: S,
}

impl<S, A, B> Service<Request<A>> for ServerTimeService<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: 'static,
    B: 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let time = self.time.clone();
        let sent = time.env.boot();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            time.observe(sent, time.env.boot(), answer.headers());
            Ok(answer)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};
    use std::time::Duration;

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
        (ServerTime::new(clocks.clone()), clocks)
    }

    /// An answer whose Date is `date` seconds after the epoch of these tests.
    fn answer(time: &ServerTime, sent: i64, received: i64, date: u32) {
        let mut headers = HeaderMap::new();
        let date = format!("Sun, 06 Nov 1994 08:49:{:02} GMT", 37 + date);
        headers.insert(header::DATE, date.parse().expect("a header value"));
        time.observe(
            BootInstant::from_micros(sent),
            BootInstant::from_micros(received),
            &headers,
        );
    }

    #[test]
    fn without_answers_the_local_clock_counts() {
        let (time, _) = at(7 * SECOND);
        assert_eq!(
            time.now(),
            Now::at(Instant::from_micros(EPOCH + 7 * SECOND))
        );
        assert_eq!(time.warning(), None);
    }

    #[test]
    fn a_clock_within_the_interval_is_not_corrected() {
        let (time, _) = at(SECOND / 2);
        answer(&time, 100 * SECOND, 100 * SECOND + 1000, 0);
        assert_eq!(
            time.now(),
            Now::at(Instant::from_micros(EPOCH + SECOND / 2))
        );
    }

    #[test]
    fn a_clock_outside_is_corrected_to_the_nearer_end() {
        let (time, _) = at(10 * SECOND);
        answer(&time, 100 * SECOND, 100 * SECOND, 0);
        assert_eq!(time.now(), Now::at(Instant::from_micros(EPOCH + SECOND)));
        let ahead = Span::micros(9 * SECOND);
        assert_eq!(time.warning(), Some(ClockWarning::LocalClock { ahead }));

        let (time, _) = at(-10 * SECOND);
        answer(&time, 100 * SECOND, 100 * SECOND, 0);
        assert_eq!(time.now(), Now::at(Instant::from_micros(EPOCH)));
        let ahead = Span::micros(-10 * SECOND);
        assert_eq!(time.warning(), Some(ClockWarning::LocalClock { ahead }));
    }

    #[test]
    fn several_answers_narrow_the_estimate() {
        let (time, _) = at(10 * SECOND);
        answer(&time, 100 * SECOND, 100 * SECOND, 0);
        // 0.3 s later the server's clock has passed to the next second.
        answer(&time, 100 * SECOND + 300_000, 100 * SECOND + 300_000, 1);
        assert_eq!(time.now(), Now::at(Instant::from_micros(EPOCH + SECOND)));
        answer(&time, 100 * SECOND + 100_000, 100 * SECOND + 100_000, 0);
        assert_eq!(time.now(), Now::at(Instant::from_micros(EPOCH + 900_000)));
    }

    #[test]
    fn contradicting_answers_keep_the_present_apart() {
        let (time, _) = at(0);
        answer(&time, 100 * SECOND, 100 * SECOND, 0);
        answer(&time, 100 * SECOND, 100 * SECOND, 20);
        assert_eq!(
            time.now(),
            Now {
                earliest: Instant::from_micros(EPOCH),
                latest: Instant::from_micros(EPOCH + 20 * SECOND),
            }
        );
        assert_eq!(
            time.warning(),
            Some(ClockWarning::ServersDisagree {
                by: Span::seconds(20)
            })
        );
    }

    #[test]
    fn a_slow_answer_alone_leaves_the_present_as_wide_as_it_is() {
        let (time, clocks) = at(3_600 * SECOND);
        clocks.boot.store(102 * SECOND, Ordering::Relaxed);
        answer(&time, 100 * SECOND, 102 * SECOND, 1);
        assert_eq!(
            time.now(),
            Now {
                earliest: Instant::from_micros(EPOCH + SECOND),
                latest: Instant::from_micros(EPOCH + 4 * SECOND),
            }
        );
        let ahead = Span::micros(3_596 * SECOND);
        assert_eq!(time.warning(), Some(ClockWarning::LocalClock { ahead }));
    }

    #[test]
    fn a_slow_answer_narrows_what_a_quick_one_says() {
        let (time, _) = at(-10 * SECOND);
        answer(&time, 100 * SECOND, 100 * SECOND, 0);
        answer(&time, 99 * SECOND + 500_000, 100 * SECOND, 0);
        assert_eq!(time.now(), Now::at(Instant::from_micros(EPOCH)));
        answer(&time, 98 * SECOND, 99 * SECOND + 700_000, 0);
        assert_eq!(time.now(), Now::at(Instant::from_micros(EPOCH + 300_000)));
    }

    #[test]
    fn a_slow_answer_that_contradicts_a_quick_one_is_heard() {
        let (time, _) = at(0);
        answer(&time, 100 * SECOND, 100 * SECOND, 0);
        answer(&time, 99 * SECOND, 100 * SECOND, 20);
        let now = time.now();
        assert_eq!(now.earliest, Instant::from_micros(EPOCH));
        assert_eq!(now.latest, Instant::from_micros(EPOCH + 22 * SECOND));
    }

    #[test]
    fn a_step_of_the_wall_clock_does_not_move_server_time() {
        let (time, clocks) = at(0);
        answer(&time, 100 * SECOND, 100 * SECOND, 0);
        clocks.wall.store(EPOCH + 3_600 * SECOND, Ordering::Relaxed);
        assert_eq!(time.now(), Now::at(Instant::from_micros(EPOCH + SECOND)));
    }

    #[test]
    fn old_answers_are_forgotten() {
        let (time, clocks) = at(0);
        answer(&time, 100 * SECOND, 100 * SECOND, 0);
        clocks.boot.store(500 * SECOND, Ordering::Relaxed);
        clocks.wall.store(EPOCH + 402 * SECOND, Ordering::Relaxed);
        assert_eq!(
            time.now(),
            Now::at(Instant::from_micros(EPOCH + 401 * SECOND))
        );
        let mut headers = HeaderMap::new();
        headers.insert(
            header::DATE,
            "Sun, 06 Nov 1994 08:56:19 GMT"
                .parse()
                .expect("a header value"),
        );
        let now = BootInstant::from_micros(500 * SECOND);
        time.observe(now, now, &headers);
        assert_eq!(
            time.now(),
            Now::at(Instant::from_micros(EPOCH + 402 * SECOND))
        );
    }
}
