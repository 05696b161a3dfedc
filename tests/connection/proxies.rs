//! Proxies from the kubeconfig and from the environment.

use std::net::SocketAddr;

use control_plane::{NodeSpec, shared};

use crate::namespace::shared_with_namespace;
use crate::support::kubeconfig::{Kubeconfig, real_cluster};
use crate::support::maint::Maint;
use crate::support::proxy::Proxy;

fn api_server() -> SocketAddr {
    shared()
        .url()
        .trim_start_matches("https://")
        .parse()
        .expect("host and port")
}

/// The real API server under a name that only a proxy can resolve, because proxies from the environment are not used
/// for the local machine.
fn far_away() -> Kubeconfig {
    let authority = format!("{:?}", shared().ca_path());
    Kubeconfig::new(
        &format!(
            "{{server: \"https://api.invalid:6443\", tls-server-name: localhost, certificate-authority: {authority}}}"
        ),
        "{}",
    )
}

/// The request for a tunnel has the proxy's name and password.
#[test]
fn https_proxy_is_used() {
    let proxy = Proxy::http(api_server());
    Maint::version()
        .kubeconfig(&far_away().path())
        .variable("HTTPS_PROXY", format!("http://me:p%40ss@{}", proxy.address))
        .succeeds();
    let request = proxy.request();
    assert!(
        request.starts_with("CONNECT api.invalid:6443 HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(
        request.contains("\r\nProxy-Authorization: Basic bWU6cEBzcw==\r\n"),
        "{request}"
    );
}

/// A SOCKS5 proxy resolves the host name itself.
#[test]
fn socks5_proxy_is_used() {
    let open = Proxy::socks5(api_server(), None);
    let proxy_url = |proxy: &Proxy, user: &str| format!("socks5://{user}{}", proxy.address);
    Maint::version()
        .kubeconfig(&far_away().path())
        .variable("HTTPS_PROXY", proxy_url(&open, ""))
        .succeeds();
    assert_eq!(open.request(), "api.invalid:6443");
    let guarded = Proxy::socks5(api_server(), Some(("me", "p@ss")));
    Maint::version()
        .kubeconfig(&far_away().path())
        .variable("HTTPS_PROXY", proxy_url(&guarded, "me:p%40ss@"))
        .succeeds();
    assert_eq!(guarded.request(), "api.invalid:6443");
}

/// The proxy of the kubeconfig is used for every server, also a local one, and takes precedence over the environment.
#[test]
fn proxy_of_the_kubeconfig_is_used() {
    let proxy = Proxy::http(api_server());
    let config = Kubeconfig::new(
        &real_cluster(&format!("proxy-url: \"http://{}\"", proxy.address)),
        "{}",
    );
    Maint::version()
        .kubeconfig(&config.path())
        .variable("HTTPS_PROXY", "http://127.0.0.1:1")
        .variable("NO_PROXY", "*")
        .succeeds();
    assert!(
        proxy
            .request()
            .starts_with(&format!("CONNECT {} ", api_server()))
    );
}

/// A proxy that refuses, one that can't be reached, and one of an unknown kind.
#[test]
fn failing_proxies_are_named() {
    let proxy = Proxy::refusing();
    let config = far_away();
    let run = |url: String| {
        Maint::version()
            .kubeconfig(&config.path())
            .variable("HTTPS_PROXY", url)
    };
    run(format!("http://me:s3cret@{}", proxy.address)).fails(&format!(
        "Unable to connect to the server: proxyconnect {}: tunnel error: proxy authorization required",
        proxy.address
    ));
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    for scheme in ["http", "socks5"] {
        run(format!("{scheme}://me:s3cret@{free}")).fails(&format!(
            "Unable to connect to the server: proxyconnect {free}: connect: connection refused"
        ));
    }
    run("ftp://me:s3cret@127.0.0.1:1".to_owned()).fails(
        "error: invalid proxy ftp://127.0.0.1:1: must be http://HOST:PORT or socks5://HOST:PORT",
    );
}

/// All requests of a command share one connection, also those that are sent at the same time.
#[test]
fn requests_share_one_connection() {
    let names = ["shared-1", "shared-2", "shared-3", "shared-4"];
    shared_with_namespace()
        .create_nodes(&names.map(NodeSpec::ready))
        .unwrap();
    let admin = shared().admin();
    let proxy = Proxy::http(api_server());
    let config = Kubeconfig::new(
        &real_cluster(&format!("proxy-url: \"http://{}\"", proxy.address)),
        "{client-certificate: user.crt, client-key: user.key}",
    );
    config.write("user.crt", &admin.cert_pem);
    config.write("user.key", &admin.key_pem);
    let run = Maint::verb("acquire")
        .args(names)
        .kubeconfig(&config.path())
        .run();
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(proxy.unseen(), 1);
}
