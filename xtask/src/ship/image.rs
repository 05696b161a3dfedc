//! An OCI image of the plugin for Linux, without Docker: an archive of an OCI image layout.

use std::process::Command;

use anyhow::Result;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::dist::archive::{self, File};
use crate::dist::{Archive, VERSION, sha256};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// Packs an image for each archive for Linux.
pub(super) fn pack(archives: &[Archive], time: DateTime<Utc>) -> Result<Vec<u8>> {
    let labels = labels(commit());
    let mut blobs = Blobs(Vec::new());
    let mut manifests = Vec::new();
    for archive in archives.iter().filter(|of| of.platform.os() == "linux") {
        let mut manifest = blobs.add_manifest(archive, time, &labels)?;
        manifest["platform"] =
            json!({"architecture": archive.platform.arch(), "os": archive.platform.os()});
        manifests.push(manifest);
    }
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
    let mut image = blobs.add_json(INDEX, &index);
    image["annotations"] = json!({"org.opencontainers.image.ref.name": VERSION});
    let layout = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [image]});
    let mut files = blobs.0;
    for (name, content) in [
        ("oci-layout", json!({"imageLayoutVersion": "1.0.0"})),
        ("index.json", layout),
    ] {
        files.push(File {
            name: name.to_owned(),
            executable: false,
            content: content.to_string().into_bytes(),
        });
    }
    archive::tar(&files)
}

/// The labels of the image, which tools show.
fn labels(commit: Option<String>) -> Value {
    let mut labels = json!({
        "org.opencontainers.image.title": "kubectl-maint",
        "org.opencontainers.image.description": "One maintenance lock per Kubernetes node",
        "org.opencontainers.image.version": VERSION,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.source": env!("CARGO_PKG_REPOSITORY"),
    });
    if let Some(commit) = commit {
        labels["org.opencontainers.image.revision"] = commit.into();
    }
    labels
}

/// The commit of this checkout. `None` if this is not a git checkout.
fn commit() -> Option<String> {
    let mut git = Command::new("git");
    git.args(["rev-parse", "HEAD"]);
    let output = git.current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
    let commit = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !commit.is_empty()).then_some(commit)
}

/// The blobs of an image layout.
struct Blobs(Vec<File>);

impl Blobs {
    /// Adds a blob, and returns its descriptor.
    fn add(&mut self, media_type: &str, content: Vec<u8>) -> Value {
        let digest = sha256(&content);
        let size = content.len();
        self.0.push(File {
            name: format!("blobs/sha256/{digest}"),
            executable: false,
            content,
        });
        json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": size})
    }

    fn add_json(&mut self, media_type: &str, content: &Value) -> Value {
        self.add(media_type, content.to_string().into_bytes())
    }

    /// Adds the layer, the configuration and the manifest for one platform.
    fn add_manifest(
        &mut self,
        archive: &Archive,
        time: DateTime<Utc>,
        labels: &Value,
    ) -> Result<Value> {
        let layer = archive::tar(&root(archive)?)?;
        let digest = format!("sha256:{}", sha256(&layer));
        let layer = self.add(LAYER, archive::gzip(&layer)?);
        let created = time.to_rfc3339();
        let config = json!({
            "created": created,
            "architecture": archive.platform.arch(),
            "os": archive.platform.os(),
            "config": {
                // A user id that no user of the machine has. With it, a pod with runAsNonRoot may
                // run the image.
                "User": "65532:65532",
                "Env": ["PATH=/usr/local/bin:/usr/bin:/bin"],
                "Entrypoint": ["/usr/local/bin/kubectl-maint"],
                "Labels": labels,
            },
            "rootfs": {"type": "layers", "diff_ids": [digest]},
            "history": [{"created": created, "created_by": "cargo xtask ship"}],
        });
        let config = self.add_json(CONFIG, &config);
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config,
            "layers": [layer],
        });
        Ok(self.add_json(MANIFEST, &manifest))
    }
}

