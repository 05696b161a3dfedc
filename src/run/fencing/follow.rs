//! Watches a fenced node until Kubernetes has removed everything from it.

use k8s_openapi::api::core::v1::Node;
use maintenance_lease::env::{Env as _, Machine};
use pod_safety::Known;
use pod_safety::fencing::Remains;
use pod_safety::fencing::patch::marks;
use pod_safety::fencing::steps::Refusal;
use pod_safety::node_health::is_fresh;

use super::target::{FencingTarget, Observed};
use super::timeout::Timeout;
use crate::error::{Failure, FencingRefusal};
use crate::words::fencing;

impl FencingTarget<'_> {
    /// Waits until everything that can be removed from the fenced node in `observed` is gone. Prints what is left
    /// whenever that changes, and returns what is left at the end.
    ///
    /// # Errors
    /// If it can't be read to the end, if the node is not fenced any more, if it is alive again, or if it was interrupted.
    pub(crate) async fn follow(
        &self,
        observed: &Observed,
        mut timeout: Timeout,
    ) -> Result<Remains, Failure> {
        let terminal = self.terminal();
        let mut is_unheard = false;
        let mut reported = Remains::default();
        loop {
            let looking = async || self.interrupt.or(self.remains(observed)).await;
            let (remains, unheard) = timeout.read(self, looking).await?;
            if let Some(why) = unheard
                && !is_unheard
            {
                terminal.warn(fencing::kubelet_state_unknown(&self.node, &why));
                is_unheard = true;
            }
            if remains.tolerating != reported.tolerating && !remains.tolerating.is_empty() {
                terminal.remark(fencing::tolerating(&self.node, &remains));
            }
            if let Known::Unknown(why) = &remains.attachments
                && remains.attachments != reported.attachments
            {
                terminal.warn(fencing::unread_volumes(&self.node, why));
            }
            if remains.is_over() {
                return Ok(remains);
            }
            if remains != reported {
                terminal.remark(fencing::left(&self.node, &remains));
            }
            if timeout.remaining().is_zero() {
                return Ok(remains);
            }
            timeout.pause_with(self, &fencing::counts(&remains)).await?;
            reported = remains;
        }
    }

    /// What is left, and why the heartbeat could not be read, if that failed.
    async fn remains(&self, fenced: &Observed) -> Result<(Remains, Option<String>), Failure> {
        let begun = Machine.boot();
        let taint = &fenced.evidence.state.out_of_service;
        let (remains, heartbeat) = futures::join!(
            self.reader.remains(&self.node, taint),
            self.reader.heartbeat(&self.node)
        );
        if let Ok((_, node)) = &remains {
            self.check_fenced(fenced, node.as_ref())?;
        }
        let now = self.at(begun);
        if let Ok(Some(heartbeat)) = &heartbeat
            && is_fresh(Some(*heartbeat), now)
        {
            return Err(Failure::Fencing(FencingRefusal::Fence {
                node: self.node.clone(),
                why: Refusal::BackAlive(heartbeat.age(now)),
            }));
        }
        let (remains, _) = remains?;
        Ok((remains, heartbeat.err().map(|error| error.to_string())))
    }

    /// Checks that the Node that was `fenced` still is.
    fn check_fenced(&self, fenced: &Observed, node: Option<&Node>) -> Result<(), Failure> {
        let is_same = |node: &&Node| node.metadata.uid.as_deref() == Some(fenced.evidence.uid());
        let name = self.node.clone();
        let Some(node) = node.filter(is_same) else {
            return Err(Failure::NodeGone { node: name });
        };
        match marks(node) == (true, true) {
            true => Ok(()),
            false => Err(Failure::NoLongerFenced { node: name }),
        }
    }
}
