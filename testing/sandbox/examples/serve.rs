//! A sandbox with two nodes for kubectl. Prints a kubeconfig, and serves until it is interrupted.

use std::io;

use sandbox::{Node, Sandbox};

#[tokio::main(flavor = "current_thread")]
#[expect(
    clippy::print_stdout,
    reason = "the kubeconfig is this program's output"
)]
async fn main() -> io::Result<()> {
    let sandbox = Sandbox::new();
    sandbox.add_node("worker-1");
    sandbox.add_node(Node::named("worker-2").cordoned());
    let serving = sandbox.serve("127.0.0.1:0").await?;
    print!("{}", sandbox.kubeconfig(&serving.url));
    std::future::pending().await
}
