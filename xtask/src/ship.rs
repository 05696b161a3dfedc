//! `cargo xtask ship`: makes everything that a release publishes.

mod chart;
mod formula;
mod image;
mod install_test;
mod packages;
mod sbom;
mod tool;

use std::env;
use std::process::Command;

use anyhow::{Context, Result};
use chrono::{DateTime, Utc};
use clap::ValueEnum as _;

use self::install_test::InstallTest;
use self::packages::Packager;
use crate::dist::platform::Platform;
use crate::dist::{Files, LEASE_ELECT, PLUGIN, Required, VERSION, build, smoke_test};

/// Build everything that a release publishes
///
/// Writes the archives of `dist` for every platform to target/dist. Also writes deb and rpm
/// packages, a container image, a Helm chart, a formula for Homebrew, an SBOM for each program, and
/// the checksums of all files. `ship` needs Go, Python 3 and rustup. The same commit gives the same
/// files. SOURCE_DATE_EPOCH replaces the time of the commit.
///
/// Smoke-tests each plugin on a real API server, if this machine can run it. Tests the other files
/// with dpkg, rpm, skopeo and ruby, if they are installed.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Build only the Helm chart
    #[arg(long)]
    chart: bool,

    /// Fail if a plugin for Linux or Windows can't be run, or a file can't be tested
    #[arg(long, conflicts_with = "chart")]
    require_smoke_tests: bool,
}

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        if self.chart {
            return chart::write(&mut Files::create()?);
        }
        let time = release_time()?;
        let packager = Packager::install(time)?;
        let mut files = Files::create()?;
        let archives = build(Platform::value_variants(), &mut files)?;
        let required = match self.require_smoke_tests {
            true => Required::AllButMacOs,
            false => Required::No,
        };
        smoke_test(Platform::value_variants(), required)?;
        let test = InstallTest::new(self.require_smoke_tests);
        for package in [PLUGIN, LEASE_ELECT] {
            for platform in [Platform::LinuxAmd64, Platform::LinuxArm64] {
                for file in packager.package(&package, platform, &mut files)? {
                    test.package(&file, package.program, platform)?;
                }
            }
        }
        sbom::write(&[PLUGIN.program, LEASE_ELECT.program], time, &mut files)?;
        let image = format!("{}-{VERSION}-image.tar", PLUGIN.program);
        files.write(&image, &image::pack(&archives, time)?)?;
        test.image(&files.path(&image))?;
        chart::write(&mut files)?;
        let formula = format!("{}.rb", PLUGIN.program);
        files.write(&formula, formula::write(&archives)?.as_bytes())?;
        test.formula(&files.path(&formula))?;
        files.write_sums()
    }
}

/// The time in the files of a release: SOURCE_DATE_EPOCH, or the time of the commit.
fn release_time() -> Result<DateTime<Utc>> {
    let seconds = match env::var("SOURCE_DATE_EPOCH") {
        Ok(seconds) => seconds,
        Err(_) => {
            let mut log = Command::new("git");
            log.args(["log", "-1", "--format=%ct"]);
            let output = log.current_dir(env!("CARGO_MANIFEST_DIR")).output()?;
            String::from_utf8(output.stdout)?
        }
    };
    seconds
        .trim()
        .parse()
        .ok()
        .and_then(DateTime::from_timestamp_secs)
        .context("neither SOURCE_DATE_EPOCH nor git says the time of the release")
}
