//! How far a forced deletion has come.

use std::collections::BTreeMap;

use pod_safety::consent::{Consent, Missing};
use pod_safety::owners::IncompleteOwner;
use pod_safety::report::{DeletionTarget, Report};

use super::deleted::Deleted;
use super::read::{First, Key, key};
use crate::output::error_code::ErrorCode;
use crate::output::item_error::ItemError;
use crate::words::force_deletion as words;

/// What became of the targets so far.
#[derive(Default)]
pub(super) struct Progress {
    /// The targets that are left to delete.
    pub(super) left: First,
    /// Those with an outcome.
    pub(super) deleted: Vec<Deleted>,
    /// The owners that do not have all their pods ready.
    pub(super) incomplete: Vec<IncompleteOwner>,
    /// A risk to accept that is not in the reports.
    pub(super) to_accept: Option<&'static str>,
    /// Why targets are not deleted.
    errors: BTreeMap<Key, ItemError>,
    /// Why all others without an outcome are not deleted.
    stopped: Option<ItemError>,
}

impl Progress {
    /// Nothing was deleted yet.
    pub(super) fn of(left: First) -> Self {
        Self {
            left,
            ..Self::default()
        }
    }

    /// Of what is left, only `there` still exists.
    pub(super) fn keep(&mut self, there: &First) {
        let left = std::mem::take(&mut self.left).into_iter();
        let (left, gone): (First, First) = left.partition(|(key, _)| there.contains_key(key));
        self.left = left;
        self.deleted.extend(gone.into_values().map(Deleted::gone));
    }

    /// Nothing more is deleted, because of `error`. `None`: it is not about one target.
    pub(super) fn stop(&mut self, target: Option<&DeletionTarget>, error: ItemError) {
        self.stopped = Some(match target {
            Some(target) => {
                self.errors.insert(key(target), error);
                other_failed()
            }
            None => error,
        });
    }

    /// Nothing is deleted, because `consent` does not cover `reports`.
    pub(super) fn refuse(&mut self, reports: &[Report], consent: &Consent) {
        for report in reports {
            if let Some(missing) = consent.missing([report]) {
                let error = ItemError::of(code(&missing), words::not_accepted(&missing));
                self.errors.insert(key(&report.target), error);
            }
        }
        self.stopped = Some(other_failed());
    }

    /// Whether nothing more is deleted.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// Why `target` is not deleted, if it has no outcome.
    pub(super) fn error(&self, target: &DeletionTarget) -> Option<ItemError> {
        let own = self.errors.get(&key(target));
        own.or(self.stopped.as_ref()).cloned()
    }

    /// How many targets this command has deleted.
    pub(super) fn done(&self) -> usize {
        let deleted = self.deleted.iter();
        deleted.filter(|one| one.outcome.was_deleted()).count()
    }
}

/// The code for what was not accepted.
pub(super) fn code(missing: &Missing) -> ErrorCode {
    match missing.blocked.is_empty() {
        true => ErrorCode::NotConfirmed,
        false => ErrorCode::Unsafe,
    }
}

/// Why a target without a problem was not deleted.
pub(super) fn other_failed() -> ItemError {
    ItemError::of(ErrorCode::OtherFailed, words::OTHER_FAILED.to_owned())
}
