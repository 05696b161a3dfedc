//! `cargo xtask bench`: compares the plugin with kubectl and with bare requests, and measures how fast a lock changes
//! hands. It runs on a real control plane that writes to disk.

pub(crate) mod bare_requests;
mod bulk;
pub(crate) mod command_cost;
mod force_delete_report;
mod policy_cost;
mod quantiles;
mod raw_patches;
mod request_counts;
mod runtime;
mod single_node;
pub(crate) mod waiting;
mod wide;

use std::{env, thread};

use anyhow::Result;
use control_plane::{Binary, ControlPlane};

use self::command_cost::Tools;
use crate::cargo::{cargo, run_build};
use crate::control_plane::ensure_built;
use crate::dist::plugin_for_this_machine;
use crate::output::{print, result};

/// Measure the plugin against kubectl and bare requests
///
/// Runs the compared commands alternately on the same real API server. etcd writes to disk, except in the last part.
/// The plugin is built as for a release, which needs Python 3 and rustup. A ratio of 0.1 means a tenth of what kubectl
/// needs. The results depend on the machine. They are printed as a Markdown page, and not checked.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Measure only this part
    #[arg(long)]
    only: Option<Part>,

    /// Number of nodes of the fleet
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    fleet: usize,
}

/// The parts of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// status and acquire of one node, compared with kubectl: time, CPU and memory
    Node,
    /// Acquire and release 500 nodes, compared with a program that only lists and patches Leases
    Nodes,
    /// Acquire and release the nodes of a large cluster, compared with the same program
    Fleet,
    /// Hand a lock over, take over an expired lock, and let 200 clients wait for one lock
    Waiting,
    /// The report of force-delete on a node with 110 pods
    Report,
    /// status -o wide of a large cluster, compared with kubectl's lists
    Wide,
    /// Patches of Nodes and Leases, with and without the policies
    Policies,
    /// The number of requests of each command
    Requests,
    /// acquire of one node and a hand-over, with an etcd that does not wait for its disk
    WithoutDisk,
}

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        ensure_built(&Binary::CONTROL_PLANE)?;
        // Users have the static program of a release, which starts faster than that of `cargo build`.
        let plugin = plugin_for_this_machine()?;
        // This program runs the waiting clients and starts the measured commands.
        let mut build = cargo(&["build", "--release", "--package=xtask"]);
        run_build("xtask for release", &mut build)?;
        print("starting a control plane that writes to disk");
        let plane = start(true)?;
        let tools = Tools::new(&plane, plugin.clone())?;
        result(format_args!(
            "# Performance\n\nOne run of `cargo xtask bench` with the program of the release, on {} cores ({}), with etcd on disk. For\n\
             time, CPU and memory, a ratio of 0.1 means a tenth of what the other tool needs. For rates, 0.9 means nine tenths of the\n\
             other tool's speed.",
            thread::available_parallelism()?,
            env::consts::ARCH,
        ));
        let part = |part, title: &str, measure: &dyn Fn() -> Result<()>| {
            if self.only.is_some_and(|only| only != part) {
                return Ok(());
            }
            result(format_args!("\n## {title}\n\n```text"));
            measure()?;
            result("```");
            Ok(())
        };
        part(Part::Node, "One node", &|| {
            single_node::compare_with_kubectl(&plane, &tools)
        })?;
        part(Part::Nodes, "500 nodes", &|| {
            bulk::measure(&plane, &tools, "label", 500)
        })?;
        part(Part::Requests, "Requests", &|| {
            request_counts::measure(&plane, &tools)
        })?;
        part(Part::Waiting, "Waiting", &|| waiting::measure(&plane))?;
        part(Part::Report, "Report of force-delete", &|| {
            force_delete_report::measure(&plane, &tools)
        })?;
        part(Part::Policies, "Policies", &|| {
            policy_cost::measure(&plane, &tools)
        })?;
        part(Part::Wide, "Status of a large cluster", &|| {
            wide::measure(&plane, &tools)
        })?;
        part(Part::Fleet, "All nodes of a large cluster", &|| {
            bulk::measure(&plane, &tools, "fleet", self.fleet)
        })?;
        drop(plane);
        part(Part::WithoutDisk, "Without the disk", &|| {
            let plane = start(false)?;
            single_node::compare_with_kubectl(&plane, &Tools::new(&plane, plugin.clone())?)?;
            waiting::measure_hand_over(&plane)
        })
    }
}

/// Starts a control plane. With `fsync`, etcd waits for its disk.
fn start(fsync: bool) -> Result<ControlPlane> {
    let plane = ControlPlane::builder()
        .controller_manager(false)
        .fsync(fsync)
        .start()?;
    plane.kubectl(&["create", "namespace", raw_patches::NAMESPACE])?;
    Ok(plane)
}
