//! A credential plugin, and a proxy to a cluster that uses its credentials.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use control_plane::Authority;
use serde_json::json;

use super::{Cluster, Maint, Proxy, Treatment};

/// Counts its runs, and those that have answered or hang. Each answer is valid for one request. After the given number
/// of answers, it hangs with a child process that ignores the usual signals. If nothing kills that process, it writes
/// the file `outlived`.
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

/// How long the test waits until a run answers or hangs. A run that was killed does neither.
const LONGEST_RUN: Duration = Duration::from_secs(5);

/// A credential plugin called `login`, and a proxy to a cluster that asks for its credentials.
pub(crate) struct Plugin {
    directory: PathBuf,
    _proxy: Proxy,
}

impl Cluster {
    /// A plugin that hangs after so many answers.
    pub(crate) fn plugin(&self, answers: u32) -> Plugin {
        let authority = Authority::new("proxy").expect("an authority");
        let identity = authority.server(&["127.0.0.1"]).expect("a certificate");
        // Watches are kept, because the proxy forwards only complete answers, and a watch never completes.
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

    /// Lets this run get its credentials from the plugin.
    pub(crate) fn of(&self, maint: Maint) -> Maint {
        let path = format!("{}:/usr/bin:/bin", self.directory.display());
        maint
            .kubeconfig(self.directory.join("kubeconfig"))
            .env("PATH", path)
    }

    /// Runs this script before each answer, and never hangs by itself. The plugin is allowed to run only at a terminal.
    pub(crate) fn asks(&self, script: &str) {
        self.write(
            "login",
            &format!("#!/bin/sh\n{script}\ncat \"${{0%/*}}/answer\"\n"),
        );
        let kubeconfig = self.directory.join("kubeconfig");
        let text = std::fs::read_to_string(&kubeconfig).expect("a kubeconfig");
        self.write("kubeconfig", &text.replace("IfAvailable", "Always"));
    }

    /// From now on, the plugin hangs after so many answers, including those it has already given. Waits for runs that
    /// began earlier, because several requests share the answer of one run.
    pub(crate) fn answers(&self, count: u32) {
        // A rename, because a run must never read a half-written file.
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

    /// Whether a process of the plugin was not killed. Call this after the run of `maint` has ended: that run ends only
    /// when no process has its stderr open, and the plugin shares it.
    pub(crate) fn has_outlived(&self) -> bool {
        self.directory.join("outlived").exists()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.directory.join(name), text).expect("a file");
    }
}
