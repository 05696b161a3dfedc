//! Keeps running after the first rows, and prints a row again if it changes: by a write, by the Node, or by
//! time alone.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream::BoxStream;
use maintenance_lease::protocol::{Instant, Now};
use maintenance_lease::{
    Error, Followed, Follower as Leases, NodeLease, NodeLookup, NodeRowEvent, RowDetail, WatchEvent,
};

use super::filter::NodeFilter;
use super::read::{heartbeats, read_details, reader};
use super::snapshot::Snapshot;
use crate::args::nodes::Selection;
use crate::error::Failure;
use crate::exit::Code;
use crate::output::item::Item;
use crate::run::interruption::interrupt;
use crate::run::problems::Problems;
use crate::run::session::Session;
use crate::words::status::LeftOut;
use crate::words::waiting;

/// The clock is checked at least this often, because timers stop while a machine is suspended.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The heartbeats of more rows than this are read with one list.
const MOST_BY_NAME: usize = 8;

type Rows = BoxStream<'static, Result<NodeRowEvent, Error>>;

/// An update to process.
enum Update {
    Leases(Result<Followed, Error>),
    Row(Result<NodeRowEvent, Error>),
    /// A timer fired.
    Due,
    Interrupted,
}

/// A status that follows changes.
pub(crate) struct Follower<'a> {
    session: &'a Session<'a>,
    filter: &'a NodeFilter,
    leases: Leases,
    /// `None`: the Nodes are not followed.
    rows: Option<Rows>,
    snapshot: Snapshot,
    shown: Shown,
    /// Changes can't be watched, and that was reported.
    is_cut_off: bool,
}

impl<'a> Follower<'a> {
    /// Reads everything once, in parallel.
    ///
    /// # Errors
    /// If the Leases can't be read, or if reading Nodes or heartbeats fails for another reason than a
    /// missing right.
    pub(crate) async fn start(
        session: &'a Session<'a>,
        filter: &'a NodeFilter,
        wide: bool,
        detail: RowDetail,
    ) -> Result<Self, Failure> {
        let locks = &session.locks;
        let selector = filter.selector();
        let node = match &filter.selection {
            Selection::Named(names) if names.len() == 1 => Some(names[0].as_str()),
            _ => None,
        };
        let mut leases = match &filter.selection {
            Selection::Named(names) => locks.follow(names),
            _ => locks.follow_all(),
        };
        let mut rows = locks.watch_nodes(node, selector, detail);
        let (first_leases, first_rows, heartbeats) =
            futures::join!(leases.next(), rows.next(), heartbeats(session, wide));
        let mut rows = Some(rows);
        let mut snapshot = Snapshot {
            leases: HashMap::new(),
            rows: HashMap::new(),
            other_rows: NodeLookup::Unread,
            heartbeats: heartbeats?,
            details: HashMap::new(),
            wide,
        };
        match first_leases? {
            Followed::Changed(leases) => {
                snapshot.apply_leases(leases);
            }
            Followed::Unwatched(error) => return Err(error.into()),
            _ => {}
        }
        match first_rows {
            None => {}
            Some(Ok(event)) => {
                snapshot.apply_row(event);
            }
            Some(Err(Error::MissingRight { .. })) if selector.is_none() => {
                snapshot.other_rows = NodeLookup::Forbidden;
                rows = None;
            }
            Some(Err(error)) => return Err(error.into()),
        }
        read_details(session, filter, &mut snapshot, None).await?;
        Ok(Self {
            session,
            filter,
            leases,
            rows,
            snapshot,
            shown: Shown::default(),
            is_cut_off: false,
        })
    }

    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The nodes that are not shown because they are free and well.
    pub(crate) fn left_out(&self) -> LeftOut {
        self.filter.left_out(&self.snapshot, self.now())
    }

    /// The first rows.
    pub(crate) fn first(&mut self) -> Vec<Item> {
        let now = self.session.locks.server_time().now();
        let Self {
            filter, snapshot, ..
        } = self;
        let shown = filter.nodes(snapshot, now);
        // Time alone may make others appear later.
        let others = snapshot
            .known()
            .into_iter()
            .filter(|node| !filter.includes(snapshot, node, now));
        let nodes = shown.iter().map(String::as_str).chain(others);
        nodes
            .filter_map(|node| self.shown.update(snapshot, filter, node, now))
            .collect()
    }

    /// Passes changed rows to `show` until that returns `false`, or Ctrl-C.
    ///
    /// # Errors
    /// Those that a retry does not fix.
    pub(crate) async fn follow_changes(
        mut self,
        mut show: impl FnMut(&Snapshot, &[Item]) -> Result<bool, Failure>,
    ) -> Result<Code, Failure> {
        let mut interrupted = pin!(interrupt());
        loop {
            let wait = self.wait();
            let update = tokio::select! {
                biased;
                () = &mut interrupted => Update::Interrupted,
                update = self.leases.next() => Update::Leases(update),
                event = next_of(&mut self.rows) => Update::Row(event),
                () = tokio::time::sleep(wait) => Update::Due,
            };
            let touched = match update {
                Update::Interrupted => return Ok(Code::INTERRUPTED),
                Update::Leases(update) => match update? {
                    Followed::Changed(leases) => self.snapshot.apply_leases(leases),
                    Followed::Unwatched(error) => {
                        self.cut_off(error);
                        continue;
                    }
                    _ => {
                        self.is_cut_off = false;
                        continue;
                    }
                },
                Update::Row(Err(Error::MissingRight { source, .. })) => {
                    let words = waiting::nodes_unwatched(&source.to_string());
                    self.session.terminal.warn(words);
                    self.rows = None;
                    continue;
                }
                Update::Row(event) => match self.pass(event)? {
                    Some(event) => self.snapshot.apply_row(event),
                    None => continue,
                },
                Update::Due => self.shown.due(self.now()),
            };
            // If that fails, print the row without the details.
            let _ = read_details(
                self.session,
                self.filter,
                &mut self.snapshot,
                Some(&touched),
            )
            .await;
            let now = self.now();
            let changed: Vec<Item> = touched
                .iter()
                .filter_map(|node| self.shown.update(&self.snapshot, self.filter, node, now))
                .collect();
            self.session.warn_of_clocks();
            if !changed.is_empty() {
                self.refresh_heartbeats(&changed).await;
                if !show(&self.snapshot, &changed)? {
                    return Ok(Code::DONE);
                }
            }
        }
    }

