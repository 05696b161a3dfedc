//! How often a policy found a broken rule, as the API server counts it in its metrics.

use http::Request;

use crate::findings::{Finding, Source};
use crate::run::interruption::in_time;
use crate::run::session::Session;

/// Every mode has the action Audit, so it counts each broken rule once.
const METRIC: &str = "apiserver_validating_admission_policy_check_total{";
const IS_AUDIT: &str = "enforcement_action=\"audit\"";

/// The status code of a missing right.
const FORBIDDEN: u16 = 403;

/// The metrics of the API server, or why they can't be read.
pub(super) async fn metrics(session: &Session<'_>) -> Result<String, Finding> {
    let client = &session.connection.client;
    let reading = async {
        let request = Request::get("/metrics").body(Vec::new());
        let request = request.map_err(anyhow::Error::new)?;
        Ok(client.request_text(request).await)
    };
    let read = in_time(session.connection.request_timeout, reading).await;
    let read = read.map_err(|failure| Finding::unread(Source::Metrics, &failure))?;
    read.map_err(|error| Finding::Unread {
        what: Source::Metrics,
        is_forbidden: matches!(&error, kube::Error::Api(status) if status.code == FORBIDDEN),
        error: error.to_string(),
    })
}

/// How many broken rules of `policy` the API server with these `metrics` has counted since it started; `None`: a number
/// can't be read.
pub(super) fn count(metrics: &str, policy: &str) -> Option<u64> {
    let policy = format!("policy=\"{policy}\"");
    let series = metrics.lines().filter_map(|line| {
        let (labels, value) = line.strip_prefix(METRIC)?.split_once("} ")?;
        let has = |wanted: &str| labels.split(',').any(|label| label == wanted);
        (has(&policy) && has(IS_AUDIT)).then(|| whole(value.trim()))
    });
    series.sum()
}

/// A count, which the server writes as `1.5e+06` if it is large.
fn whole(value: &str) -> Option<u64> {
    const MOST: f64 = 9e15;
    let value = value.parse::<f64>().ok()?;
    // Exact in this range.
    ((0.0..MOST).contains(&value)).then_some(value as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first form is that of Kubernetes 1.30, the second that of later releases.
    #[test]
    fn audited_writes_are_counted_and_no_others() {
        let metrics = "\
            # TYPE apiserver_validating_admission_policy_check_total counter\n\
            apiserver_validating_admission_policy_check_total{enforcement_action=\"audit\",policy=\"p\",policy_binding=\"p\",state=\"active\"} 2\n\
            apiserver_validating_admission_policy_check_total{enforcement_action=\"audit\",error_type=\"no_error\",policy=\"p\",policy_binding=\"p\"} 3\n\
            apiserver_validating_admission_policy_check_total{enforcement_action=\"warn\",error_type=\"no_error\",policy=\"p\",policy_binding=\"p\"} 5\n\
            apiserver_validating_admission_policy_check_total{enforcement_action=\"audit\",error_type=\"no_error\",policy=\"q\",policy_binding=\"p\"} 7\n";
        assert_eq!(count(metrics, "p"), Some(5));
        assert_eq!(count(metrics, "r"), Some(0));
        let series = |value| format!("{METRIC}{IS_AUDIT},policy=\"p\"}} {value}\n");
        assert_eq!(count(&series("1.5e+06"), "p"), Some(1_500_000));
        assert_eq!(count(&series("NaN"), "p"), None);
    }
}
