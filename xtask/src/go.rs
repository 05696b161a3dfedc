//! Builds the Go programs.

use std::io::{BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};
use control_plane::{Binary, KUBERNETES_VERSION, OLDEST_KUBERNETES_VERSION, cache_dir, target_dir};

use crate::output::{Progress, print};

/// The Go version that the pinned modules require.
const OLDEST_GO: (u32, u32) = (1, 26);
const PROGRESS: Duration = Duration::from_secs(5);

/// A Go module of ours that pins other projects' programs.
pub(crate) struct Module {
    /// Its directory in the control-plane crate.
    name: &'static str,
    /// The version that its programs report.
    version: &'static str,
    programs: &'static [(Binary, &'static str)],
}

pub(crate) const MODULES: [Module; 9] = [
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
        name: "older-client-go",
        version: KUBERNETES_VERSION,
        programs: &[(Binary::OlderCandidate, "./candidate")],
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
    Module {
        name: "cluster-api",
        version: KUBERNETES_VERSION,
        programs: &[(Binary::ClusterApi, "sigs.k8s.io/cluster-api/core")],
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
        self.check_go()?;
        let started = Instant::now();
        let unfinished = cache_dir().join(format!(".unfinished-{}", self.name));
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished)?;
        }
        fs::create_dir_all(&unfinished)?;
        let packages: Vec<&str> = programs.iter().map(|(_, package)| *package).collect();
        let total = self.count_packages(&packages)?;
        self.compile(&packages, &unfinished, total)?;
        for (binary, package) in programs {
            // `go build` names a program after the last part of its path that is not a version.
            let parts = || package.rsplit('/');
            let built = parts().find(|part| *part != "v3").unwrap_or(package);
            fs::rename(unfinished.join(built), binary.cached())
                .with_context(|| format!("failed to move {} to its place", binary.name()))?;
        }
        fs::remove_dir_all(&unfinished)?;
        print(format_args!(
            "{}: built in {} s",
            self.name,
            started.elapsed().as_secs()
        ));
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
        let arguments = ["list", "-mod=readonly", "-m", &format, module];
        owner.print(&arguments)
    }

    /// The output of a Go command.
    fn print(&self, arguments: &[&str]) -> Result<String> {
        let output = self.go(arguments).output().context("failed to run go")?;
        ensure!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
    }

    /// Fails if Go is missing, or too old to download the version that it needs.
    fn check_go(&self) -> Result<()> {
        let needed = format!(
            "building the control plane takes Go {}.{} or later: see https://go.dev/doc/install",
            OLDEST_GO.0, OLDEST_GO.1
        );
        let output = match self.go(&["env", "GOVERSION"]).output() {
            Ok(output) => output,
            Err(error) if error.kind() == ErrorKind::NotFound => bail!("no go in PATH; {needed}"),
            Err(error) => return Err(error).context("failed to run go"),
        };
        let answer = if output.status.success() {
            output.stdout
        } else {
            output.stderr
        };
        let answer = String::from_utf8_lossy(&answer);
        let answer = answer.trim();
        ensure!(
            parse_version(answer) >= Some(OLDEST_GO),
            "{needed} (this one says: {answer})"
        );
        Ok(())
    }

    fn count_packages(&self, packages: &[&str]) -> Result<usize> {
        let what = format!("{}: fetching the pinned modules", self.name);
        let progress = Progress::start_or_print(what);
        let mut list = self.go(&["list", "-mod=readonly", "-deps"]);
        if progress.is_none() {
            list.stderr(Stdio::inherit());
        }
        let output = list.args(packages).output()?;
        if !output.status.success() {
            print(String::from_utf8_lossy(&output.stderr).trim_end());
        }
        ensure!(
            output.status.success(),
            "`go list` failed in {}",
            self.directory().display()
        );
        Ok(output.stdout.iter().filter(|&&byte| byte == b'\n').count())
    }

    fn compile(&self, packages: &[&str], into: &Path, total: usize) -> Result<()> {
        let mut child = self
            .go(&[
                "build",
                "-v",
                "-mod=readonly",
                "-trimpath",
                // The programs are stripped anyway. Without debug information, they compile 10% faster.
                "-gcflags=all=-dwarf=false",
                "-buildvcs=false",
            ])
            .args(["-ldflags", &linker_flags(self.version), "-o"])
            // The trailing slash makes it a directory, even for a single program.
            .arg(format!("{}/", into.display()))
            .args(packages)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("failed to run go")?;
        let progress = Progress::start(format_args!("{}: compiling", self.name));
        let mut compiled = 0;
        let mut said = Instant::now();
        let lines = BufReader::new(child.stderr.take().context("go has no stderr")?);
        for line in lines.lines() {
            let line = line?;
            // With -v, a line without a space is a compiled package; other lines are messages.
            if line.contains(' ') {
                print(line);
                continue;
            }
            compiled += 1;
            let so_far = format_args!("{}: compiled {compiled} of {total} packages", self.name);
            if let Some(progress) = &progress {
                progress.set_message(so_far);
            } else if said.elapsed() >= PROGRESS {
                said = Instant::now();
                print(so_far);
            }
        }
        let status = child.wait()?;
        ensure!(
            status.success(),
            "`go build` failed in {}",
            self.directory().display()
        );
        Ok(())
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

/// The major and minor version, for example of `go1.26.8` or `go1.27rc1`.
fn parse_version(version: &str) -> Option<(u32, u32)> {
    let (major, rest) = version.strip_prefix("go")?.split_once('.')?;
    let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(parse_version("go1.26.8"), Some((1, 26)));
        assert_eq!(parse_version("go1.27rc1"), Some((1, 27)));
        assert!(parse_version("go1.9.7") < Some(OLDEST_GO));
        assert!(parse_version("devel") < Some(OLDEST_GO));
    }

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
