//! The clock for all deadlines. Nobody can set it, and on Linux, macOS and Windows it also runs while the
//! machine sleeps.
//!
//! A process measures all its deadlines with it. Do not compare values from different machines or, on
//! Windows, from different processes.
#![warn(missing_docs)]

/// The current time, in microseconds since an arbitrary start.
#[must_use]
pub fn now() -> i64 {
    system::now()
}

#[cfg(all(unix, not(target_vendor = "apple")))]
mod system {
    use rustix::time::{ClockId, clock_gettime};

    #[cfg(target_os = "linux")]
    const CLOCK: ClockId = ClockId::Boottime;
    /// On some systems, this clock stops while the machine sleeps.
    #[cfg(not(target_os = "linux"))]
    const CLOCK: ClockId = ClockId::Monotonic;

    pub(crate) fn now() -> i64 {
        let time = clock_gettime(CLOCK);
        time.tv_sec * 1_000_000 + time.tv_nsec / 1_000
    }
}

#[cfg(target_vendor = "apple")]
mod system {
    use nix::libc::CLOCK_MONOTONIC_RAW;
    use nix::time::ClockId;

    /// Apple's `CLOCK_MONOTONIC` is the time of day minus the boot time, so corrections of the time of day
    /// change its speed. This clock is `mach_continuous_time`. It is never corrected, and also runs while the
    /// machine sleeps.
    pub(crate) const CLOCK: ClockId = ClockId::from_raw(CLOCK_MONOTONIC_RAW);

    pub(crate) fn now() -> i64 {
        let time = CLOCK.now().expect("macOS has had this clock since 10.12");
        time.tv_sec() * 1_000_000 + time.tv_nsec() / 1_000
    }
}

#[cfg(not(unix))]
mod system {
    use std::sync::LazyLock;
    use std::time::Instant;

    /// On Windows, this clock also runs while the machine sleeps, but its value cannot be read as a number.
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

    /// Apple's clocks that follow the time of day count microseconds. The hardware clock has a finer
    /// resolution.
    #[cfg(target_vendor = "apple")]
    #[test]
    fn it_does_not_follow_the_time_of_day() {
        let resolution = super::system::CLOCK.res().expect("a resolution");
        assert_eq!(resolution.tv_sec(), 0);
        assert!(resolution.tv_nsec() < 1_000, "{resolution}");
    }
}
