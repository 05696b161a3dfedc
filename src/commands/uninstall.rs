//! `uninstall`: removes what `install` created, except the namespace with the Leases.

use clap::Args;

use crate::error::{Failure, PolicyRefusal};
use crate::exit::Code;
use crate::run::policies::Installed;
use crate::run::session::{Session, Start};
use crate::words::policies as words;

/// Remove the policies and the roles
///
/// Switches the policies off, waits until the server refuses nothing, and then deletes the policies,
/// the FlowSchema and the roles. The namespace and its Leases stay, and so does every lock. Users lose
/// the rights that these roles gave them.
///
/// Changes nothing if Argo CD, Flux, Helm or another tool manages one of the objects.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  kubectl maint uninstall")]
pub(crate) struct UninstallArgs {
    /// Answer yes to the confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
}

pub(crate) async fn run(args: &UninstallArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let session = start.checking().await?;
    let mut installed = Installed::read(&session, |manifest| !manifest.is_namespace()).await?;
    installed.must_be_ours()?;
    installed.objects.retain(|(_, found)| found.is_some());
    if installed.objects.is_empty() {
        session.terminal.remark(words::NOTHING_INSTALLED);
        return Ok(Code::DONE);
    }
    installed.may_delete().await?;
    let count = installed.objects.len();
    let (facts, question) = words::uninstall(&session.place(), count);
    let terminal = session.terminal;
    terminal.confirm(&facts, question, args.yes).await?;
    // The bindings first: without them, the policies have no effect.
    installed
        .objects
        .sort_by_key(|(manifest, _)| !manifest.is_binding());
    let mut deleted = 0;
    let result = delete_all(&session, &installed, &mut deleted).await;
    if result.is_err() && deleted > 0 {
        terminal.remark(words::partly_uninstalled(deleted, count, session.program));
    }
    result.map(|()| Code::DONE)
}

/// Deletes the objects and counts them.
///
/// # Errors
/// If one can't be deleted, or if the policies still refuse writes without their bindings.
async fn delete_all(
    session: &Session<'_>,
    installed: &Installed<'_>,
    deleted: &mut usize,
) -> Result<(), Failure> {
    let mut is_off = false;
    for (manifest, _) in &installed.objects {
        if !manifest.is_binding() && !is_off {
            is_off = true;
            match installed.until_enforced(false).await {
                Err(Failure::Policies(PolicyRefusal::Unchecked { error, .. })) => {
                    session.terminal.warn(words::not_checked(&error));
                }
                is_off => is_off?,
            }
        }
        if installed.delete(manifest).await? {
            let name = manifest.full_name();
            session.terminal.result(format!("{name} deleted"));
        }
        *deleted += 1;
    }
    Ok(())
}
