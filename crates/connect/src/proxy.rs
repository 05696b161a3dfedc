//! Decides whether requests go through a proxy. The proxy is the kubeconfig's, otherwise the environment's
//! with Go's rules.
//!
//! Gap in kube: it compares `NO_PROXY` with the address of the proxy instead of the server's (see
//! kube-rs/kube#1203), and sends requests to the local machine through a proxy. hyper-util's matcher ignores
//! ports in `NO_PROXY`.

use std::net::IpAddr;

use http::Uri;
use ipnet::IpNet;

use super::environment::Environment;
use super::error::ConnectError;

/// The proxy for an API server. The kubeconfig's `proxy-url` applies to every server, regardless of NO_PROXY.
pub(super) fn choose(
    server: &Uri,
    from_kubeconfig: Option<&str>,
    environment: &Environment,
) -> Result<Option<Uri>, ConnectError> {
    if let Some(url) = from_kubeconfig.filter(|url| !url.is_empty()) {
        return parse(url, &["http", "https", "socks5"]).map(Some);
    }
    let names = match server.scheme_str() {
        Some("https") => ["HTTPS_PROXY", "https_proxy"],
        _ => ["HTTP_PROXY", "http_proxy"],
    };
    let Some(url) = environment.first_of(names) else {
        return Ok(None);
    };
    let exceptions = environment
        .first_of(["NO_PROXY", "no_proxy"])
        .unwrap_or_default();
    if goes_direct(server, exceptions) {
        return Ok(None);
    }
    // Go accepts a bare host and port in these variables.
    let url = if url.contains("://") {
        url
    } else {
        &format!("http://{url}")
    };
    parse(url, &["http", "https", "socks5", "socks5h"]).map(Some)
}

fn parse(url: &str, schemes: &[&str]) -> Result<Uri, ConnectError> {
    let invalid = |detail: String| ConnectError::InvalidProxy {
        url: without_password(url),
        detail,
    };
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    if !schemes.contains(&scheme) {
        return Err(invalid(format!(
            "unsupported scheme {scheme:?}, must be http, https, or socks5"
        )));
    }
    let uri = url.parse::<Uri>().map_err(|err| invalid(err.to_string()))?;
    if uri.host().is_none_or(str::is_empty) {
        return Err(invalid("no host".to_owned()));
    }
    Ok(uri)
}

/// The URL without user name and password, so that it can be shown.
fn without_password(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://…@{host}"),
        _ => url.to_owned(),
    }
}

/// Go's rules for NO_PROXY. The local machine never needs a proxy. `*` matches everything. An entry is a
/// network, an address, or a domain with all its subdomains. An address or a domain may have a port.
fn goes_direct(server: &Uri, exceptions: &str) -> bool {
    let host = server
        .host()
        .unwrap_or_default()
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_lowercase();
    let port = server
        .port_u16()
        .unwrap_or(if server.scheme_str() == Some("https") {
            443
        } else {
            80
        });
    let address = host
        .parse::<IpAddr>()
        .ok()
        .map(|address| address.to_canonical());
    if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
        return true;
    }
    exceptions
        .split(',')
        .map(|entry| entry.trim().to_lowercase())
        .any(|entry| matches(&entry, &host, address, port))
}

fn matches(entry: &str, host: &str, address: Option<IpAddr>, port: u16) -> bool {
    if entry == "*" {
        return true;
    }
    if let Ok(network) = entry.parse::<IpNet>() {
        return address.is_some_and(|address| network.contains(&address));
    }
    let (name, only_port) = split_port(entry);
    if name.is_empty() || only_port.is_some_and(|only| only != port.to_string()) {
        return false;
    }
    match (name.parse::<IpAddr>(), address) {
        (Ok(named), Some(address)) => named.to_canonical() == address,
        (Ok(_), None) | (Err(_), Some(_)) => false,
        (Err(_), None) => {
            let domain = name
                .strip_prefix('*')
                .filter(|rest| rest.starts_with('.'))
                .unwrap_or(name);
            match domain.strip_prefix('.') {
                Some(_) => host.ends_with(domain),
                None => {
                    host == domain
                        || host
                            .strip_suffix(domain)
                            .is_some_and(|sub| sub.ends_with('.'))
                }
            }
        }
    }
}

