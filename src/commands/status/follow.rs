//! Goes on after the first rows, and shows every row again that changes: by a write, by the Node, or
//! by time alone.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream::BoxStream;
use maintenance_lease::protocol::{Instant, Now};
use maintenance_lease::{
    Error, Followed, Follower as Leases, NodeLease, NodeRowEvent, Sight, WatchEvent,
};

use super::picture::{Picture, Wanted};
use super::read::{heartbeats, look_closer};
use crate::args::nodes::Selection;
use crate::error::Failure;
use crate::exit::Code;
use crate::output::item::Item;
use crate::run::parallel::interrupt;
use crate::run::problems::Problems;
use crate::run::session::Session;
use crate::text::escape;
use crate::words::waiting;

/// After this time at the latest the clock is looked at again: timers stand still while a machine
/// sleeps.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The heartbeats of more rows at once are read by a list.
const MOST_BY_NAME: usize = 8;

type Rows = BoxStream<'static, Result<NodeRowEvent, Error>>;

/// Something to take in.
enum News {
    Leases(Result<Followed, Error>),
    Row(Result<NodeRowEvent, Error>),
    /// Time has passed.
    Due,
    Interrupted,
}

/// A status that goes on.
pub(super) struct Follower<'a> {
    session: &'a Session<'a>,
    wanted: &'a Wanted,
    leases: Leases,
    /// `None`: the Nodes are not followed.
    rows: Option<Rows>,
    picture: Picture,
    shown: Shown,
    /// Changes can't be watched, and that was said.
    is_cut_off: bool,
}

impl<'a> Follower<'a> {
    /// Reads everything once, side by side.
    ///
    /// # Errors
    /// Where the Leases can't be read, or the Nodes or heartbeats for another cause than a missing
    /// right.
    pub(super) async fn start(
        session: &'a Session<'a>,
        wanted: &'a Wanted,
        wide: bool,
    ) -> Result<Self, Failure> {
        let locks = &session.locks;
        let (node, selector) = match &wanted.selection {
            Selection::Named(names) if names.len() == 1 => (Some(names[0].as_str()), None),
            Selection::Labelled(selector) => (None, Some(selector.as_str())),
            Selection::Named(_) | Selection::All | Selection::Mine => (None, None),
        };
        let mut leases = match &wanted.selection {
            Selection::Named(names) => locks.follow(names),
            _ => locks.follow_all(),
        };
        let mut rows =
            (wanted.selection != Selection::Mine).then(|| locks.watch_nodes(node, selector));
        let first_rows = async {
            match &mut rows {
                Some(rows) => rows.next().await,
                None => None,
            }
        };
        let (first_leases, first_rows, heartbeats) =
            futures::join!(leases.next(), first_rows, heartbeats(session, wide));
        let mut picture = Picture {
            leases: HashMap::new(),
            rows: HashMap::new(),
            other_rows: Sight::Unread,
            heartbeats: heartbeats?,
            wholes: HashMap::new(),
        };
        match first_leases? {
            Followed::Changed(leases) => {
                picture.take_leases(leases);
            }
            Followed::Unwatched(error) => return Err(error.into()),
            _ => {}
        }
        match first_rows {
            None => {}
            Some(Ok(event)) => {
                picture.take_row(event);
            }
            Some(Err(Error::MissingRight { .. })) if selector.is_none() => {
                picture.other_rows = Sight::Forbidden;
                rows = None;
            }
            Some(Err(error)) => return Err(error.into()),
        }
        look_closer(session, wanted, &mut picture, None).await?;
        Ok(Self {
            session,
            wanted,
            leases,
            rows,
            picture,
            shown: Shown::default(),
            is_cut_off: false,
        })
    }

    pub(super) fn picture(&self) -> &Picture {
        &self.picture
    }

    /// The nodes to begin with.
    pub(super) fn first(&mut self) -> Vec<Item> {
        let now = self.session.locks.server_time().now();
        let Self {
            wanted, picture, ..
        } = self;
        let nodes = wanted.nodes(picture);
        nodes
            .iter()
            .filter_map(|node| self.shown.update(picture, wanted, node, now))
            .collect()
    }

