//! Whether the nodes are still locked, checked just before something is deleted from them.

use std::convert::Infallible;
use std::future::ready;

use maintenance_lease::protocol::Names;
use maintenance_lease::{Guarded, Lost, LostBy, NodeLease, Subject};
use pod_safety::facts::Lock;
use pod_safety::report::Target;

use super::carry_out::Run;
use super::locks::Locks;
use crate::error::Failure;
use crate::words::loss;

/// The state of the locks.
pub(super) enum LockCheck {
    /// They last longer than a request.
    Held,
    /// One of the caller's own locks may end before a request does.
    EndsSoon,
    /// One was lost.
    Lost(Box<LostLock>),
}

/// A lock that was lost.
pub(super) struct LostLock {
    pub(super) lost: Lost,
    /// The Lease as it was held.
    pub(super) before: NodeLease,
}

impl Run<'_> {
    /// Checks the locks that protect the deletion of `target`. The lock of its node is read again, because
    /// the watch may not have reported a takeover yet.
    ///
    /// # Errors
    /// If the lock can't be read.
    pub(super) async fn lock_check(
        &self,
        locks: &Locks,
        target: &Target,
    ) -> Result<LockCheck, Failure> {
        if let Some(before) = target.node().and_then(|node| locks.on(node)) {
            let lease = self.session.locks.get(before.node()).await?;
            if let Some(lost) = lost(&before, lease.as_ref()) {
                return Ok(LockCheck::Lost(Box::new(LostLock { lost, before })));
            }
            let now = self.reader.now();
            let lock = Lock::of(lease.as_ref(), true, now);
            if !matches!(lock, Lock::Own { .. }) || lock.short(now).is_some() {
                return Ok(LockCheck::EndsSoon);
            }
        }
        // Last, because reading takes time.
        Ok(match locks.loss().await {
            Some(loss) => LockCheck::Lost(Box::new(loss)),
            None => LockCheck::Held,
        })
    }

    /// Reports a loss.
    pub(super) fn report_loss(&self, loss: &LostLock) {
        let LostLock { lost, before } = loss;
        let now = self.reader.now();
        let (message, hint) = loss::of_deletion(lost, before, now, self.session.program);
        self.session.terminal.error(&message);
        self.session.terminal.hint(hint);
    }
}

impl Locks {
    /// The Lease of `node` as it was last held; `None` if it was not.
    fn on(&self, node: &str) -> Option<NodeLease> {
        let own = self.own.iter().find(|lease| lease.node() == node);
        let held = || self.held.iter().find(|held| held.node() == node);
        own.cloned()
            .or_else(|| held().map(|held| held.held_state().lease))
    }

    /// The first lost lock among those that this command acquired. The clock counts the time that a machine
    /// is suspended: if time passed without the keeper running, this waits for its next check.
    async fn loss(&self) -> Option<LostLock> {
        for held in &self.held {
            if let Guarded::Lost(lost) = held.guard(ready(Ok::<_, Infallible>(()))).await {
                return Some(LostLock {
                    lost: Lost::clone(&lost),
                    before: held.held_state().lease,
                });
            }
        }
        None
    }
}

/// How the acquisition in `before` ended, if `now` is another one or none.
fn lost(before: &NodeLease, now: Option<&NodeLease>) -> Option<Lost> {
    let mut names = Names::default();
    let mut acquisition = |lease: &NodeLease| lease.reduced(&mut names).acquisition();
    let by = match now {
        None => LostBy::Deletion,
        Some(now) if acquisition(now) == acquisition(before) => return None,
        Some(now) => {
            let holder = now.holder().map(ToOwned::to_owned);
            match (now.uid() == before.uid(), holder) {
                (false, holder) => LostBy::Replacement(holder),
                (true, None) => LostBy::Release,
                (true, Some(holder)) => LostBy::TakeOver(holder),
            }
        }
    };
    Some(Lost {
        subject: Subject::Node,
        node: before.node().to_owned(),
        by,
        lease: now.cloned(),
        problem: None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};
    use std::time::Duration;

    use futures::FutureExt as _;
    use futures::future::BoxFuture;
    use maintenance_lease::env::{Env, Machine};
    use maintenance_lease::protocol::{BootInstant, Instant, Span};
    use maintenance_lease::{Acquire, Keep, Maintenance};
    use sandbox::Sandbox;

    use super::*;

    /// A machine that was suspended for this many microseconds.
    #[derive(Default)]
    struct Stopped(AtomicI64);

    impl Stopped {
        fn passed(&self) -> Span {
            Span::micros(self.0.load(Ordering::SeqCst))
        }
    }

    impl Env for Stopped {
        fn wall(&self) -> Instant {
            Machine.wall() + self.passed()
        }

        fn boot(&self) -> BootInstant {
            Machine.boot().plus(self.passed())
        }

        fn sleep(&self, length: Duration) -> BoxFuture<'static, ()> {
            Machine.sleep(length)
        }

        fn random(&self, bytes: &mut [u8]) {
            Machine.random(bytes);
        }
    }

    #[tokio::test]
    async fn after_a_stop_past_the_end_of_a_lease_nothing_more_is_deleted() {
        let sandbox = Sandbox::new();
        sandbox.add_node("worker-1");
        let machine = Arc::new(Stopped::default());
        let maintenance = Maintenance::builder(sandbox.client(), "alice@bastion")
            .env(machine.clone())
            .build()
            .expect("an identity");
        let options = Acquire::new().duration(Duration::from_secs(60));
        let change = maintenance.try_acquire("worker-1", &options).await;
        let change = change.expect("it is free");
        let held = maintenance.keep(&change, &Keep::new()).await;
        let locks = Locks {
            held: vec![held.expect("it is kept")],
            ..Locks::default()
        };
        assert!(matches!(locks.loss().now_or_never(), Some(None)));
        machine.0.store(70_000_000, Ordering::SeqCst);
        // The keeper has not run since.
        assert!(locks.held[0].held_state().lost.is_none());
        assert!(!matches!(locks.loss().now_or_never(), Some(None)));
    }
}
