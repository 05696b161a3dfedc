//! The machine that a client runs on: clocks of its own, and everything that can stop it.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::future::BoxFuture;
use maintenance_lease::env::Env;
use maintenance_lease::protocol::{BootInstant, Instant};

use crate::fault::Fault;
use crate::history::{ClientId, Event, Freeze, OpId, Recorder};
use crate::time::{EPOCH, Time, TrueClock};

/// How a machine's clocks differ from the truth.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// How far the wall clock is ahead in the beginning, in microseconds.
    pub wall_ahead: i64,
    /// How much faster than the truth all of its clocks run, in millionths.
    pub drift: i64,
    /// What the boot clock shows in the beginning, in microseconds.
    pub uptime: i64,
}

/// A machine; clones are the same one.
#[derive(Clone)]
pub(crate) struct Machine {
    client: ClientId,
    clocks: Clocks,
    truth: TrueClock,
    recorder: Recorder,
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    rng: fastrand::Rng,
    /// Microseconds that the wall clock was stepped by since.
    wall_steps: i64,
    /// Microseconds for which the wall clock stood still.
    wall_lost: i64,
    /// Microseconds for which the boot clock stood still.
    boot_lost: i64,
    /// Microseconds for which timers stood still.
    timers_lost: i64,
    frozen: Option<(Freeze, Time)>,
    /// How it stands still, and for how long, as soon as an answer is on its way to it, or one to a
    /// write.
    at_answer: Option<(Freeze, Duration, bool)>,
    /// Which process runs: one that crashed leaves its number to no other.
    life: u32,
    alive: bool,
    op: Option<OpId>,
    /// When a clock was last read, and how many microseconds past that it showed.
    last_read: (Time, i64),
    tasks: BTreeMap<u64, Waker>,
    next_task: u64,
}

impl Machine {
    /// A machine that runs.
    pub(crate) fn new(
        client: ClientId,
        clocks: Clocks,
        seed: u64,
        truth: TrueClock,
        recorder: Recorder,
    ) -> Self {
        Self {
            client,
            clocks,
            truth,
            recorder,
            inner: Arc::new(Mutex::new(Inner {
                rng: fastrand::Rng::with_seed(seed),
                wall_steps: 0,
                wall_lost: 0,
                boot_lost: 0,
                timers_lost: 0,
                frozen: None,
                at_answer: None,
                life: 0,
                alive: false,
                op: None,
                last_read: (Time::NEVER, 0),
                tasks: BTreeMap::new(),
                next_task: 0,
            })),
        }
    }

    /// Stops everything on it.
    fn freeze(&self, how: Freeze) {
        let mut inner = self.lock();
        if inner.frozen.is_none() {
            inner.frozen = Some((how, self.truth.now()));
            self.recorder.record(Event::Froze {
                client: self.client,
                how,
            });
        }
    }

