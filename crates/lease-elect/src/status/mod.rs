//! Reports the state of the election over HTTP, for probes and for Prometheus.

mod metrics;
mod probes;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use maintenance_lease::env::{Env as _, Machine};
use maintenance_lease::protocol::BootInstant;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::election_state::{ElectionSnapshot, ElectionState};
use crate::failure::Failure;
use crate::log;

/// The maximum number of parallel connections. Probes and Prometheus need only a few.
const CONNECTIONS: usize = 32;

/// A connection without a request for this long is closed.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Listens on `address`, and prints the actual address.
///
/// # Errors
/// If the system refuses.
pub(crate) async fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    let failed = |source| Failure::Status { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    log::line(format_args!("status on http://{address}"));
    Ok(listener)
}

/// Answers HTTP requests until the process ends.
pub(crate) async fn serve(listener: TcpListener, election_state: ElectionState) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            // The process may be out of file descriptors.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let election_state = election_state.clone();
        tokio::spawn(async move {
            let _place = place;
            let service = service_fn(|request: Request<hyper::body::Incoming>| {
                let answer = answer(&request, &election_state.facts(), Machine.boot());
                async { Ok::<_, Infallible>(answer) }
            });
            // A client may disconnect at any time.
            let _ = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(TIME_LIMIT)
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

fn answer<B>(
    request: &Request<B>,
    facts: &ElectionSnapshot,
    now: BootInstant,
) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut answer = text(
            StatusCode::METHOD_NOT_ALLOWED,
            "method not allowed\n".to_owned(),
        );
        let allowed = http::HeaderValue::from_static("GET, HEAD");
        answer.headers_mut().insert(ALLOW, allowed);
        return answer;
    }
    let verdict = match request.uri().path() {
        "/healthz" => probes::health(facts, now),
        "/readyz" if asks_for_leader(request.uri().query()) => probes::leader(facts, now),
        "/readyz" => probes::readiness(facts, now),
        "/metrics" => {
            let Some(named) = &facts.named else {
                let why = "still waiting for a credential plugin\n".to_owned();
                return text(StatusCode::SERVICE_UNAVAILABLE, why);
            };
            let mut answer = text(StatusCode::OK, metrics::render(named, facts, now));
            let kind = http::HeaderValue::from_static(metrics::CONTENT_TYPE);
            answer.headers_mut().insert(CONTENT_TYPE, kind);
            return answer;
        }
        _ => return text(StatusCode::NOT_FOUND, "not found\n".to_owned()),
    };
    match verdict {
        Ok(why) => text(StatusCode::OK, format!("ok: {why}\n")),
        Err(why) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}

/// Whether the query contains `leader`, with or without a value.
fn asks_for_leader(query: Option<&str>) -> bool {
    let mut words = query.unwrap_or_default().split('&');
    words.any(|word| word.split('=').next() == Some("leader"))
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    let plain = http::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::election_state::{ElectionNames, Role};

    fn ask(method: Method, target: &str, role: Role) -> u16 {
        let request = Request::builder().method(method).uri(target).body(());
        let named = ElectionNames {
            namespace: "batch".to_owned(),
            lease: "scheduler".to_owned(),
        };
        let facts = ElectionSnapshot {
            named: (role != Role::Starting).then_some(named),
            role,
            deadline: Some(BootInstant::from_micros(10)),
            ..ElectionSnapshot::default()
        };
        let now = BootInstant::from_micros(5);
        let answer = answer(&request.expect("a request"), &facts, now);
        answer.status().as_u16()
    }

    #[test]
    fn only_the_leader_is_ready_as_the_leader() {
        for (role, readiness, leader) in [
            (Role::Starting, 503, 503),
            (Role::Standby, 200, 503),
            (Role::Leader, 200, 200),
            (Role::Ending, 503, 503),
        ] {
            assert_eq!(ask(Method::GET, "/readyz", role), readiness, "{role:?}");
            for query in ["leader", "leader=true", "verbose&leader"] {
                let target = format!("/readyz?{query}");
                assert_eq!(ask(Method::GET, &target, role), leader, "{role:?}");
            }
            assert_eq!(ask(Method::GET, "/readyz?follower", role), readiness);
            assert_eq!(ask(Method::GET, "/healthz", role), 200, "{role:?}");
            let metrics = if role == Role::Starting { 503 } else { 200 };
            assert_eq!(ask(Method::GET, "/metrics", role), metrics, "{role:?}");
        }
    }

    #[test]
    fn nothing_else_is_there() {
        assert_eq!(ask(Method::GET, "/", Role::Leader), 404);
        assert_eq!(ask(Method::POST, "/healthz", Role::Leader), 405);
        assert_eq!(ask(Method::HEAD, "/healthz", Role::Leader), 200);
    }
}
