//! Time limits of requests.

use crate::support::maint::Maint;
use crate::support::server::Server;

/// The server accepts the connection but does not answer.
#[test]
fn server_without_an_answer_times_out() {
    let server = Server::silent();
    let run = Maint::version().args(["--request-timeout=300ms", "--server", &server.address.to_string()]).fails(
        "Unable to connect to the server: net/http: request canceled (Client.Timeout exceeded while awaiting headers)",
    );
    assert!(
        run.stderr
            .contains("no answer within 300ms; to wait longer, use --request-timeout"),
        "{run:?}"
    );
}

/// The time limit also applies to a TLS handshake that does not end.
#[test]
fn handshake_without_an_answer_times_out() {
    let server = Server::silent();
    Maint::version().args(["--request-timeout=300ms", "--server", &format!("https://{}", server.address)]).fails(
        "Unable to connect to the server: net/http: request canceled (Client.Timeout exceeded while awaiting headers)",
    );
}

/// The request tells the server the time limit of the client.
#[test]
fn server_gets_the_limit() {
    let server = Server::plain("");
    let address = server.address.to_string();
    for (flags, query) in [
        (&[][..], "?timeout=10s"),
        (&["--request-timeout=90"], "?timeout=90s"),
        (&["--request-timeout=1m"], "?timeout=60s"),
        (&["--request-timeout=1500ms"], "?timeout=1500ms"),
        (&["--request-timeout=0"], ""),
    ] {
        Maint::version()
            .args(flags.iter().copied().chain(["-s", &address]))
            .succeeds();
        let request = server.request();
        assert!(
            request.starts_with(&format!("GET /version{query} HTTP/1.1\r\n")),
            "{flags:?}: {request}"
        );
    }
}
