//! The schema of `-o json` only grows: what a release described stays. `released_schema.json` is the schema of the last
//! release.

use std::collections::BTreeSet;

use serde_json::{Value, json};

const RELEASED: &str = include_str!("released_schema.json");
const CURRENT: &str = include_str!("../../docs/schema/v2.json");

/// The description that marks an open list of values.
const LATER: &str = "Later releases may add others.";

#[test]
fn everything_that_the_last_release_described_is_still_there() {
    let [released, current] =
        [RELEASED, CURRENT].map(|text| serde_json::from_str::<Value>(text).expect("JSON"));
    let broken = broken(&released, &current);
    assert!(
        broken.is_empty(),
        "programs that read `kubectl-maint.dev/v2` may rely on this:\n{}",
        broken.join("\n")
    );
}

/// The differences that can break a reader of `released`: missing parts, and values that are new in a closed list.
fn broken(released: &Value, current: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("#", released, current, &mut found);
    found
}

fn compare(place: &str, released: &Value, current: &Value, found: &mut Vec<String>) {
    compare_choices(place, released, current, found);
    for (keyword, before) in released.as_object().into_iter().flatten() {
        let now = current.get(keyword);
        match (keyword.as_str(), before) {
            ("description" | "title" | "enum" | "const" | "oneOf" | "anyOf", _) => {}
            ("$defs" | "properties", Value::Object(parts)) => {
                for (name, before) in parts {
                    let place = format!("{place}/{keyword}/{name}");
                    match now.and_then(|now| now.get(name)) {
                        Some(now) => compare(&place, before, now, found),
                        None => found.push(format!("{place} is missing")),
                    }
                }
            }
            ("required", Value::Array(names)) => {
                let now = now.and_then(Value::as_array);
                let is_lost = |name: &&Value| !now.is_some_and(|now| now.contains(name));
                let lost = names.iter().filter(is_lost);
                found.extend(lost.map(|name| format!("{place}: {name} is no longer required")));
            }
            (_, Value::Object(_)) if now.is_some_and(Value::is_object) => {
                compare(
                    &format!("{place}/{keyword}"),
                    before,
                    &current[keyword],
                    found,
                );
            }
            _ if now == Some(before) => {}
            _ => {
                let now = now.map_or("absent".to_owned(), Value::to_string);
                found.push(format!("{place}: {keyword} was {before} and is {now}"));
            }
        }
    }
}

/// Compares lists of values. A list that is not open must not change. New kinds of objects are allowed, because readers
/// recognize them by name.
fn compare_choices(place: &str, released: &Value, current: &Value, found: &mut Vec<String>) {
    let [before, now] = [released, current].map(choices);
    let lost = before.difference(&now);
    found.extend(lost.map(|choice| format!("{place}: {choice} is no longer a choice")));
    if before.is_empty() || before.contains(LATER) {
        return;
    }
    let new = now.difference(&before);
    let new = new.filter(|choice| !choice.starts_with("#/"));
    found.extend(new.map(|choice| format!("{place}: {choice} is new in a closed list")));
}

/// The values, definitions and conditions of which one applies, and [`LATER`] if there may be others.
fn choices(schema: &Value) -> BTreeSet<String> {
    let values = ["oneOf", "anyOf"].map(|keyword| schema[keyword].as_array());
    let nested = values.into_iter().flatten().flatten().flat_map(|choice| {
        let own = choices(choice);
        match (own.is_empty(), choice["$ref"].as_str()) {
            _ if choice["description"] == LATER => BTreeSet::from([LATER.to_owned()]),
            (true, Some(place)) => BTreeSet::from([place.to_owned()]),
            (true, None) => BTreeSet::from([choice.to_string()]),
            (false, _) => own,
        }
    });
    let values = schema["enum"].as_array().into_iter().flatten();
    let values = values.chain(schema.get("const")).map(Value::to_string);
    nested.chain(values).collect()
}

/// A small schema with every feature that ours uses.
fn sample() -> Value {
    json!({
        "anyOf": [{"$ref": "#/$defs/List"}],
        "$defs": {
            "List": {
                "type": "object",
                "properties": {
                    "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}},
                    "kind": {"type": "string", "enum": ["List"]},
                },
                "required": ["kind", "items"],
            },
            "Item": {
                "description": "words",
                "type": "object",
                "properties": {
                    "code": {"$ref": "#/$defs/Code"},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    "names": {"type": "array", "items": {"type": "string"}},
                    "seconds": {"type": "integer", "minimum": 0},
                    "state": {"oneOf": [
                        {"type": "string", "enum": ["Free"]},
                        {"description": "words", "type": "string", "const": "Locked"},
                    ]},
                    "at": {"type": "string", "pattern": "Z$"},
                },
                "anyOf": [{"required": ["state"]}, {"required": ["code"]}],
                "required": ["seconds"],
            },
            "Code": {
                "type": "string",
                "anyOf": [
                    {"type": "string", "const": "Failed"},
                    {"type": "string", "const": "Unknown"},
                    {"description": LATER, "type": "string"},
                ],
            },
        },
    })
}

/// The problems that are found if `change` is made in the sample.
fn broken_by(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut current = sample();
    change(&mut current);
    broken(&sample(), &current)
}

