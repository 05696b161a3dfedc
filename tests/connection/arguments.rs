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

#[test]
fn last_verbosity_counts() {
    let server = Server::plain("");
    let address = server.address.to_string();
    for words in [
        &["version", "-v6", "-v", "8"][..],
        &["-v6", "version", "-v", "8"],
        &["-v6", "-v", "8", "version"],
    ] {
        let run = Maint::line(words).args(["-s", &address]).succeeds();
        assert!(
            run.stderr.contains("\"Response Body\""),
            "{words:?}: {run:?}"
        );
    }
}

/// kubectl refuses these time limits with the same words.
#[test]
fn bad_request_timeout_is_a_usage_error() {
    // The last ones are longer than Go's longest duration.
    for time in [
        "",
        "x",
        "0.5",
        "-5s",
        "1d",
        "1 s",
        "9223372037",
        "18446744073709551615",
        "2562048h",
    ] {
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

/// The message names the flag, but does not show the password.
#[test]
fn basic_authentication_is_refused() {
    for flag in ["--username=me", "--password=s3cret"] {
        let run = Maint::version().args([flag]).run();
        assert!(
            run.stderr
                .starts_with("error: --username and --password are not supported"),
            "{run:?}"
        );
        assert!(!run.stderr.contains("s3cret"), "{run:?}");
        assert_eq!(run.code, 2, "{run:?}");
    }
}

/// There is no cache, but scripts that set kubectl's cache directory must work. A namespace has no effect either.
#[test]
fn flags_that_change_nothing_are_accepted() {
    let server = Server::plain("");
    let address = server.address.to_string();
    Maint::version()
        .args([
            "--cache-dir=/nowhere",
            "-n",
            "default",
            "--server",
            &address,
        ])
        .succeeds();
}

/// In Go, switches can be given a value such as `false`.
#[test]
fn switches_take_a_value() {
    let server = Server::plain("");
    let address = server.address.to_string();
    for (value, compressed) in [
        ("", false),
        ("=true", false),
        ("=1", false),
        ("=false", true),
        ("=F", true),
    ] {
        Maint::version()
            .args([&format!("--disable-compression{value}"), "-s", &address])
            .succeeds();
        let request = server.request().to_lowercase();
        assert_eq!(
            request.contains("accept-encoding: gzip"),
            compressed,
            "{value:?}: {request}"
        );
    }
    let run = Maint::version().args(["--disable-compression=maybe"]).run();
    assert_eq!(run.code, 2, "{run:?}");
}
