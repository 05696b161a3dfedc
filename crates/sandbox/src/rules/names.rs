//! Names: of objects, and of the keys of labels, annotations and finalizers.

use serde_json::Value;

use crate::failure::Cause;
use crate::object;
use crate::resource::Resource;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const KEY_NAME: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const KEY_FORM: &str = "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// What is wrong with the object's own name.
pub(super) fn violations(resource: &Resource, object: &Value) -> Vec<Cause> {
    let name = object::name(object);
    if name.is_empty() {
        return vec![Cause::required(
            "metadata.name",
            "name or generateName is required",
        )];
    }
    let wrong = match (&*resource.group, &*resource.collection) {
        (_, "namespaces") => label(name),
        ("rbac.authorization.k8s.io", _) => path_segment(name),
        _ => subdomain(name),
    };
    wrong
        .map(|why| Cause::invalid("metadata.name", &format!("{name:?}"), &why))
        .into_iter()
        .collect()
}

/// Says what keeps `name` from being a DNS subdomain, as most names must be.
pub(super) fn subdomain(name: &str) -> Option<String> {
    if name.len() > 253 {
        Some("must be no more than 253 bytes".to_owned())
    } else if name.split('.').all(is_label) {
        None
    } else {
        Some(SUBDOMAIN.to_owned())
    }
}

fn label(name: &str) -> Option<String> {
    if name.len() > 63 {
        Some("must be no more than 63 bytes".to_owned())
    } else if is_label(name) {
        None
    } else {
        Some(LABEL.to_owned())
    }
}

fn path_segment(name: &str) -> Option<String> {
    let bad = name.chars().find(|c| matches!(c, '/' | '%'));
    if matches!(name, "." | "..") {
        Some(format!("may not be '{name}'"))
    } else {
        bad.map(|c| format!("may not contain '{c}'"))
    }
}

/// Says what keeps `key` from being the key of a label, annotation or finalizer.
pub(super) fn key(key: &str) -> Option<String> {
    let name = match key.split_once('/') {
        None => key,
        Some((_, name)) if name.contains('/') => return Some(KEY_FORM.to_owned()),
        Some(("", _)) => return Some("prefix part must be non-empty".to_owned()),
        Some((prefix, name)) => {
            if let Some(why) = subdomain(prefix) {
                return Some(format!("prefix part {why}"));
            }
            name
        }
    };
    if name.is_empty() {
        Some("name part must be non-empty".to_owned())
    } else if name.len() > 63 {
        Some("name part must be no more than 63 bytes".to_owned())
    } else if is_word(name) {
        None
    } else {
        Some(KEY_NAME.to_owned())
    }
}

/// Says what keeps `value` from being a label's value.
pub(super) fn label_value(value: &str) -> Option<String> {
    if value.len() > 63 {
        Some("must be no more than 63 bytes".to_owned())
    } else if value.is_empty() || is_word(value) {
        None
    } else {
        Some(LABEL_VALUE.to_owned())
    }
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

/// Whether the text is made of `inner` characters, and begins and ends with an `outer` one.
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
            assert_eq!(key(fine), None, "{fine}");
        }
        for wrong in ["", "/a", "a/", "a/b/c", "-a", "Ä", "UPPER.dev/a b"] {
            assert!(key(wrong).is_some(), "{wrong}");
        }
    }

    #[test]
    fn names_are_dns_subdomains() {
        for fine in ["a", "worker-1.example.com"] {
            assert_eq!(subdomain(fine), None, "{fine}");
        }
        for wrong in ["A", "a..b", "-a", "a_b", &"a".repeat(254)] {
            assert!(subdomain(wrong).is_some(), "{wrong}");
        }
    }
}
