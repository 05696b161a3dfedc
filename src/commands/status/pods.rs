//! `status --pods`: what is stranded on unhealthy nodes.

use maintenance_lease::Error;
use pod_safety::cluster::Reader;
use pod_safety::stranded::Stranded;

use super::StatusArgs;
use crate::args::nodes::Selection;
use crate::error::{Failure, InputError, WithoutLockIds};
use crate::exit::Code;
use crate::output::format::Format;
use crate::output::pods::{self, Layout};
use crate::output::print;
use crate::run::problems::Problems;
use crate::run::session::{Session, Start};

pub(super) async fn run(
    args: &StatusArgs,
    selection: &Selection,
    start: &Start<'_>,
) -> Result<Code, Failure> {
    let format = args.output.format();
    let node = match selection {
        Selection::All => None,
        Selection::Named(names) if names.len() == 1 => Some(names[0].as_str()),
        _ => return Err(InputError::PodsOfMany.into()),
    };
    args.output.without_lock_ids(WithoutLockIds::Pods)?;
    let session = start.reading().await?;
    let reader = Reader::new(session.locks.requests().clone());
    let stranded = reader.stranded(node).await?;
    print(args, format, &session, &stranded)?;
    let problems = Problems::new(&session);
    match node {
        Some(node) if stranded.is_of_nothing(node) => {
            problems.report(&Error::NodeNotFound(node.to_owned()).into());
        }
        _ => {
            session.terminal.remark(match node {
                Some(node) if stranded.nodes.is_empty() => {
                    format!("node/{node} is healthy: no pods are stuck there")
                }
                _ => pods::summary(&stranded),
            });
        }
    }
    for line in pods::unknown(&stranded) {
        session.terminal.warn(line);
    }
    Ok(problems.end().await)
}

fn print(
    args: &StatusArgs,
    format: Format,
    session: &Session<'_>,
    stranded: &Stranded,
) -> Result<(), Failure> {
    let terminal = session.terminal;
    let text = match format {
        Format::Text | Format::Wide | Format::LockId => {
            let layout = Layout {
                wide: format == Format::Wide,
                headers: !args.no_headers,
                fit: terminal.width(),
            };
            pods::table(stranded, layout, session.locks.server_time().now())
        }
        Format::Name | Format::Json | Format::Yaml | Format::Template(_) => {
            print::data(&pods::list(stranded), format)?
        }
    };
    if let Some(text) = text {
        terminal.data(text);
    }
    Ok(())
}
