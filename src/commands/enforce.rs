//! `enforce`: sets what the policies do with a write that breaks a rule.

use clap::{Args, ValueEnum};
use policies::{Manifest, Mode};

use crate::error::{Failure, PolicyRefusal};
use crate::exit::Code;
use crate::run::policies::Installed;
use crate::run::session::Start;

/// Set what the policies do with writes that break a rule
///
/// audit notes them in the audit log, warn also warns the user, and deny refuses them. off deletes the
/// bindings of the policies: then nothing is checked.
///
/// Without this program, switch the policies off with: kubectl delete
/// validatingadmissionpolicybinding kubectl-maint-leases kubectl-maint-nodes
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  kubectl maint enforce warn
  kubectl maint enforce off")]
pub(crate) struct EnforceArgs {
    /// What to do with writes that break a rule
    #[arg(value_enum, value_name = "MODE")]
    pub(crate) mode: EnforceMode,
}

/// The modes, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EnforceMode {
    /// Admit them, and note them in the audit log
    Audit,
    /// The same, and warn the user
    Warn,
    /// Refuse them
    Deny,
    /// Check nothing
    Off,
}

pub(crate) async fn run(args: &EnforceArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let mode = match args.mode {
        EnforceMode::Audit => Some(Mode::Audit),
        EnforceMode::Warn => Some(Mode::Warn),
        EnforceMode::Deny => Some(Mode::Deny),
        EnforceMode::Off => None,
    };
    let session = start.reading().await?;
    let wanted = |manifest: &Manifest| manifest.is_binding() || manifest.is_policy();
    let installed = Installed::read(&session, wanted).await?;
    let mut policies = installed.objects.iter();
    let is_missing = policies.any(|(manifest, found)| manifest.is_policy() && found.is_none());
    if mode.is_some() && is_missing {
        return Err(PolicyRefusal::NotInstalled.into());
    }
    let objects = installed.objects.iter();
    for (binding, _) in objects.filter(|(manifest, _)| manifest.is_binding()) {
        match mode {
            Some(mode) => {
                let binding = binding.clone().with_actions(mode.actions());
                installed.apply(&binding).await?;
            }
            None => drop(installed.delete(binding).await?),
        }
    }
    let shown = args.mode.to_possible_value();
    let shown = shown.as_ref().map_or("", |value| value.get_name());
    session.terminal.result(match mode {
        Some(_) => format!("policies in mode {shown}"),
        None => {
            installed.until_off().await?;
            "policies switched off".to_owned()
        }
    });
    Ok(Code::DONE)
}
