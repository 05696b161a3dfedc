//! `cargo xtask`: the commands for working on kubectl maint, one file each.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bench;
mod cargo;
mod check;
mod cluster;
mod control_plane;
#[path = "../../tests/support/faketime.rs"]
mod faketime;
mod r#gen;
mod go;
mod image;
mod model;
mod output;
mod platforms;
mod reach;
mod real_cluster;
mod sandbox_cluster;
mod seeded_bugs;
mod sim;
mod slow;
mod smoke_test;
mod test;
mod test_programs;
mod test_requirements;
mod try_cluster;
mod try_shell;

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
    Cluster(cluster::Arguments),
    ControlPlane(control_plane::Arguments),
    Gen(r#gen::Arguments),
    Image(image::Arguments),
    #[command(hide = true)]
    Measure(bench::command_cost::Arguments),
    Model(model::Arguments),
    Platforms(platforms::Arguments),
    Reach(reach::Arguments),
    Sim(sim::Arguments),
    Slow(slow::Arguments),
    SmokeTest(smoke_test::Arguments),
    Test(test::Arguments),
    Try(try_cluster::Arguments),
    #[command(hide = true)]
    Waiting(bench::waiting::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Bench(arguments) => arguments.run(),
        Command::Check(arguments) => arguments.run(),
        Command::Cluster(arguments) => arguments.run(),
        Command::ControlPlane(arguments) => arguments.run(),
        Command::Gen(arguments) => arguments.run(),
        Command::Image(arguments) => arguments.run(),
        Command::Measure(arguments) => arguments.run(),
        Command::Model(arguments) => arguments.run(),
        Command::Platforms(arguments) => arguments.run(),
        Command::Reach(arguments) => arguments.run(),
        Command::Sim(arguments) => arguments.run(),
        Command::Slow(arguments) => arguments.run(),
        Command::SmokeTest(arguments) => arguments.run(),
        Command::Test(arguments) => arguments.run(),
        Command::Try(arguments) => arguments.run(),
        Command::Waiting(arguments) => arguments.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::print(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
