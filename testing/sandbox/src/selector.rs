//! Label and field selectors.

use serde_json::Value;

use crate::failure::Failure;
use crate::object;
use crate::resource::Resource;

/// The objects that a list or watch selects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    labels: Vec<LabelRequirement>,
    fields: Vec<FieldRequirement>,
}

#[derive(Clone, Debug, PartialEq)]
enum LabelRequirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

#[derive(Clone, Debug, PartialEq)]
struct FieldRequirement {
    field: String,
    value: String,
    negated: bool,
}

impl Selector {
    pub(crate) fn parse(
        resource: &Resource,
        labels: Option<&str>,
        fields: Option<&str>,
    ) -> Result<Self, Failure> {
        let labels = split_outside_parentheses(labels.unwrap_or_default())
            .map(LabelRequirement::parse)
            .collect::<Result<_, _>>()?;
        let fields = fields
            .unwrap_or_default()
            .split(',')
            .filter(|term| !term.is_empty())
            .map(|term| FieldRequirement::parse(resource, term))
            .collect::<Result<_, _>>()?;
        Ok(Self { labels, fields })
    }

    /// Whether every object is selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.labels.iter().all(|term| term.matches(object))
            && self.fields.iter().all(|term| term.matches(object))
    }
}

fn split_outside_parentheses(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    text.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|term| !term.is_empty())
}

impl LabelRequirement {
    fn parse(term: &str) -> Result<Self, Failure> {
        let requirement = if let Some(key) = term.strip_prefix('!') {
            Self::Absent(key.trim().to_owned())
        } else if let Some((key, value)) = term.split_once("!=") {
            Self::NotIn(key.trim().to_owned(), vec![value.trim().to_owned()])
        } else if let Some((key, value)) = term.split_once('=') {
            let value = value.strip_prefix('=').unwrap_or(value);
            Self::In(key.trim().to_owned(), vec![value.trim().to_owned()])
        } else if let Some((key, values)) = set_term(term, " notin ") {
            Self::NotIn(key, values)
        } else if let Some((key, values)) = set_term(term, " in ") {
            Self::In(key, values)
        } else {
            Self::Exists(term.to_owned())
        };
        let key = requirement.key();
        let is_token =
            |text: &str| !text.contains(|c: char| c.is_whitespace() || "()=!".contains(c));
        if key.is_empty() || !is_token(key) || !requirement.values().iter().all(|v| is_token(v)) {
            let found = term.rmatches(|c| "()=!".contains(c)).next().unwrap_or(term);
            return Err(Failure::bad_request(format!(
                "unable to parse requirement: found '{found}', expected: identifier"
            )));
        }
        Ok(requirement)
    }

    fn key(&self) -> &str {
        match self {
            Self::In(key, _) | Self::NotIn(key, _) | Self::Exists(key) | Self::Absent(key) => key,
        }
    }

    fn values(&self) -> &[String] {
        match self {
            Self::In(_, values) | Self::NotIn(_, values) => values,
            Self::Exists(_) | Self::Absent(_) => &[],
        }
    }

    fn matches(&self, object: &Value) -> bool {
        let label = object
            .pointer("/metadata/labels")
            .and_then(|labels| labels.get(self.key()))
            .and_then(Value::as_str);
        match self {
            Self::In(_, values) => label.is_some_and(|label| values.iter().any(|v| v == label)),
            Self::NotIn(_, values) => label.is_none_or(|label| values.iter().all(|v| v != label)),
            Self::Exists(_) => label.is_some(),
            Self::Absent(_) => label.is_none(),
        }
    }
}

/// Reads `key in (a, b)`.
fn set_term(term: &str, operator: &str) -> Option<(String, Vec<String>)> {
    let (key, set) = term.split_once(operator)?;
    let values = set.trim().strip_prefix('(')?.strip_suffix(')')?;
    let values = values.split(',').map(|v| v.trim().to_owned()).collect();
    Some((key.trim().to_owned(), values))
}

impl FieldRequirement {
    fn parse(resource: &Resource, term: &str) -> Result<Self, Failure> {
        let (field, value, negated) = if let Some((field, value)) = term.split_once("!=") {
            (field, value, true)
        } else if let Some((field, value)) = term.split_once('=') {
            (field, value.strip_prefix('=').unwrap_or(value), false)
        } else {
            return Err(Failure::bad_request(format!(
                "invalid selector: {term:?}; can't understand {term:?}"
            )));
        };
        if !selectable(resource).contains(&field) {
            return Err(Failure::bad_request(unknown_field(resource, field)));
        }
        Ok(Self {
            field: field.to_owned(),
            value: value.to_owned(),
            negated,
        })
    }

    fn matches(&self, object: &Value) -> bool {
        (field_text(object, &self.field) == self.value) != self.negated
    }
}

/// The fields by which objects of a type can be selected.
fn selectable(resource: &Resource) -> Vec<&'static str> {
    let own: &[&str] = match &*resource.collection {
        "nodes" => &["spec.unschedulable"],
        "namespaces" => &["status.phase"],
        "pods" => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        "events" if resource.group.is_empty() => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        "events" => &[
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingController",
            "type",
        ],
        _ => &[],
    };
    let common = if resource.namespaced {
        &["metadata.name", "metadata.namespace"][..]
    } else {
        &["metadata.name"][..]
    };
    [common, own].concat()
}

/// For types with their own selectable fields, the message is shorter.
fn unknown_field(resource: &Resource, field: &str) -> String {
    match &*resource.collection {
        "nodes" | "namespaces" | "pods" | "events" => {
            format!("field label not supported: {field}")
        }
        _ => format!(
            "{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        ),
    }
}

fn field_text(object: &Value, field: &str) -> String {
    // In the core group, `source` is a structure, and this selects its component.
    let field = match field {
        "source" => "source.component",
        other => other,
    };
    let pointer = format!("/{}", field.replace('.', "/"));
    match object.pointer(&pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(on)) => on.to_string(),
        None if matches!(field, "spec.unschedulable" | "spec.hostNetwork") => "false".to_owned(),
        _ => object::text(object, &pointer).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(labels: &Value, unschedulable: bool) -> Value {
        json!({"metadata": {"name": "a", "labels": labels}, "spec": {"unschedulable": unschedulable}})
    }

    fn nodes() -> Resource {
        Resource::custom("", "v1", "Node", "nodes", false)
    }

    #[track_caller]
    fn check(labels: &str, fields: &str, object: &Value, expected: bool) {
        let selector = Selector::parse(&nodes(), Some(labels), Some(fields)).unwrap();
        assert_eq!(selector.matches(object), expected, "{labels} {fields}");
    }

    #[test]
    fn labels_are_chosen_by_equality_sets_and_presence() {
        let object = node(&json!({"zone": "a", "pool": "x"}), false);
        check("zone=a", "", &object, true);
        check("zone==a,pool=x", "", &object, true);
        check("zone!=a", "", &object, false);
        check("rack!=1", "", &object, true);
        check("zone in (b, a),pool", "", &object, true);
        check("zone notin (b,a)", "", &object, false);
        check("!rack", "", &object, true);
        check("rack", "", &object, false);
    }

    #[test]
    fn fields_are_chosen_by_equality() {
        let object = node(&json!({}), true);
        check("", "metadata.name=a,spec.unschedulable=true", &object, true);
        check("", "metadata.name!=a", &object, false);
        check("", "spec.unschedulable=false", &object, false);
    }

    #[test]
    fn an_unknown_field_is_refused() {
        let failure = Selector::parse(&nodes(), None, Some("spec.podCIDR=x")).unwrap_err();
        assert_eq!(failure.code, 400);
    }
}
