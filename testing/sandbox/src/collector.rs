//! The parts of kube-controller-manager that delete: objects after their owners, and namespaces
//! after their content.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::resource::{Catalog, Resource};
use crate::route::key;
use crate::store::{Change, Store};
use crate::{object, rules};

/// The finalizer of an object that is deleted after its dependents.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an object whose dependents stay.
pub(crate) const ORPHAN: &str = "orphan";

/// Collects garbage, `delay` after it became garbage.
#[derive(Clone, Debug)]
pub(crate) struct Collector {
    pub(crate) delay: Duration,
}

/// An object to check again after the delay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Suspect {
    collection: Arc<str>,
    key: String,
}

/// If the suspect is garbage at `now`, removes it. Also handles its dependents or content.
pub(crate) fn collect(catalog: &Catalog, store: &mut Store, now: DateTime<Utc>, suspect: &Suspect) {
    let mut sweep = Sweep {
        catalog,
        store,
        now,
    };
    sweep.look_at(suspect);
}

impl Collector {
    /// The objects that the changes after `revision` may have turned into garbage.
    pub(crate) fn due(&self, store: &Store, revision: u64) -> Vec<Suspect> {
        let Ok(changes) = store.changes_since(revision) else {
            return Vec::new();
        };
        let mut due = Vec::new();
        for change in changes {
            if change.deleted {
                due.extend(left_behind_by(store, change));
            } else if needs_a_look(change) {
                due.push(Suspect {
                    collection: change.collection.clone(),
                    key: change.key.clone(),
                });
            }
        }
        due
    }
}

/// Whether a change needs a check: a terminating object may be ready for removal, and one with new
/// owners may have lost them.
fn needs_a_look(change: &Change) -> bool {
    let owners = |object: &Value| object::array(object, "/metadata/ownerReferences").to_vec();
    let owned_before = change.before.as_deref().map(owners).unwrap_or_default();
    let owned = owners(&change.after);
    object::is_terminating(&change.after) || (!owned.is_empty() && owned != owned_before)
}

/// The dependents of a removed object, and the terminating namespace or owner that may wait for it.
fn left_behind_by(store: &Store, change: &Change) -> Vec<Suspect> {
    let removed = &change.after;
    let uid = object::uid(removed);
    let namespace = object::namespace(removed);
    let owners: Vec<&str> = owner_uids(removed).collect();
    store
        .everything()
        .filter(|(collection, key, object)| {
            owner_uids(object).any(|owner| owner == uid)
                || owners.contains(&object::uid(object))
                || (&***collection == "namespaces" && *key == namespace)
        })
        .map(|(collection, key, _)| Suspect {
            collection: collection.clone(),
            key: key.clone(),
        })
        .collect()
}

fn owner_uids(object: &Value) -> impl Iterator<Item = &str> {
    object::array(object, "/metadata/ownerReferences")
        .iter()
        .map(|owner| object::text(owner, "/uid"))
}

/// One check of a suspect.
struct Sweep<'a> {
    catalog: &'a Catalog,
    store: &'a mut Store,
    now: DateTime<Utc>,
}

/// A stored object, with its collection and key.
type Found = (Arc<str>, String, Arc<Value>);

