//! The JSON Schema of everything that `-o json` and `-o yaml` print.

#[cfg(test)]
use std::collections::BTreeSet;

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use super::checkup::CheckupList;
use super::fencing::FencingList;
use super::force_deletion::ForceDeletionList;
use super::history::RecordList;
use super::item::{Item, NodeList};
use super::leases::LeaseList;
use super::pods::StuckList;
use super::why::DiagnosisList;

/// What is printed: lists, and each change of `status --watch` as an item.
#[derive(JsonSchema)]
#[schemars(
    untagged,
    title = "The output of kubectl maint, version kubectl-maint.dev/v2"
)]
#[expect(dead_code, reason = "only its schema is needed")]
enum Output {
    Nodes(NodeList),
    Change(Box<Item>),
    Fencing(FencingList),
    Stuck(StuckList<'static>),
    Diagnosis(DiagnosisList<'static>),
    Leases(LeaseList<'static>),
    ForceDeletion(ForceDeletionList),
    Checkup(CheckupList),
    Record(RecordList),
}

/// The schema.
pub(crate) fn schema() -> Schema {
    let settings = SchemaSettings::draft2020_12()
        .for_serialize()
        .with_transform(WithoutNull)
        .with_transform(Open);
    settings.into_generator().into_root_schema_for::<Output>()
}

/// Does not allow `null`, because what is unknown is absent.
#[derive(Clone, Debug)]
struct WithoutNull;

impl Transform for WithoutNull {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        if let Some(Value::Array(types)) = schema.get_mut("type") {
            types.retain(|name| name != "null");
            if let [only] = &types[..] {
                let only = only.clone();
                schema.insert("type".to_owned(), only);
            }
        }
        if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
            choices.retain(|choice| *choice != json!({"type": "null"}));
            if let [Value::Object(only)] = &choices[..] {
                let only = only.clone();
                schema.remove("anyOf");
                for (key, value) in only {
                    schema.ensure_object().entry(key).or_insert(value);
                }
            }
        }
    }
}

/// The lists that get no new values, by their definitions: scripts decide by them what is safe.
const CLOSED: [&str; 3] = ["CheckupLevel", "LockState", "RiskLevel"];

/// The description of what a list does not name.
const LATER: &str = "Later releases may add others.";

/// Allows the values and kinds that later releases add, so that a validator with this schema accepts them.
#[derive(Clone, Debug)]
struct Open;

impl Transform for Open {
    fn transform(&mut self, schema: &mut Schema) {
        let Some(Value::Object(definitions)) = schema.get_mut("$defs") else {
            return;
        };
        for (name, definition) in definitions {
            let Ok(definition) = <&mut Schema>::try_from(definition) else {
                continue;
            };
            if !CLOSED.contains(&name.as_str()) {
                OpenValues.transform(definition);
                open_kinds(definition);
            }
        }
    }
}

/// Allows other values than those of a list.
struct OpenValues;

impl Transform for OpenValues {
    fn transform(&mut self, schema: &mut Schema) {
        let is_value = |choice: &Value| choice.get("const").or(choice.get("enum")).is_some();
        let known = match (schema.get("oneOf"), schema.get("enum")) {
            (Some(Value::Array(choices)), _) if choices.iter().all(is_value) => choices.clone(),
            // The only value of a field, such as `kind`, says what it is.
            (_, Some(Value::Array(values))) if values.len() > 1 => vec![json!({"enum": values})],
            _ => return transform_subschemas(self, schema),
        };
        let other = json!({"description": LATER, "type": "string"});
        schema.remove("oneOf");
        schema.remove("enum");
        schema.insert("type".to_owned(), "string".into());
        schema.insert("anyOf".to_owned(), [known, vec![other]].concat().into());
    }
}

/// Allows other kinds than those of a list.
fn open_kinds(schema: &mut Schema) {
    let Some(Value::Array(choices)) = schema.get_mut("anyOf") else {
        return;
    };
    let kind = |choice: &Value| {
        let place = choice.get("$ref")?.as_str()?;
        Some(place.rsplit('/').next().unwrap_or(place).to_owned())
    };
    let Some(kinds) = choices.iter().map(kind).collect::<Option<Vec<String>>>() else {
        return;
    };
    choices.push(json!({
        "description": LATER,
        "type": "object",
        "properties": {"kind": {"type": "string", "not": {"enum": kinds}}},
        "required": ["apiVersion", "kind"],
    }));
}

/// The check of the tests of the whole program.
#[cfg(test)]
#[path = "../../tests/support/schema.rs"]
pub(crate) mod check;

#[cfg(test)]
mod tests {
    use super::check::{check, find_error};
    use super::*;

