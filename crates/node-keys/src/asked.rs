//! What a lock asks of its Node besides the held label, as the annotation `keys` of its Lease says it. Pure.

use std::fmt;

use maintenance_lease::{CORDON, KEPT_CORDON, NodeLease};

use crate::opt_outs::OptOuts;

/// What a lock asks of its Node besides the held label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Whether to cordon it.
    pub cordon: Cordon,
    /// The opt-outs to set.
    pub opt_outs: OptOuts,
}

/// Whether a lock cordons its Node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cordon {
    /// No.
    No,
    /// It keeps the cordon of the lock that it replaced, if it is still there.
    Keep,
    /// Yes.
    Set,
}

impl Asked {
    /// By the Lease; `None`: nothing, not even the label.
    #[must_use]
    pub fn of(lease: &NodeLease) -> Option<Self> {
        lease.holder()?;
        let keys: Vec<&str> = lease.keys()?.split(',').collect();
        let cordon = match () {
            () if keys.contains(&CORDON) => Cordon::Set,
            () if keys.contains(&KEPT_CORDON) => Cordon::Keep,
            () => Cordon::No,
        };
        let opt_outs = OptOuts::among(&keys);
        Some(Self { cordon, opt_outs })
    }
}

/// The value of the annotation.
impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("held")?;
        match self.cordon {
            Cordon::No => {}
            Cordon::Keep => write!(f, ",{KEPT_CORDON}")?,
            Cordon::Set => write!(f, ",{CORDON}")?,
        }
        match &self.opt_outs {
            OptOuts::None => Ok(()),
            opt_outs => write!(f, ",{opt_outs}"),
        }
    }
}
