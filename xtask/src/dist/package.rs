//! The packages of a release: the programs and their other files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum as _;
use sha2::{Digest, Sha256};

use super::archive;
use super::platform::Platform;

/// The directory of the workspace.
pub(crate) fn root() -> Result<PathBuf> {
    Ok(Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()?)
}

/// A program, and the other files in its archive, by their paths in the source tree.
pub(crate) struct Package {
    pub(crate) program: &'static str,
    pub(super) is_for: fn(Platform) -> bool,
    /// Files and directories.
    texts: &'static [&'static str],
}

/// krew requires the license.
pub(crate) const PLUGIN: Package = Package {
    program: "kubectl-maint",
    is_for: |_| true,
    texts: &[
        "LICENSE",
        "README.md",
        "completions/_kubectl-maint",
        "completions/kubectl-maint.bash",
        "completions/kubectl-maint.fish",
        "completions/kubectl-maint.ps1",
        "docs/man",
    ],
};

pub(crate) const LEASE_ELECT: Package = Package {
    program: "lease-elect",
    is_for: |platform| platform.os() == "linux",
    texts: &[
        "LICENSE",
        "docs/lease-elect.md",
        "completions/_lease-elect",
        "completions/lease-elect.bash",
        "completions/lease-elect.fish",
        "docs/man/lease-elect.1",
    ],
};

/// The licenses of third-party code in the programs.
pub(super) const THIRD_PARTY_LICENSES: &str = "THIRD-PARTY-LICENSES";

pub(crate) const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// A packed program.
#[derive(Clone)]
pub(crate) struct Archive {
    pub(crate) platform: Platform,
    pub(crate) name: String,
    pub(crate) sha256: String,
    pub(crate) content: Vec<u8>,
}

impl Archive {
    /// The URL under which a release publishes it.
    pub(crate) fn url(&self, version: &str) -> String {
        let repository = env!("CARGO_PKG_REPOSITORY");
        format!("{repository}/releases/download/{version}/{}", self.name)
    }
}

impl Package {
    /// `third_party` contains the licenses of third-party code in the program.
    pub(crate) fn pack(
        &self,
        root: &Path,
        platform: Platform,
        program: Vec<u8>,
        third_party: &str,
    ) -> Result<Archive> {
        let mut files = vec![archive::File {
            name: platform.executable(self.program),
            executable: true,
            content: program,
        }];
        files.push(archive::File {
            name: THIRD_PARTY_LICENSES.to_owned(),
            executable: false,
            content: third_party.into(),
        });
        for path in self.files(root)? {
            files.push(archive::File {
                executable: false,
                content: fs::read(root.join(&path)).with_context(|| format!("no {path}"))?,
                name: path,
            });
        }
        let content = archive::pack(&files)?;
        Ok(Archive {
            platform,
            name: self.archive_name(platform),
            sha256: sha256(&content),
            content,
        })
    }

    fn archive_name(&self, platform: Platform) -> String {
        format!("{}-{VERSION}-{platform}.tar.gz", self.program)
    }

    /// The platform of the program in this archive, according to the file name.
    pub(super) fn platform_of(&self, archive: &Path) -> Option<Platform> {
        let mut platforms = Platform::value_variants().iter().copied();
        let name = archive.file_name()?;
        platforms.find(|&platform| name == self.archive_name(platform).as_str())
    }

    /// The paths of the texts in the source tree, in a fixed order. A directory stands for the files of this program in
    /// it.
    pub(crate) fn files(&self, root: &Path) -> Result<Vec<String>> {
        let mut files = Vec::new();
        for &path in self.texts {
            if !root.join(path).is_dir() {
                files.push(path.to_owned());
                continue;
            }
            let mut names = Vec::new();
            for entry in fs::read_dir(root.join(path))? {
                let name = entry?.file_name().to_string_lossy().into_owned();
                if name.starts_with(self.program) {
                    names.push(format!("{path}/{name}"));
                }
            }
            names.sort();
            files.extend(names);
        }
        Ok(files)
    }
}

/// The checksum, in hexadecimal digits.
pub(crate) fn sha256(content: &[u8]) -> String {
    let digest = Sha256::digest(content);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        super::root().unwrap()
    }

    #[test]
    fn every_text_is_in_the_tree() {
        for package in [PLUGIN, LEASE_ELECT] {
            let files = package.files(&root()).unwrap();
            for path in &files {
                assert!(root().join(path).is_file(), "{path}");
            }
            let page = format!("docs/man/{}.1", package.program);
            assert!(files.contains(&page), "{files:?}");
        }
        let plugin = PLUGIN.files(&root()).unwrap();
        assert!(!plugin.contains(&"docs/man/lease-elect.1".to_owned()));
    }

    #[test]
    fn an_archive_is_named_after_its_platform() {
        let platform = Platform::WindowsAmd64;
        let program = b"program".to_vec();
        let packed = PLUGIN.pack(&root(), platform, program, "licenses").unwrap();
        let name = format!("kubectl-maint-{VERSION}-windows-amd64.tar.gz");
        assert_eq!(packed.name, name);
        let files = archive::files(&packed.content).unwrap();
        assert_eq!(files[0].name, "kubectl-maint.exe");
        assert_eq!(files[1].name, "THIRD-PARTY-LICENSES");
        let path = Path::new("target/dist").join(name);
        assert_eq!(PLUGIN.platform_of(&path), Some(platform));
        assert_eq!(LEASE_ELECT.platform_of(&path), None);
    }

    #[test]
    fn checksums_are_hexadecimal() {
        assert_eq!(
            sha256(b""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