/// The files of an image: those of the archive, in the directories where a shell and `man` look for
/// them.
fn root(archive: &Archive) -> Result<Vec<File>> {
    let mut files = archive::files(&archive.content)?;
    files.retain(|file| !file.name.ends_with(".ps1"));
    for file in &mut files {
        let (directory, name) = file.name.rsplit_once('/').unwrap_or(("", &file.name));
        let into = match directory {
            "completions" if name.starts_with('_') => "share/zsh/site-functions",
            "completions" if name.ends_with(".fish") => "share/fish/vendor_completions.d",
            "completions" => "share/bash-completion/completions",
            "docs/man" => "share/man/man1",
            _ if file.executable => "bin",
            _ => "share/doc/kubectl-maint",
        };
        // bash expects a file with the name of the command.
        let name = name.strip_suffix(".bash").unwrap_or(name);
        file.name = format!("usr/local/{into}/{name}");
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::platform::Platform;
    use crate::dist::{PLUGIN, root as tree};

    fn image() -> Vec<File> {
        let pack = |platform| {
            let program = format!("program for {platform}").into_bytes();
            let tree = tree().unwrap();
            PLUGIN.pack(&tree, platform, program, "licenses").unwrap()
        };
        let archives = [
            Platform::LinuxAmd64,
            Platform::LinuxArm64,
            Platform::DarwinArm64,
        ]
        .map(pack);
        let image = super::pack(&archives, DateTime::UNIX_EPOCH).unwrap();
        archive::files(&archive::gzip(&image).unwrap()).unwrap()
    }

    fn json_of(files: &[File], name: &str) -> Value {
        let file = files.iter().find(|file| file.name == name).unwrap();
        serde_json::from_slice(&file.content).unwrap()
    }

    /// The blob of a descriptor. Checks its size and checksum.
    fn blob<'a>(files: &'a [File], descriptor: &Value) -> &'a [u8] {
        let digest = descriptor["digest"].as_str().unwrap();
        let (_, digest) = digest.split_once(':').unwrap();
        let name = format!("blobs/sha256/{digest}");
        let file = files.iter().find(|file| file.name == name).unwrap();
        assert_eq!(sha256(&file.content), digest);
        assert_eq!(descriptor["size"], file.content.len());
        &file.content
    }

    #[test]
    fn an_image_names_its_commit_if_that_is_known() {
        const REVISION: &str = "org.opencontainers.image.revision";
        assert_eq!(labels(Some("0123abc".to_owned()))[REVISION], "0123abc");
        assert_eq!(labels(None).get(REVISION), None);
    }

    #[test]
    fn an_image_has_the_program_of_each_linux_platform() {
        let files = image();
        let index = &json_of(&files, "index.json")["manifests"][0];
        let index: Value = serde_json::from_slice(blob(&files, index)).unwrap();
        let manifests = index["manifests"].as_array().unwrap();
        assert_eq!(manifests.len(), 2);
        for descriptor in manifests {
            let manifest: Value = serde_json::from_slice(blob(&files, descriptor)).unwrap();
            let config: Value = serde_json::from_slice(blob(&files, &manifest["config"])).unwrap();
            assert_eq!(
                config["architecture"],
                descriptor["platform"]["architecture"]
            );
            let labels = config["config"]["Labels"].as_object().unwrap();
            for name in ["description", "licenses", "source", "title", "version"] {
                assert!(labels.contains_key(&format!("org.opencontainers.image.{name}")));
            }
            let layer = archive::files(blob(&files, &manifest["layers"][0])).unwrap();
            let entrypoint = config["config"]["Entrypoint"][0].as_str().unwrap();
            let named = |path: &str| layer.iter().find(|file| file.name == path[1..]).unwrap();
            let program = named(entrypoint);
            assert!(program.executable);
            let architecture = config["architecture"].as_str().unwrap();
            assert!(program.content.ends_with(architecture.as_bytes()));
            named("/usr/local/share/man/man1/kubectl-maint.1");
            named("/usr/local/share/doc/kubectl-maint/THIRD-PARTY-LICENSES");
            named("/usr/local/share/bash-completion/completions/kubectl-maint");
        }
    }
}
