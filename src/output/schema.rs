//! The JSON Schema of everything that `-o json` and `-o yaml` print.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use super::checkup::CheckupList;
use super::fencing::FencingList;
use super::force_deletion::ForceDeletionList;
use super::history::RecordList;
use super::identity::Identity;
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
    Identity(Identity),
    Checkup(CheckupList),
    Record(RecordList),
}

/// The schema.
pub(crate) fn schema() -> Schema {
    let settings = SchemaSettings::draft2020_12()
        .for_serialize()
        .with_transform(WithoutNull);
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

/// The check of the tests of the whole program.
#[cfg(test)]
#[path = "../../tests/support/schema.rs"]
pub(crate) mod check;

#[cfg(test)]
mod tests {
    use super::check::check;

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
