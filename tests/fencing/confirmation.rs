//! Changes between a question and its answer.

use nix::sys::wait::WaitStatus;
use rexpect::session::spawn_command;

use crate::support::Stage;

/// How long a test waits for a prompt or for the end of a run, in milliseconds.
const LIMIT: u64 = 60_000;

/// The node was unreachable before the question. If it comes back before the answer, it can be unfenced.
#[test]
fn a_node_is_read_again_after_the_answer() {
    let (stage, node) = Stage::with_unreachable_node("thought");
    stage.fence(&node);
    let unfence = stage.maint(["unfence", &node]).holder("bob@laptop");
    let unfence = unfence.env("TERM", "xterm").command();
    let mut terminal = spawn_command(unfence, Some(LIMIT)).expect("a terminal");
    let facts = terminal.exp_string("[y/N]").expect("a question");
    assert!(facts.contains("fenced by alice@bastion"), "{facts}");
    stage.comes_back(&node, "boot-2");
    terminal.send("yes\r").expect("it listens");
    terminal.flush().expect("it listens");
    let said = terminal.exp_eof().expect("it ends");
    let ended = terminal.process().wait().expect("it ended");
    assert!(
        matches!(ended, WaitStatus::Exited(_, 0)),
        "{ended:?}: {said}"
    );
    assert!(said.contains(&format!("node/{node} unfenced")), "{said}");
    stage.is_untouched(&node);
}

/// A pod that arrives before the answer is a risk that nobody has accepted.
#[test]
fn pods_that_arrive_before_the_answer_are_lost_only_with_consent() {
    let (stage, node) = Stage::with_unreachable_node("arrives");
    stage.create(&[stage.namespace()]);
    let fence = stage.maint(["fence", &node, "--powered-off=dark"]);
    let fence = fence.env("TERM", "xterm").command();
    let mut terminal = spawn_command(fence, Some(LIMIT)).expect("a terminal");
    let _ = terminal.exp_string("type its name").expect("a question");
    stage.create(&[stage.pod("tool", &node)]);
    terminal.send(&format!("{node}\r")).expect("it listens");
    terminal.flush().expect("it listens");
    let fact = "nothing recreates 1 pod (arrives/tool)";
    terminal.exp_string(fact).expect("the cost");
    let question = "Accept the risk `no-owner`?";
    terminal.exp_string(question).expect("a question");
    terminal.send_line("n").expect("it listens");
    let said = terminal.exp_eof().expect("it ends");
    let ended = terminal.process().wait().expect("it ended");
    assert!(
        matches!(ended, WaitStatus::Exited(_, 6)),
        "{ended:?}: {said}"
    );
    stage.is_untouched(&node);
}
