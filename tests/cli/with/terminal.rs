//! `with NODE -- bash` as a job of an interactive shell, as an operator uses it.

use std::process::Command;

use rexpect::reader::Options;
use rexpect::session::{PtySession, spawn_with_options};

use super::SHORT;
use crate::support::{Cluster, Plugin, holder_of, on_real};

const OUTER: &str = "outer> ";
const INNER: &str = "inner> ";

/// An interactive shell on a terminal of its own.
fn outer_shell(cluster: &Cluster) -> PtySession {
    let plugin = cluster
        .maint::<&str>([])
        .env("PATH", "/usr/local/bin:/usr/bin:/bin");
    shell_of(&plugin.command())
}

/// An interactive shell in the environment of this run of the plugin.
fn shell_of(plugin: &Command) -> PtySession {
    let mut command = Command::new("bash");
    let variables = plugin.get_envs();
    command
        .args(["--norc", "--noprofile", "--noediting", "-i"])
        .env_clear()
        .envs(variables.filter_map(|(name, value)| Some((name, value?))))
        .env("TERM", "dumb")
        .env("PS1", OUTER);
    let options = Options::new()
        .timeout_ms(Some(60_000))
        .strip_ansi_escape_codes(true);
    let mut shell = spawn_with_options(command, options).expect("a terminal");
    // An interactive shell ignores TERM.
    shell.process_mut().set_kill_timeout(Some(200));
    sees(&mut shell, OUTER);
    shell
}

/// An interactive shell that runs another one under the lock of `node`.
fn shells(cluster: &Cluster, node: &str) -> PtySession {
    let mut shell = outer_shell(cluster);
    says(
        &mut shell,
        &format!(
            r#"$PLUGIN with {node} -m "disk errors" -- env PS1="{INNER}" bash --norc --noprofile --noediting -i"#
        ),
    );
    sees(&mut shell, "running on this machine");
    // The line of `with` also shows the prompt, so skip that line.
    sees(&mut shell, "\n");
    sees(&mut shell, INNER);
    shell
}

#[track_caller]
fn sees(shell: &mut PtySession, text: &str) -> String {
    shell.exp_string(text).expect("it is shown")
}

fn says(shell: &mut PtySession, line: &str) {
    shell.send_line(line).expect("somebody reads");
}

