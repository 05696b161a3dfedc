//! Lists page by page: a cluster may have more objects than fit into one answer.

use http::StatusCode;
use serde::Deserialize;

use super::call::Call;
use super::error::ApiError;
use super::items::close;
use super::lists::Page;
use super::requests::{Requests, escape};

/// The most objects per page: as many as kubectl requests.
const PAGE: u32 = 500;

#[derive(Default, Deserialize)]
struct Envelope {
    #[serde(default)]
    metadata: ListMetadata,
}

#[derive(Default, Deserialize)]
struct ListMetadata {
    /// The continue token of the next page; empty after the last page.
    #[serde(default, rename = "continue")]
    next: String,
}

impl Requests {
    /// What `read` returns for each object of a list that may be long, in the server's order. `call` is the
    /// list as a single request; it is sent page by page. `read` gets each object and the part of its page
    /// before the objects.
    ///
    /// All pages show the same moment. If the server no longer knows it (410), the list is read again from
    /// the start, in one answer, as client-go does.
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
    /// let lengths = requests.list_pages(&call, |node, _| Ok(Some(node.len()))).await?;
    /// assert_eq!(lengths.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`list`](Self::list).
    ///
    /// # Caveats
    /// Dropping this future abandons the rest of the list and changes nothing.
    pub async fn list_pages<T: Send>(
        &self,
        call: &Call,
        mut read: impl FnMut(&[u8], &[u8]) -> Result<Option<T>, ApiError> + Send,
    ) -> Result<Vec<T>, ApiError> {
        let mut objects = Vec::new();
        let mut page = Page::from(page(call, ""));
        let mut is_first = true;
        // The server prepares the next page while this one arrives.
        let ahead = |before: &[u8]| {
            let next = next_page(call, &close(before)).ok()??;
            Some(self.ahead(next))
        };
        loop {
            match self.list_page(page, ahead, &mut read).await {
                Ok((listed, sent)) => {
                    let next = next_page(call, &listed.envelope)?;
                    objects.extend(listed.objects);
                    let Some(next) = next else {
                        return Ok(objects);
                    };
                    page = sent.unwrap_or_else(|| next.into());
                    is_first = false;
                }
                Err(error) if error.is(StatusCode::GONE) && !is_first => break,
                Err(error) => return Err(error),
            }
        }
        drop(objects);
        let (whole, _) = self.list_page(call.clone().into(), |_| None, read).await?;
        match next_page(call, &whole.envelope)? {
            None => Ok(whole.objects),
            Some(_) => Err(ApiError::Unreadable(
                "a page of a list, where all of it was requested".to_owned(),
            )),
        }
    }
}

/// The request for the page after the one with this envelope; `None` after the last page.
fn next_page(call: &Call, envelope: &[u8]) -> Result<Option<Call>, ApiError> {
    let envelope: Envelope = serde_json::from_slice(envelope)
        .map_err(|error| ApiError::Unreadable(error.to_string()))?;
    let next = envelope.metadata.next;
    Ok((!next.is_empty()).then(|| page(call, &next)))
}

/// The request for the page at the continue token `next`, or for the first page.
fn page(call: &Call, next: &str) -> Call {
    let joint = if call.path.contains('?') { '&' } else { '?' };
    let mut path = format!("{}{joint}limit={PAGE}", call.path);
    if !next.is_empty() {
        path.push_str(&format!("&continue={}", escape(next)));
    }
    Call {
        path,
        ..call.clone()
    }
}
