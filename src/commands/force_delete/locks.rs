//! The maintenance leases of the nodes, held while something is deleted from them.

use std::time::Duration;

use maintenance_lease::{Acquire, Error, HeldLease, Keep};
use pod_safety::Known;
use pod_safety::facts::Lock;

use super::carry_out::Work;
use super::look::{Look, is_forbidden};
use crate::failure::Failure;
use crate::terminal::escape;

/// How long they last without a renewal: as long as a crash keeps others away.
const DURATION: Duration = Duration::from_secs(60);

/// Those that this command took.
#[derive(Default)]
pub(super) struct Locks {
    held: Vec<HeldLease>,
}

impl Work<'_> {
    /// Takes the leases of the nodes in `look` that are free, and adds them to what is `taken`. One of the
    /// caller's own is left as found, and so is one that the caller overrides or may not take, which the
    /// report said.
    ///
    /// # Errors
    /// Where somebody else took one meanwhile, or the server refuses it although the report did not say
    /// so and `lease-unknown` was not named.
    pub(super) async fn take(&self, look: &Look, taken: &mut Locks) -> Result<(), Failure> {
        for (node, lock) in &look.locks {
            let free = matches!(lock, Known::Yes(Lock::Free | Lock::Expired { .. }));
            if free && look.nodes.contains(node) {
                self.take_one(node, taken).await?;
            }
        }
        Ok(())
    }

    async fn take_one(&self, node: &str, taken: &mut Locks) -> Result<(), Failure> {
        let locks = &self.session.locks;
        let options = Acquire::new().duration(DURATION).reason(format!(
            "force-delete {}",
            self.asked.typed(self.namespace())
        ));
        match locks.try_acquire(node, &options).await {
            Ok(change) => {
                taken.held.push(locks.keep(&change, &Keep::new())?);
                Ok(())
            }
            Err(Error::NodeNotFound(_)) => Ok(()),
            Err(error) if is_forbidden(&error) && self.args.gives_up("lease-unknown") => {
                let error = escape(&error.to_string());
                self.session.terminal.warn(format!(
                    "node/{node} is not locked meanwhile, as you may not take its lease: {error}"
                ));
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Gives back what was taken. A lease that went with its Node needs nothing more.
    pub(super) async fn give_back(&self, locks: Locks) {
        for held in locks.held {
            let node = held.node().to_owned();
            if let Err(error) = held.release().await {
                self.session.terminal.warn(format!(
                    "the lease of node/{node} was not given back, and runs out within {}s: {}",
                    DURATION.as_secs(),
                    escape(&error.to_string())
                ));
            }
        }
    }
}

impl Locks {
    /// The nodes go with them, or nothing is to be given back.
    pub(super) fn leave(self) {
        self.held.into_iter().for_each(HeldLease::leave);
    }

    /// Why work has to stop, if one was lost.
    pub(super) fn lost(&self) -> Option<Failure> {
        let lost = self.held.iter().find_map(|held| held.standing().lost);
        lost.map(|lost| Failure::Lock(Error::Lost(lost)))
    }
}
