//! Decides whether requests go through a proxy. The proxy is the kubeconfig's, otherwise the environment's.
//!
//! Gap in kube: it compares `NO_PROXY` with the address of the proxy instead of the server's (see
//! kube-rs/kube#1203), and sends requests to the local machine through a proxy.

use std::net::IpAddr;

use http::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

use super::environment::Environment;
use super::error::ConnectError;

/// The proxy for an API server. The kubeconfig's `proxy-url` applies to every server, regardless of NO_PROXY.
pub(super) fn choose(
    server: &Uri,
    from_kubeconfig: Option<&str>,
    environment: &Environment,
) -> Result<Option<Intercept>, ConnectError> {
    if let Some(url) = from_kubeconfig {
        return parse(url, server).map(Some);
    }
    let names = match server.scheme_str() {
        Some("https") => ["HTTPS_PROXY", "https_proxy"],
        _ => ["HTTP_PROXY", "http_proxy"],
    };
    match environment.first_of(names) {
        Some(url) if !goes_direct(server, environment) => parse(url, server).map(Some),
        _ => Ok(None),
    }
}

/// Parses the URL of a proxy, or its bare host and port, which Go accepts in variables.
fn parse(url: &str, server: &Uri) -> Result<Intercept, ConnectError> {
    let scheme = url.split_once("://").map_or("http", |(scheme, _)| scheme);
    let is_known = ["http", "socks5"].contains(&scheme);
    let proxy = is_known.then(|| Matcher::builder().all(url).build().intercept(server));
    proxy.flatten().ok_or_else(|| {
        // A user name and a password are not shown.
        let host = url.rsplit(['@', '/']).next().unwrap_or_default();
        ConnectError::new(format!(
            "invalid proxy {scheme}://{host}: must be http://HOST:PORT or socks5://HOST:PORT"
        ))
    })
}

/// Whether the server needs no proxy: it is the local machine, or in NO_PROXY.
fn goes_direct(server: &Uri, environment: &Environment) -> bool {
    let host = server.host().unwrap_or_default();
    let address = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>();
    if host == "localhost" || address.is_ok_and(|address| address.is_loopback()) {
        return true;
    }
    let exceptions = environment
        .first_of(["NO_PROXY", "no_proxy"])
        .unwrap_or_default();
    let exceptions = exceptions.split(',').map(str::trim);
    // In Go, `*` also matches addresses, and `*.example.com` the domains below it.
    if exceptions.clone().any(|exception| exception == "*") {
        return true;
    }
    let exceptions: Vec<&str> = exceptions
        .map(|exception| exception.strip_prefix('*').unwrap_or(exception))
        .collect();
    let any_proxy = Matcher::builder()
        .all("http://proxy")
        .no(exceptions.join(","));
    any_proxy.build().intercept(server).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(server: &str, variables: &[(&str, &str)]) -> Option<String> {
        let environment = Environment::of_variables(variables.iter().copied());
        choose(&server.parse().unwrap(), None, &environment)
            .unwrap()
            .map(|proxy| proxy.uri().to_string())
    }

    #[test]
    fn the_scheme_of_the_server_picks_the_variable() {
        let variables = [("HTTPS_PROXY", "http://s:1"), ("HTTP_PROXY", "http://p:2")];
        for (server, variables, expected) in [
            (
                "https://api.example.com",
                &variables[..],
                Some("http://s:1/"),
            ),
            ("http://api.example.com", &variables, Some("http://p:2/")),
            (
                "https://api.example.com",
                &[("https_proxy", "bare:3")],
                Some("http://bare:3/"),
            ),
            (
                "https://api.example.com",
                &[("HTTPS_PROXY", ""), ("ALL_PROXY", "http://a:1")],
                None,
            ),
        ] {
            assert_eq!(proxy(server, variables).as_deref(), expected, "{server}");
        }
    }

    #[test]
    fn the_local_machine_and_exceptions_need_no_proxy() {
        for (server, exceptions, expected) in [
            ("https://localhost:6443", "", true),
            ("https://127.8.8.8", "", true),
            ("https://[::1]:6443", "", true),
            ("https://localhost.example.com", "", false),
            ("https://api.example.com", "*", true),
            ("https://10.1.2.3", "*", true),
            ("https://api.example.com", "example.com", true),
            ("https://badexample.com", "example.com", false),
            ("https://api.example.com", ".example.com", true),
            ("https://api.example.com", "*.example.com", true),
            ("https://10.1.2.3:6443", "10.0.0.0/8", true),
            ("https://11.1.2.3", "10.0.0.0/8", false),
            ("https://[fd00::1]:6443", "fd00::/8", true),
            ("https://api.example.com", " a.b , example.com ,", true),
            ("https://api.example.com", ",", false),
        ] {
            let variables = [("HTTPS_PROXY", "http://p:1"), ("NO_PROXY", exceptions)];
            let is_direct = proxy(server, &variables).is_none();
            assert_eq!(is_direct, expected, "{server} NO_PROXY={exceptions:?}");
        }
    }

    #[test]
    fn the_proxy_of_the_kubeconfig_overrides_the_environment() {
        let environment =
            Environment::of_variables([("NO_PROXY", "*"), ("HTTPS_PROXY", "http://other:1")]);
        let server = "https://127.0.0.1".parse().unwrap();
        let chosen = choose(&server, Some("socks5://me:p%40ss@p:1080"), &environment).unwrap();
        let chosen = chosen.expect("a proxy");
        assert_eq!(chosen.uri().to_string(), "socks5://p:1080/");
        assert_eq!(chosen.raw_auth(), Some(("me", "p@ss")));
    }

    #[test]
    fn a_bad_proxy_is_refused_without_showing_its_password() {
        let server = "https://api.example.com".parse().unwrap();
        for url in ["ftp://me:secret@p:1", "http://me:secret@p q"] {
            let err = parse(url, &server).expect_err(url).to_string();
            assert!(err.starts_with("invalid proxy "), "{err}");
            assert!(!err.contains("secret"), "{err}");
        }
    }
}
