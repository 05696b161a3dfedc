//! Removes the parts of an answer that may differ between two servers that agree: uids, resource
//! versions, times, and features that the sandbox does not have.

use serde_json::{Map, Value};

/// Remembers the uids and resource versions of one case, to replace them by numbers in their order.
#[derive(Default)]
pub(crate) struct Normalizer {
    uids: Vec<String>,
    versions: Vec<String>,
}

impl Normalizer {
    pub(crate) fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::Object(map) => self.object(map).into(),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::String(text) => self.text(text).into(),
            other => other.clone(),
        }
    }

    fn object(&mut self, map: &Map<String, Value>) -> Map<String, Value> {
        let kind = map.get("kind").and_then(Value::as_str).unwrap_or_default();
        // The version of a collection changes with every write of any test.
        let shared = kind.ends_with("List") || kind == "Table";
        let mut normal: Map<String, Value> = map
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "managedFields" | "description"))
            .map(|(key, value)| {
                let value = match (key.as_str(), value) {
                    ("metadata", Value::Object(metadata)) if shared => {
                        self.collection_metadata(metadata).into()
                    }
                    ("uid", Value::String(uid)) => name_of(&mut self.uids, uid, "uid").into(),
                    ("resourceVersion", Value::String(version)) => {
                        name_of(&mut self.versions, version, "version").into()
                    }
                    ("creationTimestamp" | "deletionTimestamp" | "timeAdded", Value::String(_)) => {
                        "<time>".into()
                    }
                    ("cells", Value::Array(cells)) => cells.iter().map(without_age).collect(),
                    _ => self.value(value),
                };
                (key.clone(), value)
            })
            .collect();
        if map.get("type").is_some_and(|event| event == "BOOKMARK") {
            without_versions(&mut normal);
        }
        if let Some(stem) = map.get("generateName").and_then(Value::as_str) {
            normal.insert("name".to_owned(), format!("{stem}<suffix>").into());
        }
        if map
            .get("status")
            .is_some_and(|status| status.get("nodeInfo").is_some())
        {
            without_controllers_marks(&mut normal);
        }
        normal
    }

    fn collection_metadata(&mut self, metadata: &Map<String, Value>) -> Map<String, Value> {
        metadata
            .iter()
            .map(|(key, value)| match key.as_str() {
                "resourceVersion" | "continue" => (key.clone(), "<opaque>".into()),
                _ => (key.clone(), value.clone()),
            })
            .collect()
    }

    /// Replaces known uids and versions in a message or path.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (index, uid) in self.uids.iter().enumerate() {
            text = text.replace(uid, &format!("<uid {index}>"));
        }
        for (index, version) in self.versions.iter().enumerate() {
            text = replace_word(&text, version, &format!("<version {index}>"));
        }
        without_parsers_words(&without_quoted_object(&text))
    }
}

fn name_of(known: &mut Vec<String>, text: &str, what: &str) -> String {
    let index = known.iter().position(|k| k == text).unwrap_or_else(|| {
        known.push(text.to_owned());
        known.len() - 1
    });
    format!("<{what} {index}>")
}

/// Replaces a number, unless it is part of a longer number or a word.
fn replace_word(text: &str, word: &str, by: &str) -> String {
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        let joined = |c: char| c.is_alphanumeric() || "-.:".contains(c);
        let whole = !before.ends_with(joined) && !after.starts_with(joined);
        replaced += before;
        replaced += if whole { by } else { word };
        rest = after;
    }
    replaced + rest
}

/// The refusal of a patch quotes the whole patched object, including `managedFields`.
fn without_quoted_object(text: &str) -> String {
    match (text.find("Invalid value: \"{"), text.rfind("}\": ")) {
        (Some(start), Some(end)) if start < end => {
            format!(
                "{}Invalid value: <object>: {}",
                &text[..start],
                &text[end + 4..]
            )
        }
        _ => text.to_owned(),
    }
}

/// Go's parsers report where they stopped, the sandbox only that they did.
fn without_parsers_words(text: &str) -> String {
    let text = match text.find("parsing time \"") {
        Some(at) => format!("{}<time that can't be parsed>", &text[..at]),
        None => text.to_owned(),
    };
    match text.find("continue key is not valid") {
        Some(at) => format!("{}<continue key that can't be read>", &text[..at]),
        None => text,
    }
}

/// The controllers of a real cluster update every node at any time: an annotation, taints, and a
/// new version for each change.
fn without_controllers_marks(node: &mut Map<String, Value>) {
    let metadata = node.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata {
        metadata.insert("resourceVersion".to_owned(), "<version>".into());
        let annotations = metadata
            .get_mut("annotations")
            .and_then(Value::as_object_mut);
        if let Some(annotations) = annotations {
            annotations.remove("node.alpha.kubernetes.io/ttl");
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
    }
    let spec = node.get_mut("spec").and_then(Value::as_object_mut);
    if let Some(spec) = spec
        && let Some(taints) = spec.get_mut("taints").and_then(Value::as_array_mut)
    {
        let theirs = |taint: &Value| {
            let key = taint["key"].as_str().unwrap_or_default();
            key.starts_with("node.kubernetes.io/")
        };
        taints.retain(|taint| !theirs(taint));
        if taints.is_empty() {
            spec.remove("taints");
        }
    }
}

/// The version of a bookmark changes with every write of any test.
fn without_versions(map: &mut Map<String, Value>) {
    for (key, value) in map.iter_mut() {
        match value {
            _ if key == "resourceVersion" => *value = "<opaque>".into(),
            Value::Object(map) => without_versions(map),
            Value::Array(items) => items
                .iter_mut()
                .filter_map(Value::as_object_mut)
                .for_each(without_versions),
            _ => {}
        }
    }
}

/// An age in seconds depends on the speed of the test.
fn without_age(cell: &Value) -> Value {
    let seconds = cell.as_str().and_then(|text| text.strip_suffix('s'));
    if seconds.is_some_and(|seconds| seconds.parse::<u32>().is_ok()) {
        "<age>".into()
    } else {
        cell.clone()
    }
}
