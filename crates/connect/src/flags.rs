//! The connection flags of kubectl, with the same meaning.
//!
//! Gap in kube: it has no flags.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::BoolishValueParser;

/// The connection flags, usable before and after a command.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Connection")]
pub struct Flags {
    /// Kubeconfig file to use, instead of $KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE", global = true, hide_short_help = true)]
    pub kubeconfig: Option<PathBuf>,

    /// Kubeconfig context to use, instead of the current context
    #[arg(long, value_name = "NAME", global = true, hide_short_help = true)]
    pub context: Option<String>,

    /// Kubeconfig cluster to use, instead of the one of the context
    #[arg(long, value_name = "NAME", global = true, hide_short_help = true)]
    pub cluster: Option<String>,

    /// Kubeconfig user to use, instead of the one of the context
    #[arg(long, value_name = "NAME", global = true, hide_short_help = true)]
    pub user: Option<String>,

    /// Namespace to use, instead of the one of the context or, in a pod, of the pod
    #[arg(
        short,
        long,
        value_name = "NAMESPACE",
        global = true,
        hide_short_help = true
    )]
    pub namespace: Option<String>,

    /// Address and port of the API server
    #[arg(short, long, value_name = "URL", global = true, hide_short_help = true)]
    pub server: Option<String>,

    /// Bearer token to authenticate with
    #[arg(long, value_name = "TOKEN", global = true, hide_short_help = true)]
    pub token: Option<String>,

    /// User to impersonate: a regular user or system:serviceaccount:NAMESPACE:NAME
    #[arg(
        long = "as",
        value_name = "USER",
        global = true,
        hide_short_help = true
    )]
    pub impersonate: Option<String>,

    /// Group to impersonate; repeat the flag for multiple groups
    #[arg(
        long = "as-group",
        value_name = "GROUP",
        global = true,
        hide_short_help = true
    )]
    pub impersonate_groups: Vec<String>,

    /// UID to impersonate
    #[arg(
        long = "as-uid",
        value_name = "UID",
        global = true,
        hide_short_help = true
    )]
    pub impersonate_uid: Option<String>,

    /// Extra attribute of the impersonated user; repeat the flag for multiple values
    #[arg(
        long = "as-user-extra",
        value_name = "KEY=VALUE",
        global = true,
        hide_short_help = true,
        value_parser = key_and_value
    )]
    pub impersonate_extra: Vec<(String, String)>,

    /// File with the CA certificates to check the API server's certificate with
    #[arg(long, value_name = "FILE", global = true, hide_short_help = true)]
    pub certificate_authority: Option<PathBuf>,

    /// File with the client certificate to authenticate with
    #[arg(long, value_name = "FILE", global = true, hide_short_help = true)]
    pub client_certificate: Option<PathBuf>,

    /// File with the private key of the client certificate
    #[arg(long, value_name = "FILE", global = true, hide_short_help = true)]
    pub client_key: Option<PathBuf>,

    /// Do not check the API server's certificate. This makes the connection insecure
    #[arg(
        long,
        value_name = "BOOL",
        global = true,
        hide_short_help = true,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        hide_possible_values = true,
        value_parser = BoolishValueParser::new(),
    )]
    pub insecure_skip_tls_verify: Option<bool>,

    /// Server name to check the API server's certificate with, instead of its host name
    #[arg(long, value_name = "NAME", global = true, hide_short_help = true)]
    pub tls_server_name: Option<String>,

    /// Time limit of a single request (e.g. 10, 10s, 1m); 0 means no limit
    #[arg(
        long,
        value_name = "TIME",
        global = true,
        default_value = "10s",
        hide_short_help = true,
        allow_hyphen_values = true,
        value_parser = request_timeout
    )]
    pub request_timeout: Timeout,

    /// Log level for requests: 6 (URL, status, time), 7 (headers)
    #[arg(
        short = 'v',
        long = "v",
        value_name = "LEVEL",
        global = true,
        hide_short_help = true,
        default_value_t = 0
    )]
    pub verbosity: u8,
}

/// The time limit of one request; `None` means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeout(pub Option<Duration>);

impl Default for Timeout {
    fn default() -> Self {
        Self(Some(Duration::from_secs(10)))
    }
}

/// The longest time limit. The server receives it too, and Go cannot parse much more than this.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Parses `--request-timeout`: whole seconds, or a duration.
fn request_timeout(typed: &str) -> Result<Timeout, String> {
    let time = match typed.parse::<u64>() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => humantime::parse_duration(typed).ok(),
    };
    let time = time.filter(|time| *time <= LONGEST);
    time.map(|time| Timeout((!time.is_zero()).then_some(time))).ok_or_else(|| {
        "Invalid timeout value. Timeout must be a single integer in seconds, or an integer followed by \
         a corresponding time unit (e.g. 1s | 2m | 3h)"
            .to_owned()
    })
}

fn key_and_value(typed: &str) -> Result<(String, String), String> {
    match typed.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("must be KEY=VALUE".to_owned()),
    }
}
