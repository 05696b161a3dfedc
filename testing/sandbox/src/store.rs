//! Objects and the history of their changes, with one counter of revisions.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use crate::object;
use crate::resource::Resource;

/// The objects of one type, by key.
pub(crate) type Objects = BTreeMap<String, Arc<Value>>;

/// A write that took effect.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) collection: Arc<str>,
    pub(crate) key: String,
    /// The object before the write. `None` if the write created it.
    pub(crate) before: Option<Arc<Value>>,
    /// The object after the write. For a deletion, its last state at the revision of the deletion.
    pub(crate) after: Arc<Value>,
    pub(crate) deleted: bool,
}

/// The objects and the history of a server.
#[derive(Debug)]
pub(crate) struct Store {
    revision: u64,
    collections: BTreeMap<Arc<str>, Objects>,
    history: VecDeque<Change>,
    /// The newest revision that can no longer be listed or watched from.
    compacted: u64,
    history_limit: usize,
}

/// The revision is older than the history that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compacted;

impl Store {
    /// An empty store that keeps the last `history_limit` changes.
    pub(crate) fn new(history_limit: usize) -> Self {
        Self {
            revision: 1,
            collections: BTreeMap::new(),
            history: VecDeque::new(),
            compacted: 0,
            history_limit,
        }
    }

    /// The revision of the newest change.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn get(&self, resource: &Resource, key: &str) -> Option<&Arc<Value>> {
        self.collections.get(&resource.collection)?.get(key)
    }

    /// The objects of a type whose keys begin with `prefix`, in the order of their keys.
    pub(crate) fn list(
        &self,
        resource: &Resource,
        prefix: &str,
    ) -> impl Iterator<Item = (&String, &Arc<Value>)> {
        self.collections
            .get(&resource.collection)
            .into_iter()
            .flat_map(move |objects| objects.range(prefix.to_owned()..))
            .take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// Like [`list`](Self::list), at an earlier revision.
    pub(crate) fn list_at(
        &self,
        resource: &Resource,
        prefix: &str,
        revision: u64,
    ) -> Result<Objects, Compacted> {
        if revision < self.compacted {
            return Err(Compacted);
        }
        let mut objects: Objects = self
            .list(resource, prefix)
            .map(|(key, object)| (key.clone(), object.clone()))
            .collect();
        let undone = self
            .history
            .iter()
            .rev()
            .take_while(|change| change.revision > revision)
            .filter(|change| change.collection == resource.collection)
            .filter(|change| change.key.starts_with(prefix));
        for change in undone {
            match &change.before {
                Some(before) => objects.insert(change.key.clone(), before.clone()),
                None => objects.remove(&change.key),
            };
        }
        Ok(objects)
    }

    /// All objects, of every type.
    pub(crate) fn everything(&self) -> impl Iterator<Item = (&Arc<str>, &String, &Arc<Value>)> {
        self.collections.iter().flat_map(|(collection, objects)| {
            objects
                .iter()
                .map(move |(key, object)| (collection, key, object))
        })
    }

    /// Writes an object at a new revision, which becomes its resource version.
    pub(crate) fn put(&mut self, resource: &Resource, key: &str, mut object: Value) -> Arc<Value> {
        let revision = self.next_revision();
        stamp(&mut object, revision);
        let object = Arc::new(object);
        let before = self
            .collections
            .entry(resource.collection.clone())
            .or_default()
            .insert(key.to_owned(), object.clone());
        self.remember(Change {
            revision,
            collection: resource.collection.clone(),
            key: key.to_owned(),
            before,
            after: object.clone(),
            deleted: false,
        });
        object
    }

    /// Removes an object and returns its last state, at the revision of the deletion.
    pub(crate) fn remove(&mut self, resource: &Resource, key: &str) -> Option<Arc<Value>> {
        let before = self
            .collections
            .get_mut(&resource.collection)?
            .remove(key)?;
        let revision = self.next_revision();
        let mut last = Value::clone(&before);
        stamp(&mut last, revision);
        let last = Arc::new(last);
        self.remember(Change {
            revision,
            collection: resource.collection.clone(),
            key: key.to_owned(),
            before: Some(before),
            after: last.clone(),
            deleted: true,
        });
        Some(last)
    }

    /// The changes after `revision`, oldest first.
    pub(crate) fn changes_since(
        &self,
        revision: u64,
    ) -> Result<impl Iterator<Item = &Change>, Compacted> {
        if revision < self.compacted {
            return Err(Compacted);
        }
        let first = self
            .history
            .partition_point(|change| change.revision <= revision);
        Ok(self.history.range(first..))
    }

    /// Deletes the history: older watches and lists must start again.
    pub(crate) fn compact(&mut self) {
        self.history.clear();
        self.compacted = self.revision;
    }

    fn next_revision(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }

    fn remember(&mut self, change: Change) {
        self.history.push_back(change);
        while self.history.len() > self.history_limit {
            if let Some(forgotten) = self.history.pop_front() {
                self.compacted = forgotten.revision;
            }
        }
    }
}

fn stamp(object: &mut Value, revision: u64) {
    object::set_metadata(object, "resourceVersion", Some(revision.to_string().into()));
}
