//! Checks what macOS checks before it starts a program: the required version, and the checksums in the signature. It is
//! not checked whether the libraries of macOS have all symbols that the program uses.

use anyhow::{Context as _, Result, ensure};
use object::macho::{LC_CODE_SIGNATURE, MachHeader64, PLATFORM_MACOS};
use object::read::macho::{LoadCommandVariant, MachHeader as _};
use object::{Endianness, U32};
use sha2::{Digest as _, Sha256};

/// The oldest macOS that starts the programs. The linker gets the same version.
pub(super) const OLDEST: &str = "11.0";

/// The same version in the format of a Mach-O file.
const OLDEST_NUMBER: u32 = 11 << 16;

const SUPER_BLOB: u32 = 0xfade_0cc0;
const CODE_DIRECTORY: u32 = 0xfade_0c02;
const SHA256: u8 = 2;

/// The length of a SHA-256 checksum.
const HASH: usize = 32;

/// Fails if the program needs a newer macOS, or if its signature does not match its content. The linker's own
/// signature, which has no identity, is enough.
pub(super) fn check(program: &[u8], must_be_signed: bool) -> Result<()> {
    let header = MachHeader64::<Endianness>::parse(program, 0)?;
    let endian = header.endian()?;
    let mut commands = header.load_commands(endian, program, 0)?;
    let number = |number: U32<Endianness>| number.get(endian);
    let (mut oldest, mut signature) = (None, None);
    while let Some(command) = commands.next()? {
        match command.variant()? {
            LoadCommandVariant::BuildVersion(version) => {
                oldest = Some((number(version.platform), number(version.minos)));
            }
            LoadCommandVariant::LinkeditData(data) if command.cmd() == LC_CODE_SIGNATURE => {
                signature = Some((number(data.dataoff), number(data.datasize)));
            }
            _ => {}
        }
    }
    let (platform, oldest) = oldest.context("the program does not say which macOS it needs")?;
    ensure!(
        platform == PLATFORM_MACOS && oldest <= OLDEST_NUMBER,
        "the program needs macOS {}.{}, not {OLDEST}",
        oldest >> 16,
        oldest >> 8 & 0xff
    );
    match signature {
        Some((offset, size)) => check_pages(program, offset.try_into()?, size.try_into()?),
        None => {
            ensure!(!must_be_signed, "macOS on arm64 runs only signed programs");
            Ok(())
        }
    }
}

/// Compares the checksum of each page with the signature at the end of the program.
fn check_pages(program: &[u8], offset: usize, size: usize) -> Result<()> {
    let (code, signature) = program
        .split_at_checked(offset)
        .context("the signature is outside of the program")?;
    ensure!(signature.len() == size, "the signature is not at the end");
    let directory = code_directory(signature)?;
    let hashes = position(directory, 16)?;
    let pages = position(directory, 28)?;
    ensure!(
        position(directory, 32)? == code.len(),
        "the signature covers only a part of the program"
    );
    let [hash_size, hash_type, _, page_size] = *bytes(directory, 36)?;
    ensure!(
        (usize::from(hash_size), hash_type) == (HASH, SHA256),
        "the signature has another checksum than SHA-256"
    );
    let page_size = 1_usize
        .checked_shl(page_size.into())
        .context("the signature has no size of a page")?;
    ensure!(
        pages == code.len().div_ceil(page_size),
        "the signature has another number of pages"
    );
    let hashes = directory.get(hashes..).unwrap_or_default();
    let hashes = hashes.chunks_exact(HASH).map(Some).chain([None]);
    for (number, (page, hash)) in code.chunks(page_size).zip(hashes).enumerate() {
        ensure!(
            hash == Some(Sha256::digest(page).as_slice()),
            "page {number} of the program is not the one that was signed"
        );
    }
    Ok(())
}

