//! What happens to one request, drawn from what is likely in this world.

use std::time::Duration;

use fastrand::Rng;
use http::StatusCode;

/// How fast everything is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    /// A few milliseconds each way.
    Near,
    /// Tens of milliseconds each way, often some hundreds, now and then seconds.
    Far,
}

/// How likely which fault is, each in thousandths of all requests or watches.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    /// How fast everything is.
    pub latency: Latency,
    /// The request never gets there.
    pub request_lost: u16,
    /// The answer does not come back.
    pub answer_lost: u16,
    /// The request gets there long after its sender gave up.
    pub late: u16,
    /// 429, 503 or 504 instead of carrying it out.
    pub refused: u16,
    /// 500, 503 or 504 after it was carried out.
    pub answered_instead: u16,
    /// A page of something on the way, before or after it was carried out.
    pub page: u16,
    /// Something on the way sends a write again, and the second answer is the one that comes back.
    pub repeated: u16,
    /// The body of the answer is cut short, as if it were complete.
    pub truncated: u16,
    /// A watch says nothing for a while, or ever again.
    pub watch_stalled: u16,
    /// A watch is cut off soon.
    pub watch_cut: u16,
    /// What a watch says comes late, each time.
    pub watch_slow: u16,
    /// A watch repeats what it said, after what came later.
    pub watch_repeats: u16,
}

/// How no answer comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// The connection breaks.
    Reset,
    /// Nothing happens any more.
    Silence,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug)]
pub(super) enum Loss {
    None,
    Request(NoAnswer),
    Late(Duration, NoAnswer),
    Answer(NoAnswer),
    Refused(StatusCode, Option<u32>),
    AnsweredInstead(StatusCode),
    /// A page with this status; whether the request was carried out.
    Page(StatusCode, bool),
    Repeated,
    /// The point where the body ends, in thousandths of its length.
    Truncated(u16),
}

/// One request's way there and back.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    pub(super) up: Duration,
    pub(super) down: Duration,
    pub(super) loss: Loss,
}

/// What goes wrong with a watch.
#[derive(Clone, Copy, Debug)]
pub(super) struct WatchFaults {
    /// When it begins to stall, and for how long.
    pub(super) stall: Option<(Duration, Duration)>,
    /// When it is cut off.
    pub(super) cut: Option<Duration>,
    /// The longest that it takes to say something.
    pub(super) slow: Duration,
    pub(super) repeats: bool,
}

impl Faults {
    /// Everything is well, and near.
    #[must_use]
    pub fn none() -> Self {
        Self {
            latency: Latency::Near,
            request_lost: 0,
            answer_lost: 0,
            late: 0,
            refused: 0,
            answered_instead: 0,
            page: 0,
            repeated: 0,
            truncated: 0,
            watch_stalled: 0,
            watch_cut: 0,
            watch_slow: 0,
            watch_repeats: 0,
        }
    }

    /// Some of each, more or less.
    #[must_use]
    pub fn some(rng: &mut Rng, latency: Latency) -> Self {
        let mut upto = |most: u16| {
            if rng.u8(..3) == 0 {
                0
            } else {
                rng.u16(..=most)
            }
        };
        Self {
            latency,
            request_lost: upto(80),
            answer_lost: upto(120),
            late: upto(80),
            refused: upto(60),
            answered_instead: upto(60),
            page: upto(60),
            repeated: upto(60),
            truncated: upto(60),
            watch_stalled: upto(400),
            watch_cut: upto(400),
            watch_slow: upto(400),
            watch_repeats: upto(500),
        }
    }

    pub(super) fn draw(&self, rng: &mut Rng) -> RoundTrip {
        let loss = self.loss(rng);
        RoundTrip {
            up: self.delay(rng),
            down: self.delay(rng),
            loss,
        }
    }

    fn loss(&self, rng: &mut Rng) -> Loss {
        let mut left = rng.u16(..1000);
        let mut falls_on = |part: u16| {
            let hit = left < part;
            left = if hit { u16::MAX } else { left - part };
            hit
        };
        let no_answer = if rng.bool() {
            NoAnswer::Reset
        } else {
            NoAnswer::Silence
        };
        if falls_on(self.request_lost) {
            Loss::Request(no_answer)
        } else if falls_on(self.answer_lost) {
            Loss::Answer(no_answer)
        } else if falls_on(self.late) {
            Loss::Late(Duration::from_millis(rng.u64(100..14_000)), no_answer)
        } else if falls_on(self.refused) {
            match rng.u8(..4) {
                0 => Loss::Refused(StatusCode::TOO_MANY_REQUESTS, None),
                1 => Loss::Refused(StatusCode::TOO_MANY_REQUESTS, Some(rng.u32(1..=3))),
                2 => Loss::Refused(StatusCode::SERVICE_UNAVAILABLE, None),
                _ => Loss::Refused(StatusCode::GATEWAY_TIMEOUT, None),
            }
        } else if falls_on(self.answered_instead) {
            Loss::AnsweredInstead(match rng.u8(..3) {
                0 => StatusCode::INTERNAL_SERVER_ERROR,
                1 => StatusCode::SERVICE_UNAVAILABLE,
                _ => StatusCode::GATEWAY_TIMEOUT,
            })
        } else if falls_on(self.page) {
            let status = match rng.bool() {
                true => StatusCode::NOT_FOUND,
                false => StatusCode::OK,
            };
            Loss::Page(status, rng.bool())
        } else if falls_on(self.repeated) {
            Loss::Repeated
        } else if falls_on(self.truncated) {
            Loss::Truncated(rng.u16(1..1000))
        } else {
            Loss::None
        }
    }

    /// One way.
    fn delay(&self, rng: &mut Rng) -> Duration {
        Duration::from_micros(match (self.latency, rng.u8(..20)) {
            (Latency::Near, _) => rng.u64(300..5_000),
            (Latency::Far, 0) => rng.u64(400_000..4_000_000),
            (Latency::Far, 1..6) => rng.u64(100_000..400_000),
            (Latency::Far, _) => rng.u64(1_000..60_000),
        })
    }

    pub(super) fn watch(&self, rng: &mut Rng) -> WatchFaults {
        let mut happens = |part: u16| rng.u16(..1000) < part;
        let (stalled, cut) = (happens(self.watch_stalled), happens(self.watch_cut));
        let (slow, repeats) = (happens(self.watch_slow), happens(self.watch_repeats));
        let mut millis = |most: u64| Duration::from_millis(rng.u64(1..most));
        WatchFaults {
            stall: stalled.then(|| (millis(20_000), millis(60_000))),
            cut: cut.then(|| millis(20_000)),
            slow: if slow {
                millis(5_000)
            } else {
                Duration::from_millis(5)
            },
            repeats,
        }
    }
}
