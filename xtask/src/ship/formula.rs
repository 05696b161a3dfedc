//! Homebrew's formula of the plugin.

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
    let (version, homepage) = (env!("CARGO_PKG_VERSION"), env!("CARGO_PKG_REPOSITORY"));
    Ok(format!(
        r##"class KubectlMaint < Formula
  desc "One maintenance lock per Kubernetes node"
  homepage "{homepage}"
  version "{version}"
  license "Apache-2.0"

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
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/kubectl-maint version --client")
  end
end
"##
    ))
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
            PLUGIN.pack(&root().unwrap(), platform, program).unwrap()
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
        let installed = formula
            .lines()
            .filter(|line| line.contains("_completion.install \""));
        let installed: Vec<&str> = installed
            .filter_map(|line| line.split('"').nth(1))
            .collect();
        assert_eq!(installed.len(), 3);
        for name in installed {
            assert!(files.iter().any(|file| file.name == name), "{name}");
        }
    }
}
