//! Reproducible archives: the same bytes on every machine, at any time.

use std::io::{Read as _, Write as _};

use anyhow::Result;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

/// A file in an archive.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) executable: bool,
    pub(crate) content: Vec<u8>,
}

/// Packs `files` as a `.tar.gz`.
pub(crate) fn pack(files: &[File]) -> Result<Vec<u8>> {
    gzip(&tar(files)?)
}

/// Packs `files` as a `.tar`, in their order, with owner and time set to zero.
pub(crate) fn tar(files: &[File]) -> Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for file in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(file.content.len() as u64);
        header.set_mode(if file.executable { 0o755 } else { 0o644 });
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        archive.append_data(&mut header, &file.name, file.content.as_slice())?;
    }
    Ok(archive.into_inner()?)
}

/// Compresses `content`, without a name or a time.
pub(crate) fn gzip(content: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content)?;
    Ok(encoder.finish()?)
}

/// The files in a `.tar.gz`.
pub(crate) fn files(archive: &[u8]) -> Result<Vec<File>> {
    tar::Archive::new(GzDecoder::new(archive))
        .entries()?
        .map(|entry| {
            let mut entry = entry?;
            let mut content = Vec::new();
            entry.read_to_end(&mut content)?;
            Ok(File {
                name: entry.path()?.display().to_string(),
                executable: entry.header().mode()? & 0o111 != 0,
                content,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed() -> Vec<File> {
        let file = |name: &str, executable, content: &[u8]| File {
            name: name.to_owned(),
            executable,
            content: content.to_vec(),
        };
        vec![
            file("kubectl-maint", true, b"program"),
            file("docs/man/kubectl-maint.1", false, b"text"),
        ]
    }

    #[test]
    fn files_keep_their_names_and_the_program_can_be_run() {
        assert_eq!(files(&pack(&packed()).unwrap()).unwrap(), packed());
    }

    #[test]
    fn nothing_of_the_time_or_the_machine_is_in_it() {
        let archive = pack(&packed()).unwrap();
        assert_eq!(&archive[4..8], [0; 4], "the time in gzip's header");
        let mut archive = tar::Archive::new(GzDecoder::new(archive.as_slice()));
        for entry in archive.entries().unwrap() {
            let entry = entry.unwrap();
            let header = entry.header();
            assert_eq!(header.mtime().unwrap(), 0);
            assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
            assert_eq!(header.username(), Ok(Some("")));
        }
    }
}
