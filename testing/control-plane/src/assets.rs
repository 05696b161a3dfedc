//! Finds the control plane's binaries.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use anyhow::{Result, bail};
use sha2::{Digest, Sha256};

/// The Kubernetes release in the cache.
pub const KUBERNETES_VERSION: &str = "v1.36.3";

/// The oldest Kubernetes release on which the policies are tested: `install` refuses an older one.
pub const OLDEST_KUBERNETES_VERSION: &str = "v1.30.14";

/// The files that determine the result of the Go builds.
const PINS: [&str; 4] = [
    include_str!("../etcd/go.mod"),
    include_str!("../etcd/go.sum"),
    include_str!("../kubernetes/go.mod"),
    include_str!("../kubernetes/go.sum"),
];

/// The source code of [`Binary::Candidate`].
const CANDIDATE: &str = include_str!("../kubernetes/candidate/main.go");

/// The files that pin the dependencies of one of our Go modules, and so determine its programs.
macro_rules! pins {
    ($module:literal) => {
        [
            include_str!(concat!("../", $module, "/go.mod")),
            include_str!(concat!("../", $module, "/go.sum")),
        ]
    };
}

const OLDEST_KUBERNETES: [&str; 2] = pins!("oldest-kubernetes");

/// A program of a control plane, its client, or another program for tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binary {
    /// etcd, the store.
    Etcd,
    /// The API server.
    KubeApiserver,
    /// The controllers. Without them, no garbage is collected, and no node becomes unreachable.
    KubeControllerManager,
    /// The command-line client.
    Kubectl,
    /// A candidate of client-go's leader election: a program of ours, for tests.
    Candidate,
    /// The API server of [`OLDEST_KUBERNETES_VERSION`].
    OldestKubeApiserver,
    /// The controllers of [`OLDEST_KUBERNETES_VERSION`].
    OldestKubeControllerManager,
    /// The operator of medik8s that remediates nodes that are not ready.
    NodeHealthCheck,
    /// The operator of Flatcar that decides which node may reboot.
    FlatcarUpdateOperator,
    /// Karpenter, with nodes that exist only in the API.
    Karpenter,
    /// The descheduler.
    Descheduler,
}

impl Binary {
    /// The binaries that a control plane needs, in the order in which it starts them, and its client.
    pub const CONTROL_PLANE: [Self; 4] = [
        Self::Etcd,
        Self::KubeApiserver,
        Self::KubeControllerManager,
        Self::Kubectl,
    ];

    /// The binaries of the oldest supported release that replace those of the newest one.
    pub const OLDEST_KUBERNETES: [Self; 2] =
        [Self::OldestKubeApiserver, Self::OldestKubeControllerManager];

    /// Programs of other projects that disrupt nodes.
    pub const TOOLS: [Self; 4] = [
        Self::NodeHealthCheck,
        Self::FlatcarUpdateOperator,
        Self::Karpenter,
        Self::Descheduler,
    ];

    /// The binaries of a control plane, and those that tests also need.
    pub const ALL: [Self; 5] = [
        Self::Etcd,
        Self::KubeApiserver,
        Self::KubeControllerManager,
        Self::Kubectl,
        Self::Candidate,
    ];

    /// The file name of the binary.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::Kubectl => "kubectl",
            Self::Candidate => "candidate",
            Self::OldestKubeApiserver => "oldest-kube-apiserver",
            Self::OldestKubeControllerManager => "oldest-kube-controller-manager",
            Self::NodeHealthCheck => "node-healthcheck",
            Self::FlatcarUpdateOperator => "flatcar-update-operator",
            Self::Karpenter => "karpenter",
            Self::Descheduler => "descheduler",
        }
    }

    /// The environment variable with the path of the binary.
    #[must_use]
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Etcd => "TEST_ASSET_ETCD",
            Self::KubeApiserver => "TEST_ASSET_KUBE_APISERVER",
            Self::KubeControllerManager => "TEST_ASSET_KUBE_CONTROLLER_MANAGER",
            Self::Kubectl => "TEST_ASSET_KUBECTL",
            Self::Candidate => "TEST_ASSET_CANDIDATE",
            Self::OldestKubeApiserver => "TEST_ASSET_OLDEST_KUBE_APISERVER",
            Self::OldestKubeControllerManager => "TEST_ASSET_OLDEST_KUBE_CONTROLLER_MANAGER",
            Self::NodeHealthCheck => "TEST_ASSET_NODE_HEALTHCHECK",
            Self::FlatcarUpdateOperator => "TEST_ASSET_FLATCAR_UPDATE_OPERATOR",
            Self::Karpenter => "TEST_ASSET_KARPENTER",
            Self::Descheduler => "TEST_ASSET_DESCHEDULER",
        }
    }

    /// The path to which `cargo xtask control-plane` writes the binary. A pin that is not part of the cache's name is
    /// part of the file name.
    #[must_use]
    pub fn cached(self) -> PathBuf {
        let digest = match self {
            Self::Candidate => Some(short_digest(&[CANDIDATE])),
            Self::OldestKubeApiserver | Self::OldestKubeControllerManager => {
                Some(short_digest(&OLDEST_KUBERNETES))
            }
            Self::NodeHealthCheck => Some(short_digest(&pins!("node-healthcheck"))),
            Self::FlatcarUpdateOperator => Some(short_digest(&pins!("fluo"))),
            Self::Karpenter => Some(short_digest(&pins!("karpenter"))),
            Self::Descheduler => Some(short_digest(&pins!("descheduler"))),
            Self::Etcd | Self::KubeApiserver | Self::KubeControllerManager | Self::Kubectl => None,
        };
        let name = match digest {
            Some(digest) => format!("{}-{digest}", self.name()),
            None => self.name().to_owned(),
        };
        cache_dir().join(name)
    }

    /// Finds the binary. `TEST_ASSET_…` is the path of the file, and `KUBEBUILDER_ASSETS` a directory that may contain
    /// it. Otherwise, the binary is in [`cache_dir`].
    ///
    /// # Errors
    /// If the variable names no file, or the binary is not found.
    pub fn locate(self) -> Result<PathBuf> {
        if let Some(named) = non_empty(self.variable()) {
            if named.is_file() {
                return Ok(named);
            }
            bail!(
                "{} names {}, which is not a file",
                self.variable(),
                named.display()
            );
        }
        let files = non_empty("KUBEBUILDER_ASSETS")
            .map(|directory| directory.join(self.name()))
            .into_iter()
            .chain([self.cached()]);
        for file in files {
            if file.is_file() {
                return Ok(file);
            }
        }
        bail!(
            "no {name}: `cargo xtask control-plane` builds it into {cache} (or set {variable} or \
             KUBEBUILDER_ASSETS)",
            name = self.name(),
            cache = cache_dir().display(),
            variable = self.variable(),
        )
    }
}

