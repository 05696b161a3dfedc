//! Leader elections on one Lease, among our candidates and with client-go.

use std::time::Duration;

use chrono::TimeDelta;
use futures::StreamExt as _;
use futures::future::{Either, select};
use futures::stream::FuturesUnordered;
use maintenance_lease::protocol::{BootInstant, Refusal, Span};
use maintenance_lease::{
    Change, Error, Guarded, InvalidOption, Keep, LeaderElection, LostBy, Maintenance, Progress,
    Release, Renew, Repository, SideEffect,
};
use serde_json::{Value, json};

use crate::on_both_servers;
use crate::support::{ClientGo, Cluster, Fate, Wire, in_the_sandbox, refusal};

on_both_servers! {
    the_first_candidate_creates_the_lease_and_leads,
    a_released_lead_is_acquired_at_once_in_both_directions,
    writes_of_other_tools_survive_either_way,
    client_go_is_followed_once_it_stops_renewing,
    client_go_waits_for_as_long_as_we_renew_and_follows_then,
    a_leader_that_keeps_renewing_loses_to_nobody,
    a_leader_that_is_followed_stops_its_work,
    of_many_candidates_one_becomes_the_next_leader,
    a_lead_with_a_lost_answer_is_a_success,
    an_earlier_run_of_the_same_identity_is_waited_out,
    changes_of_the_leader_are_reported,
    without_the_namespace_nobody_leads,
    with_labels_only_ones_own_are_led,
}

/// The duration of a lease. It is short because tests wait for it on the real server, and longer than a busy machine
/// stalls.
const SECONDS: u32 = 6;
const DURATION: Duration = Duration::from_secs(SECONDS as u64);
/// When the lease has expired: its last instant still belongs to the leader, and timers count milliseconds.
const OVER: Span = Span::micros(SECONDS as i64 * 1_000_000 + 1_000);
const NAMESPACE: &str = "elections";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/elections/leases";

/// The election of a case.
struct Setting {
    cluster: Cluster,
    lease: String,
}

impl Setting {
    async fn new(cluster: Cluster) -> Self {
        cluster.make_namespace_named(NAMESPACE).await;
        let lease = cluster.name("lease");
        Self { cluster, lease }
    }

    fn holder(&self, identity: &str) -> Maintenance {
        let builder = self.cluster.builder(identity);
        builder
            .repository(Repository::new(NAMESPACE))
            .build()
            .unwrap()
    }

    fn candidate(&self, identity: &str) -> LeaderElection {
        self.stand(self.holder(identity))
    }

    fn candidate_on(&self, wire: &Wire, identity: &str) -> LeaderElection {
        let builder = self.cluster.builder_on(wire, identity);
        let builder = builder.repository(Repository::new(NAMESPACE));
        self.stand(builder.build().unwrap())
    }

    fn stand(&self, locks: Maintenance) -> LeaderElection {
        let election = LeaderElection::new(locks, &self.lease).unwrap();
        election.lease_duration(DURATION)
    }

    fn client_go(&self, identity: &str) -> ClientGo {
        ClientGo::new(&self.cluster, LEASES, &self.lease, identity, SECONDS)
    }

    fn path(&self) -> String {
        format!("{LEASES}/{}", self.lease)
    }

    async fn lease(&self) -> Value {
        self.cluster.read(&self.path()).await
    }

    async fn sleep(&self, length: Duration) {
        self.cluster.env.sleep(length).await;
    }

    fn boot(&self) -> BootInstant {
        self.cluster.env.boot()
    }
}

async fn wins(candidate: &LeaderElection) -> Change {
    candidate.campaign(|_| ()).await.unwrap()
}

/// The time at which the last write was sent.
fn last_write(wire: &Wire) -> BootInstant {
    let passed = wire.passed();
    let write = passed.iter().rfind(|passing| passing.is_write());
    write.expect("it wrote").at
}

async fn the_first_candidate_creates_the_lease_and_leads(cluster: Cluster) {
    let setting = Setting::new(cluster).await;
    let change = wins(&setting.candidate("ours")).await;
    assert_eq!(change.side_effects, [SideEffect::LeaseCreated]);
    assert!(change.lock_id().is_some() && change.deadline.is_some() && change.fencing.is_some());
    let spec = setting.lease().await["spec"].clone();
    assert_eq!(spec["holderIdentity"], "ours");
    assert_eq!(spec["leaseDurationSeconds"], SECONDS);
    assert_eq!(spec["leaseTransitions"], 0, "as client-go begins to count");
    assert_eq!(spec["acquireTime"], spec["renewTime"]);
    assert!(!setting.client_go("theirs").turn().await);
}

