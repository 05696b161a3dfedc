//! Why a namespace stays in Terminating, as reported in the conditions of its controller.

use k8s_openapi::api::core::v1::Namespace;
use maintenance_lease::protocol::Now;

use super::{Diagnosis, Finalizer, Reason, State};
use crate::known::Known;
use crate::wire::instant;

/// The start of the message of `NamespaceContentRemaining`, and the text between a kind and its count.
const LEFT: (&str, &str) = ("Some resources are remaining: ", " has ");

/// The start of the message of `NamespaceFinalizersRemaining`, and the text between a finalizer and its
/// count.
const FINALIZERS: (&str, &str) = (
    "Some content in the namespace has finalizers remaining: ",
    " in ",
);

/// The text after each count in both messages.
const INSTANCES: &str = " resource instances";

/// The start of the message of `NamespaceDeletionContentFailure`; the number of errors and the errors follow.
const FAILED: &str = "Failed to delete all resource types, ";

/// The error for objects that remain without a finalizer.
const REMAIN: &str = "unexpected items still remain in namespace: ";

/// The condition that some API groups could not be discovered.
const DISCOVERY: &str = "NamespaceDeletionDiscoveryFailure";

/// All conditions that the namespace controller sets.
const CONDITIONS: [&str; 5] = [
    DISCOVERY,
    "NamespaceDeletionGroupVersionParsingFailure",
    "NamespaceDeletionContentFailure",
    "NamespaceContentRemaining",
    "NamespaceFinalizersRemaining",
];

/// The namespace controller's own finalizer, which it removes last.
const OWN: &str = "kubernetes";

/// The objects that explain a namespace.
#[derive(Clone, Debug)]
pub struct NamespaceEvidence {
    /// The namespace.
    pub namespace: Namespace,
    /// The names of the remaining objects, for each kind that [`named`] returns.
    pub names: Vec<(&'static str, Known<Vec<String>>)>,
}

/// The kinds of objects in `namespace` that may remain and can be explained. While pods are left, the
/// controller does not report what remains (`OrderedNamespaceDeletion`).
#[must_use]
pub fn named(namespace: &Namespace) -> Vec<&'static str> {
    if namespace.metadata.deletion_timestamp.is_none() {
        return Vec::new();
    }
    let explained = ["pods", "persistentvolumeclaims"];
    let is_counted = message(namespace, "NamespaceContentRemaining").is_some();
    let left = counted(namespace, "NamespaceContentRemaining", LEFT).unwrap_or_default();
    let is_left = |kind: &&str| !is_counted || left.iter().any(|(resource, _)| resource == kind);
    explained.into_iter().filter(is_left).collect()
}

/// Explains why a namespace is stuck at `now`.
#[must_use]
pub fn diagnose_namespace(evidence: &NamespaceEvidence, now: Now) -> Diagnosis {
    let namespace = &evidence.namespace;
    let Some(since) = namespace.metadata.deletion_timestamp.as_ref() else {
        return Diagnosis::new(State::Active);
    };
    let since = instant(since).min(now.latest);
    let mut found = Diagnosis::new(State::Terminating { since });
    for condition in [DISCOVERY, "NamespaceDeletionGroupVersionParsingFailure"] {
        found.extend(quoted(namespace, condition));
    }
    match counted(namespace, "NamespaceContentRemaining", LEFT) {
        Some(left) if left.is_empty() => {
            for (kind, names) in &evidence.names {
                let names = found.known(kind, names).filter(|names| !names.is_empty());
                let left = names.map(|names| Reason::Left {
                    resource: (*kind).to_owned(),
                    count: names.len() as u64,
                    names: names.clone(),
                });
                found.extend(left);
            }
        }
        Some(left) => {
            for (resource, count) in left {
                let names = evidence.names.iter().find(|(kind, _)| *kind == resource);
                let names = names.and_then(|(kind, names)| found.known(kind, names));
                let names = names.cloned().unwrap_or_default();
                found.push(Reason::Left {
                    resource,
                    count,
                    names,
                });
            }
        }
        None => found.extend(quoted(namespace, "NamespaceContentRemaining")),
    }
    match counted(namespace, "NamespaceFinalizersRemaining", FINALIZERS) {
        Some(finalizers) => {
            let finalizers = finalizers.into_iter();
            found.extend(finalizers.map(|(name, count)| Reason::ContentFinalizer {
                finalizer: Finalizer::named(&name),
                count,
            }));
        }
        None => found.extend(quoted(namespace, "NamespaceFinalizersRemaining")),
    }
    if found.reasons.is_empty() || !only_says_that_something_remains(namespace) {
        found.extend(quoted(namespace, "NamespaceDeletionContentFailure"));
    }
    let of_spec = namespace
        .spec
        .as_ref()
        .and_then(|spec| spec.finalizers.as_ref());
    let of_spec = of_spec.into_iter().flatten().filter(|name| *name != OWN);
    found.extend(of_spec.map(|name| Reason::Finalizer(Finalizer::named(name))));
    let own = Finalizer::all(&namespace.metadata).map(Reason::Finalizer);
    found.extend(own);
    if !is_reported(namespace) {
        found.push(Reason::Unreported);
    } else if found.reasons.is_empty() {
        found.push(Reason::NothingReported);
    }
    found
}

