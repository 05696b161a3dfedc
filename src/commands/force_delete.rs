//! `force-delete`: check the risks, then force-delete pods or a Node.

mod args;
mod carry_out;
mod context;
mod deleted;
mod evidence;
mod gone;
mod locks;
mod next_command;
mod progress;
mod questions;
mod read;
mod report;
mod request;
mod targets;

use pod_safety::cluster::Reader;

pub(crate) use self::args::ForceDeleteArgs;
use self::context::Run;
use self::targets::Targets;
use crate::error::{Failure, InputError};
use crate::exit::Code;
use crate::run::session::Start;
use crate::words::holder::HoldingCommand;

pub(crate) async fn run(args: &ForceDeleteArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let targets = Targets::of(args)?;
    let session = start.open_for_writing(&args.write, true).await?;
    let process = HoldingCommand::ForceDelete.holder(session.locks.identity());
    let process = session.locks.as_holder(process);
    let process = process.map_err(InputError::Holder)?;
    let reader = Reader::new(session.locks.requests().clone());
    let work = Run {
        session: &session,
        process: &process,
        reader: &reader,
        args,
        targets: &targets,
    };
    let result = work.run().await;
    session.warn_of_clocks();
    result
}
