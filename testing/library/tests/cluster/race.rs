//! Many clients want one node at the same time.

use futures::future::join_all;
use maintenance_lease::protocol::Refusal;
use maintenance_lease::{Acquire, Change, Maintenance, Refused, Release};

use crate::on_both_servers;
use crate::support::{Cluster, refusal};

on_both_servers! {
    of_64_holders_one_wins_each_round,
    of_64_who_share_an_identity_one_wins_each_round,
}

const CONTENDERS: usize = 64;
const ROUNDS: u32 = 10;

async fn of_64_holders_one_wins_each_round(cluster: Cluster) {
    race(&cluster, Refusal::Held, |contender| {
        format!("holder-{contender}")
    })
    .await;
}

async fn of_64_who_share_an_identity_one_wins_each_round(cluster: Cluster) {
    race(&cluster, Refusal::HeldByCaller, |_| "shared".to_owned()).await;
}

/// In the first round, the node has no Lease. In later rounds, its lock is free.
async fn race(cluster: &Cluster, expected: Refusal, identity: impl Fn(usize) -> String) {
    let node = cluster.node("n").await;
    let contenders: Vec<Maintenance> = join_all((0..CONTENDERS).map(|contender| {
        let identity = identity(contender);
        async {
            Maintenance::builder(cluster.reconnected().await, identity)
                .env(cluster.env.clone())
                .build()
                .unwrap()
        }
    }))
    .await;
    for round in 1..=ROUNDS {
        let options = Acquire::new().reason(format!("round {round}"));
        let results = contenders
            .iter()
            .map(|contender| contender.try_acquire(&node, &options));
        let results = join_all(results).await;
        let (won, lost): (Vec<_>, Vec<_>) = results
            .into_iter()
            .enumerate()
            .partition(|(_, result)| result.is_ok());
        let [(winner, won)]: [_; 1] = won.try_into().expect("exactly one winner");
        let won: Change = won.unwrap();
        let lock_id = won.lock_id().expect("the winner's token");
        assert_eq!(lock_id.transitions(), round);
        for (_, result) in lost {
            let refused: Refused = refusal(result);
            assert_eq!(refused.refusal, expected);
            let lease = refused.lease.expect("the Lease that is held");
            assert_eq!(lease.holder(), Some(contenders[winner].identity()));
            assert_eq!(lease.lock_id().as_ref(), Some(&lock_id));
        }
        let release = Release::new().lock_id(lock_id);
        contenders[winner].release(&node, &release).await.unwrap();
    }
}
