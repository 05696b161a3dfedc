//! The query of a request, read as the options of its verb.

use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::failure::Failure;

/// The decoded parameters after the question mark.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(query: &str) -> Self {
        let decode = |text: &str| {
            percent_decode_str(&text.replace('+', " "))
                .decode_utf8_lossy()
                .into_owned()
        };
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(name, value)| (decode(name), decode(value)))
                .collect(),
        )
    }

    /// The first value of a parameter. `None` if it is empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// A switch: `true` and `1` are on, and so is a parameter without a value.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .is_some_and(|(_, value)| !matches!(value.to_lowercase().as_str(), "false" | "0"))
    }

    /// A whole number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Failure> {
        self.get(name)
            .map(|value| {
                value.parse().map_err(|_| {
                    Failure::bad_request(format!(
                        "strconv.ParseInt: parsing {value:?}: invalid syntax"
                    ))
                })
            })
            .transpose()
    }

    /// Whether `dryRun` is set. The only valid value is `All`.
    pub(crate) fn dry_run(&self, kind: &str) -> Result<bool, Failure> {
        let values: Vec<&str> = self
            .0
            .iter()
            .filter(|(key, _)| key == "dryRun")
            .map(|(_, value)| value.as_str())
            .collect();
        dry_run(kind, &values)
    }
}

/// Whether the values of `dryRun` request a dry run. `kind` is the type of the options that contain
/// them.
pub(crate) fn dry_run(kind: &str, values: &[&str]) -> Result<bool, Failure> {
    match values.iter().find(|value| **value != "All") {
        None => Ok(!values.is_empty()),
        Some(_) => Err(Failure::invalid_options(kind, values)),
    }
}

/// The options of a deletion, from the body if there is one, otherwise from the query.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DeleteOptions {
    pub(crate) dry_run: bool,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) grace_period: Option<u64>,
    pub(crate) propagation: Propagation,
}

/// What happens to the dependents of a deleted object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They are deleted after it.
    #[default]
    Background,
    /// They are deleted before it.
    Foreground,
    /// They stay, without the owner reference.
    Orphan,
}

impl DeleteOptions {
    /// If there is a body, the server ignores the query, including `dryRun`.
    pub(crate) fn read(body: Option<&Value>, query: &Query) -> Result<Self, Failure> {
        match body {
            Some(body) => Self::from_body(body),
            None => Ok(Self {
                dry_run: query.dry_run("DeleteOptions")?,
                uid: None,
                resource_version: None,
                grace_period: query.number("gracePeriodSeconds")?,
                propagation: Propagation::parse(query.get("propagationPolicy"))?,
            }),
        }
    }

    fn from_body(body: &Value) -> Result<Self, Failure> {
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
        let dry_run_values = crate::object::texts(body, "/dryRun");
        Ok(Self {
            dry_run: dry_run("DeleteOptions", &dry_run_values)?,
            uid: text("/preconditions/uid").map(str::to_owned),
            resource_version: text("/preconditions/resourceVersion").map(str::to_owned),
            // The server treats a negative grace period as one second.
            grace_period: body
                .get("gracePeriodSeconds")
                .and_then(Value::as_i64)
                .map(|seconds| u64::try_from(seconds).unwrap_or(1)),
            propagation: Propagation::parse(text("/propagationPolicy"))?,
        })
    }
}

impl Propagation {
    fn parse(policy: Option<&str>) -> Result<Self, Failure> {
        match policy {
            None | Some("Background") => Ok(Self::Background),
            Some("Foreground") => Ok(Self::Foreground),
            Some("Orphan") => Ok(Self::Orphan),
            Some(other) => Err(Failure::invalid_propagation(other)),
        }
    }
}
