//! API servers that don't answer, are not trusted, or refuse the request.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use control_plane::{Authority, Identity, Kubeconfig, Rule};
use insta::assert_snapshot;

use crate::support::{Cluster, Maint, Treatment, on_one, on_real};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns a kubeconfig for the real server with this certificate authority and this client certificate.
fn odd_kubeconfig(cluster: &Cluster, authority: &Authority, identity: &Identity) -> PathBuf {
    let path = cluster.directory().join("odd");
    Kubeconfig {
        server: cluster.plane().url(),
        ca_pem: &authority.pem(),
        user: "alice",
        identity,
    }
    .write(&path)
    .expect("a kubeconfig");
    path
}

#[test]
fn no_server_listens() {
    let cluster = Cluster::nowhere();
    // This is kubectl's message.
    assert_snapshot!(cluster.maint(["acquire", "worker-1"]).run(), @"
    $ kubectl maint acquire worker-1
    -- stderr
    The connection to the server [server] was refused - did you specify the right host or port?
    -- exit code 1
    ");
    cluster.maint(["acquire", "worker-1", "worker-2"]).fails(1);
    cluster.maint(["release", "--mine"]).fails(1);
}

#[test]
fn the_authority_of_the_server_is_unknown() {
    on_real("server-ca", |cluster| {
        let plane = cluster.plane();
        let other = Authority::new("other").expect("an authority");
        let kubeconfig = odd_kubeconfig(cluster, &other, plane.admin());
        // The TLS handshake fails, so no request is sent.
        assert_snapshot!(cluster.maint(["acquire", "worker-1"]).kubeconfig(kubeconfig).run(), @"
        $ kubectl maint acquire worker-1
        -- stderr
        Unable to connect to the server: tls: failed to verify certificate: x509: certificate signed by unknown authority
        -- exit code 1
        ");
    });
}

#[test]
fn the_client_certificate_has_expired() {
    on_real("server-user", |cluster| {
        let plane = cluster.plane();
        let yesterday = SystemTime::now() - DAY;
        let expired = plane
            .authority()
            .client_valid("alice", &[], yesterday - DAY..yesterday)
            .expect("a certificate");
        let kubeconfig = odd_kubeconfig(cluster, plane.authority(), &expired);
        // The client certificate has expired.
        assert_snapshot!(cluster.maint(["acquire", "worker-1"]).kubeconfig(kubeconfig).run(), @"
        $ kubectl maint acquire worker-1
        -- stderr
        error: You must be logged in to the server (Unauthorized)
        hint: log in again: the credentials are missing, wrong or expired
        -- exit code 1
        ");
    });
}

/// A command line for the real server whose only credential is the bearer token `token`.
fn with_token(cluster: &Cluster, token: &str, words: &[&str]) -> Maint {
    let plane = cluster.plane();
    cluster
        .maint([format!("--token={token}")])
        .without_env("KUBECONFIG")
        .args(words)
        .args([
            format!("--server={}", plane.url()),
            format!("--certificate-authority={}", plane.ca_path().display()),
        ])
}

#[test]
fn the_token_is_unknown() {
    on_real("server-token", |cluster| {
        let bare = |words: &[&str]| with_token(cluster, "unknown", words).run();
        // The message is kubectl's, and does not show the token.
        assert_eq!(bare(&["acquire", "worker-1"]).code, 1);
        assert_snapshot!(bare(&["acquire", "worker-1"]).stderr, @"
        error: You must be logged in to the server (Unauthorized)
        hint: log in again: the credentials are missing, wrong or expired
        ");
        assert_snapshot!(bare(&["release", "worker-1", "worker-2"]).stderr, @"
        error: You must be logged in to the server (Unauthorized)
        hint: log in again: the credentials are missing, wrong or expired
        ");
    });
}

#[test]
fn the_token_has_expired() {
    on_real("server-expired", |cluster| {
        let plane = cluster.plane();
        let node = cluster.node("worker-1");
        plane.service_account("agent").expect("an account");
        let leases = Rule::new("coordination.k8s.io", &["leases"], &["get"]);
        let account = "system:serviceaccount:default:agent";
        plane.grant(account, &[leases]).expect("rights");
        let release = |token: &str| with_token(cluster, token, &["release", &node]).run();
        let valid = plane.token("agent").expect("a token");
        assert_eq!(release(&valid).code, 0);
        let expired = plane.expired_token("agent").expect("a token");
        assert_eq!(release(&expired).code, 1);
        assert_snapshot!(release(&expired).stderr, @"
        error: You must be logged in to the server (Unauthorized)
        hint: log in again: the credentials are missing, wrong or expired
        ");
    });
}

#[test]
fn a_login_page_is_in_the_way() {
    on_one("server-page", |cluster| {
        let node = cluster.node("worker-1");
        cluster.maint(["acquire", &node]).succeeds();
        let proxy = cluster.proxy_for_writes(&[Treatment::Page; 100]);
        let renew = ["renew", &node, "--request-timeout=4s"];
        // The login page may have appeared only after the server got the write.
        let run = cluster.maint(renew).kubeconfig(&proxy.kubeconfig).fails(1);
        assert!(run.stderr.contains("unknown whether"), "{run}");
        let proxy = cluster.proxy(|_, _| Treatment::Page);
        // No write was sent, and the error does not claim that there are no nodes.
        assert_snapshot!(cluster.maint(renew).kubeconfig(&proxy.kubeconfig).run(), @r#"
        $ kubectl maint renew worker-1 --request-timeout=4s
        -- stderr
        error: no Kubernetes API server answered GET /apis/coordination.k8s.io/v1/namespaces/kube-node-maintenance/leases/worker-1: the answer is text/html and begins with "<!DOCTYPE html> <html><head><title>Log in</title></head><bod…"
        hint: check the server address, and any proxy or login page in between
        -- exit code 1
        "#);
        for words in [&["status"][..], &["leases"], &["why", "pod/web-0"]] {
            cluster.maint(words).kubeconfig(&proxy.kubeconfig).fails(1);
        }
    });
}

#[test]
fn the_certificate_of_the_server_is_not_valid_yet() {
    on_real("server-tomorrow", |cluster| {
        let plane = cluster.plane();
        let tomorrow = SystemTime::now() + DAY;
        let certificate = plane
            .authority()
            .server_valid(&["127.0.0.1"], tomorrow..tomorrow + DAY)
            .expect("a certificate");
        let proxy = cluster.proxy_as(Some(&certificate), |_, _| Treatment::Pass);
        // The server's certificate is not valid yet, so the hint is that the local clock may be behind.
        assert_snapshot!(cluster.maint(["acquire", "worker-1"]).kubeconfig(&proxy.kubeconfig).run(), @"
        $ kubectl maint acquire worker-1
        -- stderr
        Unable to connect to the server: tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time [time] is before [time]
        hint: check the local clock: it is before the time when the server's certificate becomes valid
        -- exit code 1
        ");
    });
}

#[test]
fn a_user_who_may_only_read() {
    on_real("server-reader", |cluster| {
        let plane = cluster.plane();
        let node = cluster.node("worker-1");
        let held = cluster.node("worker-2");
        cluster
            .maint(["acquire", &held, "--holder", "bob@laptop"])
            .succeeds();
        let kubeconfig = plane.user("reader", &[]).expect("a kubeconfig");
        let leases = Rule::new("coordination.k8s.io", &["leases"], &["get", "list"]);
        let nodes = Rule::new("", &["nodes"], &["get", "list"]);
        plane.grant("reader", &[leases, nodes]).expect("rights");
        let reader = |words: &[&str]| cluster.maint(words).kubeconfig(&kubeconfig).run();
        // The message names the missing right and where to get it.
        assert_snapshot!(reader(&["acquire", &node]), @r#"
        $ kubectl maint acquire worker-1
        -- stderr
        Error from server (Forbidden): leases.coordination.k8s.io is forbidden: User "reader" cannot create resource "leases" in API group "coordination.k8s.io" in the namespace "kube-node-maintenance"
        hint: ask an administrator for permission to create leases.coordination.k8s.io in namespace kube-node-maintenance; `kubectl maint install` creates the roles (deploy/rbac.yaml)
        -- exit code 1
        "#);
        // The node's holder is reported before missing rights.
        assert_eq!(reader(&["acquire", &held]).code, 3);
        assert_eq!(reader(&["release", &held, "--force", "--yes"]).code, 1);
        assert_eq!(reader(&["release", &node]).code, 0);
        assert_eq!(reader(&["acquire", &node, "--dry-run"]).code, 0);
    });
}

#[test]
fn a_user_without_any_rights() {
    on_real("server-nobody", |cluster| {
        let plane = cluster.plane();
        let kubeconfig = plane.user("nobody", &[]).expect("a kubeconfig");
        let nobody = |words: &[&str]| cluster.maint(words).kubeconfig(&kubeconfig).run();
        // The message names each missing right.
        assert_snapshot!(nobody(&["acquire", "worker-1"]), @r#"
        $ kubectl maint acquire worker-1
        -- stderr
        Error from server (Forbidden): leases.coordination.k8s.io "worker-1" is forbidden: User "nobody" cannot get resource "leases" in API group "coordination.k8s.io" in the namespace "kube-node-maintenance"
        hint: ask an administrator for permission to get leases.coordination.k8s.io in namespace kube-node-maintenance; `kubectl maint install` creates the roles (deploy/rbac.yaml)
        -- exit code 1
        "#);
        assert_snapshot!(nobody(&["acquire", "worker-1", "worker-2"]), @r#"
        $ kubectl maint acquire worker-1 worker-2
        -- stderr
        Error from server (Forbidden): leases.coordination.k8s.io "worker-1" is forbidden: User "nobody" cannot get resource "leases" in API group "coordination.k8s.io" in the namespace "kube-node-maintenance"
        hint: ask an administrator for permission to get leases.coordination.k8s.io in namespace kube-node-maintenance; `kubectl maint install` creates the roles (deploy/rbac.yaml)
        -- exit code 1
        "#);
        assert_snapshot!(nobody(&["acquire", "-l", "pool=gpu"]), @r#"
        $ kubectl maint acquire -l pool=gpu
        -- stderr
        Error from server (Forbidden): nodes is forbidden: User "nobody" cannot list resource "nodes" in API group "" at the cluster scope
        hint: ask an administrator for permission to list nodes; `kubectl maint install` creates the roles (deploy/rbac.yaml)
        -- exit code 1
        "#);
        assert_snapshot!(nobody(&["release", "--mine"]), @r#"
        $ kubectl maint release --mine
        -- stderr
        Error from server (Forbidden): leases.coordination.k8s.io is forbidden: User "nobody" cannot list resource "leases" in API group "coordination.k8s.io" in the namespace "kube-node-maintenance"
        hint: ask an administrator for permission to list leases.coordination.k8s.io in namespace kube-node-maintenance; `kubectl maint install` creates the roles (deploy/rbac.yaml)
        -- exit code 1
        "#);
    });
}
