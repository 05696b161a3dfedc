//! `cargo xtask dist`: makes the files of a release.

mod archive;
mod krew;

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use control_plane::target_dir;
use sha2::{Digest, Sha256};

use self::krew::Release;
use crate::cargo::{cargo, run_build};
use crate::output::print;

/// Build the release archives and the krew manifest
///
/// Writes an archive with a static binary for each of the two programs, their checksums and the
/// manifest to target/dist, and prints the size of each binary.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

/// A program, and the other files in its archive, by their paths in the tree.
struct Package {
    binary: &'static str,
    texts: &'static [&'static str],
}

/// krew requires the license.
const PLUGIN: Package = Package {
    binary: "kubectl-maint",
    texts: &["LICENSE", "README.md"],
};

const LEASE_ELECT: Package = Package {
    binary: "lease-elect",
    texts: &["LICENSE", "docs/lease-elect.md", "docs/man/lease-elect.1"],
};

const MANIFEST: &str = "krew-manifest.yaml";
const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .canonicalize()?;
        let (plugin, elect) = (PLUGIN.pack(&root)?, LEASE_ELECT.pack(&root)?);
        let release = Release {
            version: VERSION,
            processor: processor(),
            archive: &plugin.name,
            sha256: &plugin.sha256,
        };
        let manifest = release.fill(&fs::read_to_string(root.join(MANIFEST))?);
        krew::validate(&manifest, &archive::names(&plugin.content)?)?;
        let sums = [&plugin, &elect].map(|made| format!("{}  {}\n", made.sha256, made.name));

        let into = target_dir().join("dist");
        fs::create_dir_all(&into)?;
        for (name, content) in [
            (plugin.name.as_str(), plugin.content.as_slice()),
            (&elect.name, &elect.content),
            ("SHA256SUMS", sums.concat().as_bytes()),
            // krew requires the file to have the name of the plugin.
            ("maint.yaml", manifest.as_bytes()),
        ] {
            let path = into.join(name);
            fs::write(&path, content)?;
            print(format_args!("{} ({} bytes)", path.display(), content.len()));
        }
        Ok(())
    }
}

/// A packed program.
struct Archive {
    name: String,
    sha256: String,
    content: Vec<u8>,
}

impl Package {
    /// Builds the program and packs it.
    fn pack(&self, root: &Path) -> Result<Archive> {
        let program = fs::read(build(root, self.binary)?)?;
        ensure_static(&program)?;
        print(format_args!(
            "{}: {:.1} MB (target: < 10 MB)",
            self.binary,
            program.len() as f64 / 1e6
        ));
        let mut files = vec![archive::File {
            name: self.binary,
            executable: true,
            content: program,
        }];
        for path in self.texts {
            files.push(archive::File {
                name: name_of(path),
                executable: false,
                content: fs::read(root.join(path)).with_context(|| format!("no {path}"))?,
            });
        }
        let content = archive::pack(&files)?;
        Ok(Archive {
            name: format!("{}-{VERSION}-linux-{}.tar.gz", self.binary, processor()),
            sha256: hex(&Sha256::digest(&content)),
            content,
        })
    }
}

/// The name of a file of the tree in an archive.
fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Builds a static binary. With an explicit target, programs that run during the build stay dynamic. The
/// paths of this machine are removed from the result. Each program is built separately, because cargo would
/// enable the library features of both programs in each.
fn build(root: &Path, binary: &str) -> Result<PathBuf> {
    let target = format!("{ARCH}-unknown-linux-gnu");
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
    run_build(
        binary,
        cargo(&["build", "--release", "--locked", "--package", binary])
            .args(["--target", &target])
            .env("RUSTFLAGS", flags),
    )?;
    Ok(target_dir().join(target).join("release").join(binary))
}

/// Fails if the ELF program needs a dynamic loader.
fn ensure_static(program: &[u8]) -> Result<()> {
    const LOADER: &[u8] = b"/ld-linux";
    ensure!(
        !program.windows(LOADER.len()).any(|bytes| bytes == LOADER),
        "the binary asks for a dynamic loader"
    );
    Ok(())
}

/// The processor of this machine, as Go and krew name it.
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
    fn every_text_is_in_the_tree() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for path in [PLUGIN.texts, LEASE_ELECT.texts].concat() {
            assert!(root.join(path).is_file(), "{path}");
        }
        assert_eq!(name_of("docs/man/lease-elect.1"), "lease-elect.1");
    }

    #[test]
    fn hashes_are_written_as_krew_wants_them() {
        assert_eq!(
            hex(&Sha256::digest(b"")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
