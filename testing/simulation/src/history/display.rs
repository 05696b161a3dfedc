//! A history as people read it.

use std::fmt;

use super::{Acquisition, BeliefEnd, Call, CallOutcome, ClientId, Entry, Event, LockSet, Record};
use crate::time::{EPOCH, Time};

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}", self.0)
    }
}

impl fmt::Display for Acquisition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nonce = self.nonce.as_deref().unwrap_or("-");
        let nonce = nonce.get(..6).unwrap_or(nonce);
        let uid = short(&self.uid);
        write!(f, "{}#{}/{nonce}@{uid}", self.holder, self.transitions)
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = |time: Option<i64>| {
            time.map_or("-".to_owned(), |time| {
                Time::from_micros(time - EPOCH)
                    .to_string()
                    .trim()
                    .to_owned()
            })
        };
        match self.acquisition() {
            None => write!(f, "nobody's, transitions {}", self.transitions),
            Some(acquisition) => write!(
                f,
                "{acquisition}, renewed {} for {}s, of {}{}",
                since(self.renewed),
                self.duration,
                self.owner.as_deref().map_or("-", short),
                self.reason
                    .as_deref()
                    .map(|reason| format!(" \"{reason}\""))
                    .unwrap_or_default()
            ),
        }
    }
}

/// The beginning of a uid.
fn short(uid: &str) -> &str {
    uid.get(..4).unwrap_or(uid)
}

impl fmt::Display for LockSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seconds {
            Some(seconds) => write!(f, "acquire {:?} for {seconds}s", self.nodes)?,
            None => write!(f, "hold {:?}", self.nodes)?,
        }
        let reentry = if self.reentry { ", reentry" } else { "" };
        write!(f, ", {:?}{reentry} \"{}\"", self.manner, self.reason)?;
        let mut confirmed = self.confirmed.iter();
        confirmed.try_for_each(|confirmed| write!(f, ", take over {confirmed}"))
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  ", self.at)?;
        match &self.event {
            Event::Note(text) => write!(f, "** {text}"),
            Event::Struck { what, .. } => write!(f, "** {what}"),
            Event::Panicked { client } => write!(f, "{client} !! panicked"),
            Event::Lives { client, identity } => write!(f, "{client} begins as {identity}"),
            Event::Froze { client, how } => write!(f, "{client} !! {how:?}"),
            Event::Thawed { client } => write!(f, "{client} !! goes on"),
            Event::Crashed { client } => write!(f, "{client} !! crashed"),
            Event::Stepped { client, by } => write!(f, "{client} !! wall clock stepped by {by} us"),
            Event::Called {
                op,
                client,
                node,
                call,
            } => write!(f, "{client} op{} {node}: {call}", op.0),
            Event::Returned { op, ending } => write!(f, "   op{} -> {ending}", op.0),
            Event::Sent {
                request,
                client,
                op,
                what,
                ..
            } => {
                write!(f, "{client} r{} {what}", request.0)?;
                op.map_or(Ok(()), |op| write!(f, " (op{})", op.0))
            }
            Event::Answered { request } => write!(f, "   r{} answered", request.0),
            Event::RequestFailed { request, fault } => write!(f, "   r{} !! {fault:?}", request.0),
            Event::Served {
                request,
                status,
                wrote,
            } => {
                write!(f, "   r{} served {status}", request.0)?;
                wrote.map_or(Ok(()), |version| write!(f, ", wrote @{version}"))
            }
            Event::Committed {
                node,
                version,
                lease,
            } => match lease {
                Some(lease) => write!(f, "== {node} @{version} {lease}"),
                None => write!(f, "== {node} @{version} gone"),
            },
            Event::NodeChanged {
                node,
                uid,
                terminating,
            } => match uid {
                Some(uid) => {
                    let terminating = if *terminating { ", terminating" } else { "" };
                    write!(f, "== node/{node} {}{terminating}", short(uid))
                }
                None => write!(f, "== node/{node} gone"),
            },
            Event::Believes {
                belief,
                client,
                node,
                acquisition,
                ends,
            } => {
                write!(f, "{client} [[ b{} {node}: {acquisition}", belief.0)?;
                match ends {
                    BeliefEnd::Deadline(until) => write!(f, " until {until}"),
                    BeliefEnd::Guard => Ok(()),
                    BeliefEnd::Notification => f.write_str(", runs beside"),
                }
            }
            Event::Acts { belief } => write!(f, "   b{} acts", belief.0),
            Event::Ceases { belief, why } => write!(f, "   ]] b{} {why}", belief.0),
            Event::Lost { client, how, .. } => write!(f, "{client} lost it: {how}"),
            Event::ServerClocks { ahead } => {
                write!(f, "** the API servers' clocks are {ahead:?} us ahead")
            }
            Event::Knows {
                client,
                earliest,
                latest,
            } => {
                let ahead = |reading: i64| reading - EPOCH - self.at.as_micros();
                let (earliest, latest) = (ahead(*earliest), latest.map(ahead));
                write!(
                    f,
                    "{client} knows the time: {earliest} to {latest:?} us ahead"
                )
            }
            Event::Listed { client, nodes, .. } => write!(f, "{client} listed {nodes:?}"),
            Event::Healed => f.write_str("** healed"),
            Event::Waits { client, due } => write!(f, "{client} waits, until {due} at most"),
            Event::GotIn { client } => write!(f, "{client} got in"),
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acquire(seconds) => write!(f, "acquire for {seconds}s"),
            Self::AcquireAll(set) => write!(f, "{set}"),
            Self::Campaign(seconds) => write!(f, "campaign for {seconds}s"),
            Self::Renew(None) => f.write_str("renew"),
            Self::Renew(Some(demanded)) => write!(f, "renew {demanded}"),
            Self::Extend(seconds, None) => write!(f, "renew +{seconds}s"),
            Self::Extend(seconds, Some(demanded)) => write!(f, "renew {demanded} +{seconds}s"),
            Self::Release(None) => f.write_str("release"),
            Self::Release(Some(demanded)) => write!(f, "release {demanded}"),
            Self::Hold(None) => f.write_str("hold"),
            Self::Hold(Some(confirmed)) => write!(f, "hold --take-over {confirmed}"),
            Self::Unhold(None) => f.write_str("unhold"),
            Self::Unhold(Some(confirmed)) => write!(f, "unhold {confirmed}"),
            Self::ForceRelease(confirmed) => write!(f, "release --force {confirmed}"),
        }
    }
}

impl fmt::Display for CallOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acquired {
                acquisition,
                fencing,
                settled,
            } => {
                write!(
                    f,
                    "acquired {acquisition}, fencing {fencing}{}",
                    if *settled { ", settled by a read" } else { "" }
                )
            }
            Self::AcquiredAll(acquired) => {
                f.write_str("acquired")?;
                acquired
                    .iter()
                    .try_for_each(|(node, acquisition)| write!(f, " {node}: {acquisition}"))
            }
            Self::Renewed { acquisition, .. } => write!(f, "renewed {acquisition}"),
            Self::Released { settled: true } => f.write_str("released, settled by a read"),
            Self::Released { settled: false } => f.write_str("released"),
            Self::Nothing => f.write_str("nothing to do"),
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::HeldByCaller(why) => write!(f, "the caller's already: {why}"),
            Self::Unknown(why) => write!(f, "unknown: {why}"),
        }
    }
}
