//! `install`: puts the namespace, the roles and the admission policies into the cluster.

use clap::{Args, ValueEnum};
use policies::{Allowed, Applied, Installed, Manifest, Mode, Refusal, is_supported};

use crate::error::Failure;
use crate::exit::Code;
use crate::run::session::{Session, Start};
use crate::words::policies as words;

/// Install the roles and the policies
///
/// Creates or updates the namespace of the Leases, roles, a FlowSchema and three ValidatingAdmissionPolicies. Two of
/// them check locks. New ones are in audit mode and refuse nothing; see "kubectl maint enforce". If they are installed
/// already, their mode stays, and so do the lists of --allow-user and --allow-group. The third warns everyone who force-deletes a pod, and refuses nothing.
///
/// The roles are granted to groups such as kubectl-maint:users, not to users: add people to these groups, or bind
/// the roles to your own. -o yaml shows the roles and groups.
///
/// Changes nothing if Argo CD, Flux, Helm or another tool manages one of the objects, or if the server is older than
/// Kubernetes 1.30. Use -o yaml to apply the objects with your own tool.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  kubectl maint install
  kubectl maint install --allow-group=platform-team
  kubectl maint install -o yaml > kubectl-maint.yaml")]
pub(crate) struct InstallArgs {
    /// Print the objects and change nothing
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub(crate) output: Option<ManifestFormat>,

    /// Let this API user change held Nodes, as their holder can (repeatable)
    ///
    /// Replaces the users of an earlier installation. Without this flag, they stay. An empty name removes them all.
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_user: Option<Vec<String>>,

    /// Let the API users of this group change held Nodes (repeatable)
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_group: Option<Vec<String>>,
}

impl InstallArgs {
    /// The lists in the node policy, after an installation with the lists `before`.
    fn allowed(&self, before: Allowed) -> Allowed {
        let list = |typed: &Option<Vec<String>>, before| match typed {
            Some(typed) => typed.iter().filter(|it| !it.is_empty()).cloned().collect(),
            None => before,
        };
        Allowed {
            users: list(&self.allow_user, before.users),
            groups: list(&self.allow_group, before.groups),
        }
    }
}

/// How the objects are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ManifestFormat {
    /// For `kubectl apply -f`
    Yaml,
}

pub(crate) async fn run(args: &InstallArgs, start: &Start<'_>) -> Result<Code, Failure> {
    if args.output.is_some() {
        let allowed = args.allowed(Allowed::default());
        let text = policies::text_allowing(&allowed);
        start.terminal.data(text.trim_end());
        return Ok(Code::DONE);
    }
    let session = start.open_for_reading().await?;
    check_version(&session).await?;
    let installed = Installed::read(session.locks.requests(), |_| true).await?;
    installed.must_be_ours()?;
    installed.must_be_unrestricted()?;
    let namespace = installed.found(Manifest::is_namespace);
    if namespace.is_some_and(|it| it["metadata"]["deletionTimestamp"].is_string()) {
        return Err(Refusal::NamespaceDeleting.into());
    }
    let (mut is_off, mut is_new) = (false, false);
    for (manifest, found) in installed.in_order() {
        let Some(manifest) = installed.kept(manifest, found.as_ref()) else {
            is_off |= manifest.has_mode();
            continue;
        };
        let before = found.as_ref().map(Allowed::of).unwrap_or_default();
        let manifest = manifest.allowing(&args.allowed(before));
        let applied = installed.apply(&manifest, found.as_ref()).await?;
        let binding = |other: &Manifest| other.is_binding() && other.name() == manifest.name();
        let mode = installed.found(binding).map_or(Mode::Audit, Mode::of);
        let is_created = applied == Applied::Created && manifest.is_policy();
        is_new |= is_created && manifest.has_mode() && mode == Mode::Audit;
        let name = manifest.full_name();
        session
            .terminal
            .result(format!("{name} {}", applied.name()));
    }
    if let Some(next) = words::after_install(is_new, is_off, session.program) {
        session.terminal.hint(next);
    }
    Ok(Code::DONE)
}

/// Refuses a server that is too old for the policies.
async fn check_version(session: &Session<'_>) -> Result<(), Failure> {
    let version = session.locks.server_version().await?;
    match is_supported(&version.major, &version.minor) {
        true => Ok(()),
        false => Err(Refusal::OldServer {
            version: version.git_version.clone(),
        }
        .into()),
    }
}
