//! The commands in hints: they name only nodes that they can act on, include the reason, and appear
//! once.

use insta::assert_snapshot;

use crate::support::{Cluster, Run, as_text, at_a_terminal, in_memory, on_one};

/// Returns the commands that the hints name, as words.
fn commands(run: &Run) -> Vec<Vec<String>> {
    let hints = run.stderr.lines().filter(|line| line.starts_with("hint: "));
    let commands = hints.flat_map(|line| line.split('`').skip(1).step_by(2));
    let words = |command: &str| -> Vec<String> {
        let words = command.trim_start_matches("kubectl maint ").split(' ');
        words
            .map(|word| word.trim_matches('\'').to_owned())
            .collect()
    };
    commands.map(words).collect()
}

fn bob(cluster: &Cluster, nodes: &[&String]) {
    let maint = cluster.maint(["acquire", "-m", "disk"]).args(nodes);
    maint.holder("bob@laptop").succeeds();
}

#[test]
fn a_wait_is_only_for_nodes_that_exist() {
    on_one("hints-missing", |cluster| {
        let node = cluster.node("worker-1");
        bob(cluster, &[&node]);
        let missing = format!("{node}0");
        assert_snapshot!(cluster.maint(["acquire", &node, &missing, "-m", "kernel"]).run(), @r#"
        $ kubectl maint acquire worker-1 worker-10 -m kernel
        -- stderr
        Error from server (NotFound): nodes "worker-10" not found
        error: cannot acquire node/worker-1: locked by bob@laptop: "disk" (since [time], until [time], [length] left)
        hint: wait for it with `kubectl maint acquire worker-1 -m kernel --wait`
        0 of 2 nodes acquired
        hint: list all nodes with `kubectl maint status --all`
        -- exit code 1
        "#);
    });
}

#[test]
fn refused_nodes_have_one_hint_for_all_of_them() {
    on_one("hints-groups", |cluster| {
        let nodes = ["worker-1", "worker-2", "worker-3"].map(|short| cluster.node(short));
        bob(cluster, &[&nodes[0], &nodes[1]]);
        assert_snapshot!(cluster.maint(["renew"]).args(&nodes).run(), @r#"
        $ kubectl maint renew worker-1 worker-2 worker-3
        -- stderr
        error: cannot renew node/worker-3: it is free: never locked, or its Lease was deleted
        error: cannot renew node/worker-1: locked by bob@laptop: "disk" (since [time], until [time], [length] left); you are alice@bastion
        error: cannot renew node/worker-2: locked by bob@laptop: "disk" (since [time], until [time], [length] left); you are alice@bastion
        hint: wait for them with `kubectl maint acquire worker-1 worker-2 -m WHY --wait`
        hint: acquire it with `kubectl maint acquire worker-3 -m WHY`
        0 of 3 nodes renewed
        -- exit code 3
        "#);
    });
}

/// Standard input cannot be read a second time, so the hint names the nodes.
#[test]
fn nodes_from_standard_input_are_named() {
    in_memory("hints-stdin", |cluster| {
        let [one, two] = ["worker-1", "worker-2"].map(|short| cluster.node(short));
        let list = format!("{one}\n{two}\n");
        let acquire = cluster.maint(["acquire", "--nodes-from", "-", "-m", "disk"]);
        {
            let run = acquire.stdin(list).run();
            assert!(
                run.to_string()
                    .contains("kubectl maint release worker-1 worker-2\n"),
                "{run}"
            );
            assert_eq!(run.code, 0, "{run}");
        }
    });
}

#[test]
fn a_node_is_explained_by_other_commands() {
    in_memory("hints-why", |cluster| {
        let node = cluster.node("worker-1");
        for words in [vec![format!("node/{node}")], vec!["no".to_owned(), node]] {
            let run = cluster.maint(["why"]).args(words).run();
            assert_eq!(run.code, 2, "{run}");
            for command in commands(&run) {
                cluster.maint(&command).succeeds();
            }
        }
        assert_snapshot!(cluster.maint(["why", "node/worker-1"]).run(), @"
        $ kubectl maint why node/worker-1
        -- stderr
        error: `why` does not explain node/worker-1
        hint: show what is stuck there with `kubectl maint status --pods worker-1`, or its lock and health with `kubectl maint describe worker-1`
        -- exit code 2
        ");
        assert_snapshot!(cluster.maint(["status", "--pods", "-n", "default"]).run(), @"
        $ kubectl maint status --pods -n default
        -- stderr
        error: --pods shows all namespaces
        hint: remove -n
        -- exit code 2
        ");
    });
}

#[test]
fn a_kind_without_a_name_lacks_the_name() {
    in_memory("hints-kind", |cluster| {
        for (command, kind) in [("why", "pod"), ("why", "pvc"), ("force-delete", "no")] {
            let run = cluster.maint([command, kind]).run();
            let says = format!("error: missing NAME after {kind}\nhint: use {kind}/NAME\n");
            assert_eq!((run.code, &run.stderr), (2, &says), "{run}");
        }
        assert_snapshot!(cluster.maint(["force-delete", "worker-1"]).run(), @r#"
        $ kubectl maint force-delete worker-1
        -- stderr
        error: "worker-1" has no kind
        hint: use pod/worker-1 or node/worker-1
        -- exit code 2
        "#);
    });
}

#[test]
fn a_template_without_text_is_no_riddle_at_a_terminal() {
    in_memory("hints-template", |cluster| {
        let node = cluster.node("worker-1");
        let status = ["status", &node, "-o", "jsonpath={.state}"];
        let mut terminal = at_a_terminal(cluster.maint(status));
        let said = as_text(&terminal.exp_eof().expect("it ends"));
        assert!(said.contains("the template printed nothing"), "{said}");
        let run = cluster.maint(status).run();
        assert_eq!((&*run.stdout, &*run.stderr), ("", ""), "{run}");
    });
}

#[test]
fn prompts_and_doctor_break_no_word_at_80_columns() {
    in_memory("hints-wrap", |cluster| {
        let node = cluster.node("worker-1");
        let reason = "the disk controller reports errors, and a replacement was ordered";
        let acquire = cluster.maint(["acquire", &node, "-m", reason]);
        acquire.holder("bob@laptop").succeeds();
        let release = ["release", &node, "--force", "-m", "he is away"];
        let mut terminal = at_a_terminal(cluster.maint(release));
        let facts = as_text(&terminal.exp_string("[y/N]").expect("a question"));
        let mut doctor = at_a_terminal(cluster.maint(["doctor"]));
        let found = as_text(&doctor.exp_eof().expect("it ends"));
        for line in facts.lines().chain(found.lines()) {
            let is_command = line.trim_start().starts_with('`');
            assert!(line.chars().count() <= 80 || is_command, "{line:?}");
        }
    });
}
