//! `cargo xtask image`: packs an OCI image of the plugin without Docker, as an archive of an OCI image layout.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));

/// Pack a container image of the plugin from its archives for Linux
///
/// goreleaser writes the archives; this needs no container engine. The same archives and commit give
/// the same image.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The image to write
    #[arg(long, value_name = "FILE")]
    output: PathBuf,

    /// Archives with names that end in linux-amd64.tar.gz or linux-arm64.tar.gz
    #[arg(required = true, value_name = "ARCHIVE")]
    archives: Vec<PathBuf>,
}

impl Arguments {
    pub(crate) fn run(self) -> Result<()> {
        fs::write(self.output, pack(&self.archives, &commit()?)?)?;
        Ok(())
    }
}

/// The commit of this checkout.
struct Commit {
    id: String,
    time: String,
}

fn commit() -> Result<Commit> {
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%H %cI"]);
    let output = git.current_dir(env!("CARGO_MANIFEST_DIR")).output()?;
    let text = String::from_utf8(output.stdout)?;
    let (id, time) = text.trim().split_once(' ').context("no git checkout")?;
    Ok(Commit {
        id: id.to_owned(),
        time: time.to_owned(),
    })
}

fn pack(archives: &[PathBuf], commit: &Commit) -> Result<Vec<u8>> {
    let mut layout = Layout(tar::Builder::new(Vec::new()));
    let manifests = archives.iter().map(|archive| {
        let manifest = layout.add_platform(archive, commit);
        manifest.with_context(|| archive.display().to_string())
    });
    let manifests = manifests.collect::<Result<Vec<_>>>()?;
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
    let mut image = layout.add_json(INDEX, &index)?;
    image["annotations"] = json!({"org.opencontainers.image.ref.name": VERSION});
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [image]});
    let version = json!({"imageLayoutVersion": "1.0.0"});
    layout.add_file("oci-layout", version.to_string().as_bytes())?;
    layout.add_file("index.json", index.to_string().as_bytes())?;
    Ok(layout.0.into_inner()?)
}

/// The archive of an image layout.
struct Layout(tar::Builder<Vec<u8>>);

impl Layout {
    fn add_file(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        append(&mut self.0, name, 0o644, content)
    }

    /// Adds a blob, and returns its descriptor.
    fn add(&mut self, media_type: &str, content: &[u8]) -> Result<Value> {
        let digest = sha256(content);
        self.add_file(&format!("blobs/sha256/{digest}"), content)?;
        let size = content.len();
        Ok(json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": size}))
    }

    fn add_json(&mut self, media_type: &str, content: &Value) -> Result<Value> {
        self.add(media_type, content.to_string().as_bytes())
    }

    /// Adds the layer, the configuration and the manifest for one platform, and returns the descriptor of the manifest.
    fn add_platform(&mut self, archive: &Path, commit: &Commit) -> Result<Value> {
        let name = archive.to_str().context("the name is not UTF-8")?;
        let architecture = name.strip_suffix(".tar.gz").and_then(|name| {
            let (_, architecture) = name.rsplit_once("-linux-")?;
            Some(architecture)
        });
        let architecture = architecture.context("the name does not end in linux-ARCH.tar.gz")?;
        let layer = root(archive)?;
        let digest = format!("sha256:{}", sha256(&layer));
        let mut compressed = GzEncoder::new(Vec::new(), Compression::best());
        compressed.write_all(&layer)?;
        let layer = self.add(LAYER, &compressed.finish()?)?;
        let config = json!({
            "created": commit.time,
            "architecture": architecture,
            "os": "linux",
            "config": {
                // A user id that no user of the machine has. With it, a pod with runAsNonRoot may run the image.
                "User": "65532:65532",
                "Env": ["PATH=/usr/local/bin:/usr/bin:/bin"],
                "Entrypoint": ["/usr/local/bin/kubectl-maint"],
                "Labels": {
                    "org.opencontainers.image.title": "kubectl-maint",
                    "org.opencontainers.image.description": "One maintenance lock per Kubernetes node",
                    "org.opencontainers.image.version": VERSION,
                    "org.opencontainers.image.licenses": "Apache-2.0",
                    "org.opencontainers.image.source": env!("CARGO_PKG_REPOSITORY"),
                    "org.opencontainers.image.revision": commit.id,
                },
            },
            "rootfs": {"type": "layers", "diff_ids": [digest]},
            "history": [{"created": commit.time, "created_by": "cargo xtask image"}],
        });
        let config = self.add_json(CONFIG, &config)?;
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config,
            "layers": [layer],
        });
        let mut manifest = self.add_json(MANIFEST, &manifest)?;
        manifest["platform"] = json!({"architecture": architecture, "os": "linux"});
        Ok(manifest)
    }
}