/// Whether every error of a failed deletion only says that objects remain. The other reasons name these objects.
fn only_says_that_something_remains(namespace: &Namespace) -> bool {
    let message = message(namespace, "NamespaceDeletionContentFailure").unwrap_or_default();
    let errors = message.strip_prefix(FAILED).and_then(|message| {
        let (count, errors) = message.split_once(" remaining: ")?;
        Some((count.parse().ok()?, errors))
    });
    errors.is_some_and(|(count, errors): (usize, &str)| errors.matches(REMAIN).count() == count)
}

/// Whether the controller has reported on the namespace.
fn is_reported(namespace: &Namespace) -> bool {
    let status = namespace.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|one| CONDITIONS.contains(&&*one.type_))
}

/// The message of a condition that is True.
fn message<'a>(namespace: &'a Namespace, kind: &str) -> Option<&'a str> {
    let conditions = namespace.status.as_ref()?.conditions.as_ref()?;
    let condition = conditions
        .iter()
        .find(|one| one.type_ == kind && one.status == "True")?;
    Some(condition.message.as_deref().unwrap_or_default())
}

fn quoted(namespace: &Namespace, condition: &str) -> Option<Reason> {
    message(namespace, condition).map(|message| Reason::Content {
        message: message.to_owned(),
        undiscovered: condition == DISCOVERY,
    })
}

/// The counts in the message of a condition; `None` if the message has an unknown form.
fn counted(
    namespace: &Namespace,
    condition: &str,
    (prefix, divider): (&str, &str),
) -> Option<Vec<(String, u64)>> {
    let Some(message) = message(namespace, condition) else {
        return Some(Vec::new());
    };
    let items = message.strip_prefix(prefix)?.split(", ").map(|item| {
        let (what, count) = item.strip_suffix(INSTANCES)?.rsplit_once(divider)?;
        // The core group is empty, so a resource is written as `pods.`.
        Some((what.trim_end_matches('.').to_owned(), count.parse().ok()?))
    });
    items.collect()
}

#[cfg(test)]
mod tests {
    use maintenance_lease::protocol::Instant;
    use serde_json::{Value, json};

    use super::*;

    fn reasons(conditions: &[(&str, &str)], change: &Value) -> Vec<Reason> {
        reasons_with(conditions, change, &["web-0"])
    }

