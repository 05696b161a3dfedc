//! The platforms of a release.

use std::env;
use std::fmt;
use std::path::Path;

use clap::ValueEnum;

/// A system and its processor, with the names that Go and krew use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Platform {
    LinuxAmd64,
    LinuxArm64,
    DarwinAmd64,
    DarwinArm64,
    WindowsAmd64,
}

impl Platform {
    /// The platform of this machine, which runs the control plane.
    pub(crate) fn here() -> Self {
        match env::consts::ARCH {
            "aarch64" => Self::LinuxArm64,
            _ => Self::LinuxAmd64,
        }
    }

    /// The system in krew's selector.
    pub(crate) fn os(self) -> &'static str {
        match self {
            Self::LinuxAmd64 | Self::LinuxArm64 => "linux",
            Self::DarwinAmd64 | Self::DarwinArm64 => "darwin",
            Self::WindowsAmd64 => "windows",
        }
    }

    /// The architecture in krew's selector.
    pub(crate) fn arch(self) -> &'static str {
        match self {
            Self::LinuxAmd64 | Self::DarwinAmd64 | Self::WindowsAmd64 => "amd64",
            Self::LinuxArm64 | Self::DarwinArm64 => "arm64",
        }
    }

    /// Rust's target. On Linux, it uses musl, because a static glibc can't resolve names like the system. It also uses
    /// musl's allocator: `docs/performance.md` measures the programs with that.
    pub(crate) fn target(self) -> &'static str {
        match self {
            Self::LinuxAmd64 => "x86_64-unknown-linux-musl",
            Self::LinuxArm64 => "aarch64-unknown-linux-musl",
            Self::DarwinAmd64 => "x86_64-apple-darwin",
            Self::DarwinArm64 => "aarch64-apple-darwin",
            Self::WindowsAmd64 => "x86_64-pc-windows-gnu",
        }
    }

    /// The file name of a program.
    pub(crate) fn executable(self, program: &str) -> String {
        match self {
            Self::WindowsAmd64 => format!("{program}.exe"),
            _ => program.to_owned(),
        }
    }

    /// Flags for rustc in addition to those of all platforms. `frameworks` contains stubs of macOS's libraries.
    pub(crate) fn rust_flags(self, frameworks: &Path) -> Vec<String> {
        match self {
            // Without relocations, a program starts faster and shares more of its memory.
            Self::LinuxAmd64 | Self::LinuxArm64 => vec![
                "-Ctarget-feature=+crt-static".to_owned(),
                "-Crelocation-model=static".to_owned(),
            ],
            Self::DarwinAmd64 | Self::DarwinArm64 => vec![
                format!("-Clink-arg=-F{}", frameworks.display()),
                // Without symbols, the id of the program depends only on its content.
                "-Clink-arg=-Wl,-s".to_owned(),
            ],
            // Without this flag, zig treats the link as a debug build, and writes the time into the program.
            Self::WindowsAmd64 => vec!["-Clink-arg=-O2".to_owned()],
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.os(), self.arch())
    }
}
