//! Tokens of service accounts, valid and expired.

use std::fs;

use anyhow::{Context, Result, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use rcgen::KeyPair;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Value, json};

use crate::plane::ControlPlane;

/// The service accounts of the namespace `default`.
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

/// The shortest validity of a token that the API server issues, in seconds.
const LIFETIME: i64 = 600;

/// The claims of a token that are times, in seconds since 1970.
const TIMES: [&str; 3] = ["iat", "nbf", "exp"];

impl ControlPlane {
    /// Creates a service account in `default`.
    ///
    /// # Errors
    /// If the API server refuses.
    pub fn service_account(&self, name: &str) -> Result<()> {
        self.api()
            .post(ACCOUNTS, &json!({"metadata": {"name": name}}))
            .with_context(|| format!("failed to make the service account {name}"))?;
        Ok(())
    }

    /// Returns a token of that account, which is valid for ten minutes from now.
    ///
    /// # Errors
    /// If the API server refuses.
    pub fn token(&self, account: &str) -> Result<String> {
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": LIFETIME},
        });
        let issued = self
            .api()
            .post(&format!("{ACCOUNTS}/{account}/token"), &request)
            .with_context(|| format!("failed to get a token of {account}"))?;
        let token = issued["status"]["token"].as_str();
        Ok(token.context("no token was issued")?.to_owned())
    }

    /// Returns a token of that account as if it had been issued an hour ago. It has the same key and claims as a valid
    /// token, except for the times.
    ///
    /// # Errors
    /// As [`token`](Self::token), or if the server's key can't be read.
    pub fn expired_token(&self, account: &str) -> Result<String> {
        let token = self.token(account)?;
        let mut parts = token.split('.');
        let (Some(header), Some(claims)) = (parts.next(), parts.next()) else {
            return Err(anyhow!("not a token"));
        };
        let mut claims: Value = serde_json::from_slice(&BASE64.decode(claims)?)?;
        for time in TIMES {
            let then = claims[time].as_i64().context("a token without times")?;
            claims[time] = (then - 3600).into();
        }
        let signed = format!("{header}.{}", BASE64.encode(claims.to_string()));
        let signature = self.sign_as_the_server(signed.as_bytes())?;
        Ok(format!("{signed}.{}", BASE64.encode(signature)))
    }

    /// Signs `text` as the server signs its tokens (ES256): both numbers of the ECDSA signature have their full length.
    fn sign_as_the_server(&self, text: &[u8]) -> Result<Vec<u8>> {
        let key = KeyPair::from_pem(&fs::read_to_string(self.directory().join("tokens.key"))?)?;
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let signature = EcdsaKeyPair::from_pkcs8(algorithm, key.serialized_der(), &random)
            .map_err(|why| anyhow!("the key of tokens is rejected: {why}"))?
            .sign(&random, text)
            .map_err(|_| anyhow!("failed to sign a token"))?;
        Ok(signature.as_ref().to_vec())
    }
}