#[test]
fn it_has_a_prompt_and_ctrl_c_is_its_own() {
    on_real("tty-with", |cluster| {
        let node = cluster.node("worker-1");
        let mut shell = shells(cluster, &node);
        says(&mut shell, "echo $MAINT_NODE is lo''cked");
        sees(&mut shell, &format!("{node} is locked"));
        sees(&mut shell, INNER);
        // A process that the inner shell starts has the terminal only once it prints something itself. Before that, the
        // shell may swallow the Ctrl-C.
        says(&mut shell, r#"sh -c 'echo be""gun; exec sleep 1000'"#);
        sees(&mut shell, "begun");
        shell.send_control('c').expect("somebody reads");
        sees(&mut shell, INNER);
        assert!(holder_of(cluster, &node).is_some());
        says(&mut shell, "exit 7");
        sees(&mut shell, "released");
        sees(&mut shell, OUTER);
        says(&mut shell, "echo code $?");
        sees(&mut shell, "code 7");
        assert_eq!(holder_of(cluster, &node), None);
    });
}

#[test]
fn the_prompt_shows_the_lock_and_scripts_see_no_difference() {
    on_real("tty-prompt", |cluster| {
        let node = cluster.node("worker-1");
        let mut shell = outer_shell(cluster);
        let bash = "bash --norc --noprofile --noediting";
        says(&mut shell, &format!("$PLUGIN with {node} -- {bash} -i"));
        sees(&mut shell, &format!("[locked: {node}] {OUTER}"));
        says(&mut shell, "echo \"<$PROMPT_COMMAND>\"");
        sees(&mut shell, "<>");
        sees(&mut shell, &format!("[locked: {node}] {OUTER}"));
        says(&mut shell, "exit");
        sees(&mut shell, "released");
        sees(&mut shell, OUTER);
        let script = format!("$PLUGIN with {node} -q -- {bash} -c 'echo \"($PS1)\"'");
        says(&mut shell, &script);
        sees(&mut shell, "()\r\n");
    });
}

#[test]
fn ctrl_z_stops_a_command_of_it_and_fg_continues_it() {
    on_real("tty-ctrl-z", |cluster| {
        let node = cluster.node("worker-1");
        let mut shell = outer_shell(cluster);
        let reader = r#"sh -c 'echo be""gun; read x; echo "<$x>"'"#;
        says(&mut shell, &format!("$PLUGIN with -q {node} -- {reader}"));
        sees(&mut shell, "begun");
        shell.send_control('z').expect("somebody reads");
        let warning = "stopped: the lock is no longer renewed. Unless you continue with `fg` or `bg`, the command will be ended at ";
        sees(&mut shell, warning);
        sees(&mut shell, "Stopped");
        sees(&mut shell, OUTER);
        says(&mut shell, "echo be''gun; fg");
        sees(&mut shell, "begun");
        says(&mut shell, "input");
        sees(&mut shell, "<input>");
        sees(&mut shell, OUTER);
        assert_eq!(holder_of(cluster, &node), None);

        // A hold does not expire, so nothing ends the command.
        cluster.maint(["hold", &node, "-m", "disk"]).succeeds();
        says(
            &mut shell,
            &format!("$PLUGIN with -q --reentry {node} -- {reader}"),
        );
        sees(&mut shell, "begun");
        shell.send_control('z').expect("somebody reads");
        sees(
            &mut shell,
            "stopped: continue with `fg` or `bg`; the hold stays",
        );
        sees(&mut shell, OUTER);
        says(&mut shell, "fg");
        says(&mut shell, "input");
        sees(&mut shell, "<input>");
        sees(&mut shell, OUTER);
    });
}

#[test]
fn a_command_stopped_for_too_long_ends_at_the_first_fg() {
    on_real("tty-late", |cluster| {
        let node = cluster.node("worker-1");
        let mut shell = outer_shell(cluster);
        let deaf = r#"sh -c 'trap "" TERM; echo "pi""d:$$:"; while :; do read x; done'"#;
        let short = SHORT.join(" ");
        says(
            &mut shell,
            &format!("$PLUGIN with -q {node} {short} -- {deaf}"),
        );
        sees(&mut shell, "pid:");
        let pid = sees(&mut shell, ":");
        shell.send_control('z').expect("somebody reads");
        sees(&mut shell, "Stopped");
        sees(&mut shell, OUTER);
        let ended =
            format!("while kill -0 {pid} 2>/dev/null; do sleep 0.1; done; fg; echo co''de $?");
        says(&mut shell, &ended);
        sees(&mut shell, "code 5");
    });
}

#[test]
fn a_loss_is_printed_again_when_the_screen_is_restored() {
    on_real("tty-screen", |cluster| {
        let node = cluster.node("worker-1");
        let mut shell = outer_shell(cluster);
        let editor = r#"sh -c 'trap exit TERM; echo be""gun; while :; do sleep 0.1; done'"#;
        says(&mut shell, &format!("$PLUGIN with -q {node} -- {editor}"));
        sees(&mut shell, "begun");
        let take_over = ["hold", &node, "--take-over", "--yes", "-m", "fire"];
        cluster.maint(take_over).holder("bob@laptop").succeeds();
        for stage in [
            " (the command is being ended): ",
            " (the command has ended): ",
        ] {
            sees(&mut shell, stage);
            sees(&mut shell, "taken over by bob@laptop: \"fire\"");
        }
        sees(&mut shell, OUTER);
    });
}

/// A credential plugin that asks for a name, reads it key by key, and ignores Ctrl-C.
fn interactive(cluster: &Cluster) -> Plugin {
    let plugin = cluster.plugin(0);
    plugin.asks(
        "trap '' INT; stty -icanon; echo who are you >&2; read name; stty icanon; echo you are $name >&2",
    );
    plugin
}

#[test]
fn its_credential_plugin_asks_there_before_the_command_and_never_beside_it() {
    on_real("tty-login", |cluster| {
        let node = cluster.node("worker-1");
        let plugin = interactive(cluster);
        let mut shell = shell_of(&plugin.of(cluster.maint::<&str>([])).command());
        // Each answer is valid for one request, so the plugin asks again, also for renewals. The first request reads
        // the API user.
        let limits = "--request-timeout 5s --grace 1s --lease-duration 11s";
        says(
            &mut shell,
            &format!("$PLUGIN with -q {node} {limits} -- sleep 1000"),
        );
        for name in ["alice"; 4] {
            sees(&mut shell, "who are you");
            says(&mut shell, name);
            sees(&mut shell, "you are alice");
        }
        sees(&mut shell, "standard input is used by the command");
        sees(&mut shell, OUTER);
        says(&mut shell, "echo code $?");
        sees(&mut shell, "code 5");
    });
}

#[test]
fn its_modes_are_set_back_after_a_credential_plugin_that_had_to_be_killed() {
    on_real("tty-echo", |cluster| {
        let node = cluster.node("worker-1");
        let plugin = interactive(cluster);
        let mut shell = shell_of(&plugin.of(cluster.maint::<&str>([])).command());
        says(&mut shell, &format!("$PLUGIN acquire {node}"));
        sees(&mut shell, "who are you");
        shell.send_control('c').expect("somebody reads");
        sees(&mut shell, "error: interrupted");
        sees(&mut shell, OUTER);
        // The plugin, which is being killed, may still read one character: a space.
        says(
            &mut shell,
            " stty -a | tr ' ' '\\n' | grep -x -e icanon -e -icanon",
        );
        let shown = sees(&mut shell, OUTER);
        assert_eq!(shown.trim(), "icanon");
    });
}
