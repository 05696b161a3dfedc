//! Typical mistakes in a protocol like this one, each behind a switch. Tests use them to show that the
//! simulation and the model detect them.
//!
//! Built only with the feature `seeded-bugs`, which nothing that is shipped turns on. Without it
//! [`active`] is `false` at compile time and every mistake is gone from the program.

#![cfg_attr(
    not(feature = "seeded-bugs"),
    allow(
        dead_code,
        unreachable_pub,
        reason = "without the feature there is nothing to plant"
    )
)]

#[cfg(not(feature = "seeded-bugs"))]
use std::sync::Arc;

#[cfg(not(feature = "seeded-bugs"))]
use crate::env::Env;

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Bug {
    /// A holder's belief is counted from when the answer came, not from before the write was sent.
    DeadlineAfterAnswer = 1,
    /// Acquisitions are distinguished only by their holder.
    NoNonce,
    /// A patch is applied to whatever is there.
    PatchWithoutVersion,
    /// A release ends whatever acquisition is there.
    ReleaseUnchecked,
    /// A Lease counts as expired at its very end, without the clock budget.
    ExpiryWithoutMargin,
    /// The wall clock is used instead of the boot clock.
    WallForBoot,
    /// A Lease that is unchanged after an unanswered write proves that the write failed.
    UnchangedProvesFailure,
    /// The acquisition's nonce is taken as proof that a renewal took effect.
    NonceProvesRenewal,
    /// Belief lasts for the duration that was asked for, whatever the answer says.
    AskedDuration,
    /// What was confirmed for one acquisition is done to the one that took its place.
    ConfirmationCarriedOver,
    /// A lease that expired is not declared lost while a request hangs.
    LossWaitsForRequest,
    /// A watch event from before one's own last write counts as the present.
    StaleWatchBelieved,
    /// A waiter that saw the Lease free takes it whatever version it has by then.
    WaiterWithoutVersion,
    /// An answer that comes after the release makes the keeper believe again.
    RevivedAfterRelease,
    /// An answer that comes after the loss was declared makes the keeper believe again.
    RevivedAfterLoss,
    /// After a jump of the clocks, the work continues without a check.
    JumpUnchecked,
    /// A renewal from before a jump that takes effect after the check counts by the boot clock.
    JumpForgotten,
    /// After a suspected pause, the local clock is used instead of the server's time.
    LocalClockAfterPause,
    /// An answer that was under way during a pause says how late it is at most.
    StraddlingAnswerBelieved,
    /// Answers that contradict each other leave an interval that ends before it begins.
    InvertedInterval,
    /// A check that is due waits for the keeper's other timers.
    CheckDelayed,
    /// A lock is handed out although a pause was suspected while it was acquired.
    WorkBegunInDoubt,
    /// A refused write counts as failed, whatever the Lease contains.
    OwnNonceNotRecognised,
    /// An acquisition is reported as held however long ago it was sent.
    StaleSuccess,
    /// An acquisition that took effect and was ended by somebody else is repeated.
    BrokenAcquisitionRepeated,
    /// Any answer of 404 proves that an object is not there.
    Any404AsProof,
    /// A list counts as complete wherever its answer ends.
    TruncatedListAccepted,
    /// The locks of a set are not taken in the order of their names.
    SetOrderNotKept,
    /// A waiter writes the Node that it read before it waited as the owner of the lock.
    NodeFromBeforeWait,
    /// A set begins to write although others hold some of its locks.
    WritesWithoutLook,
    /// A set that waits keeps the locks that it has.
    HeldWhileWaiting,
    /// If one lock of a set is refused, the others are kept.
    PartialSetKept,
    /// Each attempt of an extension adds its time to the end that it reads.
    TimeAddedAgain,
    /// A set rewrites its caller's earlier locks before it has all nodes.
    DetailsWrittenAtOnce,
    /// A set that fails also releases what its caller had before.
    EarlierLockReleased,
}

impl Bug {
    /// Every one.
    pub const ALL: [Self; 35] = [
        Self::DeadlineAfterAnswer,
        Self::NoNonce,
        Self::PatchWithoutVersion,
        Self::ReleaseUnchecked,
        Self::ExpiryWithoutMargin,
        Self::WallForBoot,
        Self::UnchangedProvesFailure,
        Self::NonceProvesRenewal,
        Self::AskedDuration,
        Self::ConfirmationCarriedOver,
        Self::LossWaitsForRequest,
        Self::StaleWatchBelieved,
        Self::WaiterWithoutVersion,
        Self::RevivedAfterRelease,
        Self::RevivedAfterLoss,
        Self::JumpUnchecked,
        Self::JumpForgotten,
        Self::LocalClockAfterPause,
        Self::StraddlingAnswerBelieved,
        Self::InvertedInterval,
        Self::CheckDelayed,
        Self::WorkBegunInDoubt,
        Self::OwnNonceNotRecognised,
        Self::StaleSuccess,
        Self::BrokenAcquisitionRepeated,
        Self::Any404AsProof,
        Self::TruncatedListAccepted,
        Self::SetOrderNotKept,
        Self::NodeFromBeforeWait,
        Self::WritesWithoutLook,
        Self::HeldWhileWaiting,
        Self::PartialSetKept,
        Self::TimeAddedAgain,
        Self::DetailsWrittenAtOnce,
        Self::EarlierLockReleased,
    ];
}

