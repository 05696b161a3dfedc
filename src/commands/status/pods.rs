//! `status --pods`: what is stuck around nodes.

use maintenance_lease::Error;
use pod_safety::cluster::Reader;
use pod_safety::stuck::Stuck;

use crate::args::nodes::Selection;
use crate::args::output::OutputArgs;
use crate::error::{Failure, InputError};
use crate::exit::Code;
use crate::output::format::Format;
use crate::output::pods::{self, Layout};
use crate::output::{print, why};
use crate::run::problems::Problems;
use crate::run::session::{Session, Start};
use crate::words::stuck::summary;
use crate::words::why::{Step, pod_step, unread, volume_steps};

pub(super) async fn run(
    selection: &Selection,
    output: OutputArgs,
    headers: bool,
    start: &Start<'_>,
) -> Result<Code, Failure> {
    let node = match selection {
        Selection::All => None,
        Selection::Named(names) if names.len() == 1 => Some(names[0].as_str()),
        _ => return Err(InputError::PodsOfMany.into()),
    };
    output.without_lock_ids("--pods")?;
    if start.connection.flags.namespace.is_some() {
        return Err(InputError::PodsOfNamespace.into());
    }
    let format = output.format().with_headers(headers);
    let session = start.open_for_reading().await?;
    let reader = Reader::new(session.locks.requests().clone());
    let stuck = reader.stuck(node).await?;
    print(format, headers, &session, &stuck)?;
    let problems = Problems::new(&session);
    match node {
        Some(node) if stuck.is_of_nothing(node) => {
            problems.report(&Error::NodeNotFound(node.to_owned()).into());
        }
        _ => {
            session.terminal.remark(summary(&stuck, node));
            let pod = pod_step(&stuck, session.program);
            let volumes = volume_steps(&stuck.volumes, session.program);
            let steps: Vec<Step> = pod.into_iter().chain(volumes).collect();
            if let Some(next) = why::next(&steps) {
                session.terminal.remark(next);
            }
        }
    }
    if let Some(unread) = unread(&stuck.unread) {
        session.terminal.warn(unread);
    }
    Ok(problems.end().await)
}

fn print(
    format: Format,
    headers: bool,
    session: &Session<'_>,
    stuck: &Stuck,
) -> Result<(), Failure> {
    let terminal = session.terminal;
    let now = session.locks.server_time().now();
    let text = match format {
        Format::Text | Format::Wide | Format::LockId => {
            let layout = Layout {
                wide: format == Format::Wide,
                headers,
                fit: terminal.width(),
            };
            pods::table(stuck, layout, now)
        }
        Format::Name | Format::Json | Format::Yaml | Format::Template(..) => {
            print::data(&pods::list(stuck, session.program, now), format)?
        }
    };
    if let Some(text) = text {
        terminal.data(text);
    }
    Ok(())
}
