//! `--as` and the related flags.

use control_plane::{Rule, shared};

use crate::support::kubeconfig::Kubeconfig;
use crate::support::maint::Maint;
use crate::support::server::Server;

/// The request is sent as the other user, and the API server decides who may impersonate whom.
#[test]
fn server_sees_who_acts_as_whom() {
    let config = Kubeconfig::real("deputy");
    let right = Rule::new("", &["users"], &["impersonate"]).named(&["boss"]);
    shared().grant("deputy", &[right]).unwrap();

    Maint::version()
        .args(["--as", "boss"])
        .kubeconfig(&config.path())
        .succeeds();
    Maint::version()
        .args(["--as=stranger"])
        .kubeconfig(&config.path())
        .meets_refusal_as("deputy");
}

/// Each attribute is sent in its own header, and so is each group and each value.
#[test]
fn every_attribute_is_sent() {
    let server = Server::plain("");
    Maint::version()
        .args([
            "--server",
            &server.address.to_string(),
            "--as=bob",
            "--as-uid=42",
            "--as-group=one",
            "--as-group=two",
            "--as-user-extra=example.com/Scope=a",
            "--as-user-extra=example.com/Scope=b",
        ])
        .succeeds();
    let request = server.request().to_lowercase();
    for header in [
        "impersonate-user: bob",
        "impersonate-uid: 42",
        "impersonate-group: one",
        "impersonate-group: two",
        "impersonate-extra-example.com%2fscope: a",
        "impersonate-extra-example.com%2fscope: b",
    ] {
        assert!(
            request.lines().any(|line| line == header),
            "{header} is not in:\n{request}"
        );
    }
}

/// The kubeconfig can also set the user to impersonate.
#[test]
fn kubeconfig_names_the_other_user() {
    let server = Server::plain("");
    let config = Kubeconfig::new(
        &format!("{{server: \"http://{}\"}}", server.address),
        "{as: bob, as-groups: [one]}",
    );
    Maint::version().kubeconfig(&config.path()).succeeds();
    let request = server.request().to_lowercase();
    assert!(
        request.contains("\r\nimpersonate-user: bob\r\n"),
        "{request}"
    );
    assert!(
        request.contains("\r\nimpersonate-group: one\r\n"),
        "{request}"
    );
}

/// Attributes without a user are refused before any request is sent.
#[test]
fn group_without_user_is_refused() {
    let server = Server::plain("");
    let config = Kubeconfig::new(&format!("{{server: \"http://{}\"}}", server.address), "{}");
    for flag in ["--as-group=one", "--as-uid=42", "--as-user-extra=a=b"] {
        Maint::version()
            .args([flag])
            .kubeconfig(&config.path())
            .fails(
                "error: requesting uid, groups or user-extra for user without impersonating a user",
            );
    }
    assert_eq!(server.unseen(), 0);
}
