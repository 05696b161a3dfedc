//! Who the caller is.

use clap::{Arg, Args};
use maintenance_lease::protocol::identity::{self, InvalidIdentity};

use crate::platform::account;
use connect::{ApiUser, Environment};

use crate::words::hint_command::HEADING;

const HOLDER: &str = "KUBECTL_MAINT_HOLDER";

/// More API users that are shared, separated by commas.
const SHARED_USERS: &str = "KUBECTL_MAINT_SHARED_USERS";

/// The identity to hold leases with.
#[derive(Args, Clone, Debug, Default)]
#[command(mut_arg("holder", unless_empty))]
pub(crate) struct HolderArgs {
    /// Name to lock nodes under, shown to others [default: your API user]
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
    /// The given identity, else the API user, else `user@host`.
    pub(crate) fn of(&self, user: &ApiUser, environment: &Environment) -> String {
        let of_user = match user {
            ApiUser::Known(name) if !is_shared(name, environment) => identity::of_api_user(name),
            _ => None,
        };
        let given = self.holder.clone().or(of_user);
        given.unwrap_or_else(|| user_at_host(environment))
    }
}

fn is_shared(user: &str, environment: &Environment) -> bool {
    let more = environment.get(SHARED_USERS).unwrap_or_default();
    identity::SHARED_USERS.contains(&user) || more.split(',').any(|it| it.trim() == user)
}

/// `user@host` of the user who logged in. Under sudo it is that user and not root, because two people who are both
/// root on one bastion must not share an identity.
fn user_at_host(environment: &Environment) -> String {
    let user = ["SUDO_USER", "USER", "LOGNAME", "USERNAME"]
        .into_iter()
        .find_map(|name| environment.get(name))
        .map_or_else(account, ToOwned::to_owned);
    let host = gethostname::gethostname();
    identity::of_user_at(&sanitized(&user), &sanitized(&host.to_string_lossy()))
}

/// Replaces what a shell or a terminal would interpret by `_`, so that anybody can type this part of an
/// identity.
fn sanitized(part: &str) -> String {
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
        let identity = user_at_host(&environment);
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
        assert_eq!(identity_in(&[]), sanitized(&account()));
    }

    #[test]
    fn nobody_gets_a_hold_by_accident() {
        assert_eq!(identity_in(&[("USER", "kubeadmin")]), "user:kubeadmin");
    }

    #[test]
    fn the_api_user_is_the_holder_unless_it_is_shared_or_cannot_be() {
        let environment = Environment::of_variables([
            ("USER", "alice"),
            ("KUBECTL_MAINT_SHARED_USERS", "breakglass, ops"),
        ]);
        let of =
            |args: &HolderArgs, user: &str| args.of(&ApiUser::Known(user.to_owned()), &environment);
        let given = HolderArgs {
            holder: Some("job-7".to_owned()),
        };
        let default = HolderArgs::default();
        let user_at_host = user_at_host(&environment);
        assert_eq!(of(&given, "alice"), "job-7");
        assert_eq!(of(&default, "alice"), "alice");
        assert_eq!(of(&default, "kubeadmin"), "user:kubeadmin");
        for other in [
            "kubernetes-admin",
            "system:admin",
            "admin",
            "breakglass",
            "ops",
            " ",
        ] {
            assert_eq!(of(&default, other), user_at_host);
        }
        for user in [ApiUser::Unknown, ApiUser::Anonymous] {
            assert_eq!(default.of(&user, &environment), user_at_host);
        }
    }

    #[test]
    fn odd_names_stay_typable() {
        assert_eq!(identity_in(&[("USER", "DOM\\al ice\x1b")]), "DOM_al_ice_");
    }
}
