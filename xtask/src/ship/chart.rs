//! The Helm chart: the objects of `deploy/`, with the mode of the policies as a value.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use policies::{Allowed, Manifest, Mode, manifests};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::tool;
use crate::cargo::run;
use crate::dist::archive::{File, pack};
use crate::dist::{Files, VERSION};

const HELM: &str = "helm.sh/helm/v3/cmd/helm@v3.19.5";

/// The name of the chart, and of its directory in the archive.
const NAME: &str = "kubectl-maint";

const MODES: [Mode; 3] = [Mode::Audit, Mode::Warn, Mode::Deny];

/// The mode in which the policies have no bindings.
const OFF: &str = "off";

const VALUES: &str = r#"# What the policies do with a write that breaks a rule: audit, warn, deny or off.
mode: audit

# Whether the chart has the namespace of the Leases. "helm uninstall" keeps it, because the locks are in it.
createNamespace: true

# API users and groups that may change every held Node, like its holder.
allowedUsers: []
allowedGroups: []
"#;

/// Writes the chart, and checks it with Helm.
pub(super) fn write(files: &mut Files) -> Result<()> {
    let name = format!("{NAME}-{}.tgz", env!("CARGO_PKG_VERSION"));
    let chart = chart(&policies::text())?;
    files.write(&name, &pack(&chart)?)?;
    let helm = tool::install(HELM)?;
    check(&helm, &files.path(&name))
}

/// The files of the chart.
fn chart(objects: &str) -> Result<Vec<File>> {
    let description = format!(
        "apiVersion: v2\n\
         name: {NAME}\n\
         description: {:?}\n\
         version: {version}\n\
         appVersion: {VERSION}\n\
         kubeVersion: \">=1.{}.0-0\"\n\
         home: {home}\n\
         sources: [{home}]\n\
         maintainers: [{{name: The kubectl maint authors, url: {home}}}]\n",
        "Namespace, roles and admission policies for the maintenance locks of nodes",
        policies::OLDEST_MINOR,
        home = env!("CARGO_PKG_REPOSITORY"),
        version = env!("CARGO_PKG_VERSION"),
    );
    let modes = MODES.iter().map(|mode| json!(mode.name()));
    // In a YAML file, Helm reads `off` without quotes as false.
    let modes: Vec<Value> = modes.chain([json!(OFF), json!(false)]).collect();
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "mode": {"enum": modes},
            "createNamespace": {"type": "boolean"},
            "allowedUsers": {"type": "array", "items": {"type": "string"}},
            "allowedGroups": {"type": "array", "items": {"type": "string"}},
        },
        "additionalProperties": false,
    });
    let each = [
        ("Chart.yaml", description),
        ("values.yaml", VALUES.to_owned()),
        ("values.schema.json", format!("{schema:#}\n")),
        ("templates/objects.yaml", template(objects)?),
    ];
    Ok(each
        .map(|(path, content)| File {
            name: format!("{NAME}/{path}"),
            executable: false,
            content: content.into_bytes(),
        })
        .into())
}

/// The objects as a Helm template.
fn template(objects: &str) -> Result<String> {
    ensure!(
        !objects.contains("{{"),
        "an object has {{{{, which Helm would read as its own"
    );
    let each = objects.split("\n---\n").zip(manifests());
    let each = each.map(|(text, manifest)| object(text.trim_end(), &manifest));
    Ok(each.collect::<Result<Vec<_>>>()?.join("---\n"))
}

fn object(text: &str, manifest: &Manifest) -> Result<String> {
    let (condition, text) = if manifest.is_binding() && manifest.has_mode() {
        let shipped = format!("validationActions: [{}]", list(Mode::Audit, ""));
        ensure!(
            text.contains(&shipped),
            "{} has no `{shipped}`",
            manifest.full_name()
        );
        let actions = MODES.map(|mode| format!("{:?} (list {})", mode.name(), list(mode, "\"")));
        let chosen = format!(
            "validationActions: {{{{ get (dict {}) .Values.mode | toJson }}}}",
            actions.join(" ")
        );
        (
            format!("and .Values.mode (ne .Values.mode {OFF:?})"),
            text.replace(&shipped, &chosen),
        )
    } else if manifest.is_namespace() {
        let kept = "metadata:\n  annotations:\n    helm.sh/resource-policy: keep\n";
        (
            ".Values.createNamespace".to_owned(),
            text.replace("metadata:\n", kept),
        )
    } else {
        let lists = ["allowedUsers", "allowedGroups"];
        let lists = lists.map(|name| format!("{{{{ .Values.{name} | toJson | quote }}}}"));
        return Ok(format!("{}\n", policies::with_lists(text, &lists)));
    };
    Ok(format!(
        "{{{{- if {condition} }}}}\n{text}\n{{{{- end }}}}\n"
    ))
}

/// The actions of a mode as a list, with these quotes.
fn list(mode: Mode, quote: &str) -> String {
    let actions = mode.actions();
    let actions = actions.as_array().into_iter().flatten();
    let actions = actions.filter_map(Value::as_str);
    let actions: Vec<_> = actions
        .map(|action| format!("{quote}{action}{quote}"))
        .collect();
    actions.join(" ")
}

