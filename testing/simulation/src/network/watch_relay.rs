//! A watch on its way to its reader, line by line.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use futures::StreamExt as _;
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use sandbox::AnswerBody;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::body::WireBody;
use super::cuts::Cuts;
use super::round_trip::WatchFaults;
use crate::fault::Fault;
use crate::history::Recorder;

type WatchFrame = Result<Frame<Bytes>, io::Error>;

/// What a watch says to somebody whose resource version is too old.
const TOO_OLD: &[u8] = br#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}}
"#;

/// The body of a watch from `since` on that meets `faults` on its way.
pub(super) fn relay(
    body: AnswerBody,
    since: Option<u64>,
    faults: WatchFaults,
    cuts: Cuts,
    horizon: Arc<AtomicU64>,
    recorder: Recorder,
    rng: Rng,
) -> WireBody {
    let (lines, mut read) = mpsc::channel::<WatchFrame>(1);
    let connected = cuts.count();
    tokio::spawn(async move {
        let open = lines.clone();
        let relay = WatchRelay {
            lines,
            since,
            faults,
            horizon,
            recorder,
            rng,
            opened: Instant::now(),
            said: Vec::new(),
        };
        let broken = tokio::select! {
            biased;
            () = cuts.after(connected) => true,
            () = open.closed() => false,
            broken = relay.run(body) => broken,
        };
        if broken {
            // A client that has disconnected gets no events.
            let _ = open.send(Err(io::ErrorKind::ConnectionReset.into())).await;
        }
    });
    StreamBody::new(stream::poll_fn(move |context| read.poll_recv(context))).boxed_unsync()
}

struct WatchRelay {
    lines: mpsc::Sender<WatchFrame>,
    since: Option<u64>,
    faults: WatchFaults,
    horizon: Arc<AtomicU64>,
    recorder: Recorder,
    rng: Rng,
    opened: Instant,
    /// What it said so far.
    said: Vec<Bytes>,
}

impl WatchRelay {
    /// Relays until the watch ends; `true` if it breaks off.
    async fn run(mut self, body: AnswerBody) -> bool {
        if self
            .since
            .is_some_and(|since| since < self.horizon.load(Ordering::Relaxed))
        {
            self.recorder.struck(Fault::TooOld, "a watch is too old");
            self.say(Bytes::from_static(TOO_OLD)).await;
            return false;
        }
        let cut = self.faults.cut.map(|after| self.opened + after);
        let mut frames = BodyStream::new(body);
        loop {
            let frame = match cut {
                Some(cut) => tokio::select! {
                    biased;
                    () = sleep_until(cut) => {
                        self.recorder.struck(Fault::WatchCut, "a watch is cut off");
                        return self.rng.bool();
                    }
                    frame = frames.next() => frame,
                },
                None => frames.next().await,
            };
            let Some(Ok(frame)) = frame else {
                return false;
            };
            let Ok(line) = frame.into_data() else {
                continue;
            };
            self.wait().await;
            if !self.say(line.clone()).await {
                return false;
            }
            if self.faults.repeats && !self.said.is_empty() && self.rng.u8(..4) == 0 {
                let again = self.rng.usize(..self.said.len());
                self.recorder
                    .struck(Fault::RepeatedEvent, "a watch repeats itself");
                self.say(self.said[again].clone()).await;
            }
            self.said.push(line);
        }
    }

    /// The way of one line.
    async fn wait(&mut self) {
        let slow = u64::try_from(self.faults.slow.as_micros()).unwrap_or(u64::MAX);
        let mut arrives = Instant::now() + Duration::from_micros(self.rng.u64(300..=slow.max(301)));
        if let Some((begins, lasts)) = self.faults.stall {
            let (from, to) = (self.opened + begins, self.opened + begins + lasts);
            if arrives > from && arrives < to {
                self.recorder.struck(Fault::WatchStall, "a watch stalls");
                arrives = to;
            }
        }
        sleep_until(arrives).await;
    }

    async fn say(&mut self, line: Bytes) -> bool {
        self.lines.send(Ok(Frame::data(line))).await.is_ok()
    }
}
