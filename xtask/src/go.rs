//! Builds the Go programs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, ensure};
use control_plane::{Binary, KUBERNETES_VERSION, OLDEST_KUBERNETES_VERSION, cache_dir, target_dir};

use crate::cargo::run;
use crate::output::print;

/// A Go module of ours that pins other projects' programs.
pub(crate) struct Module {
    /// Its directory in the control-plane crate.
    name: &'static str,
    /// The version that its programs report.
    version: &'static str,
    programs: &'static [(Binary, &'static str)],
}

pub(crate) const MODULES: [Module; 7] = [
    Module {
        name: "etcd",
        version: KUBERNETES_VERSION,
        programs: &[(Binary::Etcd, "go.etcd.io/etcd/server/v3")],
    },
    Module {
        name: "kubernetes",
        version: KUBERNETES_VERSION,
        programs: &[
            (
                Binary::KubeApiserver,
                "k8s.io/kubernetes/cmd/kube-apiserver",
            ),
            (
                Binary::KubeControllerManager,
                "k8s.io/kubernetes/cmd/kube-controller-manager",
            ),
            (Binary::Kubectl, "k8s.io/kubernetes/cmd/kubectl"),
            (Binary::Candidate, "./candidate"),
        ],
    },
    Module {
        name: "oldest-kubernetes",
        version: OLDEST_KUBERNETES_VERSION,
        programs: &[
            (
                Binary::OldestKubeApiserver,
                "k8s.io/kubernetes/cmd/kube-apiserver",
            ),
            (
                Binary::OldestKubeControllerManager,
                "k8s.io/kubernetes/cmd/kube-controller-manager",
            ),
        ],
    },
    Module {
        name: "node-healthcheck",
        version: KUBERNETES_VERSION,
        programs: &[(
            Binary::NodeHealthCheck,
            "github.com/medik8s/node-healthcheck-operator/cmd",
        )],
    },
    Module {
        name: "fluo",
        version: "v0.9.0",
        programs: &[(
            Binary::FlatcarUpdateOperator,
            "github.com/flatcar/flatcar-linux-update-operator/cmd/update-operator",
        )],
    },
    Module {
        name: "karpenter",
        version: KUBERNETES_VERSION,
        programs: &[(Binary::Karpenter, "sigs.k8s.io/karpenter/kwok")],
    },
    Module {
        name: "descheduler",
        version: KUBERNETES_VERSION,
        programs: &[(
            Binary::Descheduler,
            "sigs.k8s.io/descheduler/cmd/descheduler",
        )],
    },
];

impl Module {
    fn directory(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../testing/control-plane")
            .join(self.name)
    }

    /// Builds the programs in `wanted` that belong to this module, and moves them to the cache. A file in the cache is
    /// always complete. The caller must prevent concurrent builds.
    pub(crate) fn build(&self, wanted: &[Binary]) -> Result<()> {
        let programs: Vec<_> = self
            .programs
            .iter()
            .filter(|(binary, _)| wanted.contains(binary))
            .collect();
        if programs.is_empty() {
            return Ok(());
        }
        let unfinished = cache_dir().join(format!(".unfinished-{}", self.name));
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished)?;
        }
        fs::create_dir_all(&unfinished)?;
        let mut build = self.go(&["build", "-mod=readonly", "-trimpath", "-buildvcs=false"]);
        build
            // The programs are stripped anyway. Without debug information, they compile 10% faster.
            .arg("-gcflags=all=-dwarf=false")
            .args(["-ldflags", &linker_flags(self.version), "-o"])
            // The trailing slash makes it a directory, even for a single program.
            .arg(format!("{}/", unfinished.display()))
            .args(programs.iter().map(|(_, package)| package));
        print(format_args!(
            "building {}, which takes some minutes",
            self.name
        ));
        run(&mut build)
            .context("building the control plane takes Go: see https://go.dev/doc/install")?;
        for (binary, package) in programs {
            // `go build` names a program after the last part of its path that is not a version.
            let parts = || package.rsplit('/');
            let built = parts().find(|part| *part != "v3").unwrap_or(package);
            fs::rename(unfinished.join(built), binary.cached())
                .with_context(|| format!("failed to move {} to its place", binary.name()))?;
        }
        fs::remove_dir_all(&unfinished)?;
        Ok(())
    }

    /// The source directory of another project's module.
    pub(crate) fn source(binary: Binary, module: &str) -> Result<PathBuf> {
        Ok(Self::listed(binary, module, "{{.Dir}}")?.into())
    }

    /// The version of another project's module.
    pub(crate) fn version(binary: Binary, module: &str) -> Result<String> {
        Self::listed(binary, module, "{{.Version}}")
    }

    fn listed(binary: Binary, module: &str, what: &str) -> Result<String> {
        let owner = MODULES
            .iter()
            .find(|owner| owner.programs.iter().any(|(owned, _)| *owned == binary))
            .with_context(|| format!("{} has no module", binary.name()))?;
        let format = format!("-f={what}");
        let mut list = owner.go(&["list", "-mod=readonly", "-m", &format, module]);
        let output = list.output().context("failed to run go")?;
        ensure!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
    }

    fn go(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("go");
        command
            .args(arguments)
            .current_dir(self.directory())
            .env("CGO_ENABLED", "0")
            .env("GOWORK", "off")
            .env_remove("GOOS")
            .env_remove("GOARCH");
        if env::var_os("HOME").is_none() {
            // Without a home directory, Go has no directory for modules and compiled packages.
            let path = target_dir().join("go");
            command
                .env("GOPATH", &path)
                .env("GOCACHE", path.join("cache"));
        }
        command
    }
}

/// Removes symbols, and sets the version that the programs report.
fn linker_flags(version: &str) -> String {
    let (major, rest) = version
        .trim_start_matches('v')
        .split_once('.')
        .unwrap_or_default();
    let minor = rest.split('.').next().unwrap_or_default();
    let mut flags = "-s -w".to_owned();
    // This program does not start without its version.
    flags.push_str(" -X github.com/flatcar/flatcar-linux-update-operator/pkg/version.Version=");
    flags.push_str(version.trim_start_matches('v'));
    for package in [
        "k8s.io/component-base/version",
        "k8s.io/client-go/pkg/version",
    ] {
        for (name, value) in [
            ("gitVersion", version),
            ("gitMajor", major),
            ("gitMinor", minor),
            ("gitTreeState", "archive"),
        ] {
            flags.push_str(&format!(" -X {package}.{name}={value}"));
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_binary_belongs_to_one_module() {
        for binary in Binary::ALL
            .into_iter()
            .chain(Binary::OLDEST_KUBERNETES)
            .chain(Binary::TOOLS)
        {
            let owners = MODULES.iter().flat_map(|module| module.programs);
            assert_eq!(
                owners.filter(|(owned, _)| *owned == binary).count(),
                1,
                "{binary:?}"
            );
        }
    }

    #[test]
    fn programs_report_the_pinned_version() {
        let flags = linker_flags(KUBERNETES_VERSION);
        assert!(
            flags.contains("component-base/version.gitVersion=v1.36.3 "),
            "{flags}"
        );
        assert!(
            flags.contains("component-base/version.gitMinor=36 "),
            "{flags}"
        );
    }
}
