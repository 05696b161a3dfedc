//! Hints that are pasted into common shells: each word arrives unchanged, and no other command runs.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use control_plane::NodeSpec;

use crate::namespace::shared_with_namespace;
use crate::shells::path;
use crate::support::{PLUGIN, run};

/// Words with characters that are special in some shell.
const WORDS: [&str; 20] = [
    "new kernel",
    "it's",
    r"back\slash",
    r"\'; touch ran; \'",
    r"ends with \",
    "'; touch ran; '",
    "\"; touch ran; \"",
    "$(touch ran)",
    "`touch ran`",
    "$HOME ${HOME} %HOME%",
    "it's 100% !! done!",
    "!!",
    "=ls",
    "~",
    "a{b,c}d",
    "* ? [a-z]",
    "x; touch ran",
    "x & touch ran | cat > ran",
    "# no comment",
    "grün ✓ “quoted”",
];

/// The shells, with the flags that make them interactive and skip the user's configuration.
const SHELLS: [(&str, &[&str]); 4] = [
    ("sh", &["-i"]),
    ("bash", &["--noprofile", "--norc", "-i"]),
    ("zsh", &["--no-rcs", "-i"]),
    ("fish", &["--no-config", "-i"]),
];

/// The arguments that `kubectl` gets if `command` is typed into `shell` in `directory`.
fn pasted(shell: &Path, arguments: &[&str], directory: &Path, command: &str) -> Vec<String> {
    let words = directory.join("words");
    fs::write(&words, "").expect("a file");
    let mut session = Command::new(shell)
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", directory.display()))
        .env("HOME", directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the shell starts");
    let mut input = session.stdin.take().expect("a pipe");
    write!(input, "{command}\nexit\n").expect("the shell reads");
    drop(input);
    session.wait().expect("the shell ends");
    let words = fs::read_to_string(words).expect("the words");
    words.lines().map(ToOwned::to_owned).collect()
}

#[test]
fn words_of_a_pasted_hint_arrive_as_they_were_typed() {
    let node = "pasted-1";
    let plane = shared_with_namespace();
    plane
        .create_nodes(&[NodeSpec::ready(node)])
        .expect("a node");
    let bob = run(Command::new(PLUGIN)
        .args(["acquire", node, "--holder", "bob@laptop"])
        .env_clear()
        .env("KUBECONFIG", plane.admin_kubeconfig()));
    assert_eq!(bob.code, 0, "{bob:?}");

    let directory = tempfile::tempdir().expect("a directory");
    let kubectl = directory.path().join("kubectl");
    fs::write(&kubectl, "#!/bin/sh\nprintf '%s\\n' \"$@\" >> words\n").expect("a script");
    executable(&kubectl);
    let shells: Vec<_> = SHELLS
        .into_iter()
        .filter_map(|(shell, arguments)| Some((path(shell)?, arguments)))
        .collect();

    for word in WORDS {
        let kubeconfig = directory.path().join(word);
        fs::copy(plane.admin_kubeconfig(), &kubeconfig).expect("a kubeconfig");
        let kubeconfig = kubeconfig.to_str().expect("UTF-8");
        let refused = run(Command::new(PLUGIN)
            .args(["acquire", node, "-m", word, "--kubeconfig", kubeconfig])
            .args(["--holder", &format!("{word}@host")])
            .env_clear());
        let hint = refused.stderr.lines().find_map(|line| {
            let command = line.strip_prefix("hint: wait for it with `")?;
            command.strip_suffix('`')
        });
        let hint = hint.unwrap_or_else(|| panic!("no hint: {refused:?}"));
        let holder = format!("{word}@host");
        let mut expected = vec!["maint", "acquire", node, "-m", word, "--wait"];
        expected.extend(["--kubeconfig", kubeconfig, "--holder", &holder]);
        for (shell, arguments) in &shells {
            let words = pasted(shell, arguments, directory.path(), hint);
            assert_eq!(words, expected, "{hint} in {}", shell.display());
            assert!(
                !directory.path().join("ran").exists(),
                "{hint} in {}",
                shell.display()
            );
        }
    }
}

fn executable(file: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).expect("permissions");
}
