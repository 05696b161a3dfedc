//! Answers without a length, which end when the connection ends.

use crate::support::maint::Maint;
use crate::support::server::Server;

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n";
const BEGUN: &str = r#"{"kind":"LeaseList","apiVersion":"coordination.k8s.io/v1","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a","namespace":"kube-node-maintenance","resourceVersion":"5"},"spec":{"holderIdentity":"alice"}}"#;

/// An answer that ends early is incomplete, whether it ends after an element of a list or after the last one.
#[test]
fn a_list_ends_with_its_last_bracket() {
    let cut_short = "the answer to GET /apis/coordination.k8s.io/v1/namespaces/kube-node-maintenance/leases \
                     was cut short";
    for (end, expected) in [
        ("", format!("error: {cut_short}")),
        (",", format!("error: {cut_short}")),
        ("]", format!("error: {cut_short}")),
        (
            "]}",
            "nothing to release: you (bob) have no lock".to_owned(),
        ),
    ] {
        let server = Server::hanging_up(format!("{HEAD}{BEGUN}{end}"));
        let address = server.address.to_string();
        let release = Maint::verb("release").args(["--mine", "--holder=bob", "-s", &address]);
        let run = release.run();
        assert_eq!(
            run.stderr.lines().next(),
            Some(expected.as_str()),
            "{run:?}"
        );
        assert_eq!(run.code == 0, end == "]}", "{run:?}");
    }
}
