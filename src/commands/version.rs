//! `kubectl maint version`

use clap::Args;
use k8s_openapi::apimachinery::pkg::version::Info;

use crate::error::Failure;
use crate::exit::Code;
use crate::output::version::{VersionFormat, Versions};
use crate::run::session::Start;

/// Print the client and server versions
///
/// If the API server cannot be reached, only the client version is printed, after an error on stderr.
#[derive(Args, Clone, Debug)]
pub(crate) struct VersionArgs {
    /// Print the client version only, without a request to the server
    #[arg(long)]
    pub(crate) client: bool,

    /// Output format [default: text]
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub(crate) output: Option<VersionFormat>,
}

pub(crate) async fn run(args: &VersionArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let server = if args.client {
        Ok(None)
    } else {
        server_version(start).await.map(Some)
    };
    let (server, failure) = match server {
        Ok(server) => (server, None),
        Err(failure) => (None, Some(failure)),
    };
    start
        .terminal
        .data(&Versions::new(server).render(args.output)?);
    failure.map_or(Ok(Code::DONE), Err)
}

async fn server_version(start: &Start<'_>) -> Result<Info, Failure> {
    let session = start.open_for_reading().await?;
    Ok(session.locks.server_version().await?)
}
