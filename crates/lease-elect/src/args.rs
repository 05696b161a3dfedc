//! The command-line arguments, and their meaning.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Parser, value_parser};
use connect::Flags;
use maintenance_lease::protocol::{Span, Terms};
use maintenance_lease::{Keep, LONGEST_DURATION, check_duration, is_object_name};

use crate::failure::Failure;

/// Run a daemon while this process is the leader, and stand by while another one is
///
/// Start lease-elect with the same LEASE on several machines. One of them leads and runs DAEMON. The
/// others stand by and watch the Lease. If DAEMON ends, the lease is released and a standby starts its
/// own DAEMON at once. If the leader crashes, a standby starts after --lease-duration.
///
/// If the leader cannot renew its lease --missed-renewals times in a row, leadership is lost: DAEMON and
/// everything that it started get TERM, and KILL after --grace, before another process can lead. The
/// exit code is then 5. Start lease-elect again to make it a standby.
///
/// Otherwise, the exit code is the one of DAEMON, or 128 plus the number of the signal that ended it.
/// It is 125 for errors of lease-elect itself. docs/lease-elect.md has the other exit codes, the
/// variables for DAEMON, and how to choose the times.
#[derive(Parser, Debug)]
#[command(
    name = "lease-elect",
    version,
    max_term_width = 100,
    override_usage = "lease-elect LEASE [OPTIONS] -- DAEMON [ARGUMENT]...",
    after_help = "Examples:
  lease-elect scheduler -n batch -- \\
      /usr/bin/scheduler --config /etc/scheduler.yaml
  lease-elect scheduler --status-address :8080 -- scheduler
  lease-elect scheduler --lease-duration 30s --grace 15s -- scheduler"
)]
pub(crate) struct Args {
    /// Name of the Lease; it is created if it does not exist
    #[arg(value_name = "LEASE", value_parser = lease_name)]
    pub(crate) lease: String,

    /// Program to run, and its arguments
    #[arg(last = true, required = true, value_name = "DAEMON")]
    pub(crate) daemon: Vec<OsString>,

    /// Time until another process leads after a crash
    #[arg(long, value_name = "TIME", default_value = "15s", allow_hyphen_values = true, value_parser = lease_duration)]
    pub(crate) lease_duration: Duration,

    /// Number of renewals in a row that may fail before leadership is lost
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = value_parser!(u32).range(1..=1000))]
    pub(crate) missed_renewals: u32,

    /// Time between TERM and KILL if leadership is lost
    #[arg(long, value_name = "TIME", default_value = "5s", allow_hyphen_values = true, value_parser = grace)]
    pub(crate) grace: Duration,

    /// Identity of this process, unique in the election [default: HOST_PID_RANDOM]
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) holder: Option<String>,

    /// Serve /healthz, /readyz, /readyz?leader and /metrics on IP:PORT or :PORT
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) status_address: Option<SocketAddr>,

    #[command(flatten)]
    pub(crate) flags: Flags,
}

impl Args {
    /// How the lease is kept.
    ///
    /// # Errors
    /// If the lease duration is too short for this number of missed renewals.
    pub(crate) fn keep(&self) -> Result<Keep, Failure> {
        let stop = supervisor::under_lease::stop(self.grace);
        let shortest = Terms::shortest_tolerating(self.missed_renewals, Span::from(stop));
        if self.lease_duration < Duration::from_secs(shortest.into()) {
            let shown = humantime::format_duration;
            return Err(Failure::Usage {
                message: format!(
                    "--lease-duration {} is too short: with --grace {} and --missed-renewals {} it \
                     takes at least {shortest}s",
                    shown(self.lease_duration),
                    shown(self.grace),
                    self.missed_renewals,
                ),
                hint: "renewals are due every (--lease-duration − --grace − 1s) / \
                       (--missed-renewals + 1), which must be at least 1s"
                    .to_owned(),
            });
        }
        Ok(Keep::new().stop(stop).missed_renewals(self.missed_renewals))
    }
}

