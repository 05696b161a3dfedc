use chrono::{DateTime, Utc};
use serde_json::Value;

use super::age;
use super::column::{Column, NAME};
use crate::object;

pub(super) const COLUMNS: &[Column] = &[
    Column::new("Last Seen", "How long ago it happened last."),
    Column::new("Type", "Normal or Warning."),
    Column::new("Reason", "Why, in one word."),
    Column::new("Object", "What it happened to."),
    Column::wide("Subobject", "The part of the object, if only a part."),
    Column::wide("Source", "Who reports it."),
    Column::new("Message", "What happened."),
    Column::wide("First Seen", "How long ago it happened first."),
    Column::wide("Count", "How often it happened."),
    Column {
        priority: 1,
        ..NAME
    },
];

pub(super) fn cells(event: &Value, now: DateTime<Utc>) -> Vec<Value> {
    // The same field has two names, one for each API version.
    let either = |core: &'static str, own: &'static str| match object::text(event, core) {
        "" => object::text(event, own),
        text => text,
    };
    let happened = object::text(event, "/eventTime");
    let first_of = |time: &'static str| if time.is_empty() { happened } else { time };
    let seen = |core: &str, own: &str| {
        let time = [core, own]
            .iter()
            .map(|pointer| object::text(event, pointer))
            .find(|time| !time.is_empty())
            .unwrap_or(first_of(""));
        age::since(time, now)
    };
    let about = format!(
        "{}/{}",
        either("/involvedObject/kind", "/regarding/kind").to_lowercase(),
        either("/involvedObject/name", "/regarding/name"),
    );
    let source = match either("/source/component", "/deprecatedSource/component") {
        "" => either("/reportingComponent", "/reportingController"),
        component => component,
    };
    let count = ["/count", "/deprecatedCount"]
        .iter()
        .find_map(|pointer| event.pointer(pointer)?.as_u64())
        .unwrap_or(1);
    vec![
        seen("/lastTimestamp", "/deprecatedLastTimestamp").into(),
        object::text(event, "/type").into(),
        object::text(event, "/reason").into(),
        about.into(),
        either("/involvedObject/fieldPath", "/regarding/fieldPath").into(),
        source.into(),
        either("/message", "/note").trim().into(),
        seen("/firstTimestamp", "/deprecatedFirstTimestamp").into(),
        count.into(),
        object::name(event).into(),
    ]
}
