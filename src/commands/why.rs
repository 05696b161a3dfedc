//! `why`: why a pod, a claim or a namespace is stuck, and what to do about it.

use clap::Args;
use pod_safety::cluster::Reader;
use pod_safety::why::Diagnosis;

use crate::args::connection::namespace;
use crate::args::nodes::object_name;
use crate::args::output::{OutputArgs, offers_no_lock_id, templates};
use crate::error::{Failure, InputError, NothingFound};
use crate::exit::Code;
use crate::object::{Kind, Object, kind_and_name};
use crate::output::format::Format;
use crate::output::why::Finding;
use crate::run::problems::Problems;
use crate::run::session::{Session, Start};
use crate::words::why::unread;

/// Explain why a pod, PVC or namespace is stuck
///
/// Finds out why the object does not start or end. It checks for an unreachable node, a container that does
/// not end, and a volume that stays mounted or is attached elsewhere. It also checks finalizers, the scheduler,
/// quotas, disruption budgets, and what is left in a namespace. The command names what waits for the object. It
/// changes nothing.
///
/// The commands to run next are listed with the safest first. A warning lists what
/// you have no permission to read.
#[derive(Args, Debug)]
#[command(
    arg = namespace("Namespace of the pod or PVC [default: that of the context]"),
    override_usage = "kubectl maint why [OPTIONS] KIND/NAME",
    mut_arg("format", |format| templates(
        offers_no_lock_id(format),
        "{.items[*].reasons[*].code}",
        "NAME:.name,STATE:.state"
    )),
    after_help = "Examples:
  kubectl maint why pod/web-0 -n shop
  kubectl maint why pvc/data-web-0 -n shop
  kubectl maint why namespace/shop
  kubectl maint why pod web-0 -o wide    # a line per reason"
)]
pub(crate) struct WhyArgs {
    /// The object: pod/NAME, pvc/NAME or namespace/NAME
    #[arg(value_name = "KIND/NAME", required = true, num_args = 1..=2)]
    pub(crate) object: Vec<String>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

pub(crate) async fn run(args: &WhyArgs, start: &Start<'_>) -> Result<Code, Failure> {
    let (kind, name) = object(&args.object)?;
    let session = start.open_for_reading().await?;
    let subject = Object {
        kind,
        namespace: session.connection.client.default_namespace().to_owned(),
        name,
    };
    let found = read(&subject, &session).await?;
    print(args.output.format(), &subject, &found, &session)?;
    Ok(Problems::new(&session).end().await)
}

async fn read(subject: &Object, session: &Session<'_>) -> Result<Diagnosis, Failure> {
    let reader = Reader::new(session.locks.requests().clone());
    let Object {
        namespace, name, ..
    } = subject;
    let found = match subject.kind {
        Kind::Pod => reader.why_pod(namespace, name).await?,
        Kind::Claim => reader.why_claim(namespace, name).await?,
        Kind::Namespace => reader.why_namespace(name).await?,
        // `object` refuses Nodes.
        Kind::Node => None,
    };
    let namespace = (subject.kind != Kind::Namespace).then(|| namespace.clone());
    found.ok_or_else(|| {
        let object = subject.shown();
        NothingFound::Object { namespace, object }.into()
    })
}

fn print(
    format: Format,
    subject: &Object,
    found: &Diagnosis,
    session: &Session<'_>,
) -> Result<(), Failure> {
    let terminal = session.terminal;
    let now = session.locks.server_time().now();
    let finding = Finding::new(subject, found, session.program, now);
    terminal.show(&finding.list(now), format, || {
        finding.text(format == Format::Wide, terminal.width(), now)
    })?;
    if let Some(unread) = unread(&found.unread) {
        terminal.warn(unread);
    }
    Ok(())
}

/// The kind and name that were typed.
///
/// # Errors
/// If it is more than one object, no kind that can be explained, or not a valid name.
fn object(typed: &[String]) -> Result<(Kind, String), InputError> {
    if typed.len() > 1 && typed.iter().all(|word| word.contains('/')) {
        return Err(InputError::NotOneObject);
    }
    if let [kind] = typed
        && Kind::of(kind).is_some_and(|kind| kind != Kind::Node)
    {
        let kind = kind.clone();
        return Err(InputError::MissingName { kind });
    }
    let (kind, name) = match typed {
        [object] => kind_and_name(object),
        [kind, name] => Some((Kind::of(kind), &**name)),
        _ => None,
    }
    .unwrap_or_default();
    let is_node = kind == Some(Kind::Node);
    match kind {
        Some(kind) if !is_node => Ok((kind, object_name(kind, name)?)),
        _ => Err(InputError::NotExplained {
            typed: typed.join(" "),
            node: (is_node && !name.is_empty()).then(|| name.to_owned()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_named_as_kubectl_does() {
        let named = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            object(&words).ok()
        };
        for (words, kind) in [
            (&["pod/a"][..], Kind::Pod),
            (&["po", "a"], Kind::Pod),
            (&["pvc/a"], Kind::Claim),
            (&["persistentvolumeclaims", "a"], Kind::Claim),
            (&["ns/a"], Kind::Namespace),
            (&["namespace", "a"], Kind::Namespace),
        ] {
            assert_eq!(named(words), Some((kind, "a".to_owned())), "{words:?}");
        }
        for bad in [
            &["a"][..],
            &["pod/"],
            &["node/a"],
            &["pod/A b"],
            &["pod", "pod/a"],
        ] {
            assert_eq!(named(bad), None, "{bad:?}");
        }
    }
}