async fn a_released_lead_is_acquired_at_once_in_both_directions(cluster: Cluster) {
    let setting = Setting::new(cluster).await;
    let mut theirs = setting.client_go("theirs");
    let ours = setting.holder("ours");
    assert!(theirs.turn().await);
    theirs.release().await;

    let wire = Wire::clear();
    let change = wins(&setting.candidate_on(&wire, "ours")).await;
    // After a slow answer, the Lease is read again.
    let mut requests = wire.requests();
    requests.dedup();
    assert_eq!(requests, ["GET lease", "PATCH lease"]);
    let lease = change.lease.clone().unwrap();
    assert_eq!((lease.holder(), lease.transitions()), (Some("ours"), 1));
    assert_eq!(lease.acquired(), lease.renewed());
    assert!(!theirs.turn().await);

    let release = Release::new().lock_id(change.lock_id().unwrap());
    ours.release(&setting.lease, &release).await.unwrap();
    let spec = setting.lease().await["spec"].clone();
    assert_eq!(spec["holderIdentity"], "");
    assert_eq!(spec["leaseDurationSeconds"], 1);
    assert_eq!(spec["leaseTransitions"], 1, "nobody holds it");

    assert!(theirs.turn().await, "it does not wait either");
    let spec = setting.lease().await["spec"].clone();
    assert_eq!(spec["holderIdentity"], "theirs");
    assert_eq!(spec["leaseTransitions"], 2);
    assert!(
        theirs.turn().await,
        "and goes on without knowing what ours wrote"
    );
}

async fn writes_of_other_tools_survive_either_way(cluster: Cluster) {
    let setting = Setting::new(cluster).await;
    let mut theirs = setting.client_go("theirs");
    assert!(theirs.turn().await);
    let mark = json!({"metadata": {
        "labels": {"example.com/team": "blue"},
        "annotations": {"example.com/note": "x"},
    }});
    let path = setting.path();
    setting.cluster.patch(&path, mark).await;
    theirs.release().await;
    let change = wins(&setting.candidate("ours")).await;
    let ours = setting.holder("ours");
    ours.renew(
        &setting.lease,
        &Renew::new().lock_id(change.lock_id().unwrap()),
    )
    .await
    .unwrap();
    ours.release(&setting.lease, &Release::new()).await.unwrap();
    assert!(theirs.turn().await);
    let metadata = setting.lease().await["metadata"].clone();
    assert_eq!(metadata["labels"]["example.com/team"], "blue");
    assert_eq!(metadata["annotations"]["example.com/note"], "x");
}

async fn client_go_is_followed_once_it_stops_renewing(cluster: Cluster) {
    follows(cluster, TimeDelta::zero()).await;
}

#[test]
fn client_go_with_its_clock_an_hour_behind_is_waited_for() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let waited = follows(cluster, TimeDelta::hours(-1)).await;
        assert_eq!(waited, OVER);
    });
}

#[test]
fn client_go_with_its_clock_an_hour_ahead_is_followed() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let waited = follows(cluster, TimeDelta::hours(1)).await;
        assert_eq!(waited, OVER);
    });
}

/// Returns the time from the last renewal of client-go to our acquisition.
async fn follows(cluster: Cluster, ahead: TimeDelta) -> Span {
    let setting = Setting::new(cluster).await;
    let mut theirs = setting.client_go("theirs").with_its_clock_ahead(ahead);
    assert!(theirs.turn().await);
    let wire = Wire::clear();
    let ours = setting.candidate_on(&wire, "ours");
    let renewals = async {
        let mut last = setting.boot();
        for _ in 0..6 {
            setting.sleep(DURATION / 4).await;
            last = setting.boot();
            assert!(theirs.turn().await, "nobody takes it while it renews");
        }
        last
    };
    let (change, last) = tokio::join!(wins(&ours), renewals);
    let waited = last_write(&wire).since(last);
    assert!(waited >= Span::seconds(SECONDS), "only {waited:?}");
    let lease = change.lease.unwrap();
    assert_eq!((lease.holder(), lease.transitions()), (Some("ours"), 1));
    let off = lease.renewed().unwrap() - setting.cluster.now();
    assert!(
        off.abs() < TimeDelta::minutes(1),
        "times are the server's again"
    );
    assert!(!theirs.turn().await, "it does not lead any more");
    waited
}

