//! LIST, complete or in pages.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::call::{Call, List, Outcome};
use crate::cause::Cause;
use crate::failure::Failure;
use crate::query::Query;
use crate::resource::Resource;
use crate::selector::Selector;
use crate::store::Objects;

const CONTINUE_TOO_OLD: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// The objects to list, and how many at a time.
#[derive(Clone, Debug)]
pub(crate) struct ListOptions {
    pub(crate) selector: Selector,
    limit: Option<usize>,
    page: Option<Page>,
    /// The exact revision to list.
    exact: Option<u64>,
}

/// The end of an earlier page: the revision of its list, and the first key of the next page.
#[derive(Clone, Debug, PartialEq)]
struct Page {
    revision: u64,
    start: String,
}

impl Page {
    fn encode(&self) -> String {
        let token = json!({"v": "meta.k8s.io/v1", "rv": self.revision, "start": self.start});
        URL_SAFE_NO_PAD.encode(token.to_string())
    }

    fn decode(token: &str) -> Result<Self, Failure> {
        let read = || -> Option<Self> {
            let token: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
            Some(Self {
                revision: token["rv"].as_u64()?,
                start: token["start"].as_str()?.to_owned(),
            })
        };
        read().ok_or_else(|| {
            Failure::bad_request("invalid continue token: continue key is not valid")
        })
    }
}

/// Checks that `resourceVersionMatch` and `sendInitialEvents` are used only with the options that
/// they allow.
fn check_combination(query: &Query) -> Result<(), Failure> {
    const MATCH: &str = "resourceVersionMatch";
    let wanted = query.get(MATCH).unwrap_or_default();
    let initial = query.get("sendInitialEvents").is_some();
    let (watch, version) = (query.flag("watch"), query.get("resourceVersion"));
    let supported = if watch {
        "\"NotOlderThan\""
    } else {
        "\"Exact\", \"NotOlderThan\", \"\""
    };
    let rules = [
        (
            watch && initial && wanted != "NotOlderThan",
            MATCH,
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ),
        (
            watch && !initial && !wanted.is_empty(),
            MATCH,
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ),
        (
            !watch && !wanted.is_empty() && version.is_none(),
            MATCH,
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        (
            !watch && wanted == "Exact" && version == Some("0"),
            MATCH,
            "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        ),
        (
            !watch && initial,
            "sendInitialEvents",
            "sendInitialEvents is forbidden for list",
        ),
        (
            !wanted.is_empty() && query.get("continue").is_some(),
            MATCH,
            "resourceVersionMatch is forbidden when continue is provided",
        ),
    ];
    let mut causes: Vec<Cause> = rules
        .iter()
        .filter(|(broken, _, _)| *broken)
        .map(|(_, field, why)| Cause::forbidden(field, why))
        .collect();
    if !wanted.is_empty() && !supported.contains(&format!("{wanted:?}")) {
        causes.push(Cause::unsupported(MATCH, &format!("{wanted:?}"), supported));
    }
    if causes.is_empty() {
        Ok(())
    } else {
        Err(Failure::invalid_list_options(&causes))
    }
}

impl ListOptions {
    pub(crate) fn read(resource: &Resource, query: &Query) -> Result<Self, Failure> {
        check_combination(query)?;
        let selector = Selector::parse(
            resource,
            query.get("labelSelector"),
            query.get("fieldSelector"),
        )?;
        let limit = query.number("limit")?.filter(|&limit| limit > 0);
        let page = query.get("continue").map(Page::decode).transpose()?;
        let exact = match query.get("resourceVersionMatch") {
            Some("Exact") => query.number("resourceVersion")?,
            _ => None,
        };
        Ok(Self {
            selector,
            limit: limit.and_then(|limit| usize::try_from(limit).ok()),
            page,
            exact,
        })
    }
}

pub(crate) fn list(call: &Call<'_>, options: &ListOptions) -> Result<Outcome, Failure> {
    check_version(call)?;
    let prefix = prefix(&call.target.namespace);
    let state = call.server.state();
    let store = &state.store;
    let pinned = options.page.as_ref().map(|page| page.revision);
    let revision = pinned.or(options.exact).unwrap_or(store.revision());
    let objects: Objects = if revision == store.revision() {
        let all = store.list(call.resource(), &prefix);
        all.map(|(key, object)| (key.clone(), object.clone()))
            .collect()
    } else {
        store
            .list_at(call.resource(), &prefix, revision)
            .map_err(|_| {
                if options.page.is_some() {
                    Failure::expired(CONTINUE_TOO_OLD)
                } else {
                    Failure::expired("The resourceVersion for the provided list is too old.")
                }
            })?
    };
    drop(state);
    Ok(Outcome::List(page(call, options, &objects, revision)))
}

fn page(call: &Call<'_>, options: &ListOptions, objects: &Objects, revision: u64) -> List {
    let start = options.page.as_ref().map_or("", |page| page.start.as_str());
    let mut matching = objects
        .range(start.to_owned()..)
        .filter(|(_, object)| options.selector.matches(&call.served(object)));
    let limit = options.limit.unwrap_or(usize::MAX);
    let items: Vec<Arc<Value>> = matching
        .by_ref()
        .take(limit)
        .map(|(_, object)| call.served(object))
        .collect();
    let mut list = List {
        revision,
        items,
        next: String::new(),
        remaining: None,
    };
    if let Some((key, _)) = matching.next() {
        list.next = Page {
            revision,
            start: key.clone(),
        }
        .encode();
        // With a selector, the server would have to check all following objects to know the number.
        if options.selector.is_empty() {
            list.remaining = Some(matching.count() + 1);
        }
    }
    list
}

/// The prefix of the keys of a namespace's objects.
pub(crate) fn prefix(namespace: &str) -> String {
    if namespace.is_empty() {
        String::new()
    } else {
        format!("{namespace}/")
    }
}

/// The reader may require an answer that is not older than a resource version.
pub(super) fn check_version(call: &Call<'_>) -> Result<(), Failure> {
    let Some(requested) = call.query.get("resourceVersion") else {
        return Ok(());
    };
    let requested: u64 = requested
        .parse()
        .map_err(|_| Failure::unreadable_version(requested))?;
    let current = call.server.state().store.revision();
    if requested > current {
        return Err(Failure::too_large_version(requested, current));
    }
    Ok(())
}
