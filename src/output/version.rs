//! The versions of client and server, in words and as data.

use clap::ValueEnum;
use k8s_openapi::apimachinery::pkg::version::Info;
use serde::Serialize;

use super::print;

/// The forms, beside text, in which versions can be printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VersionFormat {
    /// JSON, with the field names of `kubectl version`
    Json,
    /// The same as YAML
    Yaml,
}

/// What to print.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Versions {
    client_version: ClientVersion,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_version: Option<Info>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ClientVersion {
    git_version: &'static str,
    platform: String,
}

impl Versions {
    /// The version of this plugin, and that of the server if known.
    pub(crate) fn new(server_version: Option<Info>) -> Self {
        Self {
            client_version: ClientVersion {
                git_version: concat!("v", env!("CARGO_PKG_VERSION")),
                platform: platform(),
            },
            server_version,
        }
    }

    /// The text for stdout, without its last newline.
    ///
    /// # Errors
    /// If it can't be serialized.
    pub(crate) fn render(&self, format: Option<VersionFormat>) -> anyhow::Result<String> {
        match format {
            None => {
                let mut text = format!("Client Version: {}", self.client_version.git_version);
                if let Some(server) = &self.server_version {
                    text.push_str(&format!("\nServer Version: {}", server.git_version));
                }
                Ok(text)
            }
            Some(VersionFormat::Json) => print::json(self),
            Some(VersionFormat::Yaml) => print::yaml(self),
        }
    }
}

/// Operating system and processor as Go and kubectl name them.
fn platform() -> String {
    let processor = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{}/{processor}", std::env::consts::OS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(server: bool, format: Option<VersionFormat>) -> String {
        let server = server.then(|| Info {
            git_version: "v1.36.3".to_owned(),
            ..Info::default()
        });
        let rendered = Versions::new(server).render(format);
        rendered.expect("it can be printed")
    }

    #[test]
    fn text_names_client_and_server() {
        let client = concat!("Client Version: v", env!("CARGO_PKG_VERSION"));
        assert_eq!(
            rendered(true, None),
            format!("{client}\nServer Version: v1.36.3")
        );
        assert_eq!(rendered(false, None), client);
    }

    #[test]
    fn json_and_yaml_use_kubectls_field_names() {
        let json: serde_json::Value =
            serde_json::from_str(&rendered(true, Some(VersionFormat::Json))).unwrap();
        assert_eq!(json["serverVersion"]["gitVersion"], "v1.36.3");
        let yaml: serde_json::Value =
            serde_saphyr::from_str(&rendered(true, Some(VersionFormat::Yaml))).unwrap();
        assert_eq!(yaml, json);
        let alone = rendered(false, Some(VersionFormat::Json));
        assert!(!alone.contains("serverVersion"), "{alone}");
    }
}
