//! `enforce`: shows or sets what the policies do with a write that breaks a rule.

use clap::{Args, ValueEnum};
use policies::{Enforcement, Installed, Manifest, Mode, Refusal};

use crate::error::{Failure, Kind};
use crate::exit::Code;
use crate::run::elapsed::show_elapsed;
use crate::run::problems;
use crate::run::session::{Session, Start};
use crate::words::policies as words;

/// Show or set what the policies do with writes that break a rule
///
/// The rules protect locks that have not expired: only the holder may end or replace them, and cordon, uncordon,
/// unlabel or delete a held Node. Others need the right takeover. docs/policies.md lists the rules.
///
/// Without MODE, shows the mode of each policy. audit records such writes in the audit log, warn also warns the user,
/// and deny refuses them. off deletes the bindings of the policies: then nothing is checked.
///
/// If another tool such as Argo CD manages the bindings, set the mode there: here, only off works. To switch the
/// policies off without this program: kubectl delete validatingadmissionpolicybinding kubectl-maint-leases
/// kubectl-maint-nodes
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  kubectl maint enforce
  kubectl maint enforce warn
  kubectl maint enforce off")]
pub(crate) struct EnforceArgs {
    /// What to do with writes that break a rule
    #[arg(value_enum, value_name = "MODE")]
    pub(crate) mode: Option<EnforceMode>,
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

impl EnforceMode {
    /// `None`: off.
    fn mode(self) -> Option<Mode> {
        match self {
            Self::Audit => Some(Mode::Audit),
            Self::Warn => Some(Mode::Warn),
            Self::Deny => Some(Mode::Deny),
            Self::Off => None,
        }
    }
}

pub(crate) async fn run(args: &EnforceArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let session = start.open_for_checks().await?;
    let requests = session.locks.requests();
    let read = Installed::read(requests, Manifest::has_mode).await;
    match args.mode.map(EnforceMode::mode) {
        None => {
            show(&session, &read?);
            Ok(Code::DONE)
        }
        Some(Some(mode)) => {
            let installed = read?;
            let mut all = installed.objects.iter();
            if all.any(|(manifest, found)| manifest.is_policy() && found.is_none()) {
                return Err(Refusal::NotInstalled.into());
            }
            installed.must_be_ours()?;
            set(&session, &installed, Some(mode)).await?;
            until_enforced(&session, &installed, mode == Mode::Deny).await?;
            session.terminal.remark(words::effect(mode));
            Ok(Code::DONE)
        }
        // In an emergency, not even the right to read the bindings is needed.
        Some(None) => {
            let installed = match read {
                Err(error) if error.is_forbidden() => {
                    Installed::unread(requests, Manifest::has_mode)
                }
                read => read?,
            };
            set(&session, &installed, None).await?;
            until_enforced(&session, &installed, false).await?;
            session
                .terminal
                .remark(words::switched_off(session.program));
            Ok(Code::DONE)
        }
    }
}

/// Waits until the server refuses what breaks a rule, or admits it. Warns if the node policy could not be checked.
async fn until_enforced(
    session: &Session<'_>,
    installed: &Installed<'_>,
    wanted: bool,
) -> Result<(), Failure> {
    let terminal = session.terminal;
    let checked = show_elapsed(
        terminal,
        words::WAITING_FOR_POLICIES,
        installed.until_enforced(wanted),
    );
    if let Some(error) = checked.await? {
        terminal.warn(words::node_policy_not_checked(&error));
    }
    Ok(())
}

fn show(session: &Session<'_>, installed: &Installed<'_>) {
    for (binding, _) in installed.bindings() {
        let (policy, now) = (binding.name(), installed.enforcement(binding));
        session.terminal.data(format!("{policy}: {}", now.name()));
    }
}

/// Sets the mode of each policy, also if that fails for another one.
async fn set(
    session: &Session<'_>,
    installed: &Installed<'_>,
    mode: Option<Mode>,
) -> Result<(), Failure> {
    let after = mode.map_or(Enforcement::Off, Enforcement::On);
    let mut worst: Option<Kind> = None;
    for (binding, found) in installed.bindings() {
        let before = installed.enforcement(binding);
        match installed.set_mode(binding, mode).await {
            Ok(()) => {
                let before = installed.is_read.then_some(before);
                let line = words::mode_set(binding.name(), before, after);
                session.terminal.result(line);
                let manager = found
                    .as_ref()
                    .and_then(|found| binding.other_manager(found));
                if let Some(manager) = manager {
                    session.terminal.warn(words::may_return(manager));
                }
            }
            Err(error) => {
                let failure = Failure::from(error);
                worst = worst.max(Some(failure.kind(None)));
                problems::report(session.terminal, session.program, &failure);
            }
        }
    }
    worst.map_or(Ok(()), |worst| Err(Failure::Reported(worst)))
}
