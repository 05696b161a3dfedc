//! The clocks of the machines that clients run on.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use maintenance_lease::env::{Env, Machine};
use maintenance_lease::protocol::{BootInstant, Instant, Span};

/// A machine that was booted when the test began, with the clocks of tokio. If tokio's time is
/// paused, it passes only while all tasks wait.
pub(crate) struct TokioMachine {
    started: tokio::time::Instant,
}

impl TokioMachine {
    pub(crate) fn booted_now() -> Self {
        Self {
            started: tokio::time::Instant::now(),
        }
    }

    fn uptime(&self) -> Span {
        let micros = self.started.elapsed().as_micros();
        Span::micros(i64::try_from(micros).expect("a test ends before the end of time"))
    }

    /// The wall clock. Like most real clocks, it does not start at a whole second.
    pub(crate) fn wall_time(&self) -> DateTime<Utc> {
        self.wall().to_chrono().expect("a time of this century")
    }
}

impl Env for TokioMachine {
    fn wall(&self) -> Instant {
        Instant::from(noon()) + Span::micros(250_000) + self.uptime()
    }

    fn boot(&self) -> BootInstant {
        BootInstant::from_micros(0).plus(self.uptime())
    }

    fn sleep(&self, length: Duration) -> BoxFuture<'static, ()> {
        Machine.sleep(length)
    }

    fn random(&self, bytes: &mut [u8]) {
        Machine.random(bytes);
    }
}

/// A machine whose time does not pass, for decisions at the border between two states.
pub(crate) struct StoppedClocks(pub(crate) DateTime<Utc>);

impl Env for StoppedClocks {
    fn wall(&self) -> Instant {
        self.0.into()
    }

    fn boot(&self) -> BootInstant {
        BootInstant::from_micros(0)
    }

    fn sleep(&self, length: Duration) -> BoxFuture<'static, ()> {
        Machine.sleep(length)
    }

    fn random(&self, bytes: &mut [u8]) {
        Machine.random(bytes);
    }
}

/// Another machine, whose boot clock does not count pauses.
pub(crate) struct PausedMachine {
    machine: Arc<dyn Env>,
    paused: AtomicI64,
    suspended: AtomicI64,
    /// How far its wall clock is ahead, apart from pauses.
    ahead: Span,
}

impl PausedMachine {
    pub(crate) fn new(machine: Arc<dyn Env>, ahead: Span) -> Arc<Self> {
        Arc::new(Self {
            machine,
            paused: AtomicI64::new(0),
            suspended: AtomicI64::new(0),
            ahead,
        })
    }

    /// Pauses the machine for this time, which only its wall clock shows.
    pub(crate) fn pause(&self, length: Duration) {
        add(&self.paused, length);
    }

    /// Suspends the machine for this time, which both of its clocks show. No timer has fired meanwhile.
    pub(crate) fn suspend(&self, length: Duration) {
        add(&self.suspended, length);
    }

    fn suspended(&self) -> Span {
        Span::micros(self.suspended.load(Ordering::SeqCst))
    }
}

fn add(clock: &AtomicI64, length: Duration) {
    let micros = i64::try_from(length.as_micros()).expect("a short pause");
    clock.fetch_add(micros, Ordering::SeqCst);
}

impl Env for PausedMachine {
    fn wall(&self) -> Instant {
        let paused = Span::micros(self.paused.load(Ordering::SeqCst));
        self.machine.wall() + paused + self.suspended() + self.ahead
    }

    fn boot(&self) -> BootInstant {
        self.machine.boot().plus(self.suspended())
    }

    fn sleep(&self, length: Duration) -> BoxFuture<'static, ()> {
        self.machine.sleep(length)
    }

    fn random(&self, bytes: &mut [u8]) {
        self.machine.random(bytes);
    }
}

/// Noon on the day of the tests' own times.
pub(crate) fn noon() -> DateTime<Utc> {
    DateTime::from_timestamp(1_772_366_400, 0).expect("2026-03-01T12:00:00Z")
}

/// The time `seconds` after noon. A negative number means before noon.
pub(crate) fn noon_and(seconds: i64) -> DateTime<Utc> {
    noon() + chrono::TimeDelta::seconds(seconds)
}

/// A time in the format of the API server.
pub(crate) fn micros(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}
