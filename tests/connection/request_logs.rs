//! The output of `-v`, and warnings of the API server. Neither contains a secret.

use crate::support::kubeconfig::{Kubeconfig, real_cluster};
use crate::support::maint::Maint;
use crate::support::server::Server;

/// Each warning is shown once.
#[test]
fn warnings_are_shown() {
    let server = Server::plain(
        "warning: 299 - \"v1 is old\"\r\nwarning: 299 - \"v1 is old\", 299 - \"so are you\"\r\n",
    );
    let run = Maint::version()
        .args(["-s", &server.address.to_string()])
        .succeeds();
    assert_eq!(run.stderr, "Warning: v1 is old\nWarning: so are you\n");
}

#[test]
fn levels_add_up() {
    let server = Server::plain("");
    let address = server.address.to_string();
    let shown = |level: &str| {
        Maint::version()
            .args(["-v", level, "-s", &address])
            .succeeds()
            .stderr
    };

    assert_eq!(shown("5"), "");
    let six = shown("6");
    let line = format!(
        "\"Response\" verb=\"GET\" url=\"http://{address}/version?timeout=10s\" status=\"200 OK\" milliseconds="
    );
    assert!(six.starts_with(&line) && six.lines().count() == 1, "{six}");
    let seven = shown("7");
    assert!(seven.starts_with("\"Request\" verb=\"GET\""), "{seven}");
    for header in [
        "\tuser-agent: kubectl-maint/",
        "\tcontent-type: application/json\n",
    ] {
        assert!(seven.contains(header), "{seven}");
    }
}

/// Not even the highest level shows a token, whatever its source is.
#[test]
fn no_level_shows_a_token() {
    let config = Kubeconfig::new(
        &real_cluster(""),
        "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./login, interactiveMode: Never}}",
    );
    config.write_script(
        "login",
        "echo '{\"kind\": \"ExecCredential\", \"apiVersion\": \"client.authentication.k8s.io/v1\", \
         \"status\": {\"token\": \"s3cret\"}}'",
    );
    for flags in [&["-v10", "--token=s3cret"][..], &["-v10"]] {
        let run = Maint::version()
            .args(flags)
            .kubeconfig(&config.path())
            .run();
        assert!(
            run.stderr.contains("authorization: Bearer <masked>\n"),
            "{run:?}"
        );
        assert!(run.stderr.contains("You must be logged in"), "{run:?}");
        assert!(!run.stderr.contains("s3cret"), "{run:?}");
    }
}
