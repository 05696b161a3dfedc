//! `cargo xtask bench`: compares the plugin with kubectl, counts its requests, and measures how fast a lock changes hands.
//! It runs on a real control plane that writes to disk.

pub(crate) mod command_cost;
mod quantiles;
mod request_counts;
mod single_node;
pub(crate) mod waiting;
mod wide;

use std::path::PathBuf;
use std::process::Command;
use std::{env, thread};

use anyhow::{Context as _, Result};
use control_plane::{Binary, ControlPlane, target_dir};

use self::command_cost::{NAMESPACE, Tools};
use crate::cargo::{cargo, run, run_build};
use crate::control_plane::ensure_built;
use crate::output::{print, result};

/// Measure the plugin against kubectl
///
/// Runs the compared commands alternately on the same real API server. etcd writes to disk. The plugin
/// is built for musl, like that of a release, which needs rustup. A ratio of 0.1 means a tenth of what
/// kubectl needs. The results depend on the machine. They are printed as a Markdown page, and not
/// checked.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Measure only this part
    #[arg(long)]
    only: Option<Part>,
}

/// The parts of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// status and acquire of one node, compared with kubectl: time, CPU and memory
    Node,
    /// The number of requests of each command
    Requests,
    /// Hand a lock over, take over an expired lock, and let 200 clients wait for one lock
    Waiting,
    /// status -o wide of 5,000 nodes, compared with kubectl's lists
    Wide,
}

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        ensure_built(&Binary::CONTROL_PLANE)?;
        let plugin = build_plugin()?;
        // This program runs the waiting clients and starts the measured commands.
        let mut build = cargo(&["build", "--release", "--package=xtask"]);
        run_build("xtask for release", &mut build)?;
        print("starting a control plane that writes to disk");
        let plane = ControlPlane::builder()
            .controller_manager(false)
            .fsync(true)
            .start()?;
        plane.kubectl(&["create", "namespace", NAMESPACE])?;
        let tools = Tools::new(&plane, plugin)?;
        result(format_args!(
            "# Performance\n\nOne run of `cargo xtask bench` on {} cores ({}), with etcd on disk. A ratio of 0.1 means a \
             tenth of what kubectl needs.",
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
            single_node::measure(&plane, &tools)
        })?;
        part(Part::Requests, "Requests", &|| {
            request_counts::measure(&plane, &tools)
        })?;
        part(Part::Waiting, "Waiting", &|| waiting::measure(&plane))?;
        part(Part::Wide, "Status of a large cluster", &|| {
            wide::measure(&plane, &tools)
        })
    }
}

/// Builds the static plugin that users have, with the flags of `.goreleaser.yaml`. It starts faster than that of `cargo
/// build`.
fn build_plugin() -> Result<PathBuf> {
    let target = format!("{}-unknown-linux-musl", env::consts::ARCH);
    run(Command::new("rustup").args(["--quiet", "target", "add", &target]))
        .context("this needs rustup")?;
    let flags = ["-Ctarget-feature=+crt-static", "-Crelocation-model=static"];
    let mut build = cargo(&["build", "--release", "--package=kubectl-maint"]);
    build
        .args(["--bin=kubectl-maint", "--target", &target])
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        // The C code in it needs no C library, so the compiler of this machine is enough.
        .env(format!("CC_{}", target.replace('-', "_")), "cc");
    run_build("kubectl-maint for release", &mut build)?;
    Ok(target_dir().join(target).join("release/kubectl-maint"))
}
