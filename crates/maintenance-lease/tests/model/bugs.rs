//! Mistakes planted one at a time: the model must catch each that lives in the rules, and the steps
//! of waiting and keeping, in a world that is sound without it.

use std::io::Write as _;

use crate::bounds::{Bounds, CONTENDERS, OVERTAKING};
use crate::explore::{explore, story};
use maintenance_lease::bugs::{Bug, Detector, plant};

/// A small world in which a mistake shows; `None` if it is made outside the steps that the model
/// drives.
fn world(bug: Bug) -> Option<Bounds> {
    let two = Bounds {
        contenders: 2,
        ..CONTENDERS
    };
    match bug {
        Bug::PatchWithoutVersion
        | Bug::WallForBoot
        | Bug::WaiterWithoutVersion
        | Bug::RevivedAfterRelease
        | Bug::LocalClockAfterPause
        | Bug::StraddlingAnswerBelieved
        | Bug::InvertedInterval
        | Bug::Any404AsProof
        | Bug::TruncatedListAccepted
        | Bug::SetOrderNotKept
        | Bug::NodeFromBeforeWait
        | Bug::PartialSetKept
        | Bug::TimeAddedAgain
        | Bug::DetailsWrittenAtOnce
        | Bug::WritesWithoutLook
        | Bug::HeldWhileWaiting
        | Bug::EarlierLockReleased => None,
        Bug::DeadlineAfterAnswer
        | Bug::ExpiryWithoutMargin
        | Bug::LossWaitsForRequest
        | Bug::ReleaseUnchecked
        | Bug::UnchangedProvesFailure
        | Bug::StaleSuccess
        | Bug::BrokenAcquisitionRepeated
        | Bug::RevivedAfterLoss => Some(two),
        Bug::NoNonce => Some(OVERTAKING.with_equal_clocks()),
        Bug::NonceProvesRenewal => Some(Bounds {
            touches: true,
            apart: 0,
            ..two
        }),
        Bug::AskedDuration => Some(Bounds {
            duration: 9,
            longest: Some(6),
            ..two
        }),
        Bug::StaleWatchBelieved => Some(Bounds {
            events: 2,
            apart: 0,
            duration: 3,
            ..two
        }),
        Bug::ConfirmationCarriedOver => Some(Bounds {
            apart: 0,
            breaks: 1,
            administrator: true,
            contenders: 1,
            ..CONTENDERS
        }),
        Bug::OwnNonceNotRecognised => Some(Bounds { foreign: 1, ..two }),
        Bug::JumpUnchecked | Bug::JumpForgotten | Bug::CheckDelayed | Bug::WorkBegunInDoubt => {
            Some(Bounds {
                apart: 0,
                duration: 9,
                halts: 1,
                ..two
            })
        }
    }
}

/// Fails where something is wrong with a world in which no mistake is planted: what is found there
/// would prove nothing of a mistake.
fn is_sound_without(bug: Bug, bounds: Bounds) {
    let name = format!("without {bug:?}");
    if let Some((property, path)) = explore(&name, bounds).failures.first() {
        panic!("{name}: not so: {property}\n{}", story(&bounds, path));
    }
}

/// The property that does not hold once the mistake is planted, and how many states it took to see.
fn caught(bug: Bug, bounds: Bounds) -> Option<(&'static str, usize)> {
    let _planted = plant(bug);
    let explored = explore(&format!("{bug:?}"), bounds);
    let (property, _) = explored.failures.first()?;
    Some((property, explored.states))
}

#[test]
fn every_seeded_bug_in_the_steps_is_found_and_no_other() {
    // An exhaustive test of its own proves this.
    let mut sound = vec![OVERTAKING.with_equal_clocks()];
    let mut uncaught = Vec::new();
    for bug in Bug::ALL {
        let has_to = bug.detector() != Detector::Simulation;
        let world = world(bug);
        assert_eq!(world.is_some(), has_to, "{bug:?}");
        if let Some(bounds) = world.filter(|bounds| !sound.contains(bounds)) {
            is_sound_without(bug, bounds);
            sound.push(bounds);
        }
        let caught = world.and_then(|bounds| caught(bug, bounds));
        let verdict = match caught {
            Some((property, states)) => {
                format!("caught: not so: {property} ({states} states)")
            }
            None => "-".to_owned(),
        };
        // A line for `cargo xtask sim --bugs`, past the harness, which keeps what a test prints.
        let _nobody_reads = writeln!(std::io::stdout(), "{bug:?}\t{verdict}");
        if has_to && caught.is_none() {
            uncaught.push(bug);
        }
    }
    assert_eq!(uncaught, [], "not caught");
}
