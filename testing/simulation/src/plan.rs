//! What a seed stands for: who lives in a world, and what goes wrong there when.

use std::time::Duration;

use fastrand::Rng;

use crate::history::Freeze;
use crate::machine::Clocks;
use crate::network::{Faults, Latency};

/// An identity that some clients share, as people do.
pub(crate) const SHARED_ACCOUNT: &str = "ops@bastion";

/// How a client lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientKind {
    /// Acquires a free node, works, renews, releases it or forgets to.
    Worker,
    /// Waits for a node, works under a lease that is kept, releases it.
    Waiter,
    /// Waits to lead, and leads for as long as it can.
    Leader,
    /// Waits for a node and runs a command beside its lock, as `kubectl maint with` does.
    Runner,
    /// Waits for several nodes at once, keeping those that it has, and works under all of them.
    Collector,
    /// Holds, takes over, breaks locks.
    Administrator,
}

/// One client.
#[derive(Clone, Debug)]
pub struct ClientPlan {
    /// How it lives.
    pub client_kind: ClientKind,
    /// Who it says it is; others may say the same.
    pub identity: String,
    /// Its machine's clocks.
    pub clocks: Clocks,
    /// It has the right to watch Leases.
    pub may_watch: bool,
}

/// Something that happens at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduledEvent {
    /// A machine stands still for a while.
    Freeze(u8, Freeze, Duration),
    /// A machine stands still for a while, as soon as an answer is on its way to it; if so, one to a
    /// write.
    FreezeAtAnswer(u8, Freeze, Duration, bool),
    /// A process ends without a word, and is started again later.
    Crash(u8, Duration),
    /// A process is started again.
    Start(u8),
    /// A wall clock is stepped by so many microseconds.
    Step(u8, i64),
    /// The clocks of all API servers are stepped by so many microseconds, back: one that is stepped
    /// alone, or ahead, is off by more than clocks may be apart.
    StepServers(i64),
    /// The API server restarts.
    Restart(Duration),
    /// Old resource versions can't be watched from any more.
    Compact,
    /// Another tool annotates a Lease repeatedly.
    Storm(u8, u32, Duration),
    /// A Lease is shortened by hand.
    Shorten(u8),
    /// A Lease is made another's by hand.
    Usurp(u8),
    /// A Lease is deleted.
    DeleteLease(u8),
    /// A Node is deleted, and comes back later.
    ReplaceNode(u8, Duration),
    /// A Node is marked for deletion for a while. Then it is deleted, and comes back later.
    TerminateNode(u8, Duration, Duration),
}

/// A whole world.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What it was drawn from.
    pub seed: u64,
    /// Leaders are elected on Leases of an application; else nodes are locked.
    pub elects: bool,
    /// Some clients lock several nodes at once.
    pub collects: bool,
    /// How many nodes there are.
    pub nodes: u8,
    /// How long faults go on.
    pub length: Duration,
    /// How far each API server's clock is ahead, in microseconds.
    pub skews: Vec<i64>,
    /// How long after its Node a Lease is deleted.
    pub collection_delay: Duration,
    /// The longest duration that the API server lets through, in seconds.
    pub cap: Option<u32>,
    /// The longest duration that clients ask for, in seconds.
    pub longest: u32,
    /// The limit of each request.
    pub request_timeout: Duration,
    /// What is likely to go wrong on the way.
    pub faults: Faults,
    /// Who lives there.
    pub clients: Vec<ClientPlan>,
    /// What happens when, in order.
    pub scheduled_events: Vec<(Duration, ScheduledEvent)>,
}

impl Plan {
    /// The world of `seed`.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let rng = &mut rng;
        let latency = if rng.bool() {
            Latency::Near
        } else {
            Latency::Far
        };
        // Near answers leave room in the clock budget for API servers whose clocks differ.
        let skews = match latency {
            Latency::Near => vec![0, rng.i64(-900_000..900_000)],
            Latency::Far => vec![rng.i64(-100_000..100_000)],
        };
        let elects = rng.u8(..6) == 0;
        let collects = !elects && rng.u8(..5) == 0;
        let nodes = match rng.u8(..4) {
            _ if collects => rng.u8(2..=4),
            0 => 2,
            _ => 1,
        };
        let length = Duration::from_secs(rng.u64(20..90));
        let clients = clients(rng, elects, collects);
        let mut scheduled_events = scheduled_events(rng, length, nodes, &clients);
        let cap = (rng.u8(..8) == 0).then(|| rng.u32(1..6));
        let longest = rng.u32(4..16);
        let request_timeout = Duration::from_millis(rng.u64(500..6_000));
        let faults = if rng.u8(..6) == 0 {
            Faults::none()
        } else {
            Faults::some(rng, latency)
        };
        let collection_delay = Duration::from_millis(match rng.u8(..3) {
            0 => rng.u64(1_000..20_000),
            _ => 100,
        });
        if rng.u8(..4) == 0 {
            scheduled_events.extend(terminations(rng, length, nodes));
            scheduled_events.sort_by_key(|&(at, _)| at);
        }
        Self {
            seed,
            elects,
            collects,
            nodes,
            length,
            skews,
            collection_delay,
            cap,
            longest,
            request_timeout,
            faults,
            clients,
            scheduled_events,
        }
    }
}