fn remove(schema: &mut Value, place: &str, key: &str) {
    let fields = schema.pointer_mut(place).and_then(Value::as_object_mut);
    let removed = fields.expect("a place in the sample").remove(key);
    assert!(removed.is_some(), "{place}: {key}");
}

/// The problems if the value at `place` in the sample is replaced.
fn replaced(place: &str, by: Value) -> Vec<String> {
    broken_by(|schema| *schema.pointer_mut(place).expect("a place in the sample") = by)
}

/// The problems if a value is appended to the list at `place` in the sample.
fn appended(place: &str, value: Value) -> Vec<String> {
    broken_by(|schema| {
        let list = schema.pointer_mut(place).and_then(Value::as_array_mut);
        list.expect("a list in the sample").push(value);
    })
}

#[test]
fn what_was_removed_renamed_or_changed_is_found() {
    let item = "#/$defs/Item/properties";
    for (broken, expected) in [
        (
            broken_by(|schema| remove(schema, "/$defs", "Code")),
            vec!["#/$defs/Code is missing".to_owned()],
        ),
        (
            broken_by(|schema| remove(schema, "/$defs/Item/properties", "names")),
            vec![format!("{item}/names is missing")],
        ),
        (
            replaced("/$defs/Item/required", json!([])),
            vec!["#/$defs/Item: \"seconds\" is no longer required".to_owned()],
        ),
        (
            broken_by(|schema| remove(schema, "/$defs/List", "required")),
            vec![
                "#/$defs/List: \"kind\" is no longer required".to_owned(),
                "#/$defs/List: \"items\" is no longer required".to_owned(),
            ],
        ),
        (
            replaced("/$defs/Item/properties/seconds/type", json!("string")),
            vec![format!(
                "{item}/seconds: type was \"integer\" and is \"string\""
            )],
        ),
        (
            replaced("/$defs/Item/properties/names/items/type", json!("integer")),
            vec![format!(
                "{item}/names/items: type was \"string\" and is \"integer\""
            )],
        ),
        (
            replaced(
                "/$defs/Item/properties/labels/additionalProperties/type",
                json!("integer"),
            ),
            vec![format!(
                "{item}/labels/additionalProperties: type was \"string\" and is \"integer\""
            )],
        ),
        (
            replaced("/$defs/Item/properties/code/$ref", json!("#/$defs/List")),
            vec![format!(
                "{item}/code: $ref was \"#/$defs/Code\" and is \"#/$defs/List\""
            )],
        ),
        (
            broken_by(|schema| remove(schema, "/$defs/Item/properties/at", "pattern")),
            vec![format!("{item}/at: pattern was \"Z$\" and is absent")],
        ),
        (
            replaced("/$defs/Code/anyOf/1/const", json!("Unclear")),
            vec!["#/$defs/Code: \"Unknown\" is no longer a choice".to_owned()],
        ),
        (
            replaced("/$defs/Item/properties/state/oneOf/0/enum/0", json!("Open")),
            vec![
                format!("{item}/state: \"Free\" is no longer a choice"),
                format!("{item}/state: \"Open\" is new in a closed list"),
            ],
        ),
        (
            replaced("/anyOf", json!([{"$ref": "#/$defs/Item"}])),
            vec!["#: #/$defs/List is no longer a choice".to_owned()],
        ),
    ] {
        assert_eq!(broken, expected);
    }
}

#[test]
fn a_list_of_values_neither_opens_nor_closes() {
    let state = "#/$defs/Item/properties/state";
    let code = "#/$defs/Code";
    let paused = json!({"type": "string", "const": "Paused"});
    let later = json!({"description": LATER, "type": "string"});
    for (broken, expected) in [
        (
            appended("/$defs/Item/properties/state/oneOf", paused),
            format!("{state}: \"Paused\" is new in a closed list"),
        ),
        (
            appended("/$defs/Item/properties/state/oneOf", later),
            format!("{state}: {LATER} is new in a closed list"),
        ),
        (
            appended("/$defs/Item/anyOf", json!({"required": ["at"]})),
            "#/$defs/Item: {\"required\":[\"at\"]} is new in a closed list".to_owned(),
        ),
        (
            broken_by(|schema| {
                let list = schema["$defs"]["Code"]["anyOf"].as_array_mut();
                list.expect("a list").pop();
            }),
            format!("{code}: {LATER} is no longer a choice"),
        ),
    ] {
        assert_eq!(broken, [expected]);
    }
}

#[test]
fn additions_and_other_words_break_nothing() {
    let broken = broken_by(|schema| {
        let item = &mut schema["$defs"]["Item"];
        item["description"] = "other words".into();
        item["properties"]["more"] = json!({"type": "string"});
        item["required"] = json!(["more", "seconds"]);
        item["properties"]["names"]["items"]["enum"] = json!(["a", "b"]);
        let codes = schema["$defs"]["Code"]["anyOf"].as_array_mut();
        codes
            .expect("a list")
            .insert(0, json!({"type": "string", "const": "New"}));
        let lists = schema["anyOf"].as_array_mut().expect("a list");
        lists.push(json!({"$ref": "#/$defs/NewList"}));
        schema["$defs"]["NewList"] = json!({"type": "object"});
    });
    assert_eq!(broken, [""; 0]);
}
