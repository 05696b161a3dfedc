//! The forms in which flags can be typed.

use crate::support::maint::Maint;
use crate::support::server::Server;

/// `-v` takes its level in all of kubectl's forms, before and after the verb.
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

/// If several levels are given, the last one counts, before or after the verb.
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

/// A bad time limit is refused in kubectl's words, as a usage error.
#[test]
fn bad_request_timeout_is_a_usage_error() {
    // The last ones are longer than a duration of Go's can be.
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

/// A name and password are refused by name, and the password is not shown.
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

/// There is no cache, but scripts that place kubectl's go on working; nor does a namespace do any harm.
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

/// Switches can be switched off as Go's can.
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
