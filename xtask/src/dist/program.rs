//! Checks that a built program is for its platform, and does not need libraries that users would have to install.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use memchr::memmem;
use object::{Architecture, BinaryFormat, Object as _};

use super::mach_o;
use super::platform::Platform;

/// The libraries of Windows 10 that our programs use.
const WINDOWS_LIBRARIES: [&str; 9] = [
    "advapi32.dll",
    "bcrypt.dll",
    "bcryptprimitives.dll",
    "crypt32.dll",
    "kernel32.dll",
    "ntdll.dll",
    "oleaut32.dll",
    "userenv.dll",
    "ws2_32.dll",
];

/// Fails if `program` is for another platform, needs libraries that are not part of the platform, or contains a path of
/// this machine.
pub(super) fn check(program: &[u8], platform: Platform, directories: &[PathBuf]) -> Result<()> {
    let file = object::File::parse(program).context("not a program")?;
    let architecture = match platform.arch() {
        "arm64" => Architecture::Aarch64,
        _ => Architecture::X86_64,
    };
    let format = match platform.os() {
        "darwin" => BinaryFormat::MachO,
        "windows" => BinaryFormat::Pe,
        _ => BinaryFormat::Elf,
    };
    ensure!(
        (file.architecture(), file.format()) == (architecture, format),
        "the program is not for {platform}"
    );
    let foreign: BTreeSet<String> = file
        .imports()?
        .iter()
        .map(|import| String::from_utf8_lossy(import.library()).into_owned())
        .filter(|library| !is_part_of(platform, library))
        .collect();
    ensure!(
        foreign.is_empty(),
        "the program for {platform} needs {foreign:?}"
    );
    if platform.os() == "darwin" {
        mach_o::check(program, platform == Platform::DarwinArm64)?;
    }
    for directory in directories {
        ensure!(
            !contains(program, directory),
            "the program for {platform} contains the path {}, so another machine would build another one",
            directory.display()
        );
    }
    Ok(())
}

/// Whether the path of a file in `directory` is in the program.
fn contains(program: &[u8], directory: &Path) -> bool {
    let directory = directory.as_os_str().as_encoded_bytes();
    memmem::find(program, &[directory, b"/"].concat()).is_some()
}

/// Whether a library is part of the platform. Programs for Linux are static: they import nothing, not even from an
/// unnamed library.
fn is_part_of(platform: Platform, library: &str) -> bool {
    match platform.os() {
        "darwin" => {
            library.starts_with("/usr/lib/") || library.starts_with("/System/Library/Frameworks/")
        }
        "windows" => {
            let library = library.to_lowercase();
            // The C runtime is part of Windows, in files named api-ms-win-crt-*.
            library.starts_with("api-ms-win-") || WINDOWS_LIBRARIES.contains(&library.as_str())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::{env, fs};

    use super::*;

    #[test]
    fn a_program_for_another_platform_or_with_libraries_is_refused() {
        let this = fs::read(env::current_exe().unwrap()).unwrap();
        let error = |platform| check(&this, platform, &[]).unwrap_err().to_string();
        for other in [Platform::DarwinAmd64, Platform::WindowsAmd64] {
            assert_eq!(error(other), format!("the program is not for {other}"));
        }
        let dynamic = error(Platform::here());
        assert!(dynamic.contains("libc.so.6"), "{dynamic}");
    }

    #[test]
    fn a_program_with_a_path_of_this_machine_is_noticed() {
        let program = b"src/main.rs/home/alice/maint/src/app.rs";
        for (directory, expected) in [
            ("/home/alice/maint", true),
            ("/home/alice", true),
            ("/home/al", false),
            ("/home/bob", false),
        ] {
            assert_eq!(
                contains(program, Path::new(directory)),
                expected,
                "{directory}"
            );
        }
    }

    #[test]
    fn only_libraries_of_the_system_are_used() {
        for (platform, library, expected) in [
            (Platform::LinuxAmd64, "", false),
            (Platform::DarwinArm64, "/usr/lib/libSystem.B.dylib", true),
            (Platform::DarwinArm64, "@rpath/libfoo.dylib", false),
            (Platform::WindowsAmd64, "KERNEL32.dll", true),
            (
                Platform::WindowsAmd64,
                "api-ms-win-crt-heap-l1-1-0.dll",
                true,
            ),
            (Platform::WindowsAmd64, "libgcc_s_seh-1.dll", false),
        ] {
            assert_eq!(is_part_of(platform, library), expected, "{library}");
        }
    }
}
