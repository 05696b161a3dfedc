//! Arguments as typed, and what they mean.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Parser, ValueHint, value_parser};
use connect::Flags;
use maintenance_lease::protocol::{Span, Terms};
use maintenance_lease::{Keep, LONGEST_DURATION, check_duration};

use crate::failure::Failure;

/// Run a daemon here while this process leads, and stand by while another does
///
/// Of those who run `lease-elect` with the same LEASE, on any machine, one runs its DAEMON at a time:
/// first come, first served. The others stand by and do nothing but watch the Lease. When the
/// leader's daemon ends, the lease is released and a standby starts its own at once; when the leader
/// crashes or is cut off, a standby does so as soon as it saw the Lease unchanged for
/// --lease-duration.
///
/// The leader renews its lease every (--lease-duration − --grace − 1s) / (--missed-renewals + 1),
/// which must be at least 1s. Once that many renewals in a row have failed, the lead is given up:
/// DAEMON and everything that it started get TERM, and KILL after --grace, before anybody else can
/// lead. The exit code is then 5, whatever DAEMON says, so that a supervisor starts it again as a
/// standby.
///
/// It leads in the same elections as Kubernetes' own components (client-go) do. DAEMON gets its words
/// as they are (no shell), stdin, stdout, stderr and all signals. Its environment has
/// LEASE_ELECT_NAMESPACE, LEASE_ELECT_LEASE, LEASE_ELECT_HOLDER, LEASE_ELECT_TRANSITIONS and
/// LEASE_ELECT_FENCING_TOKEN.
///
/// Exit codes: that of DAEMON, or 128 and the number of the signal that ended it; 126 and 127 where it
/// can't be run or isn't found; 5 where the lead was lost; 0 where it was asked to end (TERM) while it
/// stood by, 130 where that was Ctrl-C, and 125 for any failure of its own.
#[derive(Parser, Debug)]
#[command(
    name = "lease-elect",
    version,
    max_term_width = 100,
    override_usage = "lease-elect LEASE [OPTIONS] -- DAEMON [ARGUMENT]...",
    after_help = "Examples:
  lease-elect scheduler -n batch -- \\
      /usr/bin/scheduler --config /etc/scheduler.yaml
  lease-elect scheduler --lease-duration 30s --grace 15s --missed-renewals 4 \\
      -- scheduler
  # ready: /readyz, and leading: /readyz?leader
  lease-elect scheduler --status-address :8080 -- scheduler"
)]
pub(crate) struct Args {
    /// Lease to lead on; it is made where there is none
    #[arg(value_name = "LEASE", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) lease: String,

    /// What to run, and its arguments
    #[arg(
        last = true,
        required = true,
        value_name = "DAEMON",
        value_hint = ValueHint::CommandWithArguments
    )]
    pub(crate) daemon: Vec<OsString>,

    /// For how long each renewal holds: how soon another leads after a crash
    #[arg(long, value_name = "TIME", default_value = "15s", allow_hyphen_values = true, value_parser = lease_duration)]
    pub(crate) lease_duration: Duration,

    /// How many renewals in a row may fail before the lead is given up
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = value_parser!(u32).range(1..=1000))]
    pub(crate) missed_renewals: u32,

    /// How long DAEMON and what it started have between TERM and KILL
    #[arg(long, value_name = "TIME", default_value = "5s", allow_hyphen_values = true, value_parser = grace)]
    pub(crate) grace: Duration,

    /// Identity to lead with, instead of HOST_PROCESS_RANDOM: no two processes may have the same
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) holder: Option<String>,

    /// Serve /healthz, /readyz, /readyz?leader and /metrics there, such as 127.0.0.1:8080 or :8080
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) status_address: Option<SocketAddr>,

    #[command(flatten)]
    flags: Flags,

    /// Bearer token to authenticate with
    #[arg(
        long,
        value_name = "TOKEN",
        help_heading = "Connection",
        hide_short_help = true
    )]
    token: Option<String>,
}

impl Args {
    /// How to reach the API server.
    pub(crate) fn flags(&self) -> Flags {
        Flags {
            token: self.token.clone(),
            ..self.flags.clone()
        }
    }

    /// How the lead is kept.
    ///
    /// # Errors
    /// Where there is too little time for so many renewals.
    pub(crate) fn keep(&self) -> Result<Keep, Failure> {
        let stop = under_lease::stop(self.grace);
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

/// An address as Go's programs take it: without a host it means every interface.
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
    fn help_tells_of_the_daemon_beside_the_lease() {
        let help = Args::command().render_long_help().to_string();
        let (_, arguments) = help.split_once("Arguments:").expect("a heading");
        let (arguments, _) = arguments.split_once("Options:").expect("the next");
        assert!(arguments.contains("<LEASE>"), "{help}");
        assert!(arguments.contains("<DAEMON>..."), "{help}");
    }

    #[test]
    fn examples_are_copied_whole_from_a_terminal_of_80_columns() {
        let examples = Args::command()
            .get_after_help()
            .expect("examples")
            .to_string();
        for line in examples.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        let shell = examples
            .trim_start_matches("Examples:")
            .replace("\\\n", " ");
        for line in shell.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            Args::try_parse_from(line.split_whitespace()).expect(line);
        }
    }

    #[test]
    fn what_stands_behind_the_dashes_is_the_daemons() {
        let args = parse(&["-n", "batch"]);
        assert_eq!(args.daemon, ["daemon", "--its-own"]);
        assert_eq!(args.flags().namespace.as_deref(), Some("batch"));
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
