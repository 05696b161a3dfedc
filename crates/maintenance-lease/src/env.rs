//! Clocks, sleep and randomness: everything that a run takes from its machine.
//!
//! It is one trait, to let a simulation replace the machine and repeat a run exactly from its seed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::runtime::Handle;

use crate::protocol::{BootInstant, Instant};

/// There is no tokio runtime here, so nothing can wait and no task can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no tokio runtime here")]
pub struct NoRuntime;

/// What the machine provides.
pub trait Env: Send + Sync + 'static {
    /// The local wall clock. It may be wrong, and people and daemons step it.
    fn wall(&self) -> Instant;

    /// A clock that never steps and also runs during suspend.
    fn boot(&self) -> BootInstant;

    /// Whether waiting and spawning work here. This is checked before each request and before a lock is kept.
    ///
    /// # Errors
    /// Outside a tokio runtime, unless a simulation says otherwise.
    fn runtime(&self) -> Result<(), NoRuntime> {
        Handle::try_current().map(drop).map_err(|_| NoRuntime)
    }

    /// Completes after `length` of [`boot`](Self::boot) time, or somewhat later. Without a
    /// [`runtime`](Self::runtime) it never completes. Dropping it ends the wait.
    fn sleep(&self, length: Duration) -> BoxFuture<'static, ()>;

    /// Fills `bytes` with values that nobody can guess.
    ///
    /// # Panics
    /// If there is no source of randomness. If two clients had the same nonce, the guarantee would not
    /// hold.
    fn random(&self, bytes: &mut [u8]);

    /// Runs `task` in parallel with its caller. It must stop if the machine stops.
    ///
    /// # Panics
    /// If there is no [`runtime`](Self::runtime).
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        tokio::spawn(task);
    }
}

/// The real machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Machine;

impl Env for Machine {
    fn wall(&self) -> Instant {
        let micros = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
        };
        Instant::from_micros(micros)
    }

    /// `CLOCK_BOOTTIME` on Linux, `CLOCK_MONOTONIC_RAW` on macOS: both also run during suspend. Elsewhere the monotonic
    /// clock, which may not.
    fn boot(&self) -> BootInstant {
        BootInstant::from_micros(boot_clock::now())
    }

    fn sleep(&self, length: Duration) -> BoxFuture<'static, ()> {
        match self.runtime() {
            Ok(()) => tokio::time::sleep(length).boxed(),
            Err(NoRuntime) => std::future::pending().boxed(),
        }
    }

    /// Fills `bytes` from the system's random source.
    ///
    /// # Panics
    /// If the system has no random source, such as in a sandbox that forbids `getrandom` and hides
    /// `/dev/urandom`.
    #[allow(
        clippy::expect_used,
        reason = "no system that runs this is without one, and nothing may stand in for it"
    )]
    fn random(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the system has a source of randomness");
    }
}

/// A nonce: 20 letters and digits, 100 bits that nobody can guess.
pub(crate) fn nonce(env: &dyn Env) -> String {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut bytes = [0; 20];
    env.random(&mut bytes);
    bytes
        .iter()
        .map(|byte| char::from(ALPHABET[usize::from(byte % 32)]))
        .collect()
}

/// The pause before a retry after `attempt` attempts: doubled each time, from 20 ms to a second. Up to
/// half of it is subtracted at random, to spread contenders.
pub(crate) fn backoff(env: &dyn Env, attempt: u32) -> Duration {
    backoff_up_to(Duration::from_secs(1), env, attempt)
}

/// The same, doubled up to `longest`.
pub(crate) fn backoff_up_to(longest: Duration, env: &dyn Env, attempt: u32) -> Duration {
    let full = Duration::from_millis(20).saturating_mul(2_u32.saturating_pow(attempt));
    let full = full.min(longest);
    full / 2 + jitter(env, full / 2)
}

/// A random part of `length`.
pub(crate) fn jitter(env: &dyn Env, length: Duration) -> Duration {
    let mut byte = [0];
    env.random(&mut byte);
    length * u32::from(byte[0]) / 256
}

#[cfg(test)]
pub(crate) mod testing {
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;

    const HOUR: i64 = 3_600_000_000;

    /// A machine an hour after its start, whose boot clock stands still.
    #[derive(Default)]
    pub(crate) struct Paused(AtomicI64);

    impl Paused {
        /// Puts the wall clock so many microseconds ahead of where it began.
        pub(crate) fn set_ahead(&self, micros: i64) {
            self.0.store(micros, Ordering::Relaxed);
        }
    }

    impl Env for Paused {
        fn wall(&self) -> Instant {
            Instant::from_micros(5 * HOUR + self.0.load(Ordering::Relaxed))
        }
        fn boot(&self) -> BootInstant {
            BootInstant::from_micros(HOUR)
        }
        fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
            std::future::ready(()).boxed()
        }
        fn random(&self, _: &mut [u8]) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces_differ_and_are_shell_safe() {
        let (one, other) = (nonce(&Machine), nonce(&Machine));
        assert_ne!(one, other);
        assert!(
            one.bytes().all(|byte| byte.is_ascii_alphanumeric()),
            "{one}"
        );
        assert_eq!(one.len(), 20);
    }

    #[test]
    fn pauses_grow_to_a_second_or_further() {
        let longest = Duration::from_secs(60);
        assert!(backoff_up_to(longest, &Machine, u32::MAX) >= longest / 2);
        assert!(backoff_up_to(longest, &Machine, u32::MAX) <= longest);
        assert!(backoff(&Machine, 0) <= Duration::from_millis(20));
        assert!(backoff(&Machine, 40) >= Duration::from_millis(500));
        assert!(backoff(&Machine, 40) <= Duration::from_secs(1));
    }
}
