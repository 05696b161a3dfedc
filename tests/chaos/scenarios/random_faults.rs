//! Several faults at the same time, chosen at random.

use std::thread::sleep;
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::support::contender::{Contender, ContenderOptions};
use crate::support::scenario::Scenario;
use crate::support::shared_cluster::Access;
use crate::support::tcp_proxy::{Flow, TcpProxy};

/// How long the faults last.
const STORM: Duration = Duration::from_secs(20);

/// The seed of the faults. Set `CHAOS_SEED` for another one. The same seed repeats the faults, but not the exact
/// course, because the processes are real.
fn seed() -> u64 {
    let given = std::env::var("CHAOS_SEED").ok();
    given.map_or(1, |seed| seed.parse().expect("CHAOS_SEED is a number"))
}

fn strike(rng: &mut Rng, contender: &Contender, link: &TcpProxy) {
    let flow = match rng.u8(..6) {
        0 | 1 => Flow::Pass,
        2 => Flow::Slow(Duration::from_millis(rng.u64(10..800))),
        3 | 4 => Flow::Hold,
        _ => Flow::Break,
    };
    match rng.u8(..9) {
        0 | 1 => link.requests(flow),
        2 | 3 => link.answers(flow),
        4 | 5 => link.both(Flow::Pass),
        6 => contender.stop(),
        7 => contender.goes_on(),
        _ => contender.is_killed(),
    }
}

#[test]
fn random_faults_break_no_guarantee() {
    let access = Access::shared();
    let mut scenario = Scenario::new(&access, "random-faults");
    let contenders = ["a", "b", "c"].map(|name| {
        let link = scenario.link();
        let options = ContenderOptions {
            kubeconfig: link.kubeconfig.clone(),
            signs: 40,
            ..scenario.usual()
        };
        (scenario.joins(name, options), link)
    });
    let mut rng = Rng::with_seed(seed());
    let end = Instant::now() + STORM;
    while Instant::now() < end {
        let (contender, link) = &contenders[rng.usize(..contenders.len())];
        strike(&mut rng, contender, link);
        sleep(Duration::from_millis(rng.u64(50..600)));
    }
    for (contender, link) in &contenders {
        link.both(Flow::Pass);
        contender.goes_on();
    }
    scenario.all_have_a_turn();
    scenario.ends();
}