/// Which test must catch a mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detector {
    /// The simulation of the whole library: the mistake is outside the steps that the model drives.
    Simulation,
    /// The model: in random worlds the mistake is harmless or too rare.
    Model,
    /// Each of them.
    Both,
}

impl Bug {
    /// What must catch it. Every mistake must be caught by something.
    #[must_use]
    pub const fn detector(self) -> Detector {
        match self {
            Self::PatchWithoutVersion
            | Self::WallForBoot
            | Self::WaiterWithoutVersion
            | Self::RevivedAfterRelease
            | Self::LocalClockAfterPause
            | Self::StraddlingAnswerBelieved
            | Self::InvertedInterval
            | Self::Any404AsProof
            | Self::TruncatedListAccepted
            | Self::SetOrderNotKept
            | Self::NodeFromBeforeWait
            | Self::WritesWithoutLook
            | Self::HeldWhileWaiting
            | Self::PartialSetKept
            | Self::TimeAddedAgain
            | Self::DetailsWrittenAtOnce
            | Self::EarlierLockReleased => Detector::Simulation,
            Self::LossWaitsForRequest
            | Self::StaleWatchBelieved
            | Self::RevivedAfterLoss
            | Self::JumpUnchecked
            | Self::JumpForgotten
            | Self::CheckDelayed
            | Self::OwnNonceNotRecognised
            | Self::StaleSuccess
            | Self::UnchangedProvesFailure
            | Self::BrokenAcquisitionRepeated => Detector::Model,
            Self::DeadlineAfterAnswer
            | Self::NoNonce
            | Self::ReleaseUnchecked
            | Self::ExpiryWithoutMargin
            | Self::NonceProvesRenewal
            | Self::AskedDuration
            | Self::ConfirmationCarriedOver
            | Self::WorkBegunInDoubt => Detector::Both,
        }
    }
}

/// Whether the program makes this mistake.
#[cfg(not(feature = "seeded-bugs"))]
pub(crate) const fn active(_: Bug) -> bool {
    false
}

/// The machine as the library sees it.
#[cfg(not(feature = "seeded-bugs"))]
pub(crate) fn machine(env: Arc<dyn Env>) -> Arc<dyn Env> {
    env
}

#[cfg(feature = "seeded-bugs")]
pub use planting::{Planted, plant};
#[cfg(feature = "seeded-bugs")]
pub(crate) use planting::{active, machine};

#[cfg(feature = "seeded-bugs")]
mod planting {
    use std::env;
    use std::sync::atomic::{AtomicU8, Ordering};
    use std::sync::{Arc, LazyLock};
    use std::time::Duration;

    use futures::future::BoxFuture;

    use super::Bug;
    use crate::env::Env;
    use crate::protocol::{BootInstant, Instant, Span};

    const NONE: u8 = 0;

    /// The planted mistake, for all threads. A program starts with the one that this variable names.
    static PLANTED: LazyLock<AtomicU8> = LazyLock::new(|| match env::var("PLANTED_BUG") {
        Ok(name) => AtomicU8::new(named(&name) as u8),
        Err(_) => AtomicU8::new(NONE),
    });

    #[allow(clippy::expect_used, reason = "a test of another mistake is to fail")]
    fn named(name: &str) -> Bug {
        let bug = Bug::ALL.into_iter().find(|bug| format!("{bug:?}") == name);
        bug.expect("PLANTED_BUG is the name of a mistake")
    }

    pub(crate) fn active(bug: Bug) -> bool {
        PLANTED.load(Ordering::Relaxed) == bug as u8
    }

    /// Makes the whole program make this mistake until the guard is dropped.
    ///
    /// # Panics
    /// If a mistake is planted already: tests plant one at a time.
    #[allow(clippy::expect_used, reason = "a test that plants two is to fail")]
    #[must_use]
    pub fn plant(bug: Bug) -> Planted {
        PLANTED
            .compare_exchange(NONE, bug as u8, Ordering::SeqCst, Ordering::SeqCst)
            .expect("no other bug is planted");
        Planted(())
    }

    pub(crate) fn machine(env: Arc<dyn Env>) -> Arc<dyn Env> {
        if active(Bug::WallForBoot) {
            let ahead = Span::micros(env.wall().as_micros() - env.boot().as_micros());
            Arc::new(WallForBoot { env, ahead })
        } else {
            env
        }
    }

    /// A machine that takes steps of its wall clock for the passing of time.
    struct WallForBoot {
        env: Arc<dyn Env>,
        /// How far the wall clock was ahead of the boot clock at the start.
        ahead: Span,
    }

    impl Env for WallForBoot {
        fn wall(&self) -> Instant {
            self.env.wall()
        }

        fn boot(&self) -> BootInstant {
            BootInstant::from_micros((self.env.wall() - self.ahead).as_micros())
        }

        fn sleep(&self, length: Duration) -> BoxFuture<'static, ()> {
            self.env.sleep(length)
        }

        fn random(&self, bytes: &mut [u8]) {
            self.env.random(bytes);
        }

        fn spawn(&self, task: BoxFuture<'static, ()>) {
            self.env.spawn(task);
        }
    }

    /// See [`plant`].
    #[derive(Debug)]
    pub struct Planted(());

    impl Drop for Planted {
        fn drop(&mut self) {
            PLANTED.store(NONE, Ordering::SeqCst);
        }
    }
}
