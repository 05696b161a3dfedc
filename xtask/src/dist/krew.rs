//! krew's manifest of the plugin: how to fill it in, and its rules.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// The values of a release.
pub(super) struct Release<'a> {
    pub(super) version: &'a str,
    pub(super) processor: &'a str,
    /// The name of the archive.
    pub(super) archive: &'a str,
    pub(super) sha256: &'a str,
}

impl Release<'_> {
    /// The manifest with the values of this release. Other text is unchanged.
    pub(super) fn fill(&self, template: &str) -> String {
        let (version, archive) = (self.version, self.archive);
        template
            .lines()
            .map(|line| {
                let key_end = line.find(": ").map_or(0, |colon| colon + 2);
                let (key, value) = line.split_at(key_end);
                let filled = match key.trim() {
                    "version:" => version.to_owned(),
                    "arch:" => self.processor.to_owned(),
                    "sha256:" => format!("\"{}\"", self.sha256),
                    "uri:" => {
                        let (releases, _) = value.split_once("/download/").unwrap_or((value, ""));
                        format!("{releases}/download/{version}/{archive}")
                    }
                    _ => return format!("{line}\n"),
                };
                format!("{key}{filled}\n")
            })
            .collect()
    }
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

/// Checks what krew and the reviewers of its index require, for a manifest whose archive has files of these
/// names.
pub(super) fn validate(manifest: &str, archived: &[String]) -> Result<()> {
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
        platform.validate(&version, archived)?;
        let selector = &platform.selector.match_labels;
        ensure!(!selectors.contains(&selector), "two entries for a platform");
        selectors.push(selector);
    }
    Ok(())
}

impl Platform {
    fn validate(&self, version: &str, archived: &[String]) -> Result<()> {
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
        ensure!(
            self.sha256.len() == 64
                && self
                    .sha256
                    .bytes()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')),
            "the sha256 is not 64 hexadecimal digits"
        );
        for needed in [self.bin.as_str(), "LICENSE"] {
            ensure!(
                archived.iter().any(|name| name == needed),
                "there is no {needed} in the archive"
            );
        }
        Ok(())
    }
}

/// Whether it is `v` and a semantic version.
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
    use std::process::Command;

    use super::*;

    const TEMPLATE: &str = include_str!("../../../krew-manifest.yaml");

    fn archived() -> Vec<String> {
        let plugin = super::super::PLUGIN;
        let names = plugin.texts.iter().chain([&plugin.binary]);
        names.map(|&name| name.to_owned()).collect()
    }

    fn filled() -> String {
        Release {
            version: "v1.2.3",
            processor: "arm64",
            archive: "kubectl-maint-v1.2.3-linux-arm64.tar.gz",
            sha256: &"ab".repeat(32),
        }
        .fill(TEMPLATE)
    }

    #[test]
    fn the_manifest_in_the_tree_keeps_krews_rules() {
        validate(TEMPLATE, &archived()).unwrap();
    }

    #[test]
    fn a_release_is_filled_in_and_nothing_else_changes() {
        let filled = filled();
        validate(&filled, &archived()).unwrap();
        let changed: Vec<&str> = filled
            .lines()
            .zip(TEMPLATE.lines())
            .filter(|(new, old)| new != old)
            .map(|(new, _)| new.trim())
            .collect();
        let sha256 = format!("sha256: \"{}\"", "ab".repeat(32));
        assert_eq!(
            changed,
            [
                "version: v1.2.3",
                "arch: arm64",
                "uri: https://github.com/kubectl-maint/kubectl-maint/releases/download/v1.2.3/kubectl-maint-v1.2.3-linux-arm64.tar.gz",
                &sha256,
            ]
        );
        assert_eq!(filled.lines().count(), TEMPLATE.lines().count());
    }

    #[test]
    fn it_is_of_this_version_and_this_repository() {
        let manifest: Manifest = serde_saphyr::from_str(TEMPLATE).unwrap();
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
        let manifest: Manifest = serde_saphyr::from_str(TEMPLATE).unwrap();
        let mut commands = manifest.spec.caveats.lines();
        let command = commands.find(|line| line.contains("ln ")).unwrap();
        for (variable, below) in [("KREW_ROOT", ""), ("HOME", ".krew")] {
            let home = tempfile::tempdir().unwrap();
            let bin = home.path().join(below).join("bin");
            fs::create_dir_all(&bin).unwrap();
            fs::write(bin.join("kubectl-maint"), "the plugin").unwrap();
            // The second time as after an upgrade.
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
        let refused = |from: &str, to: &str| {
            assert!(TEMPLATE.contains(from), "{from}");
            let manifest = TEMPLATE.replace(from, to);
            format!("{:#}", validate(&manifest, &archived()).unwrap_err())
        };
        for (from, to, why) in [
            ("v1alpha2", "v1alpha3", "apiVersion"),
            ("kind: Plugin", "kind: Plug", "kind"),
            ("name: maint", "name: other", "called maint"),
            ("  version: v0.1.0", "  version: 0.1.0", "not a version"),
            ("  version: v0.1.0", "  version: v0.2.0", "another version"),
            ("visibly", "quite visibly for", "longer than 50"),
            ("- selector", "- {}\n    - selector", "not a manifest"),
            ("          os: linux\n", "", "os and arch"),
            ("os: linux", "os: linux\n          disk: ssd", "os and arch"),
            ("\"0000", "\"000", "64 hexadecimal"),
            ("\"0000", "\"A000", "64 hexadecimal"),
            (
                "bin: kubectl-maint",
                "bin: maint",
                "no maint in the archive",
            ),
            (".tar.gz", ".rar", "not that of a .tar.gz"),
            (
                "    Take a node before",
                "    Take a node before before before before before before before before",
                "longer than 80",
            ),
        ] {
            let error = refused(from, to);
            assert!(error.contains(why), "{to}: {error}");
        }
        let (_, platform) = TEMPLATE.split_once("platforms:\n").unwrap();
        let twice = format!("{TEMPLATE}{platform}");
        assert!(validate(&twice, &archived()).is_err());
        assert!(validate(TEMPLATE, &["kubectl-maint".to_owned()]).is_err());
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
