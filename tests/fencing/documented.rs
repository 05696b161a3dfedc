//! The hooks of docs/fencing-hooks.md, unchanged, with stand-ins for the programs that they call.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::Stage;

/// What each stand-in does. Each one logs its arguments. If `BROKEN` is set, it has no effect.
const STAND_INS: [(&str, &str); 8] = [
    (
        "ipmitool",
        r#"case "$*" in
            *"power status") echo "Chassis Power is $(state power)" ;;
            *"power off") set_state power off ;;
            *"power on") set_state power on ;;
        esac"#,
    ),
    (
        "aws",
        r#"case "$*" in
            "ec2 stop-instances "*) set_state instance stopped ;;
            "ec2 wait instance-stopped "*) test "$(state instance)" = stopped ;;
        esac"#,
    ),
    // The commands of the remote host are stand-ins as well, and log the name of the host.
    ("ssh", r#"host="$1"; shift; export host; "$@""#),
    ("set-port", r#"set_state "$host-$1" "$2""#),
    ("get-port", r#"state "$host-$1""#),
    (
        "exportfs",
        r#"case "$1" in
            -u) set_state "exports" "" ;;
            -s) echo "/srv/volumes 192.0.2.8(rw)"; state exports ;;
        esac"#,
    ),
    (
        "targetcli",
        r#"case "$*" in
            *" delete "*) set_state sessions "" ;;
            "sessions list") state sessions ;;
        esac"#,
    ),
    // Broken programs must not make the test wait.
    ("sleep", ""),
];

/// The hooks of the page, and a directory with the stand-ins. At first, everything is powered on and connected.
struct Desk<'a> {
    stage: &'a Stage,
    hooks: BTreeMap<String, PathBuf>,
}

impl<'a> Desk<'a> {
    fn new(stage: &'a Stage) -> Self {
        let directory = stage.directory();
        let here = directory.display();
        for (name, does) in STAND_INS {
            let script = format!(
                r#"#!/bin/sh
state() {{ cat "{here}/state-$1"; }}
set_state() {{ test -n "${{BROKEN-}}" || echo "$2" > "{here}/state-$1"; }}
echo "{name} $*" >> "{here}/log"
{does}
"#
            );
            write_program(&directory.join("bin").join(name), &script);
        }
        for (name, value) in [
            ("power", "on"),
            ("instance", "running"),
            ("exports", "/srv/volumes 192.0.2.7(rw)"),
            ("sessions", "iqn.2026-01.com.example:192.0.2.7 LOGGED_IN"),
        ] {
            fs::write(directory.join(format!("state-{name}")), value).expect("a state");
        }
        let mut hooks = BTreeMap::new();
        for (name, script) in documented() {
            let path = directory.join(&name);
            write_program(&path, &script);
            hooks.insert(name, path);
        }
        Self { stage, hooks }
    }

    /// Runs `verb` for the node with a documented hook or another command, whose stand-ins work or are broken.
    fn run(&self, verb: &[&str], hook: &[&str], broken: bool) -> i32 {
        let bin = self.stage.directory().join("bin");
        let path = self.hooks.get(hook[0]);
        let program = path.map_or(hook[0], |path| path.to_str().expect("a path"));
        let run = self
            .stage
            .maint(verb.iter().copied().chain(["--", program]))
            .args(&hook[1..])
            .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
            .env("BROKEN", if broken { "yes" } else { "" })
            .run();
        run.code
    }

    /// The calls of the stand-ins since the last call of this function.
    fn requests(&self) -> String {
        let log = self.stage.directory().join("log");
        let requests = fs::read_to_string(&log).unwrap_or_default();
        fs::write(log, "").expect("a log");
        requests.replace(&self.stage.name(""), "")
    }
}

/// Another process writes the file: a file can't be executed while this process, or a child that it starts for another
/// test, has it open for writing.
fn write_program(path: &Path, script: &str) {
    let text = path.with_extension("text");
    fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    fs::write(&text, script).expect("a script");
    let mut install = Command::new("install");
    let installed = install.args(["-m", "755"]).arg(&text).arg(path).status();
    assert!(installed.expect("coreutils").success());
}

/// The scripts of the page by name. The name is in the comment after the first line of each.
fn documented() -> BTreeMap<String, String> {
    let page = include_str!("../../docs/fencing-hooks.md");
    let blocks = page.split("```sh\n").skip(1);
    let scripts = blocks.filter_map(|block| {
        let (script, _) = block.split_once("```")?;
        let (name, _) = script.strip_prefix("#!/bin/sh\n# ")?.split_once(':')?;
        Some((name.to_owned(), script.to_owned()))
    });
    scripts.collect()
}

