//! `whoami`: who the caller is, to others and to the API server.

use clap::Args;
use maintenance_lease::ApiError;

use crate::args::output::{OutputArgs, offers_no_lock_id, templates};
use crate::error::Failure;
use crate::exit::Code;
use crate::output::identity::Identity;
use crate::run::interruption::or_interrupted;
use crate::run::session::Start;
use crate::run::variables::HOLDER;

/// Show your holder name and API user
///
/// The holder is the name that others see on your locks: your API user, or the one that you set with --holder or
/// KUBECTL_MAINT_HOLDER. The API user is the one that the API server, RBAC and audit logs see.
///
/// If the API user is unknown or may be shared, such as kubernetes-admin, the holder is USER@HOST. Add shared API
/// users to KUBECTL_MAINT_SHARED_USERS, separated by commas. The holder is also USER@HOST if you connect through
/// kubectl proxy, because the API user is then the proxy's.
#[derive(Args, Debug)]
#[command(
    mut_arg("format", |format| templates(
        offers_no_lock_id(format),
        "{.holder}",
        "HOLDER:.holder,USER:.apiUser"
    ))
)]
#[command(after_help = "Examples:
  kubectl maint whoami
  kubectl maint whoami -o json")]
pub(crate) struct WhoamiArgs {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

pub(crate) async fn run(args: &WhoamiArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let format = args.output.format();
    let session = start.open_for_reading().await?;
    let user = or_interrupted(async { Ok(session.locks.api_user().await?) }).await;
    let (user, failure) = match user {
        Ok(user) => (Some(user), None),
        Err(failure) if failure.api().is_some_and(ApiError::is_not_installed) => {
            (None, Some(Failure::UnknownUser))
        }
        Err(failure) => (None, Some(failure)),
    };
    let named = user.as_ref().and_then(|user| user.username.clone());
    let known = session.connection.api_user.clone().or_named(named);
    let holder = start.holder.of(&known, start.environment);
    let outer = start.environment.get(HOLDER).map(ToOwned::to_owned);
    let identity = Identity::new(holder, user, outer);
    let terminal = session.terminal;
    let by_flag = start.program.has_holder();
    terminal.show(&identity, format, || identity.text(by_flag))?;
    failure.map_or(Ok(Code::DONE), Err)
}
