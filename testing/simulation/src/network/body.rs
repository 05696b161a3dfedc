//! The bodies of answers.

use std::convert::Infallible;
use std::io;

use bytes::Bytes;
use http::{Response, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Collected, Full};

/// The body of an answer as a client gets it: a watch may break off.
pub(super) type WireBody = UnsyncBoxBody<Bytes, io::Error>;

pub(super) fn whole(body: Bytes) -> WireBody {
    Full::from(body)
        .map_err(|never: Infallible| match never {})
        .boxed_unsync()
}

/// The same answer, with so many thousandths of its body.
pub(super) async fn truncated(answer: Response<WireBody>, part: u16) -> Response<WireBody> {
    let (mut parts, body) = answer.into_parts();
    let body = body.collect().await.map(Collected::to_bytes);
    let body = body.unwrap_or_default();
    let end = body.len() * usize::from(part) / 1000;
    // It ends with its connection, and nobody knows how long it was to be.
    parts.headers.remove(header::CONTENT_LENGTH);
    // All but the white space at its end would be all of it.
    let most = body.trim_ascii_end().len().saturating_sub(1);
    Response::from_parts(parts, whole(body.slice(..end.min(most))))
}