    /// Hands rows to `show` whenever some have changed, until that returns `false`, or Ctrl-C.
    ///
    /// # Errors
    /// What trying again does not mend.
    pub(super) async fn go_on(
        mut self,
        mut show: impl FnMut(&Picture, &[Item]) -> Result<bool, Failure>,
    ) -> Result<Code, Failure> {
        let mut interrupted = pin!(interrupt());
        loop {
            let wait = self.wait();
            let news = tokio::select! {
                biased;
                () = &mut interrupted => News::Interrupted,
                news = self.leases.next() => News::Leases(news),
                event = next_of(&mut self.rows) => News::Row(event),
                () = tokio::time::sleep(wait) => News::Due,
            };
            let touched = match news {
                News::Interrupted => return Ok(Code::INTERRUPTED),
                News::Leases(news) => match news? {
                    Followed::Changed(leases) => self.picture.take_leases(leases),
                    Followed::Unwatched(error) => {
                        self.cut_off(error);
                        continue;
                    }
                    _ => {
                        self.is_cut_off = false;
                        continue;
                    }
                },
                News::Row(Err(Error::MissingRight { source, .. })) => {
                    self.session.terminal.warn(format!(
                        "could not watch nodes: {}",
                        escape(&source.to_string())
                    ));
                    self.rows = None;
                    continue;
                }
                News::Row(event) => match self.pass(event)? {
                    Some(event) => self.picture.take_row(event),
                    None => continue,
                },
                News::Due => self.shown.due(self.now()),
            };
            // Where that fails, the row alone is better than none.
            let _ = look_closer(self.session, self.wanted, &mut self.picture, Some(&touched)).await;
            let now = self.now();
            let changed: Vec<Item> = touched
                .iter()
                .filter_map(|node| self.shown.update(&self.picture, self.wanted, node, now))
                .collect();
            self.session.warn_of_clocks();
            if !changed.is_empty() {
                self.refresh_heartbeats(&changed).await;
                if !show(&self.picture, &changed)? {
                    return Ok(Code::DONE);
                }
            }
        }
    }

    fn now(&self) -> Now {
        self.session.locks.server_time().now()
    }

    /// How long nothing changes by time alone.
    fn wait(&self) -> Duration {
        let Some(next) = self.shown.next_due() else {
            return LONGEST_WAIT;
        };
        let left = (next - self.now().earliest).as_micros();
        Duration::from_micros(left.try_into().unwrap_or(0)).min(LONGEST_WAIT)
    }

    /// Lets an event pass. If the server can't be reached, says so and goes on: the watch tries again.
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

    /// Says once why changes can't be watched.
    fn cut_off(&mut self, error: Error) {
        if std::mem::replace(&mut self.is_cut_off, true) {
            return;
        }
        let terminal = self.session.terminal;
        if let Error::MissingRight { .. } = error {
            terminal.warn(waiting::blind(&error.to_string()));
        } else {
            Problems::new(self.session).tell(&error.into());
            terminal.remark("retrying until the API server answers");
        }
    }

    /// Heartbeats come every few seconds and are not followed: those of the rows that are shown are
    /// read anew. Where that fails, the older one is better than none.
    async fn refresh_heartbeats(&mut self, changed: &[Item]) {
        let Some(known) = &mut self.picture.heartbeats else {
            return;
        };
        if changed.len() > MOST_BY_NAME {
            if let Ok(Some(all)) = heartbeats(self.session, true).await {
                *known = all;
            }
            return;
        }
        let locks = &self.session.locks;
        let read = join_all(changed.iter().map(|item| locks.heartbeat(&item.node))).await;
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

impl Picture {
    /// Takes Leases in; returns the nodes that they are of.
    fn take_leases(&mut self, leases: BTreeMap<String, Option<NodeLease>>) -> BTreeSet<String> {
        let nodes = leases.keys().cloned().collect();
        for (node, lease) in leases {
            match lease {
                Some(lease) => self.leases.insert(node, lease),
                None => self.leases.remove(&node),
            };
        }
        nodes
    }

    /// Takes an event in; returns the nodes that it is about.
    fn take_row(&mut self, event: NodeRowEvent) -> BTreeSet<String> {
        match event {
            WatchEvent::Listed(rows) => {
                let (rows, other_rows) = Self::listed(rows.into_values());
                self.other_rows = other_rows;
                self.wholes.clear();
                let before = std::mem::replace(&mut self.rows, rows);
                before
                    .into_keys()
                    .chain(self.rows.keys().cloned())
                    .collect()
            }
            WatchEvent::Changed(row) => {
                let node = row.name.clone();
                self.wholes.remove(&node);
                self.rows.insert(node.clone(), Sight::Row(row));
                BTreeSet::from([node])
            }
            WatchEvent::Deleted(row) => {
                self.rows.remove(&row.name);
                self.wholes.remove(&row.name);
                BTreeSet::from([row.name])
            }
        }
    }
}

/// What was shown last of each node, and when that changes by time alone.
#[derive(Debug, Default)]
struct Shown {
    items: HashMap<String, Item>,
    due: HashMap<String, Instant>,
}

impl Shown {
    /// What is to be shown of `node` now, if it differs from what was shown. One that is not wanted
    /// any longer is shown once more.
    fn update(&mut self, picture: &Picture, wanted: &Wanted, node: &str, now: Now) -> Option<Item> {
        let is_wanted = wanted.includes(picture, node);
        if !is_wanted && !self.items.contains_key(node) {
            return None;
        }
        let item = picture.facts(node, now);
        match picture.next_change(node, now) {
            Some(due) if is_wanted => {
                self.due.insert(node.to_owned(), due);
            }
            _ => {
                self.due.remove(node);
            }
        }
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

    /// The nodes whose time has come.
    fn due(&self, now: Now) -> BTreeSet<String> {
        self.due
            .iter()
            .filter(|&(_, &due)| due <= now.earliest)
            .map(|(node, _)| node.clone())
            .collect()
    }
}
