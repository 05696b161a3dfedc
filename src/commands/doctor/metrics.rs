//! The metrics of the API server.

use http::Request;

use super::unread::unread;
use crate::run::interruption::in_time;
use crate::run::session::Session;
use crate::words::doctor::finding::{Finding, Source};

/// The status code of a missing right.
const FORBIDDEN: u16 = 403;

/// The metrics of the API server, or why they can't be read.
pub(super) async fn read(session: &Session<'_>) -> Result<String, Finding> {
    let client = &session.connection.client;
    let reading = async {
        let request = Request::get("/metrics").body(Vec::new());
        let request = request.map_err(anyhow::Error::new)?;
        Ok(client.request_text(request).await)
    };
    let read = in_time(session.connection.request_timeout, reading).await;
    let read = read.map_err(|failure| unread(Source::Metrics, &failure))?;
    read.map_err(|error| Finding::Unread {
        what: Source::Metrics,
        is_forbidden: matches!(&error, kube::Error::Api(status) if status.code == FORBIDDEN),
        error: error.to_string(),
    })
}
