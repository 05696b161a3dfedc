//! `cargo xtask`: the commands for working on kubectl maint, one file each.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bench;
mod cargo;
mod check;
mod control_plane;
mod dist;
#[path = "../../tests/support/faketime.rs"]
mod faketime;
mod r#gen;
mod go;
mod machine;
mod memory;
mod model;
mod planted;
mod platforms;
mod practice;
mod say;
mod sim;
mod test;
mod tour;
mod up;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about, version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Bench(bench::Arguments),
    Check(check::Arguments),
    ControlPlane(control_plane::Arguments),
    Dist(dist::Arguments),
    Gen(r#gen::Arguments),
    #[command(hide = true)]
    Load(bench::load::Arguments),
    Model(model::Arguments),
    #[command(hide = true)]
    Measure(bench::measure::Arguments),
    Platforms(platforms::Arguments),
    Sim(sim::Arguments),
    Test(test::Arguments),
    Try(tour::Arguments),
    Up(up::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Bench(arguments) => arguments.run(),
        Command::Check(arguments) => arguments.run(),
        Command::ControlPlane(arguments) => arguments.run(),
        Command::Dist(arguments) => arguments.run(),
        Command::Gen(arguments) => arguments.run(),
        Command::Load(arguments) => arguments.run(),
        Command::Model(arguments) => arguments.run(),
        Command::Measure(arguments) => arguments.run(),
        Command::Platforms(arguments) => arguments.run(),
        Command::Sim(arguments) => arguments.run(),
        Command::Test(arguments) => arguments.run(),
        Command::Try(arguments) => arguments.run(),
        Command::Up(arguments) => arguments.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say::say(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
