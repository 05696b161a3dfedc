//! Runs each case in the sandbox and on the real server.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use control_plane::ControlPlane;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use maintenance_lease::env::Machine;
use sandbox::Sandbox;

use super::clocks::TokioMachine;
use super::cluster::{Cluster, Server};

/// Makes two tests of each case, which is an `async fn` with a [`Cluster`] as argument. Cases
/// marked `alone` have their own cluster, without a controller manager and without the namespace of
/// the Leases.
macro_rules! on_both_servers {
    (alone: $($case:ident),+ $(,)?) => {
        $crate::on_both_servers!(@ alone_in_the_sandbox, alone_on_kubernetes: $($case),+);
    };
    (@ $sandbox:ident, $kubernetes:ident: $($case:ident),+) => {$(
        mod $case {
            #[test]
            fn in_the_sandbox() {
                $crate::support::$sandbox(module_path!(), super::$case);
            }

            #[test]
            fn on_kubernetes() {
                $crate::support::$kubernetes(module_path!(), super::$case);
            }
        }
    )+};
    ($($case:ident),+ $(,)?) => {
        $crate::on_both_servers!(@ in_the_sandbox, on_kubernetes: $($case),+);
    };
}
pub(crate) use on_both_servers;

pub(crate) fn in_the_sandbox(path: &str, case: impl AsyncFnOnce(Cluster)) {
    run_in_a_sandbox(path, true, case);
}

pub(crate) fn alone_in_the_sandbox(path: &str, case: impl AsyncFnOnce(Cluster)) {
    run_in_a_sandbox(path, false, case);
}

/// Time is paused: a wait takes no real time, and time passes only during waits.
fn run_in_a_sandbox(path: &str, collects_garbage: bool, case: impl AsyncFnOnce(Cluster)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let machine = Arc::new(TokioMachine::booted_now());
        let clock = machine.clone();
        let sandbox = Sandbox::builder()
            .clock(move || clock.wall_time())
            .garbage_collection(collects_garbage)
            .build();
        let client = sandbox.client();
        case(Cluster::new(
            path,
            Server::Sandbox(sandbox),
            client,
            machine,
        ))
        .await;
    });
}

pub(crate) fn on_kubernetes(path: &str, case: impl AsyncFnOnce(Cluster)) {
    if control_plane::is_left_out() {
        return;
    }
    run_on(control_plane::shared(), path, case);
}

/// All cases that need their own control plane use the same one, one after the other.
///
/// A feature gate is on, without which the server drops `strategy`. There is no controller manager,
/// so only the test itself removes objects from a terminating namespace.
pub(crate) fn alone_on_kubernetes(path: &str, case: impl AsyncFnOnce(Cluster)) {
    if control_plane::is_left_out() {
        return;
    }
    static ALONE: OnceLock<Result<ControlPlane, String>> = OnceLock::new();
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let control_plane = ALONE
        .get_or_init(|| {
            ControlPlane::builder()
                .controller_manager(false)
                .api_server_flag("--feature-gates=CoordinatedLeaderElection=true")
                .api_server_flag("--runtime-config=coordination.k8s.io/v1beta1=true")
                .start()
                .map_err(|error| format!("{error:#}"))
        })
        .as_ref()
        .unwrap_or_else(|error| panic!("no control plane for this test: {error}"));
    run_on(control_plane, path, async |cluster: Cluster| {
        cluster.remove_namespace().await;
        case(cluster).await;
    });
}

fn run_on(control_plane: &'static ControlPlane, path: &str, case: impl AsyncFnOnce(Cluster)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let client = kubernetes_client(control_plane.admin_kubeconfig()).await;
        let server = Server::Kubernetes(control_plane);
        case(Cluster::new(path, server, client, Arc::new(Machine))).await;
    });
}

/// A client that does not retry by itself.
pub(super) async fn kubernetes_client(kubeconfig: &std::path::Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    config.default_retry = false;
    config.proxy_url = None;
    config.try_into().unwrap()
}
