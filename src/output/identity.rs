//! Who the caller is, in words and as data.

use k8s_openapi::api::authentication::v1::UserInfo;
use schemars::JsonSchema;
use serde::Serialize;

use super::data::{ApiVersion, Data, kind};
use crate::text::escape;
use crate::words::holder::{Holder, HolderSource};
use crate::words::holder_name::{WITH_HOLDER, source};

/// The caller.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Identity {
    api_version: ApiVersion,
    kind: kind::Identity,
    /// The holder of the caller's locks.
    holder: String,
    /// Whether that is the default.
    is_default: bool,
    /// Why it is that one.
    holder_source: HolderSource,
    /// The API user; absent if the API server did not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    api_user: Option<String>,
    /// The groups of the API user.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
    /// The holder of the `with` that this runs under.
    #[serde(skip_serializing_if = "Option::is_none")]
    with_holder: Option<String>,
}

impl Identity {
    /// The caller with this `holder`. `user` is `None` if unknown. `outer` is the holder of the `with` that this runs
    /// under.
    pub(crate) fn new(holder: Holder, user: Option<UserInfo>, outer: Option<String>) -> Self {
        let user = user.unwrap_or_default();
        Self {
            api_version: ApiVersion::V2,
            kind: kind::Identity::Identity,
            holder: holder.identity,
            is_default: holder.source != HolderSource::Set,
            holder_source: holder.source,
            api_user: user.username,
            groups: user.groups.unwrap_or_default(),
            with_holder: outer,
        }
    }

    /// A line for each. `by_flag`: if the holder was set, that was by the flag.
    pub(crate) fn text(&self, by_flag: bool) -> String {
        let mut lines = vec![
            format!("Holder:    {}", escape(&self.holder)),
            format!("From:      {}", source(self.holder_source, by_flag)),
        ];
        let user = self.api_user.as_deref();
        lines.push(format!(
            "API user:  {}",
            user.map_or_else(|| "unknown".into(), escape)
        ));
        if !self.groups.is_empty() {
            lines.push(format!("Groups:    {}", escape(&self.groups.join(", "))));
        }
        if let Some(holder) = &self.with_holder {
            lines.push(format!("With:      {} ({WITH_HOLDER})", escape(holder)));
        }
        lines.join("\n")
    }
}

impl Data for Identity {
    fn names(&self) -> Vec<String> {
        vec![self.holder.clone()]
    }

    fn lock_ids(&self) -> Vec<String> {
        Vec::new()
    }
}
