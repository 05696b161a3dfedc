//! `lease-elect`: cold standby for any daemon. If several processes run it with the same Lease, one of them
//! runs its daemon, and the others stand by.

#[cfg(not(target_os = "linux"))]
compile_error!(
    "lease-elect supports only Linux: elsewhere, a stopped or killed lease-elect may not end its daemon in time"
);

mod args;
mod campaign;
mod election_state;
mod exit;
mod failure;
mod identity;
mod lead;
mod log;
mod reference;
mod run;
mod signals;
mod status;

use std::process::ExitCode;

use clap::Parser as _;

use self::args::Args;
use self::exit::Code;
use self::failure::Failure;

fn main() -> ExitCode {
    if let Some(code) = supervisor::entry(std::env::args_os()) {
        return code;
    }
    if let Some(text) = reference::requested(std::env::args_os()) {
        log::data(&text);
        return ExitCode::SUCCESS;
    }
    let code = match Args::try_parse() {
        Ok(args) => work(&args).unwrap_or_else(|failure| {
            log::failure(&failure);
            Code::FAILED
        }),
        Err(error) if error.use_stderr() => {
            log::usage(&error);
            Code::FAILED
        }
        Err(help) => {
            log::data(help.render().to_string().as_bytes());
            Code::DONE
        }
    };
    ExitCode::from(code.number())
}

fn work(args: &Args) -> Result<Code, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::System)?;
    let code = runtime.block_on(run::run(args));
    // A name look-up that hangs must not delay the exit.
    runtime.shutdown_background();
    code
}
