//! Completion in each shell that has a script, from `completion SHELL` and in `completions/`.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use control_plane::{NodeSpec, shared};
use tempfile::TempDir;

use crate::support::{Installed, run};

/// The path of `shell`, or `None` if it is missing and an environment variable allows that.
pub(crate) fn path(shell: &str) -> Option<PathBuf> {
    let places = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&places).map(|place| place.join(shell));
    let found = places.find(|path| path.exists());
    let variable = format!("TESTS_WITHOUT_{}", shell.to_uppercase());
    assert!(
        found.is_some() || std::env::var_os(&variable).is_some(),
        "{shell} is not installed; set {variable}=1 to skip its completion and pasted-hint tests"
    );
    found
}

/// A shell and the plugin's script for it, in a directory with one other file, `power-off`.
struct Shell {
    name: &'static str,
    installed: Installed,
    here: TempDir,
    script: String,
}

impl Shell {
    fn new(name: &'static str, plugin: &str) -> Self {
        let installed = Installed::named(plugin);
        let printed = run(Command::new(installed.plugin())
            .args(["completion", name])
            .env_clear());
        assert_eq!(printed.code, 0, "{printed:?}");
        let here = tempfile::tempdir().expect("a directory");
        fs::write(here.path().join("power-off"), "").expect("a file");
        Self {
            name,
            installed,
            here,
            script: printed.stdout,
        }
    }

    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        let path = format!("{}:/usr/bin:/bin", self.installed.path().display());
        command
            .current_dir(self.here.path())
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.here.path())
            .env("KUBECONFIG", shared().admin_kubeconfig());
        command
    }

    /// The answer of the plugin for the last of `words`, requested as the script does it.
    fn is_told(&self, words: &[&str]) -> String {
        let index = (words.len() - 1).to_string();
        let answer = run(self
            .command(self.installed.plugin())
            .arg("--")
            .args(words)
            .env("KUBECTL_MAINT_COMPLETE", self.name)
            .env("_CLAP_COMPLETE_INDEX", index)
            .env("_CLAP_IFS", "\n"));
        assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
        answer.stdout.trim_end().to_owned()
    }

    /// The output of the shell for the commands `asks`, which can use the script. `None` if the shell is not installed.
    fn offers(&self, arguments: &[&str], asks: &str) -> Option<String> {
        let shell = path(self.name)?;
        // A hidden file, because these are not offered as completions.
        let script = self.here.path().join(".script");
        fs::write(script, &self.script).expect("a script");
        let offered = run(self.command(shell).args(arguments).args(["-c", asks]));
        assert_eq!(offered.stderr, "", "{offered:?}");
        Some(offered.stdout.trim_end().to_owned())
    }

    /// Each line after bash's own line editor has completed it at its end, with the script.
    fn bash_completes(&self, lines: &[&str]) -> Vec<String> {
        let bash = path("bash").expect("bash is everywhere");
        fs::write(self.here.path().join(".script"), &self.script).expect("a script");
        // Ctrl-T saves and clears the line, and does not run it.
        let note = r#"note() { printf '%s\n' "$READLINE_LINE" >> .completed; READLINE_LINE=; }
bind -x '"\C-t": note'"#;
        let typed: String = lines.iter().map(|line| format!("{line}\t\x14")).collect();
        let mut session = self
            .command(bash)
            .args(["--noprofile", "--norc", "-i"])
            .env("INPUTRC", "/dev/null")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("bash starts");
        let mut keyboard = session.stdin.take().expect("a pipe");
        write!(keyboard, "source .script\n{note}\n{typed}exit\n").expect("bash reads");
        drop(keyboard);
        session.wait().expect("bash ends");
        let completed = fs::read_to_string(self.here.path().join(".completed")).expect("lines");
        completed.lines().map(ToOwned::to_owned).collect()
    }

    /// zsh's own completion functions need a terminal. These two replacements print instead.
    fn zsh_offers(&self, words: &[&str]) -> Option<String> {
        let asks = format!(
            "compdef() {{ completer=$1 completed=$2 }}
_describe() {{ print -rl -- \"${{(@P)3}}\" }}
source .script
words=({}); CURRENT={}
[[ $completed == {} ]] && $completer",
            quoted(words),
            words.len(),
            words[0]
        );
        self.offers(&["--no-rcs"], &asks)
    }

    fn fish_offers(&self, words: &[&str]) -> Option<String> {
        let asks = format!(
            "source .script; complete --do-complete '{}'",
            words.join(" ")
        );
        self.offers(&["--no-config"], &asks)
    }
}

/// The words, quoted for a shell.
fn quoted(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    words.join(" ")
}

/// Creates the nodes of a test.
fn nodes(names: [&str; 2]) {
    let nodes = names.map(NodeSpec::ready);
    shared().create_nodes(&nodes).expect("nodes");
}

#[test]
fn bash_completes_nodes_and_the_files_of_a_command() {
    nodes(["bashed-1", "bashed-2"]);
    let bash = Shell::new("bash", "kubectl-maint");
    let completed = bash.bash_completes(&[
        "kubectl-maint acquire bash",
        "kubectl-maint acquire bashed-1 bash",
        "kubectl-maint with bashed-1 -- ",
        "kubectl-maint fence bashed-1 -- ./po",
    ]);
    let expected = [
        "kubectl-maint acquire bashed-",
        "kubectl-maint acquire bashed-1 bashed-2 ",
        "kubectl-maint with bashed-1 -- power-off ",
        "kubectl-maint fence bashed-1 -- ./power-off ",
    ];
    assert_eq!(completed, expected);
}

/// In bash, a word ends at `=` and `:`.
#[test]
fn bash_completes_what_has_an_equals_sign_or_a_colon() {
    nodes(["colon-1", "colon-2"]);
    let bash = Shell::new("bash", "kubectl-maint");
    let far = "kubectl-maint --as=a:b --as-group=system:masters acquire colon-1";
    let begun = format!("{far} col");
    let lines = [
        ("kubectl-maint wait --for=", "kubectl-maint wait --for="),
        (
            "kubectl-maint wait --for=lo",
            "kubectl-maint wait --for=locked ",
        ),
        (
            "kubectl-maint status --output=ya",
            "kubectl-maint status --output=yaml ",
        ),
        (
            "kubectl-maint status -o=ya",
            "kubectl-maint status -o=yaml ",
        ),
        (
            "kubectl-maint fence a --accept-risk=mass",
            "kubectl-maint fence a --accept-risk=mass-loss ",
        ),
        (&begun, &format!("{far} colon-2 ")),
    ];
    let completed = bash.bash_completes(&lines.map(|(typed, _)| typed));
    assert_eq!(completed, lines.map(|(_, completed)| completed));
}

/// kubectl's own script calls kubectl, which calls the plugin.
#[test]
fn kubectl_completes_what_has_an_equals_sign_in_bash() {
    let mut bash = Shell::new("bash", "kubectl-maint");
    let kubectl = shared().kubectl_command().expect("kubectl");
    let program = bash.installed.path().join("kubectl");
    symlink(kubectl.get_program(), program).expect("a link");
    let script = shared().kubectl(&["completion", "bash"]).expect("a script");
    // A replacement for the package bash-completion: it returns the words as they were typed.
    bash.script = format!(
        "_get_comp_words_by_ref() {{
    read -ra words <<<\"${{COMP_LINE:0:COMP_POINT}}\"
    [[ $COMP_LINE != *' ' ]] || words+=('')
    cword=$((${{#words[@]}} - 1)) cur=${{words[cword]}} prev=${{words[cword - 1]}}
}}
{script}"
    );
    let lines = [
        ("kubectl maint wait --fo", "kubectl maint wait --for "),
        ("kubectl maint wait --for=", "kubectl maint wait --for="),
        (
            "kubectl maint wait --for=lo",
            "kubectl maint wait --for=locked ",
        ),
        (
            "kubectl maint wait --for lo",
            "kubectl maint wait --for locked ",
        ),
        (
            "kubectl maint status --output=ya",
            "kubectl maint status --output=yaml ",
        ),
        (
            "kubectl maint fence a --accept-risk=mass",
            "kubectl maint fence a --accept-risk=mass-loss ",
        ),
    ];
    let completed = bash.bash_completes(&lines.map(|(typed, _)| typed));
    assert_eq!(completed, lines.map(|(_, completed)| completed));
}

#[test]
fn zsh_completes_nodes_and_the_files_of_a_command() {
    nodes(["zshed-1", "zshed-2"]);
    let zsh = Shell::new("zsh", "kubectl-maint");
    for (line, offered) in [
        (
            &["kubectl-maint", "acquire", "zshed-"][..],
            "zshed-1:Ready\nzshed-2:Ready",
        ),
        (
            &["kubectl-maint", "with", "zshed-1", "--", "./po"],
            "./power-off",
        ),
    ] {
        assert_eq!(zsh.is_told(line), offered);
        if let Some(shown) = zsh.zsh_offers(line) {
            assert_eq!(shown, offered);
        }
    }
}

#[test]
fn fish_completes_nodes_and_the_files_of_a_command() {
    nodes(["fished-1", "fished-2"]);
    let fish = Shell::new("fish", "kubectl-maint");
    for (line, offered) in [
        (
            &["kubectl-maint", "acquire", "fished-"][..],
            "fished-1\tReady\nfished-2\tReady",
        ),
        (
            &["kubectl-maint", "with", "fished-1", "--", "./po"],
            "./power-off",
        ),
    ] {
        assert_eq!(fish.is_told(line), offered);
        if let Some(shown) = fish.fish_offers(line) {
            assert_eq!(shown, offered);
        }
    }
}

/// Distributions have no package for PowerShell. So this tests what its script runs, and the answer to that.
#[test]
fn the_script_of_powershell_asks_what_the_plugin_answers() {
    nodes(["powered-1", "powered-2"]);
    let powershell = Shell::new("powershell", "kubectl-maint");
    for piece in [
        "Register-ArgumentCompleter -Native -CommandName kubectl-maint ",
        "$env:KUBECTL_MAINT_COMPLETE = \"powershell\";",
        "& kubectl-maint -- $args",
        "$_.Split(\"`t\")",
    ] {
        assert!(powershell.script.contains(piece), "{piece}");
    }
    assert_eq!(
        powershell.is_told(&["kubectl-maint", "acquire", "powered-"]),
        "powered-1\tReady\npowered-2\tReady"
    );
    assert_eq!(
        powershell.is_told(&["kubectl-maint", "with", "powered-1", "--", "./po"]),
        "./power-off"
    );
}

/// Each shell can parse the shipped script for it.
#[test]
fn shipped_scripts_can_be_read() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("completions");
    let mut read = Vec::new();
    for entry in fs::read_dir(&directory).expect("the scripts") {
        let file = entry.expect("a script").path();
        let name = file.file_name().and_then(|name| name.to_str());
        let name = name.expect("a name").to_owned();
        let text = fs::read_to_string(&file).expect("text");
        assert!(text.contains("kubectl-maint"), "{name}");
        let (shell, flag) = match file.extension().and_then(|extension| extension.to_str()) {
            Some("bash") => ("bash", "-n"),
            Some("fish") => ("fish", "--no-execute"),
            Some("ps1") => ("powershell", ""),
            _ => ("zsh", "-n"),
        };
        read.push(shell);
        if shell == "powershell" {
            continue;
        }
        if let Some(path) = path(shell) {
            let parsed = run(Command::new(path).arg(flag).arg(&file).env_clear());
            assert_eq!((parsed.code, parsed.stderr.as_str()), (0, ""), "{name}");
        }
    }
    read.sort();
    assert_eq!(read, ["bash", "fish", "powershell", "zsh"]);
}