/// The files of the image: the program and the licenses, from an archive.
fn root(archive: &Path) -> Result<Vec<u8>> {
    let mut layer = tar::Builder::new(Vec::new());
    let mut archive = tar::Archive::new(GzDecoder::new(File::open(archive)?));
    for entry in archive.entries()? {
        let mut entry = entry?;
        let name = entry.path()?.display().to_string();
        let (directory, mode) = match name.as_str() {
            "kubectl-maint" => ("bin", 0o755),
            "LICENSE" | "THIRD-PARTY-LICENSES" => ("share/doc/kubectl-maint", 0o644),
            _ => continue,
        };
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        append(
            &mut layer,
            &format!("usr/local/{directory}/{name}"),
            mode,
            &content,
        )?;
    }
    Ok(layer.into_inner()?)
}

/// Adds a file without owner and time to an archive, because the same files must give the same archive.
fn append(
    archive: &mut tar::Builder<Vec<u8>>,
    name: &str,
    mode: u32,
    content: &[u8],
) -> io::Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_size(content.len() as u64);
    header.set_mode(mode);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    archive.append_data(&mut header, name, content)
}

/// The checksum, in hexadecimal digits.
fn sha256(content: &[u8]) -> String {
    let digest = Sha256::digest(content);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn files(archive: impl io::Read) -> BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(archive);
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (entry.path().unwrap().display().to_string(), content)
        });
        entries.collect()
    }

    #[test]
    fn an_image_has_the_program_of_each_platform() {
        let directory = tempfile::tempdir().unwrap();
        let archives = ["amd64", "arm64"].map(|architecture| {
            let mut archive = tar::Builder::new(Vec::new());
            for name in ["kubectl-maint", "LICENSE", "README.md"] {
                append(&mut archive, name, 0o755, architecture.as_bytes()).unwrap();
            }
            let path = directory
                .path()
                .join(format!("v1-linux-{architecture}.tar.gz"));
            let mut file = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
            file.write_all(&archive.into_inner().unwrap()).unwrap();
            file.finish().unwrap();
            path
        });
        let commit = Commit {
            id: "0123abc".to_owned(),
            time: "2026-01-01T00:00:00+00:00".to_owned(),
        };
        let image = files(pack(&archives, &commit).unwrap().as_slice());
        let blob = |descriptor: &Value| {
            let (_, digest) = descriptor["digest"]
                .as_str()
                .unwrap()
                .split_once(':')
                .unwrap();
            let content = &image[&format!("blobs/sha256/{digest}")];
            assert_eq!(sha256(content), digest);
            assert_eq!(descriptor["size"], content.len());
            content
        };
        let json = |content: &[u8]| serde_json::from_slice::<Value>(content).unwrap();
        let index = json(blob(&json(&image["index.json"])["manifests"][0]));
        for (number, architecture) in ["amd64", "arm64"].into_iter().enumerate() {
            let descriptor = &index["manifests"][number];
            assert_eq!(descriptor["platform"]["architecture"], architecture);
            let manifest = json(blob(descriptor));
            let config = json(blob(&manifest["config"]));
            assert_eq!(config["architecture"], architecture);
            let layer = files(GzDecoder::new(blob(&manifest["layers"][0]).as_slice()));
            let entrypoint = config["config"]["Entrypoint"][0].as_str().unwrap();
            assert_eq!(layer[&entrypoint[1..]], architecture.as_bytes());
            assert_eq!(layer.len(), 2, "the program and the license");
        }
    }
}
