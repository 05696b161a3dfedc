//! Mistakes planted one at a time: the model must catch each that lives in the rules, and the steps
//! of waiting and keeping.

use std::fmt::Write as _;

use crate::bounds::{Bounds, COMMANDS, CONTENDERS, HALTS, OVERTAKING};
use crate::explore::explore;
use maintenance_lease::bugs::{Bug, plant};

/// The smallest world in which a mistake shows; `None` where it is made outside the steps that the
/// model drives, so that only a simulation of the whole library can see it.
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
#[expect(
    clippy::print_stderr,
    reason = "which check caught what is what its reader wants to know"
)]
fn every_planted_mistake_in_the_steps_is_caught() {
    let mut table = String::new();
    let mut missed = Vec::new();
    for bug in Bug::ALL {
        let caught = match world(bug) {
            None => "seen by the simulation alone".to_owned(),
            Some(bounds) => {
                let _planted = plant(bug);
                let explored = explore(&format!("{bug:?}"), bounds);
                match explored.failures.first() {
                    Some((property, _)) => {
                        format!("caught in {} states: not so: {property}", explored.states)
                    }
                    None => {
                        missed.push(bug);
                        "missed".to_owned()
                    }
                }
            }
        };
        writeln!(table, "{:24} {caught}", format!("{bug:?}")).expect("a string");
    }
    eprintln!("{table}");
    assert_eq!(missed, [], "not caught");
}
