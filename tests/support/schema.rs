//! JSON and YAML output must match the schema.

use std::collections::HashMap;
use std::sync::LazyLock;

use boon::{Compiler, SchemaIndex, Schemas};
use regex::Regex;
use serde_json::Value;

const SCHEMA: &str = include_str!("../../docs/schema/v2.json");

/// Any URL: nothing is downloaded.
const PLACE: &str = "https://schema.test/v2.json";

/// Commands whose output has no schema. `install` prints manifests.
const OTHERS: [&str; 2] = ["version", "install"];

/// The description of values and kinds that later releases may extend.
const LATER: &str = "Later releases may add others.";

/// The schema of each kind.
static KINDS: LazyLock<(Schemas, HashMap<String, SchemaIndex>)> = LazyLock::new(|| {
    let mut compiler = Compiler::new();
    let mut schema: Value = serde_json::from_str(SCHEMA).expect("JSON");
    close(&mut schema);
    let names: Vec<String> = schema["$defs"]
        .as_object()
        .expect("definitions")
        .keys()
        .cloned()
        .collect();
    compiler.add_resource(PLACE, schema).expect("a schema");
    let mut schemas = Schemas::new();
    let kinds = names.into_iter().map(|kind| {
        let place = format!("{PLACE}#/$defs/{kind}");
        let index = compiler.compile(&place, &mut schemas);
        (kind, index.expect("a valid schema"))
    });
    let kinds = kinds.collect();
    (schemas, kinds)
});

/// Checks what `kubectl maint WORDS…` printed, if the format is JSON or YAML.
///
/// # Panics
/// If the output does not match the schema.
#[track_caller]
pub(crate) fn check(words: &[String], stdout: &str) {
    let printed = match format(words) {
        Some("json") => serde_json::Deserializer::from_str(stdout)
            .into_iter()
            .collect::<Result<Vec<Value>, _>>()
            .unwrap_or_else(|error| panic!("no JSON: {error}: {stdout}")),
        Some("yaml") => stdout
            .split("---\n")
            .filter(|text| !text.is_empty())
            .map(|text| serde_saphyr::from_str(text).expect("YAML"))
            .collect(),
        _ => return,
    };
    for value in &printed {
        check_value(value);
    }
}

/// Checks one object.
///
/// # Panics
/// If the object does not match the schema.
#[track_caller]
pub(crate) fn check_value(value: &Value) {
    if let Some(error) = find_error(value) {
        panic!("{error}\n{value:#}");
    }
    check_times(value);
}

/// The first error of one object, if it does not match the schema.
pub(crate) fn find_error(value: &Value) -> Option<String> {
    let kind = value["kind"].as_str().unwrap_or_default();
    let (schemas, kinds) = &*KINDS;
    let Some(schema) = kinds.get(kind) else {
        return Some(format!("no schema of {kind:?}"));
    };
    let error = schemas.validate(value, *schema).err();
    error.map(|error| format!("{error:#}"))
}

/// Allows only the fields, values and kinds that the schema describes. The published schema allows others, because
/// later releases may add some.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.get("properties").is_some_and(Value::is_object) {
                fields.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
            if let Some(Value::Array(choices)) = fields.get_mut("anyOf") {
                choices.retain(|choice| choice["description"] != LATER);
            }
            fields.values_mut().for_each(close);
        }
        Value::Array(values) => values.iter_mut().for_each(close),
        _ => {}
    }
}

/// The output format that `words` choose.
fn format(words: &[String]) -> Option<&str> {
    let own = words.iter().take_while(|word| *word != "--");
    let own: Vec<&str> = own.map(String::as_str).collect();
    let command = own.iter().find(|word| !word.starts_with('-'));
    if command.is_some_and(|command| OTHERS.contains(command)) {
        return None;
    }
    let at = own
        .iter()
        .rposition(|word| word.starts_with("-o") || word.starts_with("--output"))?;
    let (flag, joined) = own[at].split_once('=').unwrap_or((own[at], ""));
    match (flag, joined) {
        ("-o" | "--output", "") => own.get(at + 1).copied(),
        ("-o" | "--output", format) => Some(format),
        (flag, _) => flag.strip_prefix("-o"),
    }
}

/// Checks that `fromdateiso8601` of `jq` can read every time, also in a field whose type is string.
#[track_caller]
fn check_times(value: &Value) {
    static TIME: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$").expect("a pattern"));
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let is_time = ["At", "Since", "since", "Until", "until"]
                    .iter()
                    .any(|end| name.ends_with(end));
                if is_time {
                    let text = value.as_str().expect("a string");
                    assert!(TIME.is_match(text), "{name}: {text}");
                }
                check_times(value);
            }
        }
        Value::Array(values) => values.iter().for_each(check_times),
        _ => {}
    }
}
