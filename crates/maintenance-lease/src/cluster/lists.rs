//! One request whose answer is a list: its objects are read while it arrives.

use std::future::poll_fn;
use std::mem;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use http::Response;
use http_body_util::BodyStream;
use kube::client::Body;

use super::call::Call;
use super::error::ApiError;
use super::items::Items;
use super::requests::Requests;
use super::response_check::ResponseCheck;
use crate::bugs::{self, Bug};

/// The answer to a list.
#[derive(Clone, Debug)]
pub struct Listed<T> {
    /// What was read of each object, in the server's order.
    pub objects: Vec<T>,
    /// The list without its objects: JSON with an empty array.
    pub envelope: Vec<u8>,
}

/// A request for a list, which may have been sent already.
pub(super) struct Page {
    call: Call,
    progress: Progress,
}

/// How far a request has come.
enum Progress {
    Unsent,
    Sent(BoxFuture<'static, Answer>),
    Answered(Answer),
}

type Answer = Result<Response<Body>, ApiError>;

impl From<Call> for Page {
    fn from(call: Call) -> Self {
        Self {
            call,
            progress: Progress::Unsent,
        }
    }
}

impl Page {
    /// Continues to send the request, and to wait for the beginning of its answer.
    fn poll(&mut self, context: &mut Context<'_>) {
        if let Progress::Sent(sent) = &mut self.progress
            && let Poll::Ready(answer) = sent.poll_unpin(context)
        {
            self.progress = Progress::Answered(answer);
        }
    }
}

impl Requests {
    /// Sends `call`, whose answer is a list, and keeps what `read` returns for each of its objects while the
    /// answer arrives. `read` gets the object and the part of the list before the objects; `None` leaves it
    /// out. A list that may be long is read with [`list_pages`](Self::list_pages).
    ///
    /// # Usage
    /// ```
    /// use maintenance_lease::{Accept, Call, Requests};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let sandbox = sandbox::Sandbox::new();
    /// # sandbox.add_node("worker-1");
    /// # let client = sandbox.client();
    /// let requests = Requests::new(client, None);
    /// let call = Call::get("/api/v1/nodes".to_owned(), Accept::Json);
    /// // However many there are, one whole object at a time is in memory.
    /// let listed = requests.list(&call, |node, _| Ok(Some(node.len()))).await?;
    /// assert_eq!(listed.objects.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`call`](Self::call), and the first error that `read` returns.
    ///
    /// # Caveats
    /// Dropping this future abandons the rest of the list and changes nothing. If the answer breaks off and
    /// is requested again, `read` gets its first objects again.
    pub async fn list<T: Send>(
        &self,
        call: &Call,
        read: impl FnMut(&[u8], &[u8]) -> Result<Option<T>, ApiError> + Send,
    ) -> Result<Listed<T>, ApiError> {
        let (listed, _) = self.list_page(call.clone().into(), |_| None, read).await?;
        Ok(listed)
    }

    /// The same. `ahead` gets the part of the list before its first object, and returns the page to
    /// request while this one arrives. That page is returned, too.
    pub(super) async fn list_page<T: Send>(
        &self,
        page: Page,
        ahead: impl Fn(&[u8]) -> Option<Page> + Send + Sync,
        mut read: impl FnMut(&[u8], &[u8]) -> Result<Option<T>, ApiError> + Send,
    ) -> Result<(Listed<T>, Option<Page>), ApiError> {
        let Page { call, mut progress } = page;
        self.within(async {
            let mut retries = self.retries(&call);
            loop {
                let answer = match mem::replace(&mut progress, Progress::Unsent) {
                    Progress::Unsent => self.send(&call).await,
                    Progress::Sent(sent) => sent.await,
                    Progress::Answered(answer) => answer,
                };
                let listed = match answer {
                    Ok(answer) => read_list(&call, answer, &ahead, &mut read).await,
                    Err(error) => Err(error),
                };
                match listed {
                    Err(error) => retries.wait(error).await?,
                    listed => return listed,
                }
            }
        })
        .await
    }

    /// Sends `call` while the page before it arrives.
    pub(super) fn ahead(&self, call: Call) -> Page {
        let (requests, sent) = (self.clone(), call.clone());
        let sent = async move { requests.send(&sent).await };
        Page {
            call,
            progress: Progress::Sent(sent.boxed()),
        }
    }
}

async fn read_list<T: Send>(
    call: &Call,
    answer: Response<Body>,
    ahead: impl Fn(&[u8]) -> Option<Page> + Send + Sync,
    mut read: impl FnMut(&[u8], &[u8]) -> Result<Option<T>, ApiError> + Send,
) -> Result<(Listed<T>, Option<Page>), ApiError> {
    let origin = ResponseCheck::of(call, &answer);
    let mut items = Items::of(call.accept.array());
    let mut objects = Vec::new();
    let (mut begun, mut is_first) = (false, true);
    let mut next: Option<Page> = None;
    let mut frames = BodyStream::new(answer.into_body());
    while let Some(frame) = poll_fn(|context| {
        if let Some(next) = &mut next {
            next.poll(context);
        }
        frames.poll_next_unpin(context)
    })
    .await
    {
        let frame = frame.map_err(|error| ApiError::Transport(Box::new(error)))?;
        let Some(piece) = frame.data_ref() else {
            continue;
        };
        if !begun && !piece.trim_ascii().is_empty() {
            origin.expect_json(piece)?;
            begun = true;
        }
        items.feed(piece, |object, before| {
            if mem::take(&mut is_first) {
                next = ahead(before);
            }
            objects.extend(read(object, before)?);
            Ok::<(), ApiError>(())
        })?;
    }
    let envelope = items.envelope().to_owned();
    // If the answer ended too early, the envelope is not closed.
    if !bugs::active(Bug::TruncatedListAccepted) {
        origin.expect_answer(&envelope)?;
    }
    Ok((Listed { objects, envelope }, next))
}
