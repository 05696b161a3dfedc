//! The script in docs/scripts.md.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::test_machine::TestMachine;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/scripts.md");

/// Copies the script from the page to a file.
fn script(machine: &TestMachine) -> PathBuf {
    let page = fs::read_to_string(PAGE).expect("text");
    let begin = "```sh\n#!/usr/bin/env bash\n";
    let (_, rest) = page.split_once(begin).expect("a script");
    let (script, _) = rest.split_once("\n```").expect("its end");
    let path = machine.path("reboot.sh");
    fs::write(&path, format!("#!/usr/bin/env bash\n{script}\n")).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
    path
}

#[test]
fn an_unknown_boot_id_is_no_other_boot() {
    let machine = TestMachine::new("script");
    let script = script(&machine).display().to_string();
    let run = |fails: &str| {
        let with = [
            "maint",
            "with",
            &machine.node,
            "-m",
            "reboot",
            "--",
            &script,
        ];
        let kubectl = machine.program(&machine.path("bin/kubectl"));
        with.iter()
            .fold(kubectl, |kubectl, word| kubectl.arg(word))
            .env("FAIL_ONCE_AT", fails)
    };
    let unknown = "kubectl -o jsonpath={.status.nodeInfo.bootID}";
    let first = run(unknown).run();
    assert_eq!(first.code, Some(1), "{first:?}");
    assert!(first.stderr.contains(" has no boot ID\n"), "{first:?}");
    assert!(!machine.did("kubectl drain"), "{}", machine.steps());
    assert_eq!(machine.status(), "Free Ready");

    let mut second = run("").start();
    second.hears("rebooted");
    machine.becomes_ready();
    let second = second.ends();
    assert_eq!(second.code, Some(0), "{second:?}");
    assert_eq!(machine.status(), "Free Ready");
    assert_eq!(machine.read("boots"), "boot-1\nboot-2\n");
}
