//! Runs one case on both servers, and compares the answers.

use http::Request;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use sandbox::Sandbox;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::api::{Api, Compaction, Exchange};

/// Runs the case on the real server and then on a new sandbox, and asserts that every request got
/// the same answer. The case itself asserts the content of the answers.
///
/// Both servers see the same names, and each case uses its own.
#[track_caller]
#[expect(
    clippy::needless_pass_by_value,
    reason = "cases are closures, written where they are passed"
)]
pub(crate) fn agree(case: impl AsyncFn(&Api)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime starts");
    let real = on_real_server(&runtime, &case);
    let sandbox = on_sandbox(&runtime, &case);
    assert_same(&real, &sandbox);
}

fn on_real_server(runtime: &Runtime, case: &impl AsyncFn(&Api)) -> Vec<Exchange> {
    let kubeconfig = control_plane::shared().admin_kubeconfig();
    runtime.block_on(async {
        let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("the kubeconfig is readable");
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let client = connect(config.expect("the kubeconfig is complete"));
        let api = Api::new(client, Box::new(compact_etcd));
        case(&api).await;
        api.into_exchanges()
    })
}

fn on_sandbox(runtime: &Runtime, case: &impl AsyncFn(&Api)) -> Vec<Exchange> {
    runtime.block_on(async {
        let sandbox = Sandbox::new();
        let serving = sandbox.serve("127.0.0.1:0").await;
        let serving = serving.expect("a loopback port is free");
        let url = serving.url.parse().expect("the sandbox gives a URL");
        let forget = move || -> Compaction {
            sandbox.compact();
            Box::pin(async {})
        };
        let api = Api::new(connect(Config::new(url)), Box::new(forget));
        case(&api).await;
        api.into_exchanges()
    })
}

/// Compacts the first revisions of etcd, from before the server was ready. No client needs them.
fn compact_etcd() -> Compaction {
    Box::pin(async {
        let etcd = control_plane::shared().etcd().url();
        let client = connect(Config::new(etcd.parse().expect("etcd has a URL")));
        let request = Request::post("/v3/kv/compaction").body(br#"{"revision":"5"}"#.to_vec());
        let request = request.expect("a valid request").map(Body::from);
        let answer = client.send(request).await.expect("etcd answers");
        assert_eq!(answer.status(), 200);
    })
}

fn connect(mut config: Config) -> Client {
    config.default_retry = false;
    config.proxy_url = None;
    Client::try_from(config).expect("the configuration makes a client")
}

#[track_caller]
fn assert_same(real: &[Exchange], sandbox: &[Exchange]) {
    let mut differences = String::new();
    for (real, sandbox) in real.iter().zip(sandbox) {
        if real != sandbox {
            differences += &format!("\n{}\n{}", real.request, difference(real, sandbox));
        }
    }
    assert!(
        differences.is_empty(),
        "the sandbox (+) answers otherwise than the real server (-):\n{differences}"
    );
    assert_eq!(real.len(), sandbox.len(), "as many requests on both");
}

fn difference(real: &Exchange, sandbox: &Exchange) -> String {
    let lines = |exchange: &Exchange| -> Vec<String> {
        let body = serde_json::to_string_pretty(&exchange.body).unwrap_or_default();
        let head = format!("{} {:?}", exchange.status, exchange.warnings);
        std::iter::once(head)
            .chain(body.lines().map(str::to_owned))
            .collect()
    };
    let (real, sandbox) = (lines(real), lines(sandbox));
    let only = |these: &[String], others: &[String], mark: &str| -> String {
        these
            .iter()
            .filter(|line| !others.contains(line))
            .map(|line| format!("  {mark} {line}\n"))
            .collect()
    };
    let lines = only(&real, &sandbox, "-") + &only(&sandbox, &real, "+");
    if lines.is_empty() {
        format!("  - {real:#?}\n  + {sandbox:#?}\n")
    } else {
        lines
    }
}

/// The value at `pointer`, or null.
pub(crate) fn at(value: &Value, pointer: &str) -> Value {
    value.pointer(pointer).cloned().unwrap_or_default()
}