    fn now(&self) -> Now {
        self.session.locks.server_time().now()
    }

    /// How long until a row changes by time alone.
    fn wait(&self) -> Duration {
        let Some(next) = self.shown.next_due() else {
            return LONGEST_WAIT;
        };
        let left = (next - self.now().earliest).as_micros();
        Duration::from_micros(left.try_into().unwrap_or(0)).min(LONGEST_WAIT)
    }

    /// Unwraps a watch event. If the server is unreachable, reports that and continues: the watch retries.
    fn pass<T>(&mut self, event: Result<T, Error>) -> Result<Option<T>, Failure> {
        match event {
            Ok(event) => {
                self.is_cut_off = false;
                Ok(Some(event))
            }
            Err(Error::Api(error)) if error.may_pass() => {
                self.cut_off(error.into());
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Reports once why changes can't be watched.
    fn cut_off(&mut self, error: Error) {
        if std::mem::replace(&mut self.is_cut_off, true) {
            return;
        }
        let terminal = self.session.terminal;
        if let Error::MissingRight { .. } = error {
            terminal.warn(waiting::watch_failed(&error.to_string()));
        } else {
            Problems::new(self.session).report(&error.into());
            terminal.remark(waiting::RETRYING);
        }
    }

    /// Heartbeats change every few seconds and are not watched. They are read again for the rows to be
    /// printed; if that fails, the older ones are used.
    async fn refresh_heartbeats(&mut self, changed: &[Item]) {
        let Some(known) = &mut self.snapshot.heartbeats else {
            return;
        };
        if changed.len() > MOST_BY_NAME {
            if let Ok(Some(all)) = heartbeats(self.session, true).await {
                *known = all;
            }
            return;
        }
        let reader = reader(self.session);
        let read = join_all(changed.iter().map(|item| reader.heartbeat(&item.node))).await;
        for (item, heartbeat) in changed.iter().zip(read) {
            if let Ok(Some(heartbeat)) = heartbeat {
                known.insert(item.node.clone(), heartbeat);
            }
        }
    }
}

async fn next_of(rows: &mut Option<Rows>) -> Result<NodeRowEvent, Error> {
    match rows {
        Some(rows) => match rows.next().await {
            Some(event) => event,
            None => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

impl Snapshot {
    /// Applies Leases; returns their nodes.
    fn apply_leases(&mut self, leases: BTreeMap<String, Option<NodeLease>>) -> BTreeSet<String> {
        let nodes = leases.keys().cloned().collect();
        for (node, lease) in leases {
            match lease {
                Some(lease) => self.leases.insert(node, lease),
                None => self.leases.remove(&node),
            };
        }
        nodes
    }

    /// Applies an event; returns the nodes that it is about.
    fn apply_row(&mut self, event: NodeRowEvent) -> BTreeSet<String> {
        match event {
            WatchEvent::Listed(rows) => {
                let (rows, other_rows) = Self::listed(rows.into_values());
                self.other_rows = other_rows;
                self.details.clear();
                let before = std::mem::replace(&mut self.rows, rows);
                before
                    .into_keys()
                    .chain(self.rows.keys().cloned())
                    .collect()
            }
            WatchEvent::Changed(row) => {
                let node = row.name.clone();
                self.details.remove(&node);
                self.rows.insert(node.clone(), NodeLookup::Row(row));
                BTreeSet::from([node])
            }
            WatchEvent::Deleted(row) => {
                self.rows.remove(&row.name);
                self.details.remove(&row.name);
                BTreeSet::from([row.name])
            }
        }
    }
}

/// The last printed row of each node, and when it changes by time alone.
#[derive(Debug, Default)]
struct Shown {
    items: HashMap<String, Item>,
    due: HashMap<String, Instant>,
}

impl Shown {
    /// The row of `node` if it differs from the last one printed. A node that is no longer to be shown is
    /// printed one last time.
    fn update(
        &mut self,
        snapshot: &Snapshot,
        filter: &NodeFilter,
        node: &str,
        now: Now,
    ) -> Option<Item> {
        match snapshot.next_change(node, now) {
            Some(due) if filter.selects(snapshot, node) => {
                self.due.insert(node.to_owned(), due);
            }
            _ => {
                self.due.remove(node);
            }
        }
        let is_wanted = filter.includes(snapshot, node, now);
        if !is_wanted && !self.items.contains_key(node) {
            return None;
        }
        let item = snapshot.item(node, now).without_clock();
        let before = if is_wanted {
            self.items.insert(node.to_owned(), item.clone())
        } else {
            self.items.remove(node)
        };
        (before.as_ref() != Some(&item)).then_some(item)
    }

    fn next_due(&self) -> Option<Instant> {
        self.due.values().min().copied()
    }

    /// The nodes whose rows change now by time alone.
    fn due(&self, now: Now) -> BTreeSet<String> {
        self.due
            .iter()
            .filter(|&(_, &due)| due <= now.earliest)
            .map(|(node, _)| node.clone())
            .collect()
    }
}