impl ClientKind {
    /// It works under a keeper, which notices pauses, and not by its boot clock alone.
    fn is_kept(self) -> bool {
        self != Self::Worker
    }
}

fn clients(rng: &mut Rng, elects: bool, collects: bool) -> Vec<ClientPlan> {
    (0..rng.u8(3..=6))
        .map(|number| {
            let client_kind = match rng.u8(..12) {
                _ if elects => ClientKind::Leader,
                kind if collects && kind < 6 => ClientKind::Collector,
                0 | 1 => ClientKind::Administrator,
                2..=4 => ClientKind::Worker,
                5 | 6 => ClientKind::Waiter,
                7..=9 => ClientKind::Runner,
                _ => ClientKind::Leader,
            };
            let identity = match (client_kind, rng.u8(..4)) {
                (ClientKind::Worker | ClientKind::Waiter | ClientKind::Runner, 0) if !elects => {
                    SHARED_ACCOUNT.to_owned()
                }
                _ => format!("c{number}@host"),
            };
            ClientPlan {
                client_kind,
                identity,
                clocks: clocks(rng),
                may_watch: rng.u8(..10) > 0,
            }
        })
        .collect()
}

fn clocks(rng: &mut Rng) -> Clocks {
    Clocks {
        wall_ahead: match rng.u8(..4) {
            0 => 0,
            1 => rng.i64(-2_000_000..2_000_000),
            2 => rng.i64(-30_000_000..30_000_000),
            _ => rng.i64(-4_000_000_000..4_000_000_000),
        },
        drift: rng.i64(-500..=500),
        uptime: rng.i64(1..1_000_000_000_000),
    }
}

fn scheduled_events(
    rng: &mut Rng,
    length: Duration,
    nodes: u8,
    clients: &[ClientPlan],
) -> Vec<(Duration, ScheduledEvent)> {
    // A server that steps back while a machine is paused hides the pause from everybody, and the lease is
    // held for as much longer: that is past what clocks are assumed to do.
    let servers_step = rng.u8(..5) == 0;
    let mut scheduled_events: Vec<_> = (0..rng.u8(..10))
        .map(|_| {
            let at = Duration::from_millis(
                rng.u64(1_000..u64::try_from(length.as_millis()).unwrap_or(2_000)),
            );
            let client = rng.u8(..u8::try_from(clients.len()).unwrap_or(1));
            let node = rng.u8(..nodes);
            let is_kept = clients[usize::from(client)].client_kind.is_kept();
            let happening = match rng.u8(..19) {
                kind @ (0..4 | 16 | 17) => {
                    // Who counts on a deadline alone can't know that the boot clock stood still.
                    let kinds = if is_kept && !servers_step { 6 } else { 2 };
                    let how = match rng.u8(..kinds) {
                        0 => Freeze::Stopped,
                        1 => Freeze::Suspended,
                        2..5 => Freeze::Paused,
                        _ => Freeze::Halted,
                    };
                    // Many a lease outlasts the shorter ones.
                    let most = if rng.bool() { 25_000 } else { 4_000 };
                    let length = Duration::from_millis(rng.u64(200..most));
                    match kind {
                        0..4 => ScheduledEvent::Freeze(client, how, length),
                        _ => ScheduledEvent::FreezeAtAnswer(client, how, length, rng.bool()),
                    }
                }
                18 if servers_step => ScheduledEvent::StepServers(rng.i64(-40_000_000..0)),
                18 => ScheduledEvent::Compact,
                4..7 => ScheduledEvent::Crash(client, Duration::from_millis(rng.u64(100..8_000))),
                // A step back would hide the pause of a machine whose host stopped it.
                7 if is_kept => ScheduledEvent::Step(client, rng.i64(1..40_000_000)),
                7 => ScheduledEvent::Step(client, rng.i64(-40_000_000..40_000_000)),
                8..10 => ScheduledEvent::Restart(Duration::from_millis(rng.u64(50..8_000))),
                10 => ScheduledEvent::Compact,
                11..13 => ScheduledEvent::Storm(
                    node,
                    rng.u32(5..60),
                    Duration::from_millis(rng.u64(5..150)),
                ),
                13 if rng.bool() => ScheduledEvent::Shorten(node),
                13 => ScheduledEvent::Usurp(node),
                14 => ScheduledEvent::DeleteLease(node),
                _ => ScheduledEvent::ReplaceNode(node, Duration::from_millis(rng.u64(..4_000))),
            };
            (at, happening)
        })
        .collect();
    scheduled_events.sort_by_key(|&(at, _)| at);
    scheduled_events
}

/// Nodes that are deleted slowly.
fn terminations(rng: &mut Rng, length: Duration, nodes: u8) -> Vec<(Duration, ScheduledEvent)> {
    let length = u64::try_from(length.as_millis()).unwrap_or(2_000);
    let termination = |_| {
        let at = Duration::from_millis(rng.u64(1_000..length));
        let marked = Duration::from_millis(rng.u64(..60_000));
        let absent = Duration::from_millis(rng.u64(..4_000));
        (
            at,
            ScheduledEvent::TerminateNode(rng.u8(..nodes), marked, absent),
        )
    };
    (0..3).map(termination).collect()
}
