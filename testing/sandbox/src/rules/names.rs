//! Names of objects, and keys of labels, annotations and finalizers.

use serde_json::Value;

use crate::cause::Cause;
use crate::object;
use crate::resource::Resource;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const KEY_NAME: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const KEY_FORM: &str = "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// The errors in the object's name, and in its `generateName`.
pub(super) fn violations(resource: &Resource, object: &Value) -> Vec<Cause> {
    let stem = object::text(object, "/metadata/generateName");
    let name = object::name(object);
    let mut wrong = Vec::new();
    if !stem.is_empty() {
        let why = check(resource, &completed(stem));
        wrong.extend(invalid("metadata.generateName", stem, &why));
    }
    if name.is_empty() {
        wrong.push(Cause::required(
            "metadata.name",
            "name or generateName is required",
        ));
    } else {
        wrong.extend(invalid("metadata.name", name, &check(resource, name)));
    }
    wrong
}

/// The reasons why `name` is not a valid name for such an object.
fn check(resource: &Resource, name: &str) -> Vec<String> {
    match (&*resource.group, &*resource.collection) {
        (_, "namespaces") => label(name),
        ("rbac.authorization.k8s.io", _) => path_segment(name),
        _ => subdomain(name),
    }
}

/// Completes a prefix for generated names, which may end in a dash. Otherwise, the rules for names
/// apply to it.
fn completed(stem: &str) -> String {
    match stem.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => format!("{rest}a"),
        _ => stem.to_owned(),
    }
}

fn invalid(field: &str, value: &str, wrong: &[String]) -> Vec<Cause> {
    let cause = |why| Cause::invalid(field, &format!("{value:?}"), why);
    wrong.iter().map(|why| cause(why)).collect()
}

/// The reasons why `name` is not a DNS subdomain, as most names must be.
pub(super) fn subdomain(name: &str) -> Vec<String> {
    let mut wrong = longer_than(253, "characters", name);
    if !name.split('.').all(is_label) {
        wrong.push(SUBDOMAIN.to_owned());
    }
    wrong
}

fn label(name: &str) -> Vec<String> {
    let mut wrong = longer_than(63, "characters", name);
    if !is_label(name) {
        let dotted = name.contains('.') && name.split('.').all(is_label);
        wrong.push(
            if dotted {
                "must not contain dots"
            } else {
                LABEL
            }
            .to_owned(),
        );
    }
    wrong
}

fn path_segment(name: &str) -> Vec<String> {
    if matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    ['/', '%']
        .iter()
        .filter(|&&bad| name.contains(bad))
        .map(|bad| format!("may not contain '{bad}'"))
        .collect()
}

/// The reasons why `key` is not valid for a label, annotation or finalizer.
pub(super) fn key(key: &str) -> Vec<String> {
    let parts: Vec<&str> = key.split('/').collect();
    let (mut wrong, name) = match parts.as_slice() {
        [name] => (Vec::new(), *name),
        ["", name] => (vec!["prefix part must be non-empty".to_owned()], *name),
        [prefix, name] => (prefixed("prefix part ", subdomain(prefix)), *name),
        _ => return vec![KEY_FORM.to_owned()],
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    }
    wrong.extend(prefixed("name part ", longer_than(63, "bytes", name)));
    if !is_word(name) {
        wrong.push(KEY_NAME.to_owned());
    }
    wrong
}

/// The reasons why `value` is not valid for a label.
pub(super) fn label_value(value: &str) -> Vec<String> {
    let mut wrong = longer_than(63, "bytes", value);
    if !value.is_empty() && !is_word(value) {
        wrong.push(LABEL_VALUE.to_owned());
    }
    wrong
}

fn longer_than(limit: usize, unit: &str, text: &str) -> Vec<String> {
    let too_long = text.len() > limit;
    let wrong = too_long.then(|| format!("must be no more than {limit} {unit}"));
    wrong.into_iter().collect()
}

fn prefixed(prefix: &str, messages: Vec<String>) -> Vec<String> {
    messages
        .into_iter()
        .map(|message| format!("{prefix}{message}"))
        .collect()
}

fn is_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    bounded_by(text, inner, |b| inner(b) || b == b'-')
}

fn is_word(text: &str) -> bool {
    bounded_by(
        text,
        |b| b.is_ascii_alphanumeric(),
        |b| b.is_ascii_alphanumeric() || b"-_.".contains(&b),
    )
}

/// Whether the text has only `inner` characters, and begins and ends with an `outer` one.
fn bounded_by(text: &str, outer: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    match text.as_bytes() {
        [] => false,
        [only] => outer(*only),
        [first, middle @ .., last] => {
            outer(*first) && outer(*last) && middle.iter().all(|&b| inner(b))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_words_with_an_optional_domain() {
        for fine in ["a", "kubectl-maint.dev/reason", "node.kubernetes.io/x_Y.z"] {
            assert!(key(fine).is_empty(), "{fine}");
        }
        for wrong in ["", "/a", "a/", "a/b/c", "-a", "Ä", "UPPER.dev/a b"] {
            assert!(!key(wrong).is_empty(), "{wrong}");
        }
    }

    #[test]
    fn names_are_dns_subdomains() {
        for fine in ["a", "worker-1.example.com"] {
            assert!(subdomain(fine).is_empty(), "{fine}");
        }
        for wrong in ["A", "a..b", "-a", "a_b", &"a".repeat(254)] {
            assert!(!subdomain(wrong).is_empty(), "{wrong}");
        }
    }
}
