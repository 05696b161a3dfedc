//! What a lock asks of its Node.

use clap::Args;
use maintenance_lease::Acquire;
use node_keys::{Asked, Cordon, OptOuts};

use crate::error::InvalidValue;

/// The flags of the verbs whose locks expire.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProtectArgs {
    /// Cordon the node until the lock ends
    ///
    /// Also labels it: the label kubectl-maint.dev/held tells other tools and the node policy who has locked it. If the
    /// lock expires, the node stays cordoned until the next lock ends, or until `doctor --fix` uncordons it. You need
    /// permission to patch nodes.
    #[arg(long, hide_short_help = true)]
    cordon: bool,

    /// Set the opt-outs of these tools, or auto or none
    ///
    /// Also labels the node, like --cordon.
    ///
    /// An opt-out is a label or annotation that tells another tool to leave the node alone. Without this flag, none
    /// is set. If the lock expires, they stay until the next holder or `doctor --fix` removes them.
    /// docs/other-tools.md explains what each of them stops.
    #[arg(long, value_name = "TOOL,...", hide_short_help = true, value_parser = opt_outs)]
    opt_outs: Option<OptOuts>,
}

impl ProtectArgs {
    /// What the lock asks of its Node; `None`: nothing, not even the label.
    pub(crate) fn asked(&self) -> Option<Asked> {
        let is_asked = self.cordon || self.opt_outs.is_some();
        is_asked.then(|| asked(self.cordon, self.opt_outs.clone().unwrap_or(OptOuts::None)))
    }

    /// `options` for a lock that asks for it.
    pub(crate) fn acquire(&self, options: Acquire) -> Acquire {
        match self.asked() {
            Some(asked) => options.keys(asked.to_string()),
            None => options,
        }
    }
}

/// With `--cordon` or without.
pub(crate) fn asked(cordon: bool, opt_outs: OptOuts) -> Asked {
    let cordon = match cordon {
        true => Cordon::Set,
        false => Cordon::No,
    };
    Asked { cordon, opt_outs }
}

/// Parses `auto`, `none` or the names of tools.
pub(crate) fn opt_outs(typed: &str) -> Result<OptOuts, InvalidValue> {
    typed.parse().map_err(|_| InvalidValue::UnknownOptOut)
}