async fn client_go_waits_for_as_long_as_we_renew_and_follows_then(cluster: Cluster) {
    let setting = Setting::new(cluster).await;
    let change = wins(&setting.candidate("ours")).await;
    let ours = setting.holder("ours");
    let mine = Renew::new().lock_id(change.lock_id().unwrap());
    let mut theirs = setting.client_go("theirs");
    assert!(!theirs.turn().await);
    for _ in 0..3 {
        setting.sleep(DURATION * 2 / 3).await;
        ours.renew(&setting.lease, &mine).await.unwrap();
        assert!(!theirs.turn().await);
    }
    let deadline = ours
        .renew(&setting.lease, &mine)
        .await
        .unwrap()
        .deadline
        .unwrap();
    while !theirs.turn().await {
        setting.sleep(DURATION / 10).await;
    }
    assert!(setting.boot() >= deadline, "ours believed until then");
    let lease = setting.lease().await;
    assert_eq!(lease["spec"]["leaseTransitions"], 1);
    let refused = refusal(ours.renew(&setting.lease, &mine).await);
    assert_eq!(refused.refusal, Refusal::ChangedHands);
    assert_eq!(
        refused.to_string(),
        format!("lease/{} was acquired again by theirs", setting.lease)
    );
}

async fn a_leader_that_keeps_renewing_loses_to_nobody(cluster: Cluster) {
    let setting = Setting::new(cluster).await;
    let ours = setting.candidate("ours");
    let keep = Keep::new().stop(DURATION / 20);
    let leads = ours.lead(&keep, |_| ()).await.unwrap();
    let other = setting.candidate("other");
    let mut theirs = setting.client_go("theirs");
    let work = async {
        let others = async {
            for _ in 0..6 {
                setting.sleep(DURATION / 3).await;
                assert!(!theirs.turn().await);
            }
        };
        let campaign = wins(&other);
        futures::pin_mut!(others, campaign);
        match select(others, campaign).await {
            Either::Left(_) => Ok(()),
            Either::Right((change, _)) => Err(change),
        }
    };
    assert!(matches!(leads.guard(work).await, Guarded::Completed(())));
    let lease = setting.lease().await;
    assert_eq!(lease["spec"]["leaseTransitions"], 0);
    assert_ne!(lease["spec"]["acquireTime"], lease["spec"]["renewTime"]);
    leads.release().await.unwrap();
    assert!(theirs.turn().await, "at once");
}

async fn a_leader_that_is_followed_stops_its_work(cluster: Cluster) {
    let setting = Setting::new(cluster).await;
    let (cut, is_cut) = tokio::sync::watch::channel(false);
    let wire = Wire::planned(move |passing| {
        if passing.is_write() && *is_cut.borrow() {
            Fate::Reset
        } else {
            Fate::Pass
        }
    });
    let ours = setting.candidate_on(&wire, "ours");
    let leads = ours.lead(&Keep::new(), |_| ()).await.unwrap();
    let mut theirs = setting.client_go("theirs");
    cut.send_replace(true);
    let follower = async {
        while !theirs.turn().await {
            setting.sleep(DURATION / 10).await;
        }
        setting.boot()
    };
    let work = async {
        let lost = match leads.guard(std::future::pending::<Result<(), ()>>()).await {
            Guarded::Lost(lost) => lost,
            other => panic!("{other:?}"),
        };
        (lost, setting.boot())
    };
    let (followed, (lost, stopped)) = tokio::join!(follower, work);
    assert!(stopped <= followed, "the work was over before");
    assert_eq!(lost.by, LostBy::Expiry);
    let text = lost.to_string();
    let beginning = format!("lease/{} could not be", setting.lease);
    assert!(text.starts_with(&beginning), "{text}");
    assert!(matches!(leads.release().await, Err(Error::Lost(_))));
}

