//! krew's manifest of the plugin: how it is filled in, and its rules.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::archive;
use super::package::{Archive, PLUGIN};

/// Fills the manifest of the source tree with the version and platforms of a release.
pub(super) fn fill(template: &str, version: &str, archives: &[Archive]) -> String {
    let mut manifest = String::new();
    for line in template.lines() {
        match line.starts_with("  version: ") {
            true => manifest += &format!("  version: {version}\n"),
            false => manifest += &format!("{line}\n"),
        }
    }
    manifest += "  platforms:\n";
    for archive in archives {
        let (platform, uri, sha256) = (archive.platform, archive.url(version), &archive.sha256);
        let (os, arch) = (platform.os(), platform.arch());
        let bin = platform.executable(PLUGIN.program);
        manifest += &format!(
            "    - selector:
        matchLabels:
          os: {os}
          arch: {arch}
      uri: {uri}
      sha256: \"{sha256}\"
      bin: {bin}
"
        );
    }
    manifest
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Manifest {
    api_version: String,
    kind: String,
    metadata: Metadata,
    spec: Spec,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    version: String,
    homepage: String,
    short_description: String,
    description: String,
    caveats: String,
    platforms: Vec<Platform>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Platform {
    selector: Selector,
    uri: String,
    sha256: String,
    bin: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Selector {
    match_labels: BTreeMap<String, String>,
}

const LONGEST_SHORT_DESCRIPTION: usize = 50;
const LONGEST_LINE: usize = 80;

/// Checks the rules of krew, and of the reviewers of its index, for a manifest and its archives.
pub(super) fn validate(manifest: &str, archives: &[Archive]) -> Result<()> {
    let manifest: Manifest = serde_saphyr::from_str(manifest).context("not a manifest")?;
    let Spec {
        version,
        homepage,
        short_description,
        description,
        caveats,
        platforms,
    } = manifest.spec;
    ensure!(
        manifest.api_version == "krew.googlecontainertools.github.com/v1alpha2",
        "krew doesn't know this apiVersion"
    );
    ensure!(manifest.kind == "Plugin", "the kind is not Plugin");
    ensure!(
        manifest.metadata.name == "maint",
        "the plugin is called maint"
    );
    ensure!(
        is_version(&version),
        "{version} is not a version such as v1.2.3"
    );
    ensure!(homepage.starts_with("https://"), "no homepage");
    ensure!(
        !short_description.is_empty() && !short_description.contains(['\r', '\n']),
        "the short description is not one line"
    );
    ensure!(
        short_description.chars().count() <= LONGEST_SHORT_DESCRIPTION,
        "the short description is longer than {LONGEST_SHORT_DESCRIPTION} characters"
    );
    for line in description.lines().chain(caveats.lines()) {
        let one_word = !line.trim().contains(' ');
        ensure!(
            line.len() <= LONGEST_LINE || one_word || line.starts_with("  "),
            "longer than {LONGEST_LINE} characters: {line}"
        );
    }
    ensure!(!platforms.is_empty(), "no platform");
    let mut selectors = Vec::new();
    for platform in &platforms {
        platform.validate(&version, archives)?;
        let selector = &platform.selector.match_labels;
        ensure!(!selectors.contains(&selector), "two entries for a platform");
        selectors.push(selector);
    }
    Ok(())
}

impl Platform {
    fn validate(&self, version: &str, archives: &[Archive]) -> Result<()> {
        let keys: Vec<&str> = self
            .selector
            .match_labels
            .keys()
            .map(String::as_str)
            .collect();
        ensure!(
            keys == ["arch", "os"],
            "a platform is selected by os and arch"
        );
        ensure!(
            self.uri.starts_with("https://") && self.uri.ends_with(".tar.gz"),
            "the uri is not that of a .tar.gz"
        );
        ensure!(
            self.uri.contains(&format!("/{version}/")),
            "the uri is that of another version"
        );
        let named = archives
            .iter()
            .find(|archive| self.uri.ends_with(&format!("/{}", archive.name)));
        let archive = named.with_context(|| format!("there is no archive for {}", self.uri))?;
        let labels = &self.selector.match_labels;
        ensure!(
            (labels["os"].as_str(), labels["arch"].as_str())
                == (archive.platform.os(), archive.platform.arch()),
            "{} is for another platform",
            archive.name
        );
        ensure!(
            self.sha256 == archive.sha256,
            "the sha256 is not that of {}",
            archive.name
        );
        let files = archive::files(&archive.content)?;
        for needed in [self.bin.as_str(), "LICENSE"] {
            ensure!(
                files.iter().any(|file| file.name == needed),
                "there is no {needed} in {}",
                archive.name
            );
        }
        Ok(())
    }
}

/// Whether this is `v` followed by a semantic version.
fn is_version(version: &str) -> bool {
    let Some(version) = version.strip_prefix('v') else {
        return false;
    };
    let (numbers, suffix) = match version.split_once(['-', '+']) {
        Some((numbers, suffix)) => (numbers, Some(suffix)),
        None => (version, None),
    };
    let is_number = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && (part == "0" || !part.starts_with('0'))
    };
    numbers.split('.').count() == 3
        && numbers.split('.').all(is_number)
        && suffix.is_none_or(|suffix| !suffix.is_empty())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use clap::ValueEnum as _;

    use super::super::package::VERSION;
    use super::super::platform::Platform;
    use super::*;

    const TEMPLATE: &str = include_str!("../../../krew-manifest.yaml");

    /// Creates an archive for every platform.
    fn archives() -> Vec<Archive> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let platforms = Platform::value_variants().iter();
        let pack = |&platform| PLUGIN.pack(&root, platform, b"program".to_vec(), "licenses");
        platforms.map(|of| pack(of).unwrap()).collect()
    }

    fn filled() -> String {
        fill(TEMPLATE, VERSION, &archives())
    }

    #[test]
    fn a_release_for_every_platform_keeps_krews_rules() {
        let filled = filled();
        validate(&filled, &archives()).unwrap();
        assert!(filled.starts_with(TEMPLATE), "{filled}");
        for platform in [
            "os: darwin\n          arch: arm64",
            "bin: kubectl-maint.exe",
        ] {
            assert!(filled.contains(platform), "{filled}");
        }
    }

    #[test]
    fn a_release_sets_the_version() {
        let filled = fill(TEMPLATE, "v1.2.3", &[]);
        assert!(filled.contains("\n  version: v1.2.3\n"), "{filled}");
    }

    #[test]
    fn it_is_of_this_version_and_this_repository() {
        let manifest: Manifest = serde_saphyr::from_str(&filled()).unwrap();
        let repository = env!("CARGO_PKG_REPOSITORY");
        let version = concat!("v", env!("CARGO_PKG_VERSION"));
        assert_eq!(manifest.spec.version, version);
        assert_eq!(manifest.spec.homepage, repository);
        for platform in manifest.spec.platforms {
            let releases = format!("{repository}/releases/download/{version}/");
            assert!(platform.uri.starts_with(&releases), "{}", platform.uri);
        }
        for line in TEMPLATE.lines().filter(|line| line.contains("://")) {
            assert!(line.contains(repository), "{line}");
        }
    }

    /// krew only links the plugin into its own directory.
    #[test]
    fn the_command_of_the_caveats_links_the_completer() {
        let manifest: Manifest = serde_saphyr::from_str(&filled()).unwrap();
        let mut commands = manifest.spec.caveats.lines();
        let command = commands.find(|line| line.contains("ln ")).unwrap();
        for (variable, below) in [("KREW_ROOT", ""), ("HOME", ".krew")] {
            let home = tempfile::tempdir().unwrap();
            let bin = home.path().join(below).join("bin");
            fs::create_dir_all(&bin).unwrap();
            fs::write(bin.join("kubectl-maint"), "the plugin").unwrap();
            // The second run is like one after an upgrade.
            for _ in 0..2 {
                let linked = Command::new("/bin/sh")
                    .args(["-ec", command])
                    .env_clear()
                    .env("PATH", "/usr/bin:/bin")
                    .env(variable, home.path())
                    .status()
                    .unwrap();
                assert!(linked.success(), "{command}");
            }
            let completer = fs::read(bin.join("kubectl_complete-maint")).unwrap();
            assert_eq!(completer, b"the plugin");
        }
    }

    #[test]
    fn every_rule_refuses() {
        let (filled, archives) = (filled(), archives());
        let refused = |from: &str, to: &str| {
            assert!(filled.contains(from), "{from}");
            let manifest = filled.replace(from, to);
            format!("{:#}", validate(&manifest, &archives).unwrap_err())
        };
        let version = format!("  version: {VERSION}");
        for (from, to, why) in [
            ("v1alpha2", "v1alpha3", "apiVersion"),
            ("kind: Plugin", "kind: Plug", "kind"),
            ("name: maint", "name: other", "called maint"),
            (&version, "  version: 0.1.0", "not a version"),
            (&version, "  version: v999.0.0", "another version"),
            ("visibly", "quite visibly for", "longer than 50"),
            ("- selector", "- {}\n    - selector", "not a manifest"),
            ("          os: linux\n", "", "os and arch"),
            ("os: linux", "os: linux\n          disk: ssd", "os and arch"),
            ("os: linux", "os: plan9", "for another platform"),
            (&archives[0].sha256, "ab", "not that of kubectl-maint-"),
            (
                "-linux-amd64.tar",
                "-plan9-amd64.tar",
                "there is no archive",
            ),
            (
                "bin: kubectl-maint",
                "bin: maint",
                "no maint in kubectl-maint-",
            ),
            (".tar.gz", ".rar", "not that of a .tar.gz"),
            (
                "    Lock a node before",
                "    Lock a node before before before before before before before before",
                "longer than 80",
            ),
        ] {
            let error = refused(from, to);
            assert!(error.contains(why), "{to}: {error}");
        }
        let twice = [archives.clone(), archives.clone()].concat();
        assert!(validate(&fill(TEMPLATE, VERSION, &twice), &archives).is_err());
    }

    #[test]
    fn versions_are_semantic() {
        for good in ["v0.1.0", "v1.20.3-rc.1", "v1.2.3+build"] {
            assert!(is_version(good), "{good}");
        }
        for bad in ["1.2.3", "v1.2", "v1.2.3.4", "v01.2.3", "v1.2.x", "v1.2.3-"] {
            assert!(!is_version(bad), "{bad}");
        }
    }
}
