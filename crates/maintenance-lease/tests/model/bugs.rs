//! Mistakes planted one at a time: the model must catch each that lives in the rules, and the steps
//! of waiting and keeping.

use std::io::Write as _;

use crate::bounds::{Bounds, COMMANDS, CONTENDERS, HALTS, OVERTAKING};
use crate::explore::explore;
use maintenance_lease::bugs::{Bug, Catcher, plant};

/// The smallest world in which a mistake shows; `None` where it is made outside the steps that the
/// model drives.
fn world(bug: Bug) -> Option<Bounds> {
    let two = Bounds {
        contenders: 2,
        ..CONTENDERS
    };
    match bug {
        Bug::PatchWithoutVersion
        | Bug::WallForBoot
        | Bug::WaiterWithoutVersion
        | Bug::RevivedAfterRelease => None,
        Bug::DeadlineAfterAnswer
        | Bug::ExpiryWithoutMargin
        | Bug::LossWaitsForRequest
        | Bug::ReleaseUnchecked
        | Bug::UnchangedProvesFailure
        | Bug::RevivedAfterLoss => Some(two),
        Bug::NoNonce => Some(OVERTAKING),
        Bug::NonceProvesRenewal => Some(Bounds {
            touches: true,
            ..two
        }),
        Bug::AskedDuration => Some(Bounds {
            duration: 9,
            longest: Some(6),
            ..two
        }),
        Bug::StaleWatchBelieved => Some(Bounds { events: 2, ..two }),
        Bug::ConfirmationCarriedOver => Some(COMMANDS),
        Bug::JumpUnchecked => Some(HALTS),
        Bug::JumpForgotten => Some(Bounds { halts: 2, ..HALTS }),
    }
}

#[test]
fn every_planted_mistake_in_the_steps_is_caught() {
    let mut uncaught = Vec::new();
    for bug in Bug::ALL {
        let has_to = bug.catcher() != Catcher::Simulation;
        assert_eq!(world(bug).is_some(), has_to, "{bug:?}");
        let caught = world(bug).and_then(|bounds| {
            let _planted = plant(bug);
            let explored = explore(&format!("{bug:?}"), bounds);
            let (property, _) = explored.failures.first()?;
            Some((explored.states, *property))
        });
        let verdict = match caught {
            Some((states, property)) => {
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
