//! Credentials: certificates, tokens and plugins.

use control_plane::shared;

use crate::support::kubeconfig::{Kubeconfig, real_cluster};
use crate::support::maint::Maint;
use crate::support::server::Server;

fn service_account_token(name: &str) -> String {
    shared()
        .kubectl(&["create", "serviceaccount", name, "-n", "default"])
        .unwrap();
    shared()
        .kubectl(&["create", "token", name, "-n", "default"])
        .unwrap()
        .trim()
        .to_owned()
}

/// A client certificate from the kubeconfig, and one from flags that replaces it.
#[test]
fn client_certificate_identifies_the_user() {
    let ann = Kubeconfig::real("ann");
    let ben = Kubeconfig::real("ben");
    Maint::version()
        .args(["--as=root"])
        .kubeconfig(&ann.path())
        .meets_refusal_as("ann");
    let file = |name| ben.directory().join(name).to_str().unwrap().to_owned();
    let (certificate, key) = (file("user.crt"), file("user.key"));
    Maint::version()
        .args([
            "--as=root",
            "--client-certificate",
            &certificate,
            "--client-key",
            &key,
        ])
        .kubeconfig(&ann.path())
        .meets_refusal_as("ben");
}

/// The message names the missing part.
#[test]
fn incomplete_client_certificate_is_named() {
    let config = Kubeconfig::new(&real_cluster(""), "{}");
    let certified = Kubeconfig::real("half");
    let certificate = certified.directory().join("user.crt");
    Maint::version().args(["--client-certificate=/nowhere", "--client-key=/nowhere"])
        .kubeconfig(&config.path())
        .fails("error: unable to read client-cert /nowhere for user due to open /nowhere: no such file or directory");
    Maint::version().args([format!("--client-certificate={}", certificate.display())]).kubeconfig(&config.path()).fails(
        "error: client-key-data or client-key must be specified for user to use the clientCert authentication method.",
    );
}

/// A token from the kubeconfig, from a file, and from a flag.
#[test]
fn token_identifies_the_user() {
    let token = service_account_token("teller");
    let teller = "system:serviceaccount:default:teller";
    let inline = Kubeconfig::new(&real_cluster(""), &format!("{{token: {token}}}"));
    Maint::version()
        .args(["--as=root"])
        .kubeconfig(&inline.path())
        .meets_refusal_as(teller);
    let file = Kubeconfig::new(&real_cluster(""), "{tokenFile: token}");
    file.write("token", &format!("{token}\n"));
    Maint::version()
        .args(["--as=root"])
        .kubeconfig(&file.path())
        .meets_refusal_as(teller);
    let none = Kubeconfig::new(&real_cluster(""), "{token: stale}");
    Maint::version()
        .args(["--as=root", "--token", &token])
        .kubeconfig(&none.path())
        .meets_refusal_as(teller);
}

/// The server does not know the token, or no longer accepts it.
#[test]
fn unknown_token_is_unauthorized() {
    let config = Kubeconfig::new(&real_cluster(""), "{token: expired}");
    let run = Maint::version()
        .kubeconfig(&config.path())
        .fails("error: You must be logged in to the server (Unauthorized)");
    assert!(run.stderr.contains("log in again"), "{run:?}");
}

/// A token must never be sent without encryption.
#[test]
fn plain_http_carries_no_token() {
    let server = Server::plain("");
    let config = Kubeconfig::new(
        &format!("{{server: \"http://{}\"}}", server.address),
        "{token: s3cret}",
    );
    Maint::version()
        .args(["--token=s3cret"])
        .kubeconfig(&config.path())
        .succeeds();
    let request = server.request();
    assert!(
        !request.to_lowercase().contains("authorization"),
        "{request}"
    );
}

fn exec(more: &str) -> String {
    format!("{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: ./login, {more}}}}}")
}

