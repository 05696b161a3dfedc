//! The task behind a held lease: it carries out what the pure keeper asks for, one request at a
//! time, beside one watch and one timer.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _, OptionFuture};
use futures::stream::BoxStream;
use serde_json::Value;

use super::held_state::{HeldState, Shared};
use super::lost::{Lost, LostBy};
use crate::cluster::api::Api;
use crate::cluster::error::ApiError;
use crate::cluster::patch::{WriteDetails, merge_patch};
use crate::cluster::watch::{LeaseEvent, WatchEvent};
use crate::cluster::writes::WriteOptions;
use crate::lease::NodeLease;
use crate::maintenance::Maintenance;
use crate::outcome::Error;
use crate::protocol::{BootInstant, Clocks, Keeper, KeeperAction, Loss, Names, Sent, Terms};

/// How often the clocks are compared, so that a pause of the machine is noticed soon.
const TICK: Duration = Duration::from_secs(1);

pub(super) struct Driver {
    api: Api,
    write_options: WriteOptions,
    node: String,
    names: Names,
    keeper: Keeper,
    /// The Lease as the keeper holds it.
    held: NodeLease,
    /// The Lease as last seen, with any holder.
    seen: Option<NodeLease>,
    /// The patch of the last renewal: a retry sends the very same.
    patch: Option<(Sent, Value)>,
    problem: Option<String>,
    /// The last renewal failed, and not only because the Lease had changed.
    is_failing: bool,
    watch: BoxStream<'static, Result<LeaseEvent, Error>>,
    shared: Arc<Shared>,
}

/// How a request ended.
enum Answer {
    Renewed(Result<Bytes, ApiError>),
    Read(Box<Result<Option<NodeLease>, ApiError>>),
}

impl Driver {
    /// `None` if nobody holds `lease`.
    pub(super) fn new(
        maintenance: &Maintenance,
        node: &str,
        lease: NodeLease,
        deadline: Option<BootInstant>,
        terms: Terms,
        suspected_pauses: u64,
    ) -> Option<Self> {
        let mut names = Names::default();
        let caller = maintenance.caller(&mut names);
        let clocks = maintenance.clocks();
        let reduced = lease.reduced(&mut names);
        let keeper = Keeper::new(caller, terms, &reduced, deadline.unwrap_or(clocks.boot))?;
        let mut api = maintenance.api.once();
        api.limit = request_limit(api.limit, terms);
        let held_state = HeldState {
            lease: lease.clone(),
            deadline: keeper.deadline(),
            stop_at: keeper.stop_at(),
            checking: false,
            problem: None,
            lost: None,
        };
        Some(Self {
            watch: maintenance
                .followers
                .follow(&api, node, lease.resource_version()),
            api,
            write_options: maintenance.write_options.clone(),
            node: node.to_owned(),
            names,
            keeper,
            held: lease,
            seen: None,
            patch: None,
            problem: None,
            is_failing: false,
            shared: Arc::new(Shared::new(held_state, suspected_pauses)),
        })
    }

    pub(super) fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// Keeps it until it is lost.
    pub(super) async fn run(mut self) {
        let mut request: Option<BoxFuture<'static, Answer>> = None;
        self.spread();
        let time = self.api.time.clone();
        loop {
            let pause_suspected = time.pause_suspected();
            let clocks = self.clocks();
            match self.keeper.due(clocks) {
                KeeperAction::Lost(loss) => {
                    self.shared.end();
                    return self.lose(loss);
                }
                KeeperAction::Send(sent) => request = Some(self.renew(sent)),
                // The request under way is dropped, with its connection.
                KeeperAction::Read | KeeperAction::Check => request = Some(self.read()),
                KeeperAction::Wait(until) => {
                    self.publish();
                    let left = until.since(clocks.boot).to_duration().min(TICK);
                    let timer = self.api.env.sleep(left);
                    let answer: OptionFuture<_> = request.as_mut().into();
                    tokio::select! {
                        biased;
                        Some(answer) = answer => {
                            request = None;
                            self.answered(answer);
                        }
                        Some(event) = self.watch.next() => self.watched(event),
                        // A pause puts every lock of this machine in doubt.
                        () = pause_suspected => {}
                        () = timer => {}
                    }
                }
            }
        }
    }

    /// Reads the clocks and first notifies the keeper of any pause: it must be in doubt before it gets another
    /// event.
    fn clocks(&mut self) -> Clocks {
        let boot = self.api.env.boot();
        let server = self.api.time.now();
        self.shared.check_clocks(&self.api.time);
        if self.shared.take_required_check() {
            self.keeper.require_check();
        }
        Clocks { boot, server }
    }