/// Splits `name:port`. A bare IPv6 address has colons, but no port.
fn split_port(entry: &str) -> (&str, Option<&str>) {
    if let Some((address, rest)) = entry
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    {
        return (address, rest.strip_prefix(':'));
    }
    match entry.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') => (name, Some(port)),
        _ => (entry, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(server: &str, variables: &[(&str, &str)]) -> Option<String> {
        let environment = Environment::of_variables(variables.iter().copied());
        choose(&server.parse().unwrap(), None, &environment)
            .unwrap()
            .map(|uri| uri.to_string())
    }

    #[test]
    fn the_scheme_of_the_server_picks_the_variable() {
        let variables = [("HTTPS_PROXY", "http://s:1"), ("HTTP_PROXY", "http://p:2")];
        assert_eq!(
            proxy("https://api.example.com", &variables).as_deref(),
            Some("http://s:1/")
        );
        assert_eq!(
            proxy("http://api.example.com", &variables).as_deref(),
            Some("http://p:2/")
        );
        assert_eq!(
            proxy("https://api.example.com", &[("https_proxy", "bare:3")]).as_deref(),
            Some("http://bare:3/")
        );
        assert_eq!(
            proxy(
                "https://api.example.com",
                &[("HTTPS_PROXY", ""), ("ALL_PROXY", "http://a:1")]
            ),
            None
        );
    }

    #[test]
    fn the_local_machine_needs_no_proxy() {
        let variables = [("HTTPS_PROXY", "http://p:1")];
        for server in [
            "https://localhost:6443",
            "https://127.0.0.1:6443",
            "https://127.8.8.8",
            "https://[::1]:6443",
        ] {
            assert_eq!(proxy(server, &variables), None, "{server}");
        }
        assert!(proxy("https://localhost.example.com", &variables).is_some());
    }

    #[test]
    fn no_proxy_means_what_go_means() {
        let direct = |server: &str, exceptions: &str| {
            proxy(
                server,
                &[("HTTPS_PROXY", "http://p:1"), ("NO_PROXY", exceptions)],
            )
            .is_none()
        };
        for (server, exceptions, expected) in [
            ("https://api.example.com", "*", true),
            ("https://api.example.com", "example.com", true),
            ("https://example.com", "example.com", true),
            ("https://badexample.com", "example.com", false),
            ("https://api.example.com", ".example.com", true),
            ("https://example.com", ".example.com", false),
            ("https://api.example.com", "*.example.com", true),
            ("https://example.com", "*.example.com", false),
            ("https://API.example.com", "EXAMPLE.com", true),
            ("https://api.example.com:6443", "example.com:6443", true),
            ("https://api.example.com:6443", "example.com:443", false),
            ("https://api.example.com", "example.com:443", true),
            ("https://10.1.2.3", "10.0.0.0/8", true),
            ("https://11.1.2.3", "10.0.0.0/8", false),
            ("https://10.1.2.3", "10.1.2.3", true),
            ("https://10.1.2.3:6443", "10.1.2.3:6443", true),
            ("https://10.1.2.3:6443", "10.1.2.3:1", false),
            ("https://10.1.2.3", "2.3", false),
            ("https://[fd00::1]:6443", "fd00::/8", true),
            ("https://[fd00::1]:6443", "fd00::1", true),
            ("https://[fd00::1]:6443", "[fd00::1]:6443", true),
            ("https://[fd00::1]:6443", "[fd00::1]:1", false),
            ("https://api.example.com", " a.b , example.com ,", true),
            ("https://api.example.com", ",", false),
            ("https://api.example.com", ":443", false),
            ("https://api.example.com", "", false),
        ] {
            assert_eq!(
                direct(server, exceptions),
                expected,
                "{server} NO_PROXY={exceptions:?}"
            );
        }
    }

    #[test]
    fn the_proxy_of_the_kubeconfig_overrides_the_environment() {
        let environment =
            Environment::of_variables([("NO_PROXY", "*"), ("HTTPS_PROXY", "http://other:1")]);
        let chosen = choose(
            &"https://127.0.0.1".parse().unwrap(),
            Some("socks5://p:1080"),
            &environment,
        )
        .unwrap();
        assert_eq!(
            chosen.map(|uri| uri.to_string()).as_deref(),
            Some("socks5://p:1080/")
        );
    }

    #[test]
    fn a_bad_proxy_is_refused_without_showing_its_password() {
        let server = "https://api.example.com".parse().unwrap();
        let err = choose(
            &server,
            Some("ftp://me:secret@p:1"),
            &Environment::of_variables([("", ""); 0]),
        )
        .unwrap_err();
        let text = err.to_string();
        assert!(
            text.contains("unsupported scheme \"ftp\", must be http, https, or socks5"),
            "{text}"
        );
        assert!(!text.contains("secret"), "{text}");
    }
}