    /// Stops everything on it for a while.
    pub(crate) fn freeze_for(&self, how: Freeze, length: Duration) {
        self.freeze(how);
        let machine = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(length).await;
            machine.thaw();
        });
    }

    /// Stops everything on it for a while, as soon as an answer is on its way to it; where `to_write`,
    /// one to a write.
    pub(crate) fn freeze_at_answer(&self, how: Freeze, length: Duration, to_write: bool) {
        self.lock().at_answer = Some((how, length, to_write));
    }

    /// An answer is on its way to it, to a write or not.
    pub(crate) fn answer_leaves(&self, is_write: bool) {
        let mut inner = self.lock();
        let due = inner
            .at_answer
            .take_if(|&mut (.., to_write)| is_write || !to_write);
        drop(inner);
        if let Some((how, length, _)) = due {
            let what = format!("{} stands still while an answer is on its way", self.client);
            self.recorder.struck(Fault::FreezeAtAnswer, what);
            self.freeze_for(how, length);
        }
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self) {
        let mut inner = self.lock();
        let Some((how, since)) = inner.frozen.take() else {
            return;
        };
        let lost = self.local(self.truth.now()) - self.local(since);
        match how {
            Freeze::Stopped => {}
            Freeze::Suspended => inner.timers_lost += lost,
            Freeze::Paused => {
                inner.timers_lost += lost;
                inner.boot_lost += lost;
            }
            Freeze::Halted => {
                inner.timers_lost += lost;
                inner.boot_lost += lost;
                inner.wall_lost += lost;
            }
        }
        self.recorder.record(Event::Thawed {
            client: self.client,
        });
        wake_all(inner);
    }

    /// Ends the process that runs on it, at once and without a word.
    pub(crate) fn crash(&self) {
        let mut inner = self.lock();
        inner.life += 1;
        inner.alive = false;
        inner.op = None;
        self.recorder.record(Event::Crashed {
            client: self.client,
        });
        wake_all(inner);
    }

    /// Makes room for a process; `false` where one runs.
    pub(crate) fn start(&self) -> bool {
        let mut inner = self.lock();
        !std::mem::replace(&mut inner.alive, true)
    }

    /// Steps the wall clock, as people and daemons do.
    pub(crate) fn step_wall(&self, by: i64) {
        self.lock().wall_steps += by;
        self.recorder.record(Event::Stepped {
            client: self.client,
            by,
        });
    }

    /// Runs `task` as part of the process that runs now: it stands still while the machine does, and
    /// is dropped when the process crashes.
    pub(crate) fn run<F: Future<Output = ()> + Send + 'static>(
        &self,
        task: F,
    ) -> impl Future<Output = ()> + Send + use<F> {
        let mut inner = self.lock();
        inner.next_task += 1;
        Task {
            machine: self.clone(),
            id: inner.next_task,
            life: inner.life,
            task: Some(Box::pin(task)),
        }
    }

    /// The call that the process makes now, for requests to be marked with.
    pub(crate) fn set_op(&self, op: Option<OpId>) {
        self.lock().op = op;
    }

    /// See [`set_op`](Self::set_op).
    pub(crate) fn op(&self) -> Option<OpId> {
        self.lock().op
    }

    /// When the boot clock shows `reading`, if it runs on as it does.
    pub(crate) fn truth_at(&self, reading: BootInstant) -> Time {
        let local = i128::from(reading.as_micros()) - i128::from(self.clocks.uptime)
            + i128::from(self.lock().boot_lost);
        let truth = local * 1_000_000 / (1_000_000 + i128::from(self.clocks.drift));
        Time::from_micros(i64::try_from(truth).unwrap_or(i64::MAX))
    }

    /// Local time since the beginning, in microseconds.
    fn local(&self, at: Time) -> i64 {
        let micros = at.as_micros();
        micros + micros * self.clocks.drift / 1_000_000
    }

    /// What its clocks count since the beginning, in microseconds. Timers end on whole milliseconds
    /// and reading a clock takes no time in here; where everybody read round numbers, things would
    /// be equal that never are.
    fn fine(&self) -> i64 {
        let now = self.truth.now();
        let mut inner = self.lock();
        let (last, read) = inner.last_read;
        let read = match last == now {
            true => (read + 2).min(999),
            false => inner.rng.i64(0..900),
        };
        inner.last_read = (now, read);
        drop(inner);
        self.local(now) + read
    }

    /// What its timers have counted since the beginning, in microseconds.
    fn timers(&self) -> i64 {
        self.local(self.truth.now()) - self.lock().timers_lost
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake_all(inner: MutexGuard<'_, Inner>) {
    let wakers: Vec<Waker> = inner.tasks.values().cloned().collect();
    drop(inner);
    for waker in wakers {
        waker.wake();
    }
}

impl Env for Machine {
    fn wall(&self) -> Instant {
        let local = self.fine();
        let inner = self.lock();
        let moved = inner.wall_steps - inner.wall_lost;
        Instant::from_micros(EPOCH + self.clocks.wall_ahead + moved + local)
    }

    fn boot(&self) -> BootInstant {
        let local = self.fine();
        let lost = self.lock().boot_lost;
        BootInstant::from_micros(self.clocks.uptime + local - lost)
    }

    fn sleep(&self, length: Duration) -> BoxFuture<'static, ()> {
        let machine = self.clone();
        let length = i64::try_from(length.as_micros())
            .unwrap_or(i64::MAX / 4)
            .min(i64::MAX / 4);
        let due = self.timers() + length;
        Box::pin(async move {
            loop {
                let left = due - machine.timers();
                if left <= 0 {
                    return;
                }
                tokio::time::sleep(Duration::from_micros(left.unsigned_abs())).await;
            }
        })
    }

    fn random(&self, bytes: &mut [u8]) {
        self.lock().rng.fill(bytes);
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        if !self.lock().alive {
            // What a process begins while it is torn down here has no counterpart outside.
            return;
        }
        tokio::spawn(self.run(task));
    }
}

/// A task of a process.
struct Task {
    machine: Machine,
    id: u64,
    life: u32,
    task: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Drop for Task {
    fn drop(&mut self) {
        // A panic in a task is noticed only if it is recorded.
        if std::thread::panicking() {
            self.machine.recorder.record(Event::Panicked {
                client: self.machine.client,
            });
        }
    }
}

impl Future for Task {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        {
            let mut inner = this.machine.lock();
            if inner.life != this.life {
                inner.tasks.remove(&this.id);
                drop(inner);
                this.task = None;
                return Poll::Ready(());
            }
            inner.tasks.insert(this.id, context.waker().clone());
            if inner.frozen.is_some() {
                return Poll::Pending;
            }
        }
        let Some(task) = &mut this.task else {
            return Poll::Ready(());
        };
        let poll = task.as_mut().poll(context);
        if poll.is_ready() {
            this.task = None;
            this.machine.lock().tasks.remove(&this.id);
        }
        poll
    }
}
