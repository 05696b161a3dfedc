//! Reproducible archives: the same bytes on every machine, at any time.

use std::io::Read;

use anyhow::Result;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

/// A file to pack.
pub(super) struct File<'a> {
    pub(super) name: &'a str,
    pub(super) executable: bool,
    pub(super) content: Vec<u8>,
}

/// A `.tar.gz` of `files`, in their order, with owner and time set to zero.
pub(super) fn pack(files: &[File<'_>]) -> Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
    for file in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(file.content.len() as u64);
        header.set_mode(if file.executable { 0o755 } else { 0o644 });
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        archive.append_data(&mut header, file.name, file.content.as_slice())?;
    }
    Ok(archive.into_inner()?.finish()?)
}

/// The names of the files in a `.tar.gz`.
pub(super) fn names(archive: &[u8]) -> Result<Vec<String>> {
    let mut text = Vec::new();
    GzDecoder::new(archive).read_to_end(&mut text)?;
    tar::Archive::new(text.as_slice())
        .entries()?
        .map(|entry| Ok(entry?.path()?.display().to_string()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed() -> Vec<u8> {
        pack(&[
            File {
                name: "kubectl-maint",
                executable: true,
                content: b"program".to_vec(),
            },
            File {
                name: "LICENSE",
                executable: false,
                content: b"text".to_vec(),
            },
        ])
        .unwrap()
    }

    #[test]
    fn files_keep_their_names_and_the_program_can_be_run() {
        assert_eq!(names(&packed()).unwrap(), ["kubectl-maint", "LICENSE"]);
        let mut text = Vec::new();
        GzDecoder::new(packed().as_slice())
            .read_to_end(&mut text)
            .unwrap();
        let mut archive = tar::Archive::new(text.as_slice());
        let modes: Vec<u32> = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().header().mode().unwrap())
            .collect();
        assert_eq!(modes, [0o755, 0o644]);
    }

    #[test]
    fn nothing_of_the_time_or_the_machine_is_in_it() {
        let archive = packed();
        assert_eq!(&archive[4..8], [0; 4], "the time in gzip's header");
        let mut text = Vec::new();
        GzDecoder::new(archive.as_slice())
            .read_to_end(&mut text)
            .unwrap();
        for entry in tar::Archive::new(text.as_slice()).entries().unwrap() {
            let entry = entry.unwrap();
            let header = entry.header();
            assert_eq!(header.mtime().unwrap(), 0);
            assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
            assert_eq!(header.username(), Ok(Some("")));
        }
        assert_eq!(archive, packed());
    }
}
