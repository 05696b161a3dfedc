//! deb and rpm packages. nfpm makes both from one description in `packaging/`, without tools of a distribution.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::Result;
use chrono::{DateTime, Utc};
use control_plane::target_dir;

use super::tool;
use crate::cargo::run;
use crate::dist::platform::Platform;
use crate::dist::{Files, Package, archive, licenses, program_path, root};

const NFPM: &str = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.0";

/// An installed nfpm.
pub(super) struct Packager {
    nfpm: PathBuf,
    time: DateTime<Utc>,
}

impl Packager {
    /// Compiles nfpm if it is missing.
    pub(super) fn install(time: DateTime<Utc>) -> Result<Self> {
        let nfpm = tool::install(NFPM)?;
        Ok(Self { nfpm, time })
    }

    /// Packages a program that was built for this platform. Returns the paths of the packages.
    pub(super) fn package(
        &self,
        package: &Package,
        platform: Platform,
        files: &mut Files,
    ) -> Result<Vec<PathBuf>> {
        let program = package.program;
        let man_pages = compressed_man_pages(package)?;
        let version = env!("CARGO_PKG_VERSION");
        let mut packages = Vec::new();
        for format in ["deb", "rpm"] {
            let name = format!("{program}-v{version}-{}.{format}", platform.arch());
            let path = files.path(&name);
            run(Command::new(&self.nfpm)
                .args(["package", "--packager", format])
                .args(["--config", &format!("packaging/{program}.yaml"), "--target"])
                .arg(&path)
                .current_dir(root()?)
                .stdout(Stdio::null())
                .env("ARCH", platform.arch())
                .env("VERSION", version)
                .env("PROGRAM", program_path(program, platform))
                .env("MAN_PAGES", &man_pages)
                .env("THIRD_PARTY_LICENSES", licenses::path())
                .env("SOURCE_DATE_EPOCH", self.time.timestamp().to_string()))?;
            let content = fs::read(&path)?;
            files.write(&name, &content)?;
            packages.push(path);
        }
        Ok(packages)
    }
}

/// Writes the man pages compressed, as in distributions, and returns their directory.
fn compressed_man_pages(package: &Package) -> Result<PathBuf> {
    let directory = target_dir().join("man-pages").join(package.program);
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    fs::create_dir_all(&directory)?;
    let root = root()?;
    for path in package.files(&root)? {
        if let Some(name) = path.strip_prefix("docs/man/") {
            let page = archive::gzip(&fs::read(root.join(&path))?)?;
            fs::write(directory.join(format!("{name}.gz")), page)?;
        }
    }
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::dist::{LEASE_ELECT, PLUGIN};

    /// The package has every file of an archive. nfpm itself fails if a file is missing in the source tree.
    #[test]
    fn packages_have_the_texts_of_the_archives() {
        for package in [PLUGIN, LEASE_ELECT] {
            let path = root()
                .unwrap()
                .join(format!("packaging/{}.yaml", package.program));
            let description: Value =
                serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap();
            assert_eq!(description["name"], package.program);
            let contents = description["contents"].as_array().unwrap();
            let sources: Vec<&str> = contents
                .iter()
                .filter_map(|of| of["src"].as_str())
                .collect();
            let needed = [
                "LICENSE".to_owned(),
                "${THIRD_PARTY_LICENSES}".to_owned(),
                "${MAN_PAGES}/*".to_owned(),
                format!("completions/_{}", package.program),
                format!("completions/{}.bash", package.program),
                format!("completions/{}.fish", package.program),
            ];
            for text in needed {
                assert!(sources.contains(&text.as_str()), "{text}");
            }
        }
    }
}