/// The list of checksums in a signature.
fn code_directory(signature: &[u8]) -> Result<&[u8]> {
    let magic = |bytes: &[u8]| Ok::<_, anyhow::Error>(u32::try_from(position(bytes, 0)?)?);
    ensure!(magic(signature)? == SUPER_BLOB, "not a signature");
    for index in 0..position(signature, 8)? {
        let blob = position(signature, 12 + 8 * index + 4)?;
        let blob = signature.get(blob..).context("a short signature")?;
        if magic(blob)? == CODE_DIRECTORY {
            return Ok(blob);
        }
    }
    anyhow::bail!("the signature has no code directory")
}

/// A number in a signature, which is big-endian on every processor.
fn position(bytes: &[u8], at: usize) -> Result<usize> {
    Ok(u32::from_be_bytes(*self::bytes(bytes, at)?).try_into()?)
}

fn bytes(bytes: &[u8], at: usize) -> Result<&[u8; 4]> {
    bytes
        .get(at..)
        .and_then(<[u8]>::first_chunk)
        .context("a short signature")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4096;
    const CODE: usize = 3 * PAGE - 100;

    /// A signed program of three pages that needs this macOS.
    fn program(minos: u32) -> Vec<u8> {
        let mut signature = Vec::new();
        let directory_size = 44 + 3 * HASH;
        let numbers = [
            SUPER_BLOB,
            0,
            1,
            0,
            20,
            CODE_DIRECTORY,
            0,
            0x20400,
            2,
            44,
            0,
            0,
            3,
        ];
        signature.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
        signature.extend(u32::try_from(CODE).unwrap().to_be_bytes());
        signature.extend([32, SHA256, 0, 12]);
        signature.extend([0; 4]);
        assert_eq!(signature.len(), 20 + 44);
        let size = 20 + directory_size;

        let magic_arm64_executable = [0xfeed_facf, 0x0100_000c, 0, 2];
        let commands = [2, 24 + 16, 0, 0];
        let build_version = [0x32, 24, PLATFORM_MACOS, minos, minos, 0];
        let signed = [LC_CODE_SIGNATURE, 16, CODE as u32, size as u32];
        let head = [
            &magic_arm64_executable[..],
            &commands,
            &build_version,
            &signed,
        ]
        .concat();
        let mut program: Vec<u8> = head
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect();
        program.resize(CODE, 7);
        for page in program.chunks(PAGE) {
            signature.extend(Sha256::digest(page));
        }
        program.extend(signature);
        program
    }

    fn error(program: &[u8]) -> String {
        check(program, true).unwrap_err().to_string()
    }

    #[test]
    fn a_signed_program_for_macos_11_passes() {
        check(&program(OLDEST_NUMBER), true).unwrap();
        check(&program(10 << 16 | 15 << 8), true).unwrap();
    }

    #[test]
    fn a_program_that_was_changed_after_it_was_signed_is_refused() {
        for (at, page) in [(200, 0), (PAGE, 1), (CODE - 1, 2)] {
            let mut changed = program(OLDEST_NUMBER);
            changed[at] ^= 1;
            let expected = format!("page {page} of the program is not the one that was signed");
            assert_eq!(error(&changed), expected);
        }
        let mut longer = program(OLDEST_NUMBER);
        longer.push(0);
        assert_eq!(error(&longer), "the signature is not at the end");
    }

    #[test]
    fn a_signature_of_a_part_of_the_program_is_refused() {
        let mut program = program(OLDEST_NUMBER);
        let limit = CODE + 20 + 32;
        program[limit..limit + 4].copy_from_slice(&100_u32.to_be_bytes());
        assert_eq!(
            error(&program),
            "the signature covers only a part of the program"
        );
    }

    #[test]
    fn only_arm64_needs_a_signature() {
        let mut unsigned = program(OLDEST_NUMBER);
        // Sets the number of load commands to one instead of two.
        unsigned[16] = 1;
        unsigned[20] = 24;
        assert_eq!(error(&unsigned), "macOS on arm64 runs only signed programs");
        check(&unsigned, false).unwrap();
    }

    #[test]
    fn a_program_that_needs_a_newer_macos_is_refused() {
        let newer = program(13 << 16 | 5 << 8);
        assert_eq!(error(&newer), "the program needs macOS 13.5, not 11.0");
    }
}
