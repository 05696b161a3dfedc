//! Waiting for a lock: hand-overs, crashes, and a crowd.

use anyhow::Result;
use control_plane::ControlPlane;

use super::load::command;
use super::nodes::make_nodes;
use crate::cargo::run;

/// How many holders vanish.
const CRASHES: usize = 10;

/// By the library: two holders who hand a lock over, holders who vanish, a crowd.
pub(super) fn library(plane: &ControlPlane, hand_overs: usize, crowd: usize) -> Result<()> {
    make_nodes(plane, "hand-over", 1)?;
    make_nodes(plane, "crash", CRASHES)?;
    make_nodes(plane, "crowd", 1)?;
    for arguments in [
        ["hand-over", "hand-over-0", &hand_overs.to_string()],
        ["crash", "crash", &CRASHES.to_string()],
        ["waiters", "crowd-0", &crowd.to_string()],
    ] {
        run(&mut command(plane, &arguments))?;
    }
    Ok(())
}
