//! Checks that a built program runs on its platform without anything that has to be installed there.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use object::macho::LC_CODE_SIGNATURE;
use object::read::macho::MachHeader as _;
use object::{Architecture, BinaryFormat, Endianness, Object as _, macho};

use super::platform::Platform;

/// What Windows 10 has without further packages, and our programs use.
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

/// Fails if `program` is for another platform, or needs libraries that are not part of it.
pub(super) fn check(program: &[u8], platform: Platform) -> Result<()> {
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
    ensure!(
        platform != Platform::DarwinArm64 || is_signed(program)?,
        "macOS on arm64 runs only signed programs"
    );
    Ok(())
}

/// Linux programs are static: they import nothing, not even from an unnamed library.
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

/// Whether the Mach-O program has a signature. The linker's own, without an identity, is enough for macOS.
fn is_signed(program: &[u8]) -> Result<bool> {
    let header = macho::MachHeader64::<Endianness>::parse(program, 0)?;
    let endian = header.endian()?;
    let mut commands = header.load_commands(endian, program, 0)?;
    while let Some(command) = commands.next()? {
        if command.cmd() == LC_CODE_SIGNATURE {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::{env, fs};

    use super::*;

    #[test]
    fn a_program_for_another_platform_or_with_libraries_is_refused() {
        let this = fs::read(env::current_exe().unwrap()).unwrap();
        let error = |platform| check(&this, platform).unwrap_err().to_string();
        for other in [Platform::DarwinAmd64, Platform::WindowsAmd64] {
            assert_eq!(error(other), format!("the program is not for {other}"));
        }
        let dynamic = error(Platform::here());
        assert!(dynamic.contains("libc.so.6"), "{dynamic}");
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
