//! A world from its beginning to its end, in one thread and in no time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use maintenance_lease::NAMESPACE;
use maintenance_lease::env::Env as _;
use maintenance_lease::protocol::SKEW_BUDGET;
use sandbox::Sandbox;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::agents::{Agent, AgentConfig, OutsideWrites, bare_node};
use crate::fault::Fault;
use crate::history::{ClientId, Entry, Event, Recorder};
use crate::machine::{Clocks, Machine};
use crate::network::Network;
use crate::observer::{Observed, observe};
use crate::plan::{ClientKind, Plan, ScheduledEvent};
use crate::time::TrueClock;

/// How long after the last fault a lease may stand in the way, beside its duration: the clock
/// budget as the margin, once more as the error of its times, and a few tries.
const TIME_LIMIT: Duration = Duration::from_secs(9);

/// So many clients want several nodes at once when faults are over.
const COLLECTORS: u32 = 3;

/// Lives through `plan` and tells what happened.
///
/// # Panics
/// If the library does.
#[must_use]
pub fn live(plan: &Plan) -> Vec<Entry> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime of one thread");
    // Inside: the world begins on the runtime's clock, which stands still while anybody is busy.
    runtime.block_on(async { World::begin(plan).live().await })
}

/// A world that goes on.
struct World<'a> {
    plan: &'a Plan,
    truth: TrueClock,
    recorder: Recorder,
    sandbox: Sandbox,
    network: Network,
    nodes: Vec<Arc<str>>,
    machines: Vec<Machine>,
    /// What comes from outside and takes its time.
    troubles: JoinSet<()>,
    rng: Rng,
}

impl<'a> World<'a> {
    fn begin(plan: &'a Plan) -> Self {
        let mut rng = Rng::with_seed(plan.seed ^ 0x5eed);
        let truth = TrueClock::begins();
        let recorder = Recorder::new(truth);
        recorder.record(Event::ServerClocks {
            ahead: plan.skews.clone(),
        });
        clocks_differ(plan, &recorder);
        let sandbox = Sandbox::builder()
            .clock(move || truth.now().on_the_wall(0))
            .seed(plan.seed)
            .collection_delay(plan.collection_delay)
            .build();
        sandbox.put(namespace());
        let network = Network::new(
            sandbox.service(),
            truth,
            recorder.clone(),
            &plan.skews,
            plan.cap,
            plan.faults,
        );
        let machines = plan.clients.iter().zip(0..).map(|(client, number)| {
            Machine::new(
                ClientId(number),
                client.clocks,
                rng.u64(..),
                truth,
                recorder.clone(),
            )
        });
        Self {
            plan,
            truth,
            machines: machines.collect(),
            troubles: JoinSet::new(),
            recorder,
            sandbox,
            network,
            nodes: (0..plan.nodes)
                .map(|number| format!("n{number}").into())
                .collect(),
            rng,
        }
    }

    async fn live(mut self) -> Vec<Entry> {
        for node in &self.nodes {
            self.sandbox.put(bare_node(node));
        }
        for observed in Observed::ALL {
            let recorder = self.recorder.clone();
            tokio::spawn(observe(self.sandbox.service(), observed, recorder));
        }
        for number in 0..self.machines.len() {
            self.start(number);
        }
        let mut ahead: VecDeque<_> = self.plan.scheduled_events.iter().copied().collect();
        while let Some((at, happening)) = ahead.pop_front() {
            self.until(at).await;
            self.happen(happening);
            if let ScheduledEvent::Crash(client, absent) = happening {
                let back = at + absent;
                let place = ahead.partition_point(|&(at, _)| at <= back);
                if back < self.plan.length {
                    ahead.insert(place, (back, ScheduledEvent::Start(client)));
                }
            }
        }
        self.until(self.plan.length).await;
        self.heal().await;
        self.recorder.take()
    }

    async fn until(&self, at: Duration) {
        let now = Duration::from_micros(self.truth.now().as_micros().unsigned_abs());
        tokio::time::sleep(at.saturating_sub(now)).await;
    }

    /// Starts a client's process, unless it runs.
    fn start(&mut self, number: usize) {
        if !self.machines[number].start() {
            return;
        }
        let client = &self.plan.clients[number];
        let agent = self.agent(
            number,
            client.client_kind,
            &client.identity,
            client.may_watch,
        );
        self.machines[number].spawn(Box::pin(agent.live()));
    }

    fn agent(
        &mut self,
        number: usize,
        client_kind: ClientKind,
        identity: &str,
        may_watch: bool,
    ) -> Agent {
        Agent::begin(&AgentConfig {
            client: ClientId(u8::try_from(number).unwrap_or(u8::MAX)),
            client_kind,
            identity,
            may_watch,
            machine: &self.machines[number],
            recorder: &self.recorder,
            network: &self.network,
            nodes: &self.nodes,
            longest: self.plan.longest,
            elects: self.plan.elects,
            request_timeout: self.plan.request_timeout,
            seed: self.rng.u64(..),
        })
    }