    /// What the published schema says against `value`.
    fn published_error(value: &Value) -> Option<String> {
        let mut compiler = boon::Compiler::new();
        let place = "https://schema.test/published.json";
        let schema = Value::from(schema());
        compiler.add_resource(place, schema).expect("a schema");
        let mut schemas = boon::Schemas::new();
        let index = compiler.compile(place, &mut schemas);
        let index = index.expect("a valid schema");
        let error = schemas.validate(value, index).err();
        error.map(|error| error.to_string())
    }

    fn list(kind: &str, item: &Value) -> Value {
        let mut item = item.clone();
        item["apiVersion"] = "kubectl-maint.dev/v2".into();
        json!({"apiVersion": "kubectl-maint.dev/v2", "kind": kind, "items": [item]})
    }

    #[test]
    fn a_validator_accepts_what_later_releases_may_add_and_our_tests_do_not() {
        let lock = |fields: Value| {
            let mut item = json!({"kind": "NodeMaintenance", "node": "n", "state": "Free"});
            for (name, value) in fields.as_object().expect("fields") {
                item[name] = value.clone();
            }
            list("NodeMaintenanceList", &item)
        };
        let ended = |outcome: &str| {
            let ended = json!({"kind": "LockRecord", "node": "n", "outcome": outcome});
            list("LockRecordList", &ended)
        };
        for known in [
            lock(json!({"flags": ["Overlong"]})),
            ended("Current"),
            ended("Released"),
        ] {
            assert_eq!(find_error(&known), None, "{known:#}");
            assert_eq!(published_error(&known), None, "{known:#}");
        }

        let record = |how: Value| json!({"fencedBy": "a", "nodeUid": "u", "how": how});
        let deletion = json!({
            "kind": "ForceDeletion", "resource": "pvc", "name": "data", "uid": "u", "resourceVersion": "1", "checks": [],
        });
        let mut deletions = list("ForceDeletionList", &deletion);
        deletions["acceptRisk"] = "--accept-risk=none".into();
        for allowed in [
            lock(json!({"newField": 1})),
            lock(json!({"flags": ["Strange"]})),
            lock(json!({"error": {"code": "NewCode", "message": "words"}})),
            lock(json!({"fencingRecord": record(json!({"camera": "it is dark"}))})),
            ended("Swapped"),
            list("StuckList", &json!({"kind": "StuckMachine", "model": 7})),
            deletions,
        ] {
            assert_eq!(published_error(&allowed), None, "{allowed:#}");
            assert!(find_error(&allowed).is_some(), "{allowed:#}");
        }
        let found = |level: &str| {
            let found =
                json!({"kind": "Checkup", "check": "Rights", "level": level, "message": "words"});
            list("CheckupList", &found)
        };
        assert_eq!(published_error(&found("Note")), None);
        for refused in [
            lock(json!({"state": "Paused"})),
            lock(json!({"flags": "Overlong"})),
            lock(json!({"error": {"code": 7, "message": "words"}})),
            list("StuckList", &json!({"kind": "StuckPod", "model": 7})),
            found("Worse"),
        ] {
            assert!(published_error(&refused).is_some(), "{refused:#}");
        }
    }

