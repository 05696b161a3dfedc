//! The clock of all deadlines: nobody can set it, and on Linux, macOS and Windows it also counts sleep.
//!
//! One process measures all its deadlines with it. Do not compare values of different machines or, on Windows, of
//! different processes.
#![warn(missing_docs)]

/// Now, in microseconds since an arbitrary start.
#[must_use]
pub fn now() -> i64 {
    system::now()
}

#[cfg(unix)]
mod system {
    use rustix::time::{ClockId, clock_gettime};

    #[cfg(target_os = "linux")]
    const CLOCK: ClockId = ClockId::Boottime;
    /// On macOS, it also counts sleep. Other systems may not count it.
    #[cfg(not(target_os = "linux"))]
    const CLOCK: ClockId = ClockId::Monotonic;

    pub(crate) fn now() -> i64 {
        let time = clock_gettime(CLOCK);
        time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
    }
}

#[cfg(not(unix))]
mod system {
    use std::sync::LazyLock;
    use std::time::Instant;

    /// On Windows, this clock also runs while the machine sleeps, but cannot be read as a number.
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);

    pub(crate) fn now() -> i64 {
        i64::try_from(START.elapsed().as_micros()).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_never_goes_back() {
        let earlier = super::now();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(super::now() >= earlier + 2_000);
    }
}
