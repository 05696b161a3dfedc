//! Checks of the server's certificate.

use std::time::{Duration, SystemTime};

use control_plane::{Authority, Identity, shared};

use crate::support::kubeconfig::{Kubeconfig, real_cluster};
use crate::support::maint::Maint;
use crate::support::server::Server;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const UNTRUSTED: &str = "Unable to connect to the server: tls: failed to verify certificate: x509: certificate signed \
                         by unknown authority";

/// A TLS server, and a kubeconfig that trusts the authority of its certificate.
struct Case {
    server: Server,
    config: Kubeconfig,
}

impl Case {
    fn new(sign: impl FnOnce(&Authority) -> anyhow::Result<Identity>) -> Self {
        let authority = Authority::new("test").unwrap();
        let server = Server::tls(&sign(&authority).unwrap());
        let config = Kubeconfig::new(
            &format!(
                "{{server: \"https://{}\", certificate-authority: ca.crt}}",
                server.address
            ),
            "{token: t}",
        );
        config.write("ca.crt", &authority.pem());
        Self { server, config }
    }

    fn run(&self, flags: &[&str]) -> Maint {
        Maint::version().args(flags).kubeconfig(&self.config.path())
    }
}

/// The certificate is valid, so the token is sent.
#[test]
fn right_certificate_is_accepted() {
    let case = Case::new(|authority| authority.server(&["127.0.0.1"]));
    case.run(&[]).succeeds();
    let request = case.server.request();
    assert!(
        request.contains("\r\nauthorization: Bearer t\r\n"),
        "{request}"
    );
}

/// If the authority is wrong, no request is sent, unless the check is switched off.
#[test]
fn wrong_authority_is_refused() {
    let case = Case::new(|authority| authority.server(&["127.0.0.1"]));
    let other = case
        .config
        .write("other.crt", &Authority::new("other").unwrap().pem());
    let other = format!("--certificate-authority={}", other.display());
    case.run(&[&other]).fails(UNTRUSTED);
    assert_eq!(case.server.unseen(), 0);
    case.run(&["--insecure-skip-tls-verify"]).succeeds();
    assert_eq!(case.server.unseen(), 1);

    let real = Kubeconfig::new(&real_cluster(""), "{}");
    Maint::version()
        .args([&other])
        .kubeconfig(&real.path())
        .fails(UNTRUSTED);
    let right = format!("--certificate-authority={}", shared().ca_path().display());
    Maint::version()
        .args([&right])
        .kubeconfig(&real.path())
        .succeeds();
}

/// If the kubeconfig names no authority, the system's authorities are used, and ours is not one of them.
#[test]
fn system_authorities_count_if_none_is_given() {
    let config = Kubeconfig::new(&format!("{{server: {:?}}}", shared().url()), "{}");
    Maint::version()
        .kubeconfig(&config.path())
        .variable("SSL_CERT_FILE", shared().ca_path())
        .succeeds();
    Maint::version()
        .args(["--insecure-skip-tls-verify=true"])
        .kubeconfig(&config.path())
        .succeeds();
    let other = config.write("other.crt", &Authority::new("other").unwrap().pem());
    Maint::version()
        .args(["--insecure-skip-tls-verify=false"])
        .kubeconfig(&config.path())
        .variable("SSL_CERT_FILE", other)
        .fails(UNTRUSTED);
}

/// If a certificate is valid only from tomorrow, the local clock is probably wrong.
#[test]
fn certificate_that_is_not_valid_yet_hints_at_the_clock() {
    let tomorrow = SystemTime::now() + DAY;
    let case =
        Case::new(|authority| authority.server_valid(&["127.0.0.1"], tomorrow..tomorrow + DAY));
    let run = case.run(&[]).run();
    assert_eq!(run.code, 1, "{run:?}");
    let message = "Unable to connect to the server: tls: failed to verify certificate: x509: certificate has expired \
                   or is not yet valid: current time 20";
    assert!(
        run.stderr.starts_with(message) && run.stderr.contains("Z is before 20"),
        "{run:?}"
    );
    assert!(
        run.stderr
            .contains("check the local clock: it is before the time when the server's certificate becomes valid"),
        "{run:?}"
    );
}

#[test]
fn expired_certificate_is_refused() {
    let now = SystemTime::now();
    let case =
        Case::new(|authority| authority.server_valid(&["127.0.0.1"], now - 2 * DAY..now - DAY));
    let run = case.run(&[]).run();
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stderr.contains("x509: certificate has expired")
            && run.stderr.contains("Z is after 20"),
        "{run:?}"
    );
}

/// The message has the names in the certificate. `--tls-server-name` selects the name to check.
#[test]
fn tls_server_name_is_the_name_to_expect() {
    let case = Case::new(|authority| authority.server(&["kubernetes.default.svc", "10.0.0.1"]));
    let refused = "Unable to connect to the server: tls: failed to verify certificate: x509: certificate is valid for ";
    case.run(&[])
        .fails(&format!("{refused}10.0.0.1, not 127.0.0.1"));
    case.run(&["--tls-server-name=elsewhere"])
        .fails(&format!("{refused}kubernetes.default.svc, not elsewhere"));
    case.run(&["--tls-server-name=kubernetes.default.svc"])
        .succeeds();

    let config = Kubeconfig::new(&real_cluster("tls-server-name: nowhere"), "{}");
    Maint::version()
        .kubeconfig(&config.path())
        .fails(&format!("{refused}localhost, not nowhere"));
    Maint::version()
        .args(["--tls-server-name=localhost"])
        .kubeconfig(&config.path())
        .succeeds();
    // The server name in the kubeconfig does not apply to another server.
    Maint::version()
        .args(["--server", shared().url()])
        .kubeconfig(&config.path())
        .succeeds();
}

/// HTTP/2 is offered, and used if the server supports it.
#[test]
fn http2_is_agreed_on() {
    let authority = Authority::new("test").unwrap();
    let server = Server::negotiating(&authority.server(&["127.0.0.1"]).unwrap());
    let url = format!("https://{}", server.address);
    Maint::version()
        .args(["--insecure-skip-tls-verify", "--server", &url])
        .run();
    assert_eq!(server.request(), "h2");
}

/// An authority and "skip the check" contradict each other.
#[test]
fn authority_and_insecure_exclude_each_other() {
    let config = Kubeconfig::new(&real_cluster("insecure-skip-tls-verify: true"), "{}");
    Maint::version()
        .kubeconfig(&config.path())
        .fails("error: specifying a root certificates file with the insecure flag is not allowed");
}
