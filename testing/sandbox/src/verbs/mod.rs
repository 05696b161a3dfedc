//! The effect of each verb on the store. Every verb is one atomic step.

mod call;
mod create;
mod delete;
mod list;
mod patch;
mod update;

use crate::failure::Failure;

pub(crate) use call::{Call, List, Outcome};
pub(crate) use create::create;
pub(crate) use delete::{delete, delete_collection};
pub(crate) use list::{ListOptions, list, prefix};
pub(crate) use patch::{PatchType, patch};
pub(crate) use update::replace;

/// GET of one object.
pub(crate) fn get(call: &Call<'_>) -> Result<Outcome, Failure> {
    list::check_version(call)?;
    let object = call
        .server
        .find(call.resource(), &call.target.key())
        .ok_or_else(|| call.not_found())?;
    Ok(Outcome::Object(200, call.served(&object)))
}
