//! The verbs, one file each, named as typed: arguments, calls to the library, outcome.

pub(crate) mod acquire;
pub(crate) mod completion;
pub(crate) mod describe;
pub(crate) mod doctor;
pub(crate) mod enforce;
pub(crate) mod fence;
pub(crate) mod force_delete;
pub(crate) mod history;
pub(crate) mod hold;
pub(crate) mod install;
pub(crate) mod leases;
pub(crate) mod options;
pub(crate) mod reference;
pub(crate) mod release;
pub(crate) mod renew;
pub(crate) mod status;
pub(crate) mod unfence;
pub(crate) mod unhold;
pub(crate) mod uninstall;
pub(crate) mod verify;
pub(crate) mod version;
pub(crate) mod wait;
pub(crate) mod why;
pub(crate) mod with;
