//! `cargo xtask control-plane`: builds etcd, kube-apiserver, kube-controller-manager and kubectl, and the other
//! programs that tests need, if they are missing.

use std::env;
use std::fs::{self, File, TryLockError};

use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;
use control_plane::{Binary, cache_dir};

use crate::go::MODULES;
use crate::output::{Progress, print};

/// Build etcd, Kubernetes and the other programs that the tests need
///
/// The first run takes about five minutes. Later runs reuse the binaries from the cache directory of
/// the user. To use your own binaries, set KUBEBUILDER_ASSETS, or TEST_ASSET_ETCD and the other
/// variables that CONTRIBUTING.md lists.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Build only this program
    #[arg(long, value_name = "PROGRAM", value_parser = names())]
    only: Option<String>,
}

fn names() -> PossibleValuesParser {
    Binary::ALL.map(Binary::name).into()
}

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        let wanted: Vec<Binary> = Binary::ALL
            .into_iter()
            .filter(|binary| self.only.as_ref().is_none_or(|only| only == binary.name()))
            .collect();
        ensure_built(&wanted)?;
        for binary in wanted {
            print(binary.locate()?.display());
        }
        Ok(())
    }
}

/// The binaries of `wanted` that do not exist yet.
///
/// # Errors
/// If a variable names a file that does not exist: a build can't fix this.
pub(crate) fn missing(wanted: &[Binary]) -> Result<Vec<Binary>> {
    let mut missing = Vec::new();
    for &binary in wanted {
        match binary.locate() {
            Ok(_) => {}
            Err(error) if env::var_os(binary.variable()).is_some_and(|path| !path.is_empty()) => {
                return Err(error);
            }
            Err(_) => missing.push(binary),
        }
    }
    Ok(missing)
}

/// Builds the missing programs of `wanted`. If another process is building, waits for it.
pub(crate) fn ensure_built(wanted: &[Binary]) -> Result<()> {
    if missing(wanted)?.is_empty() {
        return Ok(());
    }
    let cache = cache_dir();
    fs::create_dir_all(&cache).with_context(|| format!("failed to make {}", cache.display()))?;
    let lock = File::create(cache.join(".lock"))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let what = "waiting for another command that is building the control plane";
            let _progress = Progress::start_or_print(what);
            lock.lock()?;
        }
        Err(TryLockError::Error(error)) => return Err(error).context("failed to lock the cache"),
    }
    let missing = missing(wanted)?;
    for module in &MODULES {
        module.build(&missing)?;
    }
    Ok(())
}
