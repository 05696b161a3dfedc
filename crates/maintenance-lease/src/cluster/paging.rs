//! Lists page by page: a cluster may have more objects than fit into one answer.

use http::StatusCode;
use serde::Deserialize;

use super::call::Call;
use super::error::ApiError;
use super::requests::{Listed, Requests, escape};

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
        let mut next = String::new();
        loop {
            let page = Call {
                path: page(&call.path, &next),
                ..call.clone()
            };
            match self.list(&page, &mut read).await {
                Ok(page) => {
                    next = page.next()?;
                    objects.extend(page.objects);
                    if next.is_empty() {
                        return Ok(objects);
                    }
                }
                Err(error) if error.is(StatusCode::GONE) && !next.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        drop(objects);
        let whole = self.list(call, read).await?;
        match whole.next()?.is_empty() {
            true => Ok(whole.objects),
            false => Err(ApiError::Unreadable(
                "a page of a list, where all of it was requested".to_owned(),
            )),
        }
    }
}

impl<T> Listed<T> {
    /// The continue token of the next page; empty after the last page.
    fn next(&self) -> Result<String, ApiError> {
        let envelope: Envelope = serde_json::from_slice(&self.envelope)
            .map_err(|error| ApiError::Unreadable(error.to_string()))?;
        Ok(envelope.metadata.next)
    }
}

/// The path of the page at the continue token `next`, or of the first page.
fn page(path: &str, next: &str) -> String {
    let joint = if path.contains('?') { '&' } else { '?' };
    let mut page = format!("{path}{joint}limit={PAGE}");
    if !next.is_empty() {
        page.push_str(&format!("&continue={}", escape(next)));
    }
    page
}