impl Sweep<'_> {
    fn look_at(&mut self, suspect: &Suspect) {
        let Some(resource) = self.catalog.by_collection(&suspect.collection) else {
            return;
        };
        let Some(object) = self.store.get(resource, &suspect.key).cloned() else {
            return;
        };
        if object::is_terminating(&object) {
            if &*resource.collection == "namespaces" {
                self.empty_namespace(resource, &object);
            } else {
                self.release_dependents(resource, &suspect.key, &object);
            }
            return;
        }
        let owners = object::array(&object, "/metadata/ownerReferences");
        let (living, gone): (Vec<&Value>, Vec<&Value>) =
            owners.iter().partition(|owner| self.lives(&object, owner));
        if gone.is_empty() {
            return;
        }
        if living.is_empty() {
            self.delete(&suspect.collection, &suspect.key);
        } else {
            let mut kept = Value::clone(&object);
            kept["metadata"]["ownerReferences"] = living.into_iter().cloned().collect();
            self.store.put(resource, &suspect.key, kept);
        }
    }

    /// Whether the object that a reference names still exists with the same uid.
    fn lives(&self, object: &Value, owner: &Value) -> bool {
        let text = |key: &str| object::text(owner, key);
        // Types that the server doesn't know can't be looked up: nothing is collected for them.
        let Some(resource) = self.catalog.by_kind(text("/apiVersion"), text("/kind")) else {
            return true;
        };
        let namespace = if resource.namespaced {
            object::namespace(object)
        } else {
            ""
        };
        self.store
            .get(resource, &key(namespace, text("/name")))
            .is_some_and(|found| object::uid(found) == text("/uid"))
    }

    /// Deletes an object like a DELETE request: with finalizers, it stays and is terminating.
    fn delete(&mut self, collection: &str, key: &str) {
        let Some(resource) = self.catalog.by_collection(collection) else {
            return;
        };
        let Some(object) = self.store.get(resource, key).cloned() else {
            return;
        };
        if object::array(&object, "/metadata/finalizers").is_empty() {
            self.store.remove(resource, key);
        } else if !object::is_terminating(&object) {
            let mut terminating = Value::clone(&object);
            object::mark_terminating(&mut terminating, self.now, 0);
            self.store.put(resource, key, terminating);
        }
    }

    /// Deletes the content of a terminating namespace, and the namespace itself once it is empty.
    fn empty_namespace(&mut self, resource: &Resource, namespace: &Value) {
        let name = object::name(namespace);
        for (collection, key, _) in self.found(|object| object::namespace(object) == name) {
            self.delete(&collection, &key);
        }
        let held = !object::array(namespace, "/metadata/finalizers").is_empty()
            || object::texts(namespace, "/spec/finalizers") != [rules::NAMESPACE_FINALIZER];
        let left = self.found(|object| object::namespace(object) == name);
        if left.is_empty() && !held {
            self.store.remove(resource, name);
        }
    }

    /// Handles the `foregroundDeletion` or `orphan` finalizer of a terminating object.
    fn release_dependents(&mut self, resource: &Resource, key: &str, owner: &Value) {
        let finalizers = object::texts(owner, "/metadata/finalizers");
        let Some(finalizer) = finalizers
            .iter()
            .copied()
            .find(|finalizer| [FOREGROUND, ORPHAN].contains(finalizer))
        else {
            return;
        };
        let uid = object::uid(owner);
        let owned = |object: &Value| owner_uids(object).any(|owner| owner == uid);
        for (collection, key, dependent) in self.found(owned) {
            if finalizer == FOREGROUND {
                self.delete(&collection, &key);
            } else {
                self.disown(&collection, &key, &dependent, uid);
            }
        }
        let left = self.found(owned);
        if left.iter().any(|(_, _, object)| blocks(object, uid)) {
            return;
        }
        let kept: Vec<Value> = finalizers
            .into_iter()
            .filter(|other| *other != finalizer)
            .map(Value::from)
            .collect();
        if kept.is_empty() {
            self.store.remove(resource, key);
        } else {
            let mut waiting = Value::clone(owner);
            waiting["metadata"]["finalizers"] = kept.into();
            self.store.put(resource, key, waiting);
        }
    }

    /// Removes the reference to an owner from one of its dependents.
    fn disown(&mut self, collection: &str, key: &str, dependent: &Value, owner: &str) {
        let Some(resource) = self.catalog.by_collection(collection) else {
            return;
        };
        let mut freed = Value::clone(dependent);
        if let Some(owners) = freed["metadata"]["ownerReferences"].as_array_mut() {
            owners.retain(|reference| object::text(reference, "/uid") != owner);
        }
        object::normalise(&mut freed);
        self.store.put(resource, key, freed);
    }

    fn found(&self, wanted: impl Fn(&Value) -> bool) -> Vec<Found> {
        self.store
            .everything()
            .filter(|(_, _, object)| wanted(object))
            .map(|(collection, key, object)| (collection.clone(), key.clone(), object.clone()))
            .collect()
    }
}

/// Whether the owner must wait for this dependent.
fn blocks(dependent: &Value, owner: &str) -> bool {
    object::array(dependent, "/metadata/ownerReferences")
        .iter()
        .any(|reference| {
            object::text(reference, "/uid") == owner
                && reference["blockOwnerDeletion"].as_bool() == Some(true)
        })
}
