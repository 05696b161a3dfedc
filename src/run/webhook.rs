//! Messages to a webhook about holds and takeovers: best effort, within a short time limit.

use std::time::Duration;

use connect::Webhook;
use futures::future::join_all;
use http::StatusCode;
use tokio::time::{sleep, timeout};

use super::background::LIMIT;
use super::session::Session;
use crate::args::connection::USER_AGENT;
use crate::error::MessageError;
use crate::output::notice::Notice;
use crate::words::webhook::{not_confirmed, unusable};

/// The URL. It may hold a secret.
const VARIABLE: &str = "KUBECTL_MAINT_WEBHOOK";

/// The pause before the second try. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// A message about the cluster of `session`.
pub(crate) fn notice(session: &Session<'_>) -> Notice {
    Notice {
        server: session.connection.server.clone(),
        context: session.connection.context.clone(),
        ..Notice::default()
    }
}

/// Sends `notices` if the user has a webhook. If that fails, it prints one warning.
pub(crate) async fn send(session: &Session<'_>, notices: Vec<Notice>) {
    let environment = session.environment;
    let Some(url) = environment.get(VARIABLE).filter(|_| !notices.is_empty()) else {
        return;
    };
    let webhook = match Webhook::new(url, environment, USER_AGENT) {
        Ok(webhook) => webhook,
        Err(error) => return session.terminal.warn(unusable(VARIABLE, &error)),
    };
    let sending = Notice::merged(notices).into_iter().map(|notice| {
        let webhook = &webhook;
        async move { post(webhook, &notice).await }
    });
    let failed = join_all(sending).await.into_iter().find_map(Result::err);
    if let Some(error) = failed {
        session
            .terminal
            .warn(not_confirmed(&webhook.host(), &error));
    }
}

/// Posts a message until it is taken, refused or too late.
async fn post(webhook: &Webhook, notice: &Notice) -> Result<(), MessageError> {
    let mut last = None;
    let trying = async {
        let mut pause = FIRST_PAUSE;
        loop {
            match webhook.post(notice.body()).await {
                Ok(status) if status.is_success() => return Ok(()),
                Ok(status) if is_temporary(status) => last = Some(MessageError::Status(status)),
                Ok(status) => return Err(MessageError::Status(status)),
                Err(error) => last = Some(MessageError::Connect(error)),
            }
            sleep(pause).await;
            pause *= 2;
        }
    };
    let answer = timeout(LIMIT, trying).await;
    answer.unwrap_or_else(|_| Err(last.unwrap_or(MessageError::TimedOut(LIMIT))))
}

fn is_temporary(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}