    fn happen(&mut self, happening: ScheduledEvent) {
        let outside = OutsideWrites {
            sandbox: self.sandbox.clone(),
            namespace: if self.plan.elects {
                "default"
            } else {
                NAMESPACE
            },
            recorder: self.recorder.clone(),
        };
        let name = |node: u8| self.nodes[usize::from(node)].clone();
        match happening {
            ScheduledEvent::Freeze(client, how, length) => {
                self.machines[usize::from(client)].freeze_for(how, length);
            }
            ScheduledEvent::FreezeAtAnswer(client, how, length, to_write) => {
                self.machines[usize::from(client)].freeze_at_answer(how, length, to_write);
            }
            ScheduledEvent::StepServers(by) => self.network.step_servers(by),
            ScheduledEvent::Start(client) => self.start(usize::from(client)),
            ScheduledEvent::Crash(client, _) => self.machines[usize::from(client)].crash(),
            ScheduledEvent::Step(client, by) => self.machines[usize::from(client)].step_wall(by),
            ScheduledEvent::Restart(outage) => self.network.restart(outage),
            ScheduledEvent::Compact => {
                // Any write tells how far history goes.
                let namespace = self.sandbox.put(namespace());
                let version = namespace["metadata"]["resourceVersion"].as_str();
                self.network.compact(
                    version
                        .and_then(|version| version.parse().ok())
                        .unwrap_or(0),
                );
            }
            ScheduledEvent::Storm(node, times, pause) => {
                let node = name(node);
                self.troubles
                    .spawn(async move { outside.annotate_repeatedly(&node, times, pause).await });
            }
            ScheduledEvent::Shorten(node) => outside.shorten(&name(node)),
            ScheduledEvent::Usurp(node) => outside.usurp(&name(node)),
            ScheduledEvent::DeleteLease(node) => outside.delete_lease(&name(node)),
            ScheduledEvent::ReplaceNode(node, absent) => {
                let node = name(node);
                self.troubles
                    .spawn(async move { outside.replace_node(&node, absent).await });
            }
            ScheduledEvent::TerminateNode(node, marked, absent) => {
                let node = name(node);
                self.troubles
                    .spawn(async move { outside.terminate_node(&node, marked, absent).await });
            }
        }
    }

    /// Ends all faults and all clients. Then one who waits for each node gets in, and after that some
    /// who wait for several nodes at once.
    async fn heal(&mut self) {
        self.recorder.record(Event::Healed);
        self.network.heal();
        self.troubles.abort_all();
        for machine in &self.machines {
            machine.thaw();
            machine.crash();
        }
        for node in &self.nodes {
            let stored = self.sandbox.get("v1", "Node", "", node);
            let is_marked =
                |stored: &Value| stored.pointer("/metadata/deletionTimestamp").is_some();
            if stored.as_ref().is_some_and(is_marked) {
                self.sandbox.remove("v1", "Node", "", node);
            }
            if stored.as_ref().is_none_or(is_marked) {
                self.sandbox.put(bare_node(node));
            }
        }
        let longest = Duration::from_secs(self.plan.longest.into());
        // A lease from before a clock was stepped back ends so much later.
        let stepped = self
            .plan
            .scheduled_events
            .iter()
            .map(|(_, happening)| match happening {
                ScheduledEvent::StepServers(by) => Duration::from_micros(by.unsigned_abs()),
                _ => Duration::ZERO,
            });
        // Candidates look at each record for its whole duration, one after another.
        let records = match self.plan.elects {
            true => self.plan.nodes.into(),
            false => 1,
        };
        let time_limit = (longest + stepped.sum::<Duration>()) * records + TIME_LIMIT;
        let (client, agent) = self.latecomer(ClientKind::Worker, "the-last@host");
        self.recorder.record(Event::Waits {
            client,
            due: self.truth.now() + time_limit,
        });
        let in_time =
            tokio::time::timeout(time_limit + TIME_LIMIT, agent.get_in_everywhere()).await;
        if in_time == Ok(true) {
            self.recorder.record(Event::GotIn { client });
        }
        if self.plan.collects {
            self.collect().await;
        }
        // What is committed at the end is noted, too.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }

    /// Several who each want several nodes, all at the same time.
    async fn collect(&mut self) {
        let mut collectors = JoinSet::new();
        for number in 0..COLLECTORS {
            let (client, agent) =
                self.latecomer(ClientKind::Collector, &format!("collector-{number}@host"));
            let recorder = self.recorder.clone();
            recorder.record(Event::Waits {
                client,
                due: self.truth.now() + TIME_LIMIT * COLLECTORS,
            });
            collectors.spawn(async move {
                if agent.get_a_set().await {
                    recorder.record(Event::GotIn { client });
                }
            });
        }
        let all = collectors.join_all();
        // Who is not in by then is noticed.
        let _ = tokio::time::timeout(TIME_LIMIT * (COLLECTORS + 1), all).await;
    }

    /// A client that comes when all faults are over, with clocks that are right.
    fn latecomer(&mut self, client_kind: ClientKind, identity: &str) -> (ClientId, Agent) {
        let number = self.machines.len();
        let client = ClientId(u8::try_from(number).unwrap_or(u8::MAX));
        self.machines.push(Machine::new(
            client,
            Clocks {
                wall_ahead: 0,
                drift: 0,
                uptime: 1,
            },
            self.rng.u64(..),
            self.truth,
            self.recorder.clone(),
        ));
        // Else nothing would run beside it, such as the keepers of its locks.
        self.machines[number].start();
        (client, self.agent(number, client_kind, identity, true))
    }
}

/// Notes whose clocks are not as they should be.
fn clocks_differ(plan: &Plan, recorder: &Recorder) {
    let budget = SKEW_BUDGET.as_micros();
    for (client, number) in plan.clients.iter().zip(0..) {
        let Clocks {
            wall_ahead, drift, ..
        } = client.clocks;
        let client = ClientId(number);
        if wall_ahead.abs() > budget {
            let what = format!("the wall clock of {client} is {wall_ahead} us ahead");
            recorder.struck(Fault::ClockOffset, what);
        }
        if drift != 0 {
            let what = format!("the clocks of {client} gain {drift} us a second");
            recorder.struck(Fault::Drift, what);
        }
    }
    if plan.skews.len() > 1 {
        let what = format!("the API servers' clocks are {:?} us ahead", plan.skews);
        recorder.struck(Fault::ServerClocks, what);
    }
}

fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
}
