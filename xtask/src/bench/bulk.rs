//! The rate at which the plugin acquires and releases many nodes, compared with a program that only lists and patches Leases.

use anyhow::Result;
use control_plane::{ControlPlane, NodeSpec};

use super::bare_requests::{self, Requested};
use super::command_cost::{Tools, cost};
use super::quantiles::Quantiles;
use crate::output::result;

/// How often each command is measured.
const ROUNDS: usize = 3;

/// Creates `count` nodes, `NAME-00000` and so on, and prints the ratios.
pub(super) fn measure(plane: &ControlPlane, tools: &Tools, name: &str, count: usize) -> Result<()> {
    let nodes: Vec<NodeSpec> = (0..count)
        .map(|number| NodeSpec::ready(&format!("{name}-{number:05}")).label("bench", name))
        .collect();
    plane.create_nodes(&nodes)?;
    let label = format!("bench={name}");
    let acquire = || cost(&tools.plugin(&["acquire", "-l", &label, "-q", "-m", "bench"]));
    let release = || cost(&tools.plugin(&["release", "-l", &label, "-q"]));
    let prefix = format!("--prefix={name}-");
    let bare = |requested| cost(bare_requests::command(plane, requested).arg(&prefix));
    // The first run creates the Leases.
    acquire()?;
    release()?;
    let mut acquisitions = (Vec::new(), Vec::new());
    let mut releases = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        acquisitions.0.push(acquire()?.wall);
        releases.0.push(release()?.wall);
        acquisitions.1.push(bare(Requested::AcquireMany)?.wall);
        releases.1.push(bare(Requested::ReleaseMany)?.wall);
    }
    for (what, (plugin, bare)) in [("acquisitions", acquisitions), ("releases", releases)] {
        let median = |times| Quantiles::of(times).quantile(0.5).as_secs_f64();
        let (plugin, bare) = (median(plugin), median(bare));
        result(format_args!(
            "rate of {count} {what} / of a program that only lists the Leases and patches them: {:.2}  ({:.0}/s, {:.0}/s; target >= 0.8)",
            bare / plugin,
            count as f64 / plugin,
            count as f64 / bare,
        ));
    }
    Ok(())
}
