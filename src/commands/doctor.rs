//! `doctor`: whether this user can lock nodes in this cluster, and whether the policies work.

use clap::Args;
use http::Method;
use maintenance_lease::{Accept, ApiError, Call, NAMESPACE};
use policies::Manifest;
use serde_json::{Value, json};

use crate::error::Failure;
use crate::exit::Code;
use crate::run::policies::{read, wrong_time};
use crate::run::session::{Session, Start};
use crate::text::escape;

/// Check what locks need: the clock, your rights, the namespace and the policies
///
/// Changes nothing. To see whether the policies work, it sends a dry run of a wrong Lease.
///
/// Each line begins with ok, note or problem, and the line below says what to do. The exit code is 1 if there is a
/// problem. Notes are about what is optional, and about what you may not read.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  kubectl maint doctor
  kubectl maint doctor --as=alice")]
pub(crate) struct DoctorArgs {}

/// The result of a check.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Ok,
    Note,
    Problem,
}

/// What one check found, and what to do about it.
struct Finding {
    level: Level,
    says: String,
    hint: Option<String>,
}

impl Finding {
    fn ok(says: impl Into<String>) -> Self {
        let (level, says) = (Level::Ok, says.into());
        Self {
            level,
            says,
            hint: None,
        }
    }

    fn note(says: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            level: Level::Note,
            ..Self::problem(says, hint)
        }
    }

    fn problem(says: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            level: Level::Problem,
            says: says.into(),
            hint: Some(hint.into()),
        }
    }

    fn print(&self, check: &str, session: &Session<'_>) {
        let level = match self.level {
            Level::Ok => "ok",
            Level::Note => "note",
            Level::Problem => "problem",
        };
        let says = &self.says;
        session
            .terminal
            .data(format!("{level:<9}{check:<11}{says}"));
        if let Some(hint) = &self.hint {
            session.terminal.data(format!("{:20}{hint}", ""));
        }
    }
}

pub(crate) async fn run(_: &DoctorArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let session = start.reading().await?;
    let version = session.locks.server_version().await?;
    let server = format!(
        "Kubernetes {}, {}",
        escape(&version.git_version),
        session.place()
    );
    let findings = [
        ("server", Finding::ok(server)),
        ("user", user(&session).await),
        ("rights", rights(&session).await?),
        ("namespace", namespace(&session).await),
        ("policies", policies(&session).await),
        // Last, because the answers above tell the server's time.
        ("clock", clock(&session)),
    ];
    for (check, finding) in &findings {
        finding.print(check, &session);
    }
    let is_well = findings
        .iter()
        .all(|(_, finding)| finding.level != Level::Problem);
    Ok(if is_well { Code::DONE } else { Code::ERROR })
}

async fn user(session: &Session<'_>) -> Finding {
    let holder = escape(session.locks.identity());
    match session.locks.api_user().await {
        Ok(user) => {
            let name = escape(&user.username.unwrap_or_default());
            Finding::ok(format!("{name}, with the holder {holder}"))
        }
        Err(error) => unread("who you are", &error),
    }
}

fn clock(session: &Session<'_>) -> Finding {
    match session.clock_warning() {
        None => Finding::ok("agrees with the API server's"),
        Some(warning) => Finding::problem(warning, "synchronize the clocks, such as with NTP"),
    }
}

/// The rights that all verbs need, without those for holds and takeovers in deny mode.
const RIGHTS: [(&str, &str, &str, &[&str]); 2] = [
    (
        "coordination.k8s.io",
        "leases",
        NAMESPACE,
        &["get", "list", "watch", "create", "patch"],
    ),
    ("", "nodes", "", &["get", "list", "watch"]),
];

async fn rights(session: &Session<'_>) -> Result<Finding, Failure> {
    let mut missing = Vec::new();
    for (group, resource, namespace, verbs) in RIGHTS {
        for verb in verbs {
            if !may(session, (group, resource, namespace, verb)).await? {
                missing.push(format!("{verb} {resource}"));
            }
        }
    }
    if !missing.is_empty() {
        return Ok(Finding::problem(
            format!("you may not {}", missing.join(", ")),
            "see the role kubectl-maint-user in deploy/rbac.yaml",
        ));
    }
    let mut says = "acquire, renew, release".to_owned();
    for verb in ["hold", "takeover"] {
        if may(session, ("coordination.k8s.io", "leases", NAMESPACE, verb)).await? {
            says = says + ", " + verb;
        }
    }
    Ok(Finding::ok(says))
}

