//! A way to a cluster whose credentials come from a plugin.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use control_plane::Authority;
use serde_json::json;

use super::{Cluster, Maint, Proxy, Treatment};

/// Counts its runs, and those that answered or hang. Each answer is good for one request. After the given number of
/// answers, it hangs with a process of its own, which no usual signal ends. That process reports if nobody has ended it.
const SCRIPT: &str = r#"#!/bin/sh
directory=${0%/*}
echo run >>"$directory/runs"
if [ "$(wc -l <"$directory/runs")" -gt "$(cat "$directory/answers")" ]; then
    echo hangs >>"$directory/decided"
    (trap '' INT TERM HUP QUIT; sleep 90; : >"$directory/outlived") &
    wait
fi
cat "$directory/answer"
echo answered >>"$directory/decided"
"#;

/// How long a run that began is waited for. One that was killed never decides.
const LONGEST_RUN: Duration = Duration::from_secs(5);

/// A credential plugin, called `login`, and a way to a cluster that asks for its credentials.
pub(crate) struct Plugin {
    directory: PathBuf,
    _proxy: Proxy,
}

impl Cluster {
    /// A plugin that hangs after so many answers.
    pub(crate) fn plugin(&self, answers: u32) -> Plugin {
        let authority = Authority::new("proxy").expect("an authority");
        let identity = authority.server(&["127.0.0.1"]).expect("a certificate");
        // The proxy brings whole answers, and a watch has none.
        let proxy = self.proxy_as(Some(&identity), |_, path| match path.contains("watch") {
            true => Treatment::Keep,
            false => Treatment::Pass,
        });
        let version = "client.authentication.k8s.io/v1";
        let answer = json!({
            "apiVersion": version,
            "kind": "ExecCredential",
            "status": {"token": "any", "expirationTimestamp": "2020-01-01T00:00:00Z"},
        });
        let exec =
            json!({"apiVersion": version, "command": "login", "interactiveMode": "IfAvailable"});
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "clusters": [{"name": "test", "cluster": {
                "server": format!("https://{}", proxy.address),
                "certificate-authority": "ca.crt",
            }}],
            "users": [{"name": "test", "user": {"exec": exec}}],
        });
        let directory = tempfile::Builder::new()
            .prefix("login-")
            .tempdir_in(self.directory())
            .expect("a directory of its own")
            .keep();
        let plugin = Plugin {
            directory,
            _proxy: proxy,
        };
        plugin.write("ca.crt", &authority.pem());
        plugin.write("answer", &answer.to_string());
        plugin.write("kubeconfig", &kubeconfig.to_string());
        plugin.write("login", SCRIPT);
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(plugin.directory.join("login"), executable).expect("it is ours");
        plugin.answers(answers);
        plugin
    }
}

impl Plugin {
    /// More answers than any run asks for.
    pub(crate) const NEVER_HANGS: u32 = 1_000_000;

    /// The same run, by credentials of the plugin.
    pub(crate) fn of(&self, maint: Maint) -> Maint {
        let path = format!("{}:/usr/bin:/bin", self.directory.display());
        maint
            .kubeconfig(self.directory.join("kubeconfig"))
            .env("PATH", path)
    }

    /// It runs this script before each answer, and never hangs by itself. It has to have a terminal for that.
    pub(crate) fn asks(&self, script: &str) {
        self.write(
            "login",
            &format!("#!/bin/sh\n{script}\ncat \"${{0%/*}}/answer\"\n"),
        );
        let kubeconfig = self.directory.join("kubeconfig");
        let text = std::fs::read_to_string(&kubeconfig).expect("a kubeconfig");
        self.write("kubeconfig", &text.replace("IfAvailable", "Always"));
    }

    /// From now on it hangs after so many answers, those that it has given included. Runs that began before are over
    /// then, since several requests share the answer of one run.
    pub(crate) fn answers(&self, count: u32) {
        // A run must never read half of it.
        self.write("answers.new", &count.to_string());
        let path = |name: &str| self.directory.join(name);
        std::fs::rename(path("answers.new"), path("answers")).expect("the same directory");
        let lines =
            |name: &str| std::fs::read_to_string(path(name)).map_or(0, |text| text.lines().count());
        let (runs, start) = (lines("runs"), Instant::now());
        while lines("decided") < runs && start.elapsed() < LONGEST_RUN {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether something of it was not ended, to be asked after the run: that is over only when nobody has its stderr
    /// any more, which the plugin shares.
    pub(crate) fn has_outlived(&self) -> bool {
        self.directory.join("outlived").exists()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.directory.join(name), text).expect("a file");
    }
}