    /// The fields that may get new values: lists that are open, and texts that are described so.
    fn growing_fields(schema: &Value) -> BTreeSet<String> {
        let definitions = schema["$defs"].as_object().expect("definitions");
        let is_open = |field: &Value| {
            let described = field["description"].as_str().unwrap_or_default();
            let value = match &field["items"] {
                Value::Null => field,
                items => items,
            };
            let value = match value["$ref"].as_str() {
                Some(place) => &definitions[place.rsplit('/').next().unwrap_or(place)],
                None => value,
            };
            let choices = value["anyOf"].as_array().into_iter().flatten();
            described.contains("Values may be added")
                || choices
                    .map(|choice| &choice["description"])
                    .any(|it| it == LATER)
        };
        let fields = definitions
            .values()
            .filter_map(|definition| definition["properties"].as_object())
            .flatten();
        let open = fields.filter(|(_, field)| is_open(field));
        open.map(|(name, _)| name.clone()).collect()
    }

    #[test]
    fn every_field_that_may_get_new_values_is_documented() {
        let page = include_str!("../../docs/json.md");
        let (_, rest) = page
            .split_once("## What stays compatible")
            .expect("a section");
        let (section, _) = rest.split_once("\n## ").expect("another section");
        let fields = growing_fields(&Value::from(schema()));
        assert!(fields.len() > 10, "{fields:?}");
        for field in fields {
            assert!(section.contains(&format!("`{field}`")), "{field}");
        }
    }

    #[test]
    fn no_definition_is_numbered_because_two_types_have_one_name() {
        let schema = Value::from(schema());
        let names = schema["$defs"].as_object().expect("definitions").keys();
        let numbered: Vec<&String> = names
            .filter(|name| name.ends_with(|last: char| last.is_ascii_digit()))
            .collect();
        assert!(numbered.is_empty(), "{numbered:?}");
    }

    #[test]
    fn values_are_written_as_the_page_says() {
        let schema = Value::from(schema());
        let mut values = BTreeSet::new();
        collect_values(&schema["$defs"], &mut values);
        assert!(values.len() > 60, "{values:?}");
        let is_pascal_case = |value: &String| {
            value.starts_with(|first: char| first.is_ascii_uppercase())
                && value.chars().all(|c| c.is_ascii_alphanumeric())
        };
        let others: Vec<&String> = values
            .iter()
            .filter(|value| !is_pascal_case(value))
            .collect();
        // The version, and resources as kubectl writes them.
        assert_eq!(others, ["kubectl-maint.dev/v2", "node", "pod"]);
    }

    fn collect_values(schema: &Value, into: &mut BTreeSet<String>) {
        match schema {
            Value::Object(fields) => {
                let values = fields.get("enum").and_then(Value::as_array);
                let values = values.into_iter().flatten().chain(fields.get("const"));
                into.extend(values.filter_map(Value::as_str).map(ToOwned::to_owned));
                for value in fields.values() {
                    collect_values(value, into);
                }
            }
            Value::Array(values) => {
                for value in values {
                    collect_values(value, into);
                }
            }
            _ => {}
        }
    }

    #[test]
    fn only_the_commands_with_a_shape_of_their_own_are_left_out() {
        let check = |line: &str, stdout: &str| {
            let words: Vec<String> = line.split(' ').map(ToOwned::to_owned).collect();
            std::panic::catch_unwind(|| check(&words, stdout)).is_ok()
        };
        let other = r#"{"clientVersion": {"gitVersion": "v1"}}"#;
        assert!(check("version -o json", other));
        assert!(check("--context=b install -ojson", other));
        assert!(check("release version", other), "words are for people");
        assert!(check("with n -- maint status -o json", other));
        for line in [
            "release version -o json",
            "status -o json version",
            "hold n -m install --output=json",
        ] {
            assert!(!check(line, other), "{line}");
        }
    }
}