async fn may(
    session: &Session<'_>,
    (group, resource, namespace, verb): (&str, &str, &str, &str),
) -> Result<bool, Failure> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "group": group, "resource": resource, "namespace": namespace, "verb": verb,
        }},
    });
    let call = Call {
        method: Method::POST,
        path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_owned(),
        accept: Accept::Json,
        body: Some(("application/json", review.to_string().into_bytes())),
    };
    let answer = read(&session.locks.requests().call(&call).await?)?;
    Ok(answer["status"]["allowed"] == true)
}

async fn namespace(session: &Session<'_>) -> Finding {
    match object(session, format!("/api/v1/namespaces/{NAMESPACE}")).await {
        Ok(Some(found)) if found["metadata"]["deletionTimestamp"].is_string() => Finding::problem(
            format!("{NAMESPACE} is being deleted, and every lock with it"),
            "wait until it is gone; the next lock creates it again",
        ),
        Ok(Some(_)) => Finding::ok(NAMESPACE),
        Ok(None) => Finding::note(
            format!("{NAMESPACE} does not exist"),
            format!(
                "the first lock creates it, with the right to; or run `{} install`",
                session.program
            ),
        ),
        Err(error) => unread("namespaces", &error),
    }
}

/// The mode of the policies, and whether the server enforces it.
async fn policies(session: &Session<'_>) -> Finding {
    let program = session.program;
    let refuses = match session.locks.requests().call(&wrong_time()).await {
        Err(error) if error.policy_code().is_some() => Some(true),
        Ok(_) => Some(false),
        Err(_) => None,
    };
    let manifests = policies::manifests();
    let mut bindings = Vec::new();
    for binding in manifests.iter().filter(|manifest| manifest.is_binding()) {
        match object(session, binding.path()).await {
            Ok(found) => bindings.push(found),
            Err(error) => {
                return match refuses {
                    Some(true) => Finding::ok("wrong writes are refused"),
                    Some(false) => {
                        Finding::note("wrong writes are admitted", "an administrator can see why")
                    }
                    None => unread("policies", &error),
                };
            }
        }
    }
    let actions = |binding: &Option<Value>| {
        binding
            .as_ref()
            .map(|found| found["spec"]["validationActions"].clone())
    };
    let (Some(first), Some(second)) = (
        bindings.iter().find_map(actions),
        bindings.iter().rev().find_map(actions),
    ) else {
        let policy = manifests.iter().find(|manifest| manifest.is_policy());
        let policy = policy.map(Manifest::path).unwrap_or_default();
        return match object(session, policy).await {
            Ok(Some(_)) => Finding::note(
                "switched off",
                format!("to switch them on: `{program} enforce audit`"),
            ),
            _ => Finding::note(
                "not installed: nothing checks who writes locks",
                format!("to install them: `{program} install`"),
            ),
        };
    };
    if bindings.iter().any(Option::is_none) || first != second {
        return Finding::problem(
            "the two policies have different modes",
            format!("set one with `{program} enforce audit|warn|deny|off`"),
        );
    }
    let has = |action: &str| {
        first
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one == action))
    };
    match (has("Deny"), refuses) {
        (true, Some(true)) => Finding::ok("mode deny: a wrong write was refused"),
        (true, Some(false)) => Finding::problem(
            "mode deny, but a wrong write was admitted",
            format!("install them again: `{program} install`"),
        ),
        (true, None) => Finding::note(
            "mode deny, not tested",
            "the test needs the right to create leases, and the namespace",
        ),
        (false, _) => Finding::note(
            match has("Warn") {
                true => "mode warn: nothing is refused",
                false => "mode audit: nothing is refused",
            },
            format!("to refuse wrong writes: `{program} enforce deny`"),
        ),
    }
}

/// The object at `path`; `None` if the server says that there is none.
async fn object(session: &Session<'_>, path: String) -> Result<Option<Value>, ApiError> {
    match session
        .locks
        .requests()
        .call(&Call::get(path, Accept::Json))
        .await
    {
        Ok(body) => serde_json::from_slice(&body)
            .map(Some)
            .map_err(|error| ApiError::Unreadable(error.to_string())),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

fn unread(what: &str, error: &ApiError) -> Finding {
    match error.is_forbidden() {
        true => Finding::note(
            format!("you may not read {what}"),
            "an administrator can check it",
        ),
        false => Finding::note(format!("could not read {what}"), escape(&error.to_string())),
    }
}
