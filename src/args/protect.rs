//! What a lock writes on its Node.

use clap::Args;
use maintenance_lease::{Acquire, PROTECTION};
use other_tools::OptOuts;

use crate::error::InvalidValue;

/// What to write on the Node of a lock, besides the held label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Protection {
    pub(crate) cordon: bool,
    pub(crate) opt_outs: OptOuts,
}

impl Protection {
    /// The held label alone.
    pub(crate) const LABEL: Self = Self {
        cordon: false,
        opt_outs: OptOuts::None,
    };
}

/// The flags of the verbs whose locks expire.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProtectArgs {
    /// Label the Node until the lock ends
    ///
    /// The label kubectl-maint.dev/held tells other tools and the node policy that the node is locked. After the lock
    /// has expired, the label stays until the next holder or `doctor --fix` removes it, but the node policy ignores
    /// it. You need permission to patch nodes.
    #[arg(long)]
    protect: bool,

    /// Cordon the node until the lock ends; implies --protect
    ///
    /// If the lock expires, the node stays cordoned until the next holder or `doctor --fix` uncordons it.
    #[arg(long, hide_short_help = true)]
    cordon: bool,

    /// Set the opt-outs of these tools, or auto or none; implies --protect
    ///
    /// An opt-out is a label or annotation that tells another tool to leave the node alone. Without this flag, none
    /// is set. If the lock expires, they stay until the next holder or `doctor --fix` removes them.
    /// docs/other-tools.md explains what each of them stops.
    #[arg(long, value_name = "TOOL,...", hide_short_help = true, value_parser = opt_outs)]
    opt_outs: Option<OptOuts>,
}

impl ProtectArgs {
    /// What to write; `None`: nothing, not even the label.
    pub(crate) fn protection(&self) -> Option<Protection> {
        let is_wanted = self.protect || self.cordon || self.opt_outs.is_some();
        is_wanted.then(|| Protection {
            cordon: self.cordon,
            opt_outs: self.opt_outs(),
        })
    }

    /// The opt-outs to set.
    pub(crate) fn opt_outs(&self) -> OptOuts {
        self.opt_outs.clone().unwrap_or(OptOuts::None)
    }

    /// `options` for a lock whose end removes what it wrote.
    pub(crate) fn acquire(&self, options: Acquire) -> Acquire {
        match self.protection() {
            Some(_) => options.purpose(PROTECTION),
            None => options,
        }
    }
}

/// Parses `auto`, `none` or the names of tools.
pub(crate) fn opt_outs(typed: &str) -> Result<OptOuts, InvalidValue> {
    typed.parse().map_err(|_| InvalidValue::UnknownOptOut)
}