/// The plugin runs once for all requests of a command. It gets our stdin only if it may prompt, and the cluster's data
/// only if its configuration asks for that.
#[test]
fn plugin_gives_a_token() {
    let token = service_account_token("plugged");
    let config = Kubeconfig::new(
        &real_cluster(
            "extensions: [{name: client.authentication.k8s.io/exec, extension: {audience: x}}]",
        ),
        &exec(
            "args: [one], env: [{name: EXTRA, value: two}], interactiveMode: IfAvailable, provideClusterInfo: true",
        ),
    );
    config.write_script(
        "login",
        &format!(
            "directory=$(dirname \"$0\")
             echo \"$1 $EXTRA\" >>\"$directory/runs\"
             echo \"$KUBERNETES_EXEC_INFO\" >\"$directory/info\"
             echo '{{\"kind\": \"ExecCredential\", \"apiVersion\": \"client.authentication.k8s.io/v1\",
                    \"status\": {{\"token\": \"{token}\"}}}}'"
        ),
    );
    let path = "/usr/bin:/bin";
    Maint::version()
        .args(["--as=root"])
        .kubeconfig(&config.path())
        .variable("PATH", path)
        .meets_refusal_as("system:serviceaccount:default:plugged");
    let read = |name| std::fs::read_to_string(config.directory().join(name)).unwrap();
    assert_eq!(read("runs"), "one two\n");
    let info: serde_json::Value = serde_json::from_str(&read("info")).unwrap();
    assert_eq!(info["apiVersion"], "client.authentication.k8s.io/v1");
    assert_eq!(info["spec"]["interactive"], false);
    assert_eq!(info["spec"]["cluster"]["server"], shared().url());
    assert_eq!(info["spec"]["cluster"]["config"]["audience"], "x");
    assert!(
        info["spec"]["cluster"]["certificate-authority-data"].is_string(),
        "{info}"
    );
}

#[test]
fn plugin_gives_a_certificate() {
    let identity = shared().identity("certified", &[]).unwrap();
    let answer = serde_json::json!({
        "kind": "ExecCredential",
        "apiVersion": "client.authentication.k8s.io/v1",
        "status": {"clientCertificateData": identity.cert_pem, "clientKeyData": identity.key_pem},
    });
    let config = Kubeconfig::new(&real_cluster(""), &exec("interactiveMode: Never"));
    config.write("answer", &answer.to_string());
    config.write_script("login", "cat \"$(dirname \"$0\")/answer\"");
    Maint::version()
        .args(["--as=root"])
        .kubeconfig(&config.path())
        .variable("PATH", "/usr/bin:/bin")
        .meets_refusal_as("certified");
}

/// The plugin's stderr is shown. Its stdout is not, because it may contain a secret.
#[test]
fn failing_plugin_is_named() {
    let config = Kubeconfig::new(&real_cluster(""), &exec("interactiveMode: Never"));
    let login = config.write_script("login", "echo s3cret; echo 'log in first' >&2; exit 3");
    let command = login.parent().unwrap().join("./login");
    let run = Maint::version().kubeconfig(&config.path()).run();
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("log in first\n"), "{run:?}");
    let expected = format!(
        "Unable to connect to the server: getting credentials: exec: executable {} failed with exit code 3",
        command.display()
    );
    assert!(run.stderr.contains(&expected), "{run:?}");
    assert!(!run.stderr.contains("s3cret"), "{run:?}");
}

/// The kubeconfig has a hint how to install the plugin.
#[test]
fn missing_plugin_is_named_with_its_hint() {
    let user = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: no-such-login, \
                 installHint: get it from the wiki, interactiveMode: Never}}";
    let config = Kubeconfig::new(&real_cluster(""), user);
    let run = Maint::version().kubeconfig(&config.path()).fails(
        "Unable to connect to the server: getting credentials: exec: executable no-such-login not found",
    );
    assert!(run.stderr.contains("get it from the wiki"), "{run:?}");
}

/// A plugin that has to prompt fails without a terminal.
#[test]
fn plugin_that_must_ask_needs_a_terminal() {
    let config = Kubeconfig::new(&real_cluster(""), &exec("interactiveMode: Always"));
    config.write_script("login", "exit 0");
    Maint::version().kubeconfig(&config.path()).fails(
        "Unable to connect to the server: getting credentials: exec plugin cannot support interactive mode: \
         standard input is not a terminal",
    );
}

/// With `--token`, a plugin that can't run is not needed.
#[test]
fn token_flag_comes_before_the_plugin() {
    let token = service_account_token("hurried");
    let config = Kubeconfig::new(&real_cluster(""), &exec("interactiveMode: Always"));
    Maint::version()
        .args(["--token", &token])
        .kubeconfig(&config.path())
        .succeeds();
}
