//! `cargo xtask dist`: builds the programs for every platform, and packs them.

pub(crate) mod archive;
mod cross;
mod krew;
pub(crate) mod licenses;
mod mach_o;
mod package;
pub(crate) mod platform;
mod program;
mod smoke_test;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::ValueEnum as _;
use control_plane::target_dir;

use self::cross::CrossCompiler;
pub(crate) use self::cross::path as program_path;
pub(crate) use self::package::{Archive, LEASE_ELECT, PLUGIN, Package, VERSION, root, sha256};
use self::platform::Platform;
pub(crate) use self::smoke_test::{Required, SmokeTest};
use crate::output::print;

/// Build the release archives and the krew manifest
///
/// Writes an archive for each program and platform, their checksums and the manifest to target/dist.
/// This needs Python 3 and rustup: they install the cross compiler and the targets. lease-elect is
/// for Linux only.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Build for this platform only
    #[arg(long, value_name = "PLATFORM")]
    target: Vec<Platform>,

    /// Also run each plugin on a real API server, with qemu-user and wine if they are installed
    #[arg(long)]
    smoke_test: bool,

    /// Build nothing: run the plugin of this archive on a real API server
    #[arg(long, value_name = "ARCHIVE", conflicts_with_all = ["target", "smoke_test"])]
    smoke_test_archive: Option<PathBuf>,
}

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        if let Some(archive) = self.smoke_test_archive {
            return SmokeTest::start(Required::All)?.run_archive(&archive);
        }
        let platforms = match self.target.is_empty() {
            true => Platform::value_variants(),
            false => &self.target,
        };
        let mut files = Files::create()?;
        build(platforms, &mut files)?;
        files.write_sums()?;
        if self.smoke_test {
            smoke_test(platforms, Required::No)?;
        }
        Ok(())
    }
}

/// Runs the plugins that were built for `platforms`.
pub(crate) fn smoke_test(platforms: &[Platform], required: Required) -> Result<()> {
    let test = SmokeTest::start(required)?;
    platforms
        .iter()
        .try_for_each(|&platform| test.run(platform))
}

/// The files of a release, in `target/dist`.
pub(crate) struct Files {
    directory: PathBuf,
    /// The checksums of the files, by name.
    sums: BTreeMap<String, String>,
}

impl Files {
    /// Creates the directory, without the files of an earlier run.
    pub(crate) fn create() -> Result<Self> {
        let directory = target_dir().join("dist");
        if directory.exists() {
            fs::remove_dir_all(&directory)?;
        }
        fs::create_dir_all(&directory)?;
        let sums = BTreeMap::new();
        Ok(Self { directory, sums })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub(crate) fn write(&mut self, name: &str, content: &[u8]) -> Result<()> {
        let path = self.path(name);
        fs::write(&path, content).with_context(|| format!("failed to write {}", path.display()))?;
        print(format_args!("{} ({} bytes)", path.display(), content.len()));
        self.sums.insert(name.to_owned(), sha256(content));
        Ok(())
    }

    pub(crate) fn write_sums(mut self) -> Result<()> {
        let lines = self
            .sums
            .iter()
            .map(|(name, sum)| format!("{sum}  {name}\n"));
        let sums: String = lines.collect();
        self.write("SHA256SUMS", sums.as_bytes())
    }
}

/// Builds the plugin for this machine like in a release, and returns its path.
pub(crate) fn plugin_for_this_machine() -> Result<PathBuf> {
    CrossCompiler::install()?.build(&root()?, PLUGIN.program, Platform::here())
}

/// Builds and packs both programs for these platforms, and writes krew's manifest. Returns the plugin's archives.
pub(crate) fn build(platforms: &[Platform], files: &mut Files) -> Result<Vec<Archive>> {
    let root = root()?;
    let compiler = CrossCompiler::install()?;
    let licenses = licenses::write(&root, &compiler)?;
    let private = cross::private_directories(&root)?;
    let mut packed = |package: &Package| -> Result<Vec<Archive>> {
        let mut archives = Vec::new();
        for &platform in platforms.iter().filter(|of| (package.is_for)(**of)) {
            let program = fs::read(compiler.build(&root, package.program, platform)?)?;
            program::check(&program, platform, &private)?;
            let archive = package.pack(&root, platform, program, &licenses)?;
            files.write(&archive.name, &archive.content)?;
            archives.push(archive);
        }
        Ok(archives)
    };
    let plugins = packed(&PLUGIN)?;
    packed(&LEASE_ELECT)?;
    let template = fs::read_to_string(root.join("krew-manifest.yaml"))?;
    let manifest = krew::fill(&template, VERSION, &plugins);
    krew::validate(&manifest, &plugins)?;
    // krew requires the file to have the name of the plugin.
    files.write("maint.yaml", manifest.as_bytes())?;
    Ok(plugins)
}
