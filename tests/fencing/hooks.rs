//! Hooks: their variables, the part of their output that is kept, and what happens if they fail.

use insta::assert_snapshot;

use crate::support::{Stage, eventually};

#[test]
fn a_hook_gets_its_variables_and_its_output_is_kept() {
    let (stage, node) = Stage::with_unreachable_node("message");
    let script = "env | grep ^MAINT_ | sort; echo 'Chassis Power Control: Down/Off' >&2";
    let hook = ["fence", &node, "--", "sh", "-c", script];
    let run = stage
        .maint(hook)
        .env("MAINT_FENCING_NUMBER", "inherited")
        .succeeds();
    let number = run
        .stderr
        .lines()
        .find_map(|line| line.strip_prefix("MAINT_FENCING_NUMBER="));
    let number: u64 = number.expect("a number").parse().expect("its own number");
    assert!(number > 0);
    let shown = run.to_string().replace(&number.to_string(), "[number]");
    assert_snapshot!(shown, @r#"
    $ kubectl maint fence worker-1 -- sh -c "env | grep ^MAINT_ | sort; echo 'Chassis Power Control: Down"
    node/worker-1 fenced by alice@bastion, with sh
    -- stderr
    lease/worker-1 created
    node/worker-1 on hold until it is unfenced
    MAINT_FENCING_NUMBER=[number]
    MAINT_HOLDER=alice@bastion
    MAINT_LEASE_UID=[uid]
    MAINT_LOCK_ID=[lock-id]
    MAINT_NODE=worker-1
    MAINT_NODES=worker-1
    MAINT_NODE_ADDRESSES=InternalIP=192.0.2.7 Hostname=worker-1
    MAINT_NODE_HOSTNAME=worker-1
    MAINT_NODE_INTERNAL_IP=192.0.2.7
    MAINT_NODE_PROVIDER_ID=rack://7
    MAINT_TRANSITIONS=1
    Chassis Power Control: Down/Off
    node/worker-1: nothing is left to evict or detach
    -- exit code 0
    "#);
    let record = stage.record(&node).expect("a record");
    let hook = &record["how"]["hook"];
    assert_eq!(hook["program"], "sh");
    let output = hook["output"].as_str().expect("its output");
    assert!(
        output.ends_with("Chassis Power Control: Down/Off"),
        "{output}"
    );
    assert!(record["hold"].is_string());
    assert_eq!(record["bootID"], "boot-1");
}

#[test]
fn a_hook_that_fails_changes_nothing() {
    let (stage, node) = Stage::with_unreachable_node("fails");
    let fence = |options: &[&str], hook: &[&str]| {
        stage
            .maint(["fence", &node])
            .args(options)
            .args(["--"])
            .args(hook)
            .run()
    };
    assert_snapshot!(fence(&[], &["sh", "-c", "echo no route to BMC; exit 7"]), @r#"
    $ kubectl maint fence worker-1 -- sh -c "echo no route to BMC; exit 7"
    -- stderr
    lease/worker-1 created
    node/worker-1 on hold until it is unfenced
    no route to BMC
    node/worker-1: fencing hold ended
    error: node/worker-1 was not fenced: the hook failed with exit code 7
    hint: check the machine of node/worker-1: the hook may have changed it; its output is above
    -- exit code 1
    "#);
    stage.is_untouched(&node);
    let run = fence(&["--hook-timeout=1s"], &["sh", "-c", "sleep 600 & wait"]);
    assert_eq!(run.code, 1, "{run}");
    assert!(
        run.stderr
            .contains("was not fenced: the hook did not end within 1s"),
        "{run}"
    );
    eventually("no process of it is left", || !runs(&stage));
    stage.is_untouched(&node);
}

/// A hook that can't be run is an error before anything is written, and in a dry run as well.
#[test]
fn a_hook_that_is_not_there_changes_nothing() {
    let (stage, node) = Stage::with_unreachable_node("nope");
    assert_snapshot!(stage.maint(["fence", &node, "--", "./nope"]).run(), @"
    $ kubectl maint fence worker-1 -- ./nope
    -- stderr
    error: cannot run ./nope: not found; nothing was changed
    hint: give the path of an executable file, or the name of a program in PATH
    -- exit code 127
    ");
    let text = stage.directory().join("text");
    std::fs::write(&text, "").expect("a file");
    let text = text.to_str().expect("a path");
    for (verb, hook, code) in [
        ("fence", "no-such-program", 127),
        ("fence", text, 126),
        ("unfence", "no-such-program", 127),
        ("unfence", text, 126),
    ] {
        for more in [&["--"][..], &["--dry-run", "--"]] {
            let words = [&[verb, &node][..], more, &[hook]].concat();
            let run = stage.maint(words).run();
            assert_eq!(run.code, code, "{run}");
        }
    }
    assert_eq!(stage.lease(&node), None);
    stage.is_untouched(&node);
}

/// Whether a process that was started by a run of this test is still running.
fn runs(stage: &Stage) -> bool {
    let home = format!("HOME={}\0", stage.directory().display());
    let processes = std::fs::read_dir("/proc").expect("processes");
    let mut environments = processes.flatten().filter_map(|process| {
        // The environment of a process that has ended, or of another user, can't be read.
        std::fs::read(process.path().join("environ")).ok()
    });
    environments.any(|environment| String::from_utf8_lossy(&environment).contains(&home))
}

/// A lock that may expire while the hook runs is not enough.
#[test]
fn a_lease_has_to_last_as_long_as_the_hook_may() {
    let (stage, node) = Stage::with_unreachable_node("lasts");
    stage.maint(["acquire", &node, "--duration=5m"]).succeeds();
    let ran = stage.directory().join("ran");
    let hook = ["--", "touch", ran.to_str().expect("a path")];
    assert_snapshot!(stage.maint(["fence", &node, "--hook-timeout=7m", "--", "true"]).run(), @"
    $ kubectl maint fence worker-1 --hook-timeout=7m -- true
    -- stderr
    error: your lock on node/worker-1 has [length] left, but the hook may take 7m10s: nothing was changed
    hint: put the node on hold with `kubectl maint hold worker-1 -m WHY`, or use a shorter --hook-timeout
    -- exit code 6
    ");
    assert!(!ran.exists());
    let renew = ["renew", &node, "--duration=9m"];
    stage.maint(renew).succeeds();
    let short = stage.maint(["fence", &node, "--hook-timeout=7m"]);
    short.args(hook).succeeds();
    assert!(ran.exists());
}

/// At a terminal, Ctrl-C may end only the hook. Such a hook was interrupted; it did not fail.
#[test]
fn a_hook_that_ctrl_c_ends_was_interrupted() {
    let (stage, node) = Stage::with_unreachable_node("ctrl-c-alone");
    for script in ["kill -INT $$", "exit 130"] {
        let run = stage
            .maint(["fence", &node, "--", "sh", "-c", script])
            .run();
        assert_eq!(run.code, 130, "{run}");
        assert!(run.stderr.contains("was not fenced: interrupted"), "{run}");
        stage.is_untouched(&node);
    }
}

/// The hook would otherwise run until its time limit, and nobody could cancel it. A second Ctrl-C only kills it earlier.
#[test]
fn a_hook_that_ignores_ctrl_c_is_killed() {
    let (stage, node) = Stage::with_unreachable_node("ctrl-c-ignored");
    let script = "trap '' INT TERM; echo begun; sleep 600 & wait; sleep 600";
    let interrupted = |verb: &str, is_twice| {
        let hook = ["--", "sh", "-c", script];
        let running = stage.maint([verb, &*node]).args(hook);
        let mut running = running.until_it_says("begun");
        running.interrupt();
        running.says("the hook is still running; press Ctrl-C again to kill it; otherwise, it is killed within 10s");
        if is_twice {
            running.interrupt();
        }
        let run = running.ends();
        assert_eq!(run.code, 130, "{run}");
        assert!(!runs(&stage), "{run}");
        assert_eq!(stage.hook(&node), None, "{run}");
        run
    };
    for is_twice in [true, false] {
        let run = interrupted("fence", is_twice);
        assert!(run.stderr.contains("was not fenced: interrupted"), "{run}");
        stage.is_untouched(&node);
    }
    stage.fence(&node);
    for is_twice in [true, false] {
        let run = interrupted("unfence", is_twice);
        let stays = format!("error: node/{node} is still fenced: interrupted");
        assert!(run.stderr.contains(&stays), "{run}");
        assert!(stage.is_tainted(&node) && stage.record(&node).is_some());
        assert!(stage.holder(&node).is_some());
    }
}
