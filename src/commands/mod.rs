//! The verbs, a file each, named as typed: arguments, calls on the library, outcome.

pub(crate) mod acquire;
mod asides;
pub(crate) mod completion;
mod confirm;
mod events;
pub(crate) mod fence;
mod fencing;
pub(crate) mod force_delete;
pub(crate) mod hold;
mod interruption;
pub(crate) mod leases;
mod many;
pub(crate) mod options;
mod problems;
pub(crate) mod reference;
pub(crate) mod release;
pub(crate) mod renew;
pub(crate) mod status;
mod taking;
mod targets;
pub(crate) mod unfence;
pub(crate) mod unhold;
pub(crate) mod verify;
pub(crate) mod version;
pub(crate) mod wait;
pub(crate) mod with;
mod work;

pub(crate) use self::problems::tell;
use crate::cli::{Cli, VerbArgs};
use crate::exit::Code;
use crate::failure::Failure;
use crate::session::Start;

/// Runs the verb that was typed, tells the problem that ended it, if any, and returns its code.
pub(crate) fn run(cli: &Cli, start: &Start<'_>) -> Code {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let result = match runtime {
        Ok(runtime) => {
            let result = runtime.block_on(async {
                tokio::select! {
                    biased;
                    result = verb(&cli.verb, start) => result,
                    () = many::LEAVING.notified() => {
                        start.terminal.warn(
                            "interrupted again: locks were not released, and a request may still take effect",
                        );
                        start.terminal.hint(format!("to see: {} status --mine", start.program));
                        Ok(Code::INTERRUPTED)
                    }
                }
            });
            // A name that is still being looked up must not keep it from its end. A credential plugin is ended.
            runtime.shutdown_background();
            result
        }
        Err(error) => Err(Failure::input(format!("can't start: {error}"))),
    };
    let code = result.unwrap_or_else(|failure| {
        problems::tell(start.terminal, &failure, Some(start.program.asked()));
        Code::of(&failure, None)
    });
    start.terminal.code(code)
}

async fn verb(verb: &VerbArgs, start: &Start<'_>) -> Result<Code, Failure> {
    match verb {
        VerbArgs::Acquire(args) => acquire::run(args, start).await,
        VerbArgs::Renew(args) => renew::run(args, start).await,
        VerbArgs::Release(args) => release::run(args, start).await,
        VerbArgs::Hold(args) => hold::run(args, start).await,
        VerbArgs::Unhold(args) => unhold::run(args, start).await,
        VerbArgs::Verify(args) => verify::run(args, start).await,
        VerbArgs::Fence(args) => fence::run(args, start).await,
        VerbArgs::Unfence(args) => unfence::run(args, start).await,
        VerbArgs::With(args) => with::run(args, start).await,
        VerbArgs::Status(args) => status::run(args, start).await,
        VerbArgs::Leases(args) => many::or_interrupted(leases::run(args, start)).await,
        VerbArgs::Wait(args) => wait::run(args, start).await,
        VerbArgs::ForceDelete(args) => force_delete::run(args, start).await,
        VerbArgs::Options(args) => options::run(args, start),
        VerbArgs::Version(args) => many::or_interrupted(version::run(args, start)).await,
        VerbArgs::Completion(args) => completion::run(args, start),
        VerbArgs::Reference(args) => reference::run(args, start),
    }
}
