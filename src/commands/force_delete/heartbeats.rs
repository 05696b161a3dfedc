//! Whether a kubelet has sent a heartbeat since the report: its node is alive then, whatever its clock says.

use std::collections::BTreeMap;

use maintenance_lease::protocol::Instant;
use pod_safety::Known;
use pod_safety::report::Target;

use super::carry_out::Run;
use crate::error::Failure;

/// The last heartbeat of each node, as the report knows it.
pub(super) type Heartbeats = BTreeMap<String, Known<Option<Instant>>>;

impl Run<'_> {
    /// The node of `target`, if its kubelet has sent a heartbeat since `heartbeats` were read. Not checked if
    /// the caller accepts that the kubelet is alive, or may not read heartbeats.
    ///
    /// # Errors
    /// If it can't be read any more.
    pub(super) async fn alive<'a>(
        &self,
        target: &'a Target,
        heartbeats: &Heartbeats,
    ) -> Result<Option<&'a str>, Failure> {
        let Some(node) = target.node() else {
            return Ok(None);
        };
        let Some(Known::Yes(before)) = heartbeats.get(node) else {
            return Ok(None);
        };
        if self.args.accepts_refusal("node-alive") {
            return Ok(None);
        }
        let now = self.reader.heartbeat(node).await?;
        Ok((now.is_some() && now != *before).then_some(node))
    }
}
