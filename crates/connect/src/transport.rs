//! The layers that a request passes: impersonation, credentials, observation, decompression, and then the
//! connection. The sender of a request limits its time.
//!
//! Gap in kube: its own stack retries writes after 429, 503 and 504 (kube-rs/kube#2082), and has no place for
//! the other layers.

use std::sync::Arc;
use std::time::Duration;

use http::header::{HeaderValue, USER_AGENT};
use kube::client::{ClientBuilder, ConfigExt as _};
use tower::ServiceBuilder;
use tower_http::decompression::DecompressionLayer;

use super::Notices;
use super::connections::Connections;
use super::credentials::{Credentials, CredentialsLayer};
use super::environment::Environment;
use super::error::ConnectError;
use super::selection::ConnectTarget;
use super::tls::Identity;
use super::trace::ObserveLayer;
use super::warnings::Warnings;

/// The settings of a command line that apply to all its requests.
pub(super) struct Options {
    pub(super) user_agent: HeaderValue,
    pub(super) verbosity: u8,
    pub(super) request_timeout: Option<Duration>,
    pub(super) notices: Notices,
}

/// Builds the client for a target. Nothing is retried, because a lost response to a write must be reported.
pub(super) fn client(
    target: &ConnectTarget,
    identity: Identity,
    credentials: Credentials,
    environment: &Environment,
    options: Options,
) -> Result<(kube::Client, Connections), ConnectError> {
    let Options {
        user_agent,
        verbosity,
        request_timeout,
        notices,
    } = options;
    let connections = Connections::new(target, identity, environment, request_timeout)?;

    let mut config = kube::Config::new(target.server.clone());
    config.headers = vec![(USER_AGENT, user_agent)];
    config.auth_info = impersonation(target);
    let extra_headers = config
        .extra_headers_layer()
        .map_err(|err| ConnectError::new(err.to_string()))?;
    let observe = ObserveLayer {
        level: verbosity,
        warnings: Warnings::new(Arc::clone(&notices)),
        notices,
    };

    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .layer(extra_headers)
        .layer(CredentialsLayer(credentials))
        .layer(observe)
        .layer(DecompressionLayer::new().gzip(true))
        .service(connections.clone());
    let client = ClientBuilder::new(service, target.namespace.clone()).build();
    Ok((client, connections))
}

/// The impersonation settings of the user. Credentials are not included, because kube does not handle them
/// here.
fn impersonation(target: &ConnectTarget) -> kube::config::AuthInfo {
    let user = &target.user;
    kube::config::AuthInfo {
        impersonate: user.impersonate.clone(),
        impersonate_uid: user.impersonate_uid.clone(),
        impersonate_groups: Some(user.impersonate_groups.clone()),
        impersonate_user_extra: Some(user.impersonate_extra.clone()),
        ..Default::default()
    }
}
