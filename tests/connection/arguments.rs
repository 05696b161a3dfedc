//! The notations of flags.

use crate::support::maint::Maint;
use crate::support::server::Server;

/// kubectl accepts all these forms of `-v`, before and after the verb.
#[test]
fn verbosity_is_typed_as_for_kubectl() {
    let server = Server::plain("");
    let address = server.address.to_string();
    for level in [
        &["-v", "6"][..],
        &["-v=6"],
        &["-v6"],
        &["--v=6"],
        &["--v", "6"],
    ] {
        let run = Maint::version()
            .args(level.iter().copied().chain(["-s", &address]))
            .succeeds();
        assert!(
            run.stderr.starts_with("\"Response\" verb=\"GET\""),
            "{level:?}: {run:?}"
        );
    }
}

/// kubectl refuses these time limits with the same words.
#[test]
fn bad_request_timeout_is_a_usage_error() {
    for time in ["", "x", "-5s", "18446744073709551615", "1000years"] {
        let run = Maint::version()
            .args([format!("--request-timeout={time}")])
            .run();
        assert!(
            run.stderr.contains(
                "Invalid timeout value. Timeout must be a single integer in seconds, or an integer followed by \
                 a corresponding time unit (e.g. 1s | 2m | 3h)"
            ),
            "{time:?}: {run:?}"
        );
        assert_eq!(run.code, 2, "{time:?}: {run:?}");
    }
}
