//! `cargo xtask dist`: what is published of a version.

mod archive;
mod krew;

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use control_plane::target_dir;
use sha2::{Digest, Sha256};

use self::krew::Release;
use crate::cargo::{cargo, run};
use crate::say::say;

/// Build the archive of a release, with a static binary, and krew's manifest for it
///
/// Both go into target/dist.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

/// What an archive holds beside the binary: krew asks for the license.
const TEXTS: [&str; 2] = ["LICENSE", "README.md"];
const BINARY: &str = "kubectl-maint";
const MANIFEST: &str = "krew-manifest.yaml";
const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut files = vec![archive::File {
            name: BINARY,
            executable: true,
            content: fs::read(build(&root)?)?,
        }];
        for name in TEXTS {
            let content = fs::read(root.join(name)).with_context(|| format!("no {name}"))?;
            files.push(archive::File {
                name,
                executable: false,
                content,
            });
        }
        let archive = archive::pack(&files)?;
        let release = Release {
            version: VERSION,
            processor: processor(),
            sha256: hex(&Sha256::digest(&archive)),
        };
        let manifest = release.fill(&fs::read_to_string(root.join(MANIFEST))?);
        krew::validate(&manifest, &archive::names(&archive)?)?;

        let into = target_dir().join("dist");
        fs::create_dir_all(&into)?;
        for (name, content) in [
            (release.archive_name(), archive.as_slice()),
            // krew wants the file to be named as the plugin.
            ("maint.yaml".to_owned(), manifest.as_bytes()),
        ] {
            let path = into.join(name);
            fs::write(&path, content)?;
            say(format_args!("{} ({} bytes)", path.display(), content.len()));
        }
        Ok(())
    }
}

/// Builds a binary that needs no library of the machine that it runs on. With an explicit target,
/// programs that run during the build stay dynamic; paths of this machine stay out of the result.
fn build(root: &Path) -> Result<PathBuf> {
    let target = format!("{ARCH}-unknown-linux-gnu");
    let root = root.canonicalize()?;
    let mut flags = format!(
        "-Ctarget-feature=+crt-static --remap-path-prefix={}=.",
        root.display()
    );
    if let Some(home) = std::env::var_os("CARGO_HOME").or_else(|| {
        let home = std::env::var_os("HOME")?;
        Some(Path::new(&home).join(".cargo").into_os_string())
    }) {
        let home = Path::new(&home).display().to_string();
        flags.push_str(&format!(" --remap-path-prefix={home}=cargo"));
    }
    run(
        cargo(&["build", "--release", "--locked", "--package", BINARY])
            .args(["--target", &target])
            .env("RUSTFLAGS", flags),
    )?;
    let binary = target_dir().join(target).join("release").join(BINARY);
    ensure_static(&fs::read(&binary)?)?;
    Ok(binary)
}

/// An ELF program that asks for a loader is not static.
fn ensure_static(program: &[u8]) -> Result<()> {
    const LOADER: &[u8] = b"/ld-linux";
    ensure!(
        !program.windows(LOADER.len()).any(|bytes| bytes == LOADER),
        "the binary asks for a dynamic loader"
    );
    Ok(())
}

/// This machine's processor in Go's words, as krew has them.
fn processor() -> &'static str {
    match ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_written_as_krew_wants_them() {
        assert_eq!(
            hex(&Sha256::digest(b"")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
