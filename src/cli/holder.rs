//! Who the caller is.

use clap::{Arg, Args};
use maintenance_lease::env::{Env as _, Machine};
use maintenance_lease::protocol::identity;

use super::connection::HEADING;
use connect::Environment;

const HOLDER: &str = "KUBECTL_MAINT_HOLDER";

/// The identity to hold leases with.
#[derive(Args, Clone, Debug, Default)]
#[command(mut_arg("holder", unless_empty))]
pub(crate) struct HolderArgs {
    /// Identity to hold locks with, instead of USER@HOST
    #[arg(
        long,
        value_name = "ID",
        env = HOLDER,
        hide_env_values = true,
        global = true,
        help_heading = HEADING,
        hide_short_help = true,
        hide_long_help = true,
        value_parser = holder
    )]
    pub(crate) holder: Option<String>,
}

/// A command that holds nodes for as long as it runs, by a name of its process: two of the same person
/// keep each other off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Running {
    With,
    ForceDelete,
}

impl Running {
    const ALL: [Self; 2] = [Self::With, Self::ForceDelete];

    /// The command, as typed.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::With => "with",
            Self::ForceDelete => "force-delete",
        }
    }

    /// `identity` for this one process.
    pub(crate) fn holder(self, identity: &str) -> String {
        let mut unique = [0; 3];
        Machine.random(&mut unique);
        let unique: String = unique.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{identity}{}{}-{unique}", self.mark(), std::process::id())
    }

    /// Which command a holder is, and whose; `None` where it is none.
    pub(crate) fn of(holder: &str) -> Option<(Self, &str)> {
        let found = Self::ALL.into_iter().filter_map(|running| {
            let (whose, _) = holder.rsplit_once(&running.mark())?;
            Some((running, whose))
        });
        // Of one that runs under another, the inner one holds.
        found.max_by_key(|(_, whose)| whose.len())
    }

    /// What stands behind the identity, before the process id and what makes it unique.
    fn mark(self) -> String {
        format!("/{}-", self.name())
    }
}

/// A variable that is set to nothing counts as absent.
fn unless_empty(holder: Arg) -> Arg {
    match std::env::var_os(HOLDER).is_some_and(|set| set.is_empty()) {
        true => holder.env(None::<&str>),
        false => holder,
    }
}

fn holder(typed: &str) -> Result<String, String> {
    identity::validate(typed)
        .map(|()| typed.to_owned())
        .map_err(|error| error.to_string())
}

impl HolderArgs {
    /// The identity given, else `user@host` of the user who logged in: who became root by sudo
    /// stays a person, since two people who are both root on one bastion must not pass for one.
    pub(crate) fn identity(&self, environment: &Environment) -> String {
        self.holder.clone().unwrap_or_else(|| {
            let user = ["SUDO_USER", "USER", "LOGNAME", "USERNAME"]
                .into_iter()
                .find_map(|name| environment.get(name))
                .map_or_else(account, ToOwned::to_owned);
            let host = gethostname::gethostname();
            identity::default_identity(&typable(&user), &typable(&host.to_string_lossy()))
        })
    }
}

/// The account that the process runs as, for daemons and containers that have no variable for it.
#[cfg(unix)]
fn account() -> String {
    let uid = rustix::process::getuid().as_raw();
    std::fs::read_to_string("/etc/passwd")
        .ok()
        .and_then(|accounts| account_of(uid, &accounts))
        .unwrap_or_else(|| format!("uid{uid}"))
}

#[cfg(not(unix))]
fn account() -> String {
    "unknown".to_owned()
}

/// The name of account `uid` in the text of `/etc/passwd`. Libraries for this ask the C library,
/// which a static binary can't rely on.
#[cfg(unix)]
fn account_of(uid: u32, accounts: &str) -> Option<String> {
    let uid = uid.to_string();
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1) == Some(&uid)).then(|| name.to_owned())
    })
}

/// A part of an identity that anybody can type: what a shell or a terminal would trip over is `_`.
fn typable(part: &str) -> String {
    let part: String = part
        .chars()
        .take(100)
        .map(|c| {
            if c.is_alphanumeric() || matches!(c, '-' | '.' | '_') {
                c
            } else {
                '_'
            }
        })
        .collect();
    if part.is_empty() {
        "unknown".to_owned()
    } else {
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity_in(variables: &[(&str, &str)]) -> String {
        let environment = Environment::of_variables(variables.iter().copied());
        let identity = HolderArgs::default().identity(&environment);
        let (user, host) = identity.rsplit_once('@').expect("user@host");
        assert!(!host.is_empty());
        user.to_owned()
    }

    #[test]
    fn the_person_who_logged_in_counts() {
        assert_eq!(identity_in(&[("USER", "alice")]), "alice");
        assert_eq!(
            identity_in(&[("USER", "root"), ("SUDO_USER", "alice")]),
            "alice"
        );
    }

    #[cfg(unix)]
    #[test]
    fn without_variables_the_account_counts() {
        assert_eq!(identity_in(&[]), typable(&account()));
        let accounts = "root:x:0:0::/root:/bin/sh\nmaint:x:1001:1001::/:/bin/false\n";
        assert_eq!(account_of(1001, accounts), Some("maint".to_owned()));
        assert_eq!(account_of(100, accounts), None);
    }

    #[test]
    fn nobody_gets_a_hold_by_accident() {
        assert_eq!(identity_in(&[("USER", "kubeadmin")]), "user:kubeadmin");
    }

    #[test]
    fn a_process_has_a_name_of_its_own_that_tells_whose_it_is() {
        let with = || Running::With.holder("a/b@c");
        let (one, other) = (with(), with());
        assert_ne!(one, other);
        assert_eq!(Running::of(&one), Some((Running::With, "a/b@c")));
        assert_eq!(Running::of("a/b@c"), None);
        let inner = Running::ForceDelete.holder(&one);
        assert_eq!(Running::of(&inner), Some((Running::ForceDelete, &*one)));
    }

    #[test]
    fn odd_names_stay_typable() {
        assert_eq!(identity_in(&[("USER", "DOM\\al ice\x1b")]), "DOM_al_ice_");
    }
}
