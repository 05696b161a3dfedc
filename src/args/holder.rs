//! Who the caller is.

use clap::{Arg, Args};
use maintenance_lease::protocol::identity::{self, InvalidIdentity};

use connect::Environment;

use crate::platform::account;
use crate::words::program::HEADING;

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

/// An empty variable counts as unset.
fn unless_empty(holder: Arg) -> Arg {
    match std::env::var_os(HOLDER).is_some_and(|set| set.is_empty()) {
        true => holder.env(None::<&str>),
        false => holder,
    }
}

fn holder(typed: &str) -> Result<String, InvalidIdentity> {
    identity::validate(typed).map(|()| typed.to_owned())
}

impl HolderArgs {
    /// The given identity, else `user@host` of the user who logged in. Under sudo it is that user and not
    /// root, because two people who are both root on one bastion must not share an identity.
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

/// Replaces what a shell or a terminal would interpret by `_`, so that anybody can type this part of an
/// identity.
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

    #[test]
    fn without_variables_the_account_counts() {
        assert_eq!(identity_in(&[]), typable(&account()));
    }

    #[test]
    fn nobody_gets_a_hold_by_accident() {
        assert_eq!(identity_in(&[("USER", "kubeadmin")]), "user:kubeadmin");
    }

    #[test]
    fn odd_names_stay_typable() {
        assert_eq!(identity_in(&[("USER", "DOM\\al ice\x1b")]), "DOM_al_ice_");
    }
}
