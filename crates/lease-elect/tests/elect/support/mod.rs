//! Shared by the tests: a cluster, candidates, the journal that their daemons write, and a proxy whose
//! connections can be cut.

pub(crate) mod candidate;
pub(crate) mod cluster;
pub(crate) mod journal;
pub(crate) mod network_proxy;

use std::time::{Duration, Instant};

use libtest_mimic::Trial;

use self::cluster::Cluster;

/// Longer than any step takes, but short enough to wait for a step that hangs.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Runs a test on both servers.
pub(crate) fn on_both(name: &str, test: fn(&Cluster)) -> Vec<Trial> {
    let short = name.rsplit("::").next().unwrap_or(name).to_owned();
    let of_real = short.clone();
    let name = name.split_once("::").map_or(name, |(_, name)| name);
    vec![
        Trial::test(format!("in_memory::{name}"), move || {
            test(&Cluster::in_memory(&short));
            Ok(())
        }),
        Trial::test(format!("real::{name}"), move || {
            let cluster = Cluster::real(&of_real);
            let _logs = control_plane::shared().keep_logs_on_panic("lease-elect-test");
            test(&cluster);
            Ok(())
        }),
    ]
}

macro_rules! tests_on_both {
    ($($name:ident),* $(,)?) => {
        $crate::support::tests_on_both! { tests: $($name),* }
    };
    ($all:ident: $($name:ident),* $(,)?) => {
        pub(crate) fn $all() -> Vec<libtest_mimic::Trial> {
            let each = [$($crate::support::on_both(concat!(module_path!(), "::", stringify!($name)), $name)),*];
            each.into_iter().flatten().collect()
        }
    };
}
pub(crate) use tests_on_both;

/// Waits until `look` returns a value.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < TIME_LIMIT, "{what} does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}
