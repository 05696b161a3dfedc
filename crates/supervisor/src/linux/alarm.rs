//! A timer on the boot clock, which also counts the time while the machine sleeps.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// A timer for one time at once.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: AsyncFd<OwnedFd>,
    set: Option<i64>,
}

impl Alarm {
    #[expect(
        deprecated,
        reason = "what replaces it is unsafe, and asks for what an `OwnedFd` keeps anyway"
    )]
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Boottime, flags)?;
        Ok(Self {
            timer: AsyncFd::new(timer)?,
            set: None,
        })
    }

    /// Sets the timer to fire at `at`; `None` turns it off.
    pub(crate) fn set(&mut self, at: Option<i64>) -> io::Result<()> {
        if at == self.set {
            return Ok(());
        }
        // Zero would turn it off.
        let value = at.map_or(0, |at| at.max(1));
        let zero = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let setting = Itimerspec {
            it_interval: zero,
            it_value: Timespec {
                tv_sec: value / 1_000_000,
                tv_nsec: value % 1_000_000 * 1_000,
            },
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &setting)?;
        self.set = at;
        Ok(())
    }

    /// Waits until the timer fires. Dropping the future loses nothing.
    pub(crate) async fn fired(&mut self) -> io::Result<()> {
        loop {
            let mut ready = self.timer.readable().await?;
            let mut expirations = [0; 8];
            let read = rustix::io::read(self.timer.get_ref(), &mut expirations);
            ready.clear_ready();
            match read {
                Ok(_) => break,
                // The timer fired for a time that is no longer set.
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.set = None;
        Ok(())
    }
}