fn lease_name(typed: &str) -> Result<String, String> {
    is_object_name(typed)
        .then(|| typed.to_owned())
        .ok_or_else(|| "is not the name of a Lease, such as scheduler".to_owned())
}

fn lease_duration(typed: &str) -> Result<Duration, String> {
    let length = length(typed)?;
    check_duration(length).map_err(|_| "must be a whole number of seconds from 1s to 1h")?;
    Ok(length)
}

fn grace(typed: &str) -> Result<Duration, String> {
    let length = length(typed)?;
    if length >= LONGEST_DURATION {
        return Err("must be shorter than 1h, the longest --lease-duration".to_owned());
    }
    Ok(length)
}

fn length(typed: &str) -> Result<Duration, String> {
    if typed.starts_with('-') {
        return Err("must not be negative".to_owned());
    }
    humantime::parse_duration(typed)
        .map_err(|_| "is not a length of time, such as 15s or 1m".to_owned())
}

/// Parses an address as Go's programs do: without a host, it means all interfaces.
fn address(typed: &str) -> Result<SocketAddr, String> {
    let whole = match typed.strip_prefix(':') {
        Some(port) => format!("0.0.0.0:{port}"),
        None => typed.to_owned(),
    };
    whole
        .parse()
        .map_err(|_| "must be IP:PORT or :PORT, such as 127.0.0.1:8080".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn parse(typed: &[&str]) -> Args {
        let words = ["lease-elect", "scheduler"].iter().chain(typed);
        Args::parse_from(words.chain(&["--", "daemon", "--its-own"]))
    }

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn only_what_may_be_the_name_of_a_lease_is_accepted() {
        let name = |typed: &str| {
            let parsed = Args::try_parse_from(["lease-elect", typed, "--", "daemon"]);
            parsed
                .map(|args| args.lease)
                .map_err(|error| error.to_string())
        };
        assert_eq!(name("scheduler"), Ok("scheduler".to_owned()));
        for wrong in ["", "lease/a", "Scheduler", "a b"] {
            let error = name(wrong).expect_err(wrong);
            assert!(
                error.contains("is not the name of a Lease, such as scheduler"),
                "{error}"
            );
        }
    }

    #[test]
    fn arguments_after_the_dashes_are_the_daemons() {
        let args = parse(&["-n", "batch"]);
        assert_eq!(args.daemon, ["daemon", "--its-own"]);
        assert_eq!(args.flags.namespace.as_deref(), Some("batch"));
        assert!(args.keep().is_ok());
    }

    #[test]
    fn combinations_that_leave_no_time_are_refused_with_the_formula() {
        assert!(parse(&["--lease-duration=10s"]).keep().is_ok());
        let failure = parse(&["--lease-duration=9s"]).keep().unwrap_err();
        assert_eq!(
            failure.to_string(),
            "--lease-duration 9s is too short: with --grace 5s and --missed-renewals 3 it takes at \
             least 10s"
        );
        let formula = "(--lease-duration − --grace − 1s) / (--missed-renewals + 1)";
        assert!(failure.hint().unwrap().contains(formula));
        assert!(parse(&["--missed-renewals=9"]).keep().is_err());
        assert!(parse(&["--grace=11s"]).keep().is_err());
        assert!(
            parse(&["--grace=10s", "--missed-renewals=2"])
                .keep()
                .is_ok()
        );
    }

    #[test]
    fn a_grace_that_no_lease_could_last_for_is_refused() {
        for typed in ["1h", "200000years", "18446744073709551615s"] {
            assert!(grace(typed).is_err(), "{typed}");
        }
        assert_eq!(grace("59m"), Ok(Duration::from_secs(59 * 60)));
    }

    #[test]
    fn an_address_needs_no_host() {
        assert_eq!(address(":8080"), Ok(([0, 0, 0, 0], 8080).into()));
        assert_eq!(address("127.0.0.1:1"), Ok(([127, 0, 0, 1], 1).into()));
        assert!(address("[::1]:80").is_ok());
        assert!(address("8080").is_err());
    }
}
