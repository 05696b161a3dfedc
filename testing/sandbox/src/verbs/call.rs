//! The input and output of a verb.

use std::cell::RefCell;
use std::sync::Arc;

use serde_json::Value;

use crate::failure::Failure;
use crate::query::Query;
use crate::resource::Resource;
use crate::route::Target;
use crate::server::Server;
use crate::{object, rules, versions};

/// A request about objects, with everything that a verb needs.
pub(crate) struct Call<'a> {
    pub(crate) server: &'a Arc<Server>,
    pub(crate) target: &'a Target,
    pub(crate) query: &'a Query,
    /// The warnings for the caller.
    pub(crate) warnings: RefCell<Vec<String>>,
}

/// The result of a verb.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// One object, with its HTTP status.
    Object(u16, Arc<Value>),
    /// Several objects, as one list.
    List(List),
    /// A `Status` that reports success.
    Done(Value),
}

/// The objects of a list, and its position.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) revision: u64,
    pub(crate) items: Vec<Arc<Value>>,
    /// The continue token of the next page, or empty on the last page.
    pub(crate) next: String,
    /// The number of objects on the following pages.
    pub(crate) remaining: Option<usize>,
}

impl Call<'_> {
    pub(super) fn resource(&self) -> &Resource {
        &self.target.resource
    }

    pub(super) fn name(&self) -> &str {
        &self.target.name
    }

    /// Reads the body of a POST or PUT.
    pub(super) fn read(&self, body: &mut Value) -> Result<(), Failure> {
        let unknown = rules::read(self.resource(), body)
            .map_err(|unreadable| unreadable.of_body(self.resource()))?;
        self.check_unknown(unknown, |why| {
            Failure::bad_request(rules::cannot_be_handled(self.resource(), why))
        })
    }

    /// Reads the result of a patch.
    pub(super) fn read_patched(&self, object: &mut Value, patched: &Value) -> Result<(), Failure> {
        let unknown = rules::read(self.resource(), object)
            .map_err(|unreadable| unreadable.of_patch(patched))?;
        self.check_unknown(unknown, |why| Failure::unreadable_patch(patched, why))
    }

    /// Ignores, warns about or refuses unknown fields, as `fieldValidation` says.
    fn check_unknown(
        &self,
        unknown: Vec<String>,
        refusal: impl Fn(&str) -> Failure,
    ) -> Result<(), Failure> {
        match self.query.get("fieldValidation") {
            Some("Ignore") => Ok(()),
            Some("Strict") if unknown.is_empty() => Ok(()),
            Some("Strict") => {
                let all = unknown.join(", ");
                Err(refusal(&format!("strict decoding error: {all}")))
            }
            _ => {
                self.warnings.borrow_mut().extend(unknown);
                Ok(())
            }
        }
    }

    pub(super) fn not_found(&self) -> Failure {
        Failure::not_found(self.resource(), self.name())
    }

    /// The object, in the requested API version.
    pub(super) fn served(&self, object: &Arc<Value>) -> Arc<Value> {
        versions::served(self.resource(), object)
    }
}

/// Checks that the namespace in the body matches the path.
pub(super) fn check_namespace(call: &Call<'_>, object: &mut Value) -> Result<(), Failure> {
    let expected = call.target.namespace.as_str();
    match object::namespace(object) {
        found if found == expected => Ok(()),
        "" => {
            object::set_metadata(object, "namespace", Some(expected.into()));
            Ok(())
        }
        _ => Err(Failure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )),
    }
}