/// The paths of all binaries of a control plane.
#[derive(Debug, Clone)]
pub struct Assets {
    /// etcd, the store.
    pub etcd: PathBuf,
    /// The API server.
    pub kube_apiserver: PathBuf,
    /// The controllers.
    pub kube_controller_manager: PathBuf,
    /// The command-line client.
    pub kubectl: PathBuf,
}

impl Assets {
    /// Finds every binary, each as [`Binary::locate`] does.
    ///
    /// # Errors
    /// If one is not found. The message says how to build it.
    pub fn locate() -> Result<Self> {
        Ok(Self {
            etcd: Binary::Etcd.locate()?,
            kube_apiserver: Binary::KubeApiserver.locate()?,
            kube_controller_manager: Binary::KubeControllerManager.locate()?,
            kubectl: Binary::Kubectl.locate()?,
        })
    }
}

/// The directory to which `cargo xtask control-plane` writes the binaries: `kubectl-maint/control-plane/<key>` in the
/// user's cache directory, or in `target` if there is no home directory. The key depends on the pinned modules and the
/// platform, so only checkouts with the same pins share a build.
#[must_use]
pub fn cache_dir() -> PathBuf {
    static KEY: LazyLock<String> = LazyLock::new(|| {
        format!(
            "{KUBERNETES_VERSION}-{}-{}-{}",
            env::consts::OS,
            env::consts::ARCH,
            short_digest(&PINS)
        )
    });
    let base = non_empty("XDG_CACHE_HOME")
        .or_else(|| Some(non_empty("HOME")?.join(".cache")))
        .map_or_else(target_dir, |cache| cache.join("kubectl-maint"));
    base.join("control-plane").join(KEY.as_str())
}

/// A digest of these texts, with twelve digits.
fn short_digest(texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text);
    }
    let digest = hash.finalize();
    let digits = digest.iter().take(6);
    digits.map(|byte| format!("{byte:02x}")).collect()
}

/// The build directory of the workspace: `CARGO_TARGET_DIR`, or `target` in the root of the workspace.
#[must_use]
pub fn target_dir() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap_or(Path::new("."));
    workspace.join(non_empty("CARGO_TARGET_DIR").unwrap_or_else(|| PathBuf::from("target")))
}

fn non_empty(variable: &str) -> Option<PathBuf> {
    env::var_os(variable)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_pin_the_version_that_the_cache_is_named_after() {
        let kubernetes = PINS[2];
        assert!(kubernetes.contains(&format!("k8s.io/kubernetes {KUBERNETES_VERSION}")));
        let oldest = OLDEST_KUBERNETES[0];
        assert!(oldest.contains(&format!("k8s.io/kubernetes {OLDEST_KUBERNETES_VERSION}")));
    }

    #[test]
    fn cache_is_named_after_version_and_pins() {
        let name = cache_dir()
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let (version, digest) = name
            .split_once('-')
            .zip(name.rsplit_once('-'))
            .map(|(a, b)| (a.0, b.1))
            .unwrap();
        assert_eq!(version, KUBERNETES_VERSION);
        assert!(
            digest.len() == 12 && digest.chars().all(|c| c.is_ascii_hexdigit()),
            "{digest}"
        );
    }
}