async fn of_many_candidates_one_becomes_the_next_leader(cluster: Cluster) {
    let setting = Setting::new(cluster).await;
    let mut theirs = setting.client_go("theirs");
    assert!(theirs.turn().await);
    let candidates: Vec<_> = (0..8)
        .map(|number| setting.candidate(&format!("ours-{number}")))
        .collect();
    let mut standing_by: FuturesUnordered<_> = candidates.iter().map(wins).collect();
    let (first, ()) = tokio::join!(standing_by.next(), theirs.release());
    let winner = first.unwrap().lease.unwrap();
    assert_eq!(winner.transitions(), 1);
    let rest = tokio::select! {
        biased;
        second = standing_by.next() => second,
        () = setting.sleep(DURATION / 2) => None,
    };
    assert!(rest.is_none(), "nobody else leads while its lease lasts");
    let lease = setting.lease().await;
    assert_eq!(
        lease["spec"]["holderIdentity"].as_str(),
        winner.holder(),
        "{lease}"
    );
}

async fn a_lead_with_a_lost_answer_is_a_success(cluster: Cluster) {
    let setting = Setting::new(cluster).await;
    let mut theirs = setting.client_go("theirs");
    assert!(theirs.turn().await);
    theirs.release().await;
    let wire = Wire::first_write(Fate::answer_lost());
    let change = wins(&setting.candidate_on(&wire, "ours")).await;
    assert_eq!(change.side_effects, [SideEffect::AnswerLost]);
    assert_eq!(change.lease.unwrap().transitions(), 1);
}

#[test]
fn a_watch_that_says_nothing_takes_nothing_from_a_leader() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let setting = Setting::new(cluster).await;
        let mut theirs = setting.client_go("theirs");
        assert!(theirs.turn().await);
        let wire = Wire::planned(|passing| match passing.query.contains("watch=") {
            true => Fate::Swallowed,
            false => Fate::Pass,
        });
        let ours = setting.candidate_on(&wire, "ours");
        let renewals = async {
            let mut last = setting.boot();
            for _ in 0..6 {
                setting.sleep(DURATION / 2).await;
                last = setting.boot();
                assert!(theirs.turn().await, "it renewed in time");
            }
            last
        };
        let (change, last) = tokio::join!(wins(&ours), renewals);
        assert!(last_write(&wire).since(last) >= Span::seconds(SECONDS));
        assert_eq!(change.lease.unwrap().transitions(), 1);
        let writes = wire.passed().last().unwrap().writes;
        assert!(writes > 1, "it tried on a version that was gone already");
    });
}

async fn an_earlier_run_of_the_same_identity_is_waited_out(cluster: Cluster) {
    let setting = Setting::new(cluster).await;
    let wire = Wire::clear();
    let earlier = wins(&setting.candidate_on(&wire, "ours")).await;
    let begun = last_write(&wire);
    let wire = Wire::clear();
    let later = wins(&setting.candidate_on(&wire, "ours")).await;
    assert!(last_write(&wire).since(begun) >= Span::seconds(SECONDS));
    assert_eq!(later.lease.as_ref().unwrap().transitions(), 0);
    assert_ne!(later.lock_id(), earlier.lock_id());
    let stale = Renew::new().lock_id(earlier.lock_id().unwrap());
    let refused = refusal(setting.holder("ours").renew(&setting.lease, &stale).await);
    assert_eq!(refused.refusal, Refusal::ChangedHands);
}

async fn changes_of_the_leader_are_reported(cluster: Cluster) {
    let setting = Setting::new(cluster).await;
    let mut theirs = setting.client_go("theirs");
    assert!(theirs.turn().await);
    let ours = setting.candidate("ours");
    let (leaders, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let campaign = ours.campaign(|progress| {
        let Progress::Blocked(blocked) = progress else {
            panic!("it can't see: {progress:?}");
        };
        assert!(blocked.earliest.is_some());
        leaders.send(blocked.refused.to_string()).unwrap();
    });
    let others = async {
        let first = heard.recv().await.unwrap();
        assert!(theirs.turn().await);
        assert!(theirs.turn().await);
        // Another candidate becomes leader before ours.
        let taken = json!({"spec": {"holderIdentity": "next", "leaseTransitions": 1}});
        let path = setting.path();
        setting.cluster.patch(&path, taken).await;
        [first, heard.recv().await.unwrap()]
    };
    futures::pin_mut!(campaign, others);
    let (told, change) = match select(others, campaign).await {
        Either::Left((told, campaign)) => (told, campaign.await.unwrap()),
        Either::Right((change, _)) => panic!("it took the lead from others: {change:?}"),
    };
    assert_eq!(change.lease.unwrap().transitions(), 2);
    assert_eq!(
        told,
        ["theirs", "next"].map(|who| format!("lease/{} is held by {who}", setting.lease))
    );
}

#[test]
fn a_name_that_begins_with_kubeadm_leads_like_any_other() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let setting = Setting::new(cluster).await;
        let mut theirs = setting.client_go("kubeadm-control-plane-0_17");
        assert!(theirs.turn().await);
        let change = wins(&setting.candidate("kubeadm-control-plane-1_18")).await;
        assert_eq!(
            change.lease.unwrap().holder(),
            Some("kubeadm-control-plane-1_18")
        );
    });
}