    fn renew(&mut self, sent: Sent) -> BoxFuture<'static, Answer> {
        let patch = match &self.patch {
            Some((last, patch)) if *last == sent => patch.clone(),
            _ => {
                let extras = WriteDetails::default();
                let patch = merge_patch(&sent.write, &self.held, &extras, &self.names);
                self.patch = Some((sent, patch.clone()));
                patch
            }
        };
        let api = self.api.clone();
        let call = api.lease_patch(&self.node, &patch, &self.write_options);
        async move { Answer::Renewed(api.call(&call).await) }.boxed()
    }

    fn read(&self) -> BoxFuture<'static, Answer> {
        let (api, node) = (self.api.clone(), self.node.clone());
        async move { Answer::Read(Box::new(api.lease(&node).await)) }.boxed()
    }

    fn answered(&mut self, answer: Answer) {
        let clocks = self.clocks();
        self.spread();
        match answer {
            Answer::Renewed(Ok(json)) => match NodeLease::from_json(&json, &self.api.repository) {
                Ok(lease) => {
                    let reduced = lease.reduced(&mut self.names);
                    self.keeper.answered(&reduced, clocks);
                    self.observed(Some(lease));
                    self.problem = None;
                    self.is_failing = false;
                }
                Err(why) => {
                    self.problem = Some(why);
                    self.is_failing = true;
                    self.keeper.unanswered(clocks);
                }
            },
            Answer::Renewed(Err(error)) => {
                let has_changed = error.is_conflict() || error.is_not_found();
                self.is_failing |= !has_changed;
                if has_changed {
                    self.keeper.conflicted(clocks);
                } else if error.leaves_writes_unknown() {
                    self.keeper.unanswered(clocks);
                } else {
                    let seconds = error.status().and_then(|status| status.retry_after);
                    let wait = Duration::from_secs(seconds.unwrap_or(0));
                    self.keeper.declined(wait.into(), clocks);
                }
                self.problem = Some(error.to_string());
            }
            Answer::Read(read) => match *read {
                Ok(lease) => {
                    let reduced = lease.as_ref().map(|lease| lease.reduced(&mut self.names));
                    self.keeper.read(reduced.as_ref(), clocks);
                    self.observed(lease);
                }
                Err(error) => {
                    self.keeper.unread(clocks);
                    self.problem = Some(error.to_string());
                }
            },
        }
    }

    fn watched(&mut self, event: Result<LeaseEvent, Error>) {
        let clocks = self.clocks();
        let lease = match event {
            Ok(WatchEvent::Changed(lease)) => lease,
            Ok(WatchEvent::Listed(mut all)) => match all.remove(&self.node) {
                Some(lease) => lease,
                None => return self.keeper.missing(),
            },
            Ok(WatchEvent::Deleted(last)) => {
                let reduced = last.reduced(&mut self.names);
                return self.keeper.watched_deletion(&reduced);
            }
            // The watch retries by itself; renewals show what it misses.
            Err(_) => return,
        };
        let reduced = lease.reduced(&mut self.names);
        self.keeper.watched(&reduced, clocks);
        self.observed(Some(lease));
    }

    /// Remembers the Lease that the keeper decides on, with everything that a patch needs from it.
    fn observed(&mut self, lease: Option<NodeLease>) {
        if let Some(lease) = &lease
            && self.keeper.loss().is_none()
            && lease.version == self.keeper.held().version
        {
            self.held = lease.clone();
        }
        self.seen = lease;
    }

    /// Spreads holders that started together.
    fn spread(&mut self) {
        let mut byte = [0];
        self.api.env.random(&mut byte);
        self.keeper.spread(byte[0]);
    }

    fn publish(&self) {
        self.shared.publish(&HeldState {
            lease: self.held.clone(),
            deadline: self.keeper.deadline(),
            stop_at: self.keeper.stop_at(),
            checking: self.keeper.is_in_doubt(),
            problem: self.problem.clone().filter(|_| self.is_failing),
            lost: None,
        });
    }

    fn lose(&self, loss: Loss) {
        self.shared.publish(&HeldState {
            lease: self.held.clone(),
            deadline: self.keeper.deadline(),
            stop_at: self.keeper.stop_at(),
            checking: false,
            problem: None,
            lost: Some(Arc::new(Lost {
                subject: self.api.repository.subject(),
                node: self.node.clone(),
                by: LostBy::new(loss, &self.names),
                lease: self.seen.clone().filter(|_| loss != Loss::Deleted),
                problem: self.problem.clone(),
            })),
        });
    }
}

fn request_limit(limit: Option<Duration>, terms: Terms) -> Option<Duration> {
    let longest = terms.request().to_duration();
    let longest = longest.max(Duration::from_millis(100));
    Some(limit.map_or(longest, |limit| limit.min(longest)))
}
