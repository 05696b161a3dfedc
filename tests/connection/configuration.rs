//! Which kubeconfig, context and server are used.

use crate::support::kubeconfig::Kubeconfig;
use crate::support::maint::Maint;
use crate::support::server::Server;

/// Without any configuration, kubectl connects to localhost:8080.
#[test]
fn without_any_configuration_localhost_is_tried() {
    let asks_localhost = |maint: Maint| {
        let run = maint.args(["-v6"]).run();
        assert!(
            run.stderr
                .contains("url=\"http://localhost:8080/version?timeout=10s\""),
            "{run:?}"
        );
    };
    asks_localhost(Maint::version());
    asks_localhost(Maint::version().variable("KUBECONFIG", "/nowhere/config"));
    asks_localhost(Maint::version().variable("HOME", "/nowhere"));
}

#[test]
fn server_needs_no_kubeconfig() {
    let server = Server::plain("");
    Maint::version()
        .args(["-s", &format!("http://{}", server.address)])
        .succeeds();
    Maint::version()
        .args(["--server", &server.address.to_string()])
        .succeeds();
    Maint::version()
        .args(["--server=http://"])
        .fails("error: host must be a URL or a host:port pair: \"http://\"");
}

/// A name that the kubeconfig does not have is an error, and is not ignored.
#[test]
fn unknown_names_are_refused() {
    let server = Server::plain("");
    let config = Kubeconfig::new(&format!("{{server: \"http://{}\"}}", server.address), "{}");
    let run = |flag| Maint::version().args([flag]).kubeconfig(&config.path());
    run("--context=nope").fails("error: context \"nope\" does not exist");
    run("--cluster=nope").fails("error: cluster \"nope\" does not exist");
    run("--user=nope").fails("error: user \"nope\" does not exist");
    run("--context=test").succeeds();
    run("--cluster=cluster").succeeds();
    run("--user=user").succeeds();
    assert_eq!(server.unseen(), 3);
}

/// A context with an unknown cluster or user is an error. Without it, the request would go to localhost, or be
/// anonymous.
#[test]
fn dangling_contexts_are_refused() {
    let config = Kubeconfig::new("{}", "{}");
    let write = |context: &str| {
        config.write(
            "config",
            &format!("{{current-context: x, contexts: [{{name: {context}}}]}}"),
        )
    };
    write("y");
    Maint::version()
        .kubeconfig(&config.path())
        .fails("error: context \"x\" does not exist");
    write("x, context: {cluster: c}");
    Maint::version()
        .kubeconfig(&config.path())
        .fails("error: cluster \"c\" does not exist");
    write("x, context: {user: u}");
    Maint::version()
        .kubeconfig(&config.path())
        .fails("error: user \"u\" does not exist");
}

/// The message names the file and the position, but does not quote the content.
#[test]
fn broken_kubeconfig_is_named() {
    let config = Kubeconfig::new("{}", "{}");
    let path = config.write("broken", "users: [{token: s3cret\n");
    let run = Maint::version().kubeconfig(&path).run();
    let expected = format!(
        "error: error loading config file {:?}: yaml: ",
        path.display().to_string()
    );
    assert!(run.stderr.starts_with(&expected), "{run:?}");
    assert!(!run.stderr.contains("s3cret"), "{run:?}");
    assert_eq!(run.code, 1, "{run:?}");
}

/// The URL of a cluster may have a path, as behind Rancher.
#[test]
fn path_of_the_server_is_kept() {
    let server = Server::plain("");
    Maint::version()
        .args([
            "--server",
            &format!("http://{}/k8s/clusters/c-1/", server.address),
        ])
        .succeeds();
    let request = server.request();
    assert!(
        request.starts_with("GET /k8s/clusters/c-1/version?timeout=10s HTTP/1.1\r\n"),
        "{request}"
    );
}
