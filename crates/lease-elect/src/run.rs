//! Runs the program from standby to leadership to the end.

use std::pin::pin;
use std::sync::Arc;

use connect::{Environment, Notice, Notices, connect};
use maintenance_lease::{LeaderElection, Maintenance, Repository};

use crate::args::Args;
use crate::campaign::{self, withdraw};
use crate::election_state::{ElectionNames, ElectionState};
use crate::exit::Code;
use crate::failure::Failure;
use crate::lead::Lead;
use crate::signals::EndSignals;
use crate::{identity, log, status};

/// The name of this program in the API server's logs.
const USER_AGENT: &str = concat!("lease-elect/", env!("CARGO_PKG_VERSION"));

/// Stands by, leads once, and returns the exit code.
///
/// # Errors
/// If lease-elect itself fails, not the daemon.
pub(crate) async fn run(args: &Args) -> Result<Code, Failure> {
    let mut signals = EndSignals::new().map_err(Failure::System)?;
    let keep = args.keep()?;
    supervisor::check()?;
    tokio::spawn(supervisor::reap_orphans());
    let election_state = ElectionState::default();
    if let Some(address) = args.status_address {
        let listener = status::listen(address).await?;
        tokio::spawn(status::serve(listener, election_state.clone()));
    }

    let (environment, notices) = (Environment::of_this_process(), notices());
    // A credential plugin may take long, or wait for input.
    let connection = tokio::select! {
        biased;
        code = signals.received() => {
            log::line("asked to end");
            return Ok(code);
        }
        connection = connect(&args.flags, &environment, USER_AGENT, &notices) => connection?,
    };
    let holder = args
        .holder
        .clone()
        .unwrap_or_else(identity::of_this_process);
    let namespace = connection.client.default_namespace().to_owned();
    let reconnect = connection.reconnector();
    let locks = Maintenance::builder(connection.client, holder)
        .repository(Repository::new(&*namespace))
        .field_manager("lease-elect")
        .request_timeout(connection.request_timeout)
        .reconnect(reconnect)
        .build()?;
    let election =
        LeaderElection::new(locks.clone(), &*args.lease)?.lease_duration(args.lease_duration);
    election_state.names(ElectionNames {
        namespace: namespace.clone(),
        lease: args.lease.clone(),
    });

    log::line(format_args!(
        "candidate for lease {namespace}/{} as {}",
        args.lease,
        locks.identity()
    ));
    let mut candidacy = pin!(campaign::lead(&election, &keep, &election_state));
    let held = tokio::select! {
        biased;
        code = signals.received() => {
            log::line("asked to end");
            withdraw(&locks, &args.lease, candidacy).await;
            return Ok(code);
        }
        held = &mut candidacy => held?,
    };
    Lead {
        held,
        election_state: election_state.clone(),
        namespace,
        holder: locks.identity().to_owned(),
        grace: args.grace,
    }
    .run(args.daemon.clone(), signals)
    .await
}

fn notices() -> Notices {
    Arc::new(|notice| match notice {
        Notice::ApiWarning(text) => log::line(format_args!("Warning: {text}")),
        Notice::Trace(text) => log::trace(&text),
        Notice::SlowPlugin(command) => {
            log::line(format_args!("waiting for credential plugin {command}"));
        }
    })
}