    fn reasons_with(conditions: &[(&str, &str)], change: &Value, pods: &[&str]) -> Vec<Reason> {
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(kind, message)| json!({"type": kind, "status": "True", "message": message}))
            .collect();
        let namespace = json!({
            "metadata": {
                "name": "shop", "deletionTimestamp": "1970-01-01T00:00:00Z",
                "finalizers": change["metadata"],
            },
            "spec": {"finalizers": change["spec"]},
            "status": {"conditions": conditions},
        });
        let evidence = NamespaceEvidence {
            namespace: serde_json::from_value(namespace).expect("a namespace"),
            names: vec![(
                "pods",
                Known::Yes(pods.iter().map(|&name| name.to_owned()).collect()),
            )],
        };
        diagnose_namespace(&evidence, Now::at(Instant::from_micros(9))).reasons
    }

    #[test]
    fn its_conditions_say_what_is_left() {
        let left = "Some resources are remaining: pods. has 1 resource instances, \
                    widgets.example.com has 2 resource instances";
        let finalizers = "Some content in the namespace has finalizers remaining: \
                          example.com/backup in 2 resource instances";
        let found = reasons(
            &[
                ("NamespaceContentRemaining", left),
                ("NamespaceFinalizersRemaining", finalizers),
                (
                    "NamespaceDeletionContentFailure",
                    "Failed to delete all resource types, 1 remaining: \
                     unexpected items still remain in namespace: shop for gvr: /v1, Resource=pods",
                ),
            ],
            &json!({"spec": ["kubernetes"]}),
        );
        let left = |resource: &str, count, names: &[&str]| Reason::Left {
            resource: resource.to_owned(),
            count,
            names: names.iter().map(|&name| name.to_owned()).collect(),
        };
        assert_eq!(
            found,
            [
                left("pods", 1, &["web-0"]),
                left("widgets.example.com", 2, &[]),
                Reason::ContentFinalizer {
                    finalizer: Finalizer::named("example.com/backup"),
                    count: 2,
                },
            ]
        );
    }

    #[test]
    fn conditions_that_report_nothing_do_not_prove_that_nothing_is_left() {
        let diagnosed = |status: &str, pods: &[&str]| {
            let conditions = CONDITIONS.map(|kind| json!({"type": kind, "status": status}));
            let namespace = json!({
                "metadata": {"name": "shop", "deletionTimestamp": "1970-01-01T00:00:00Z"},
                "status": {"conditions": conditions},
            });
            let namespace: Namespace = serde_json::from_value(namespace).expect("a namespace");
            let kinds = named(&namespace);
            let pods = pods.iter().map(|&name| name.to_owned()).collect();
            let names = vec![("pods", Known::Yes(pods))];
            let evidence = NamespaceEvidence { namespace, names };
            let found = diagnose_namespace(&evidence, Now::at(Instant::from_micros(9)));
            (kinds, found.reasons)
        };
        let read = vec!["pods", "persistentvolumeclaims"];
        let left = Reason::Left {
            resource: "pods".to_owned(),
            count: 1,
            names: vec!["web-0".to_owned()],
        };
        assert_eq!(diagnosed("False", &["web-0"]), (read.clone(), vec![left]));
        let nothing = vec![Reason::NothingReported];
        assert_eq!(diagnosed("False", &[]), (read, nothing));
        let quoted = Reason::Content {
            message: String::new(),
            undiscovered: true,
        };
        assert!(diagnosed("True", &["web-0"]).1.contains(&quoted));
    }

    #[test]
    fn pods_are_found_while_they_keep_the_controller_from_reporting_them() {
        let generic = "Failed to delete all resource types, 1 remaining: failed to delete pods for namespace: \
                       shop, err: unexpected items still remain in namespace: shop for gvr: /v1, Resource=pods";
        let left = || Reason::Left {
            resource: "pods".to_owned(),
            count: 1,
            names: vec!["web-0".to_owned()],
        };
        let failure = ("NamespaceDeletionContentFailure", generic);
        assert_eq!(reasons(&[failure], &json!({})), [left()]);
        let undiscovered = Reason::Content {
            message: "stale GroupVersion".to_owned(),
            undiscovered: true,
        };
        let discovery = (DISCOVERY, "stale GroupVersion");
        assert_eq!(
            reasons(&[discovery, failure], &json!({})),
            [undiscovered, left()]
        );
        assert_eq!(reasons(&[], &json!({})), [left(), Reason::Unreported]);
    }

    #[test]
    fn a_failure_to_delete_is_quoted_unless_it_only_counts_what_remains() {
        let quotes = |message: &str| {
            let found = reasons(&[("NamespaceDeletionContentFailure", message)], &json!({}));
            let quoted = Reason::Content {
                message: message.to_owned(),
                undiscovered: false,
            };
            found.contains(&quoted)
        };
        let remain = "unexpected items still remain in namespace: shop for gvr: /v1, Resource=pods";
        let failed = |count, errors: &str| {
            format!("Failed to delete all resource types, {count} remaining: {errors}")
        };
        assert!(!quotes(&failed(1, remain)));
        assert!(!quotes(&failed(2, &format!("{remain}, {remain}"))));
        assert!(quotes(&failed(
            2,
            &format!("admission webhook denied it, {remain}")
        )));
        assert!(quotes(&failed(1, "admission webhook denied it")));
        assert!(quotes("something else"));
    }

    #[test]
    fn unparsable_messages_are_quoted() {
        for condition in [
            "NamespaceDeletionDiscoveryFailure",
            "NamespaceContentRemaining",
            "NamespaceFinalizersRemaining",
            "NamespaceDeletionContentFailure",
        ] {
            let message = "something else".to_owned();
            let found = reasons_with(&[(condition, &message)], &json!({}), &[]);
            let undiscovered = condition == DISCOVERY;
            let quoted = Reason::Content {
                message,
                undiscovered,
            };
            assert_eq!(found, [quoted], "{condition}");
        }
    }

    #[test]
    fn its_own_finalizers_keep_it_too() {
        let found = reasons_with(
            &[],
            &json!({"spec": ["kubernetes", "example.com/a"], "metadata": ["example.com/b"]}),
            &[],
        );
        let named = |name| Reason::Finalizer(Finalizer::named(name));
        let [a, b] = ["example.com/a", "example.com/b"].map(named);
        assert_eq!(found, [a, b, Reason::Unreported]);
    }
}