/// The hook fences the node, also if the node is already off, and fails if its programs are broken.
fn fences(desk: &Desk<'_>, node: &str, options: &[&str], hook: &str) {
    let verb = [&["fence", node], options].concat();
    assert_ne!(desk.run(&verb, &[hook], true), 0, "broken");
    desk.stage.is_untouched(node);
    desk.requests();
    assert_eq!(desk.run(&verb, &[hook], false), 0);
    assert!(desk.stage.is_tainted(node));
}

#[test]
fn no_hook_is_untested_and_each_is_well_formed() {
    let names: Vec<String> = documented().into_keys().collect();
    assert_eq!(
        names,
        ["deny-storage", "isolate", "power-off-ipmi", "stop-instance"]
    );
    let directory = tempfile::tempdir().expect("a directory");
    for (name, script) in documented() {
        let path = directory.path().join(&name);
        write_program(&path, &script);
        // shellcheck is not installed everywhere. Findings below a warning are accepted.
        let mut shellcheck = Command::new("shellcheck");
        let checked = shellcheck.arg("--severity=warning").arg(&path).output();
        let checked = checked.unwrap_or_else(|_| {
            let shell = Command::new("/bin/sh").arg("-n").arg(&path).output();
            shell.expect("a shell")
        });
        assert!(checked.status.success(), "{name}: {checked:?}");
    }
}

#[test]
fn ipmi_powers_off_and_on() {
    let (stage, node) = Stage::with_unreachable_node("doc-ipmi");
    let desk = Desk::new(&stage);
    fences(&desk, &node, &[], "power-off-ipmi");
    let bmc = "ipmitool -I lanplus -H bmc-worker-1 -U admin -E chassis power";
    assert_eq!(desk.requests(), format!("{bmc} off\n{bmc} status\n"));
    stage.comes_back(&node, "boot-2");
    let on = "ipmitool -I lanplus -H bmc-worker-1 -U admin -E chassis power on";
    let on: Vec<&str> = on.split(' ').collect();
    assert_eq!(desk.run(&["unfence", &node], &on, false), 0);
    assert_eq!(desk.requests(), format!("{bmc} on\n"));
    stage.is_untouched(&node);
}

#[test]
fn a_cloud_stops_an_instance() {
    let (stage, node) = Stage::with_unreachable_node("doc-cloud");
    let desk = Desk::new(&stage);
    fences(&desk, &node, &[], "stop-instance");
    assert_eq!(
        desk.requests(),
        "aws ec2 stop-instances --force --instance-ids 7\n\
         aws ec2 wait instance-stopped --instance-ids 7\n"
    );
}

#[test]
fn a_switch_closes_ports_and_opens_them() {
    let (stage, node) = Stage::with_unreachable_node("doc-switch");
    for switch in ["switch-a", "switch-b"] {
        let port = stage.directory().join(format!("state-{switch}-{node}"));
        fs::write(port, "open").expect("a state");
    }
    let desk = Desk::new(&stage);
    fences(&desk, &node, &["--isolated"], "isolate");
    let requests = desk.requests();
    for switch in ["switch-a", "switch-b"] {
        let closed = format!("ssh {switch} set-port worker-1 closed\n");
        assert!(requests.contains(&closed), "{requests}");
    }
    stage.comes_back(&node, "boot-1");
    let open = ["isolate", "open"];
    assert_ne!(desk.run(&["unfence", &node], &open, true), 0, "broken");
    assert!(stage.is_tainted(&node));
    assert_eq!(desk.run(&["unfence", &node], &open, false), 0);
    stage.is_untouched(&node);
}

#[test]
fn a_storage_host_denies() {
    let (stage, node) = Stage::with_unreachable_node("doc-storage");
    let desk = Desk::new(&stage);
    fences(&desk, &node, &["--isolated"], "deny-storage");
    let requests = desk.requests();
    for line in [
        "ssh storage-1 sh -eu -s -- 192.0.2.7\n",
        "exportfs -u 192.0.2.7:/srv/volumes\n",
        "acls delete iqn.2026-01.com.example:192.0.2.7\n",
        "targetcli sessions list\n",
    ] {
        assert!(requests.contains(line), "{line}: {requests}");
    }
}
