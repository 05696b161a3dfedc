//! The script that docs/scripts.md shows.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::stage::Stage;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/scripts.md");

/// The script, as somebody copies it.
fn script(stage: &Stage) -> PathBuf {
    let page = fs::read_to_string(PAGE).expect("text");
    let begin = "```sh\n#!/usr/bin/env bash\n";
    let (_, rest) = page.split_once(begin).expect("a script");
    let (script, _) = rest.split_once("\n```").expect("its end");
    let path = stage.path("reboot.sh");
    fs::write(&path, format!("#!/usr/bin/env bash\n{script}\n")).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
    path
}

#[test]
fn a_boot_id_that_was_not_learnt_is_no_other_boot() {
    let stage = Stage::new("script");
    let script = script(&stage).display().to_string();
    let run = |fails: &str| {
        let with = ["maint", "with", &stage.node, "-m", "reboot", "--", &script];
        let kubectl = stage.program(&stage.path("bin/kubectl"));
        with.iter()
            .fold(kubectl, |kubectl, word| kubectl.arg(word))
            .env("FAIL_ONCE_AT", fails)
    };
    let unknown = "kubectl -o jsonpath={.status.nodeInfo.bootID}";
    let first = run(unknown).run();
    assert_eq!(first.code, Some(1), "{first:?}");
    assert!(first.stderr.contains(" has no boot ID\n"), "{first:?}");
    assert!(!stage.did("kubectl drain"), "{}", stage.steps());
    assert_eq!(stage.status(), "Free Ready");

    let mut second = run("").start();
    second.hears("rebooted");
    stage.becomes_ready();
    let second = second.ends();
    assert_eq!(second.code, Some(0), "{second:?}");
    assert_eq!(stage.status(), "Free Ready");
    assert_eq!(stage.read("boots"), "boot-1\nboot-2\n");
}