async fn without_the_namespace_nobody_leads(cluster: Cluster) {
    let missing = cluster.name("missing").replace('.', "-");
    let builder = cluster.builder("ours");
    let locks = builder.repository(Repository::new(&missing)).build();
    let election = LeaderElection::new(locks.unwrap(), "scheduler").unwrap();
    let error = election.campaign(|_| ()).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        format!("Error from server (NotFound): namespaces \"{missing}\" not found")
    );
}

async fn with_labels_only_ones_own_are_led(cluster: Cluster) {
    let setting = Setting::new(cluster).await;
    let labeled = Repository::new(NAMESPACE).label("app", "db");
    let builder = setting.cluster.builder("ours").repository(labeled);
    let ours = setting.stand(builder.build().unwrap());
    let change = wins(&ours).await;
    assert_eq!(change.lease.unwrap().transitions(), 0);
    let lease = setting.lease().await;
    assert_eq!(lease["metadata"]["labels"], json!({"app": "db"}));

    let others = Repository::new(NAMESPACE).label("app", "queue");
    let builder = setting.cluster.builder("theirs").repository(others);
    let theirs = setting.stand(builder.build().unwrap());
    let refused = refusal(theirs.campaign(|_| ()).await);
    assert_eq!(refused.refusal, Refusal::Foreign);
}

#[test]
fn events_without_news_of_the_leader_do_not_prolong_the_wait() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let setting = Setting::new(cluster).await;
        let mut theirs = setting.client_go("theirs");
        assert!(theirs.turn().await);
        let begun = setting.boot();
        let wire = Wire::clear();
        let ours = setting.candidate_on(&wire, "ours");
        let touch = async {
            setting.sleep(DURATION / 2).await;
            let note = json!({"metadata": {"annotations": {"example.com/note": "x"}}});
            let path = setting.path();
            setting.cluster.patch(&path, note).await;
        };
        let (_, ()) = tokio::join!(wins(&ours), touch);
        let waited = last_write(&wire).since(begun);
        assert_eq!(waited, OVER);
    });
}

#[test]
fn a_record_is_as_new_as_the_answer_that_brought_it() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let setting = Setting::new(cluster).await;
        let mut theirs = setting.client_go("theirs");
        assert!(theirs.turn().await);
        let slow = setting.cluster.env.sleep(DURATION * 3 / 4);
        let mut slow = Some(slow);
        let wire = Wire::planned(move |_| slow.take().map_or(Fate::Pass, Fate::Meanwhile));
        let ours = setting.candidate_on(&wire, "ours");
        let renewal = async {
            setting.sleep(DURATION / 2).await;
            let renewed = setting.boot();
            assert!(theirs.turn().await);
            renewed
        };
        let (_, renewed) = tokio::join!(wins(&ours), renewal);
        let waited = last_write(&wire).since(renewed);
        assert!(waited >= Span::seconds(SECONDS), "only {waited:?}");
    });
}

#[test]
fn nodes_have_no_leaders_and_no_lead_is_shorter_than_its_work_takes_to_end() {
    in_the_sandbox(module_path!(), async |cluster: Cluster| {
        let nodes = LeaderElection::new(cluster.holder("ours"), "worker-1");
        assert!(matches!(nodes, Err(InvalidOption::ElectionOnANode)));

        let setting = Setting::new(cluster).await;
        let keep = Keep::new().stop(DURATION);
        let lead = setting.candidate("ours").lead(&keep, |_| ()).await;
        assert!(matches!(
            lead.err(),
            Some(Error::Invalid(InvalidOption::TooShort { .. }))
        ));
        let never = setting.candidate("ours").lease_duration(Duration::ZERO);
        let campaign = never.campaign(|_| ()).await;
        assert!(matches!(
            campaign.unwrap_err(),
            Error::Invalid(InvalidOption::Duration(_))
        ));
        let locks = setting.holder("ours");
        let lease = locks.get(&setting.lease).await.unwrap();
        assert!(lease.is_none(), "nothing was written");
    });
}
