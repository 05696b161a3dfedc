//! Homebrew's formula for the plugin.

use anyhow::{Context as _, Result};

use crate::dist::platform::Platform;
use crate::dist::{Archive, VERSION};

/// The formula for the archives of all platforms.
pub(super) fn write(archives: &[Archive]) -> Result<String> {
    let block = |system: &str, arm: Platform, intel: Platform| -> Result<String> {
        let source = |processor: &str, platform: Platform| -> Result<String> {
            let archive = archives.iter().find(|archive| archive.platform == platform);
            let archive = archive.with_context(|| format!("no archive for {platform}"))?;
            let (url, sha256) = (archive.url(VERSION), &archive.sha256);
            Ok(format!(
                "    on_{processor} do\n      url \"{url}\"\n      sha256 \"{sha256}\"\n    end\n"
            ))
        };
        let (arm, intel) = (source("arm", arm)?, source("intel", intel)?);
        Ok(format!("  on_{system} do\n{arm}{intel}  end\n"))
    };
    let macos = block("macos", Platform::DarwinArm64, Platform::DarwinAmd64)?;
    let linux = block("linux", Platform::LinuxArm64, Platform::LinuxAmd64)?;
    let homepage = env!("CARGO_PKG_REPOSITORY");
    let version = version_line(env!("CARGO_PKG_VERSION"));
    Ok(format!(
        r##"class KubectlMaint < Formula
  desc "One maintenance lock per Kubernetes node"
  homepage "{homepage}"
{version}  license "Apache-2.0"

{macos}
{linux}
  def install
    bin.install "kubectl-maint"
    # kubectl asks this name for completions.
    bin.install_symlink "kubectl-maint" => "kubectl_complete-maint"
    man1.install Dir["docs/man/*.1"]
    bash_completion.install "completions/kubectl-maint.bash" => "kubectl-maint"
    fish_completion.install "completions/kubectl-maint.fish"
    zsh_completion.install "completions/_kubectl-maint"
    prefix.install "THIRD-PARTY-LICENSES"
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/kubectl-maint version --client")
  end
end
"##
    ))
}

/// The line with the version, if Homebrew does not find the version in the URL. `brew audit` refuses a redundant line.
fn version_line(version: &str) -> String {
    match is_found_in_url(version) {
        true => String::new(),
        false => format!("  version \"{version}\"\n"),
    }
}

/// Whether Homebrew finds this version in `…/releases/download/vVERSION/NAME-vVERSION-SYSTEM.tar.gz`. It recognizes
/// numbers with dots, optionally followed by one of these words with at most two digits.
fn is_found_in_url(version: &str) -> bool {
    let Some((_, prerelease)) = version.split_once('-') else {
        return !version.contains('+');
    };
    let words = ["alpha", "beta", "pre", "rc"];
    let rest = words.iter().find_map(|word| prerelease.strip_prefix(word));
    rest.is_some_and(|rest| {
        let digits = rest.strip_prefix('.').unwrap_or(rest);
        digits.len() <= 2 && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;
    use crate::dist::{PLUGIN, archive, root};

    #[test]
    fn it_installs_what_the_archives_have_and_names_each_once() {
        let pack = |&platform: &Platform| {
            let program = format!("program for {platform}").into_bytes();
            {
                let root = root().unwrap();
                PLUGIN.pack(&root, platform, program, "licenses").unwrap()
            }
        };
        let archives: Vec<Archive> = Platform::value_variants().iter().map(pack).collect();
        let formula = write(&archives).unwrap();
        for archive in &archives {
            let lines = format!(
                "url \"{}\"\n      sha256 \"{}\"",
                archive.url(VERSION),
                archive.sha256
            );
            let times = usize::from(archive.platform.os() != "windows");
            assert_eq!(formula.matches(&lines).count(), times, "{formula}");
        }
        let files = archive::files(&archives[0].content).unwrap();
        let installed = formula.lines().filter(|line| {
            line.contains("_completion.install \"") || line.contains("prefix.install")
        });
        let installed: Vec<&str> = installed
            .filter_map(|line| line.split('"').nth(1))
            .collect();
        assert_eq!(installed.len(), 4);
        for name in installed {
            assert!(files.iter().any(|file| file.name == name), "{name}");
        }
    }

    #[test]
    fn the_version_is_named_only_if_the_url_does_not_show_it() {
        for version in [
            "0.1.0",
            "1.20.3",
            "1.2.3-rc.1",
            "1.2.3-beta2",
            "1.2.3-alpha",
        ] {
            assert_eq!(version_line(version), "", "{version}");
        }
        for version in ["1.2.3-dev.1", "1.2.3-rc.100", "1.2.3-rc.1.2", "1.2.3+build"] {
            let expected = format!("  version \"{version}\"\n");
            assert_eq!(version_line(version), expected);
        }
    }
}
