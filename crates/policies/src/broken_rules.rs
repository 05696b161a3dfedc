//! How often a policy found a broken rule, as the API server counts it in its metrics.

/// Every mode has the action Audit, so it counts each broken rule once.
const METRIC: &str = "apiserver_validating_admission_policy_check_total{";
const IS_AUDIT: &str = "enforcement_action=\"audit\"";

/// How many broken rules of `policy` the API server with these `metrics` has counted since it started; `None`: a number
/// can't be read.
#[must_use]
pub fn broken_rules(metrics: &str, policy: &str) -> Option<u64> {
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
        assert_eq!(broken_rules(metrics, "p"), Some(5));
        assert_eq!(broken_rules(metrics, "r"), Some(0));
        let series = |value| format!("{METRIC}{IS_AUDIT},policy=\"p\"}} {value}\n");
        assert_eq!(broken_rules(&series("1.5e+06"), "p"), Some(1_500_000));
        assert_eq!(broken_rules(&series("NaN"), "p"), None);
    }
}