/// Compares what Helm renders with what the plugin installs, in each mode.
fn check(helm: &Path, chart: &Path) -> Result<()> {
    run(Command::new(helm).args(["lint", "--strict"]).arg(chart))?;
    let render = |values: &[u8]| -> Result<Vec<Value>> {
        let mut file = NamedTempFile::new()?;
        file.write_all(values)?;
        let mut template = Command::new(helm);
        template
            .args(["template", NAME, "--kube-version"])
            .arg(format!("1.{}.0", policies::OLDEST_MINOR))
            .arg(chart)
            .arg("--values");
        let output = template.arg(file.path()).output()?;
        ensure!(
            output.status.success(),
            "helm template failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        objects(&String::from_utf8(output.stdout)?)
    };
    for mode in MODES {
        let wanted = manifests().into_iter().map(|manifest| {
            match manifest.is_binding() && manifest.has_mode() {
                true => manifest.with_actions(mode.actions()),
                false => manifest,
            }
        });
        let rendered = render(format!("mode: {}", mode.name()).as_bytes())?;
        must_equal(rendered, wanted.map(|manifest| manifest.object().clone()))
            .with_context(|| format!("the chart in mode {}", mode.name()))?;
    }
    let left = manifests().into_iter();
    let left = left.filter(|it| !(it.is_namespace() || it.is_binding() && it.has_mode()));
    let rendered = render(b"mode: off\ncreateNamespace: false")?;
    must_equal(rendered, left.map(|manifest| manifest.object().clone()))
        .context("the chart that is switched off")?;
    let allowed = Allowed {
        users: vec!["alice".to_owned(), "system:serviceaccount:a:b".to_owned()],
        groups: vec!["it's \"ops\"".to_owned()],
    };
    let lists = json!({"allowedUsers": allowed.users, "allowedGroups": allowed.groups});
    let wanted = manifests().into_iter().map(|it| it.allowing(&allowed));
    must_equal(
        render(lists.to_string().as_bytes())?,
        wanted.map(|manifest| manifest.object().clone()),
    )
    .context("the chart with users and groups")?;
    for wrong in ["mode: Deny", "mod: deny"] {
        let rendered = render(wrong.as_bytes());
        ensure!(rendered.is_err(), "the chart accepts `{wrong}`");
    }
    Ok(())
}

fn objects(text: &str) -> Result<Vec<Value>> {
    let texts = text
        .split("\n---\n")
        .map(|text| text.trim_start_matches("---\n"));
    let objects = texts.map(|text| Ok(serde_saphyr::from_str::<Value>(text)?));
    objects
        .filter(|object| !matches!(object, Ok(Value::Null)))
        .collect()
}

/// Compares the objects. Helm has its own order, and its own annotation on the namespace.
fn must_equal(mut rendered: Vec<Value>, wanted: impl Iterator<Item = Value>) -> Result<()> {
    for object in &mut rendered {
        if object["kind"] == "Namespace"
            && let Some(metadata) = object["metadata"].as_object_mut()
        {
            metadata.remove("annotations");
        }
    }
    let mut wanted: Vec<Value> = wanted.collect();
    let key = |object: &Value| format!("{} {}", object["kind"], object["metadata"]);
    rendered.sort_by_key(key);
    wanted.sort_by_key(key);
    ensure!(rendered.len() == wanted.len(), "{} objects", rendered.len());
    for (rendered, wanted) in rendered.iter().zip(&wanted) {
        ensure!(rendered == wanted, "{rendered:#}\nis not\n{wanted:#}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_a_value() {
        let template = template(&policies::text()).unwrap();
        let actions = r#"validationActions: {{ get (dict "audit" (list "Audit") "warn" (list "Warn" "Audit") "deny" (list "Deny" "Audit")) .Values.mode | toJson }}"#;
        assert_eq!(template.matches(actions).count(), 2);
        assert_eq!(template.matches("validationActions: [Warn]").count(), 1);
        let ends = template.matches("{{- end }}").count();
        assert_eq!(template.matches("{{- if ").count(), ends);
        assert_eq!(ends, 3);
    }

    #[test]
    fn uninstalling_the_chart_keeps_the_locks() {
        let template = template(&policies::text()).unwrap();
        let namespace = template.split("---\n").next().unwrap();
        assert!(namespace.contains("kind: Namespace"), "{namespace}");
        assert!(
            namespace.contains("helm.sh/resource-policy: keep"),
            "{namespace}"
        );
    }

    #[test]
    fn an_object_that_helm_would_change_is_refused() {
        assert!(template("a: '{{ b }}'").is_err());
    }

    #[test]
    fn default_values_are_allowed() {
        let values: Value = serde_saphyr::from_str(VALUES).unwrap();
        let expected = json!({
            "mode": "audit", "createNamespace": true, "allowedUsers": [], "allowedGroups": [],
        });
        assert_eq!(values, expected);
    }
}
