//! Strings of the wire as small, copyable ids.

/// A holder, nonce or uid: equal ids of one [`Names`] stand for equal strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub u32);

/// Maps each string that a decision compares to an [`Id`], and back.
///
/// It lives as long as one operation or keeper, and has only a few entries.
#[derive(Clone, Debug, Default)]
pub struct Names {
    known: Vec<String>,
    earlier_holders: Vec<EarlierHolder>,
}

/// A name that a holder had before.
#[derive(Clone, Debug)]
struct EarlierHolder {
    name: String,
    /// The API user who has it.
    user: String,
    /// The id of its present name.
    present: Id,
}

impl Names {
    /// From now on, the holder `earlier` has the id of `present`, unless another API user than `user` acquired the
    /// lock.
    pub fn add_earlier_holder(&mut self, earlier: &str, present: &str, user: &str) {
        let present = self.id(present);
        self.earlier_holders.push(EarlierHolder {
            name: earlier.to_owned(),
            user: user.to_owned(),
            present,
        });
    }

    /// The id of a holder whose lock `user` acquired, if that is known.
    pub fn holder(&mut self, holder: &str, user: Option<&str>) -> Id {
        let earlier = self
            .earlier_holders
            .iter()
            .find(|earlier| earlier.name == holder && user.is_none_or(|user| user == earlier.user));
        match earlier {
            Some(earlier) => earlier.present,
            None => self.id(holder),
        }
    }

    /// The id of `name`, the same at every call.
    pub fn id(&mut self, name: &str) -> Id {
        let index = self
            .known
            .iter()
            .position(|known| known == name)
            .unwrap_or_else(|| {
                self.known.push(name.to_owned());
                self.known.len() - 1
            });
        // An operation has only a few.
        Id(u32::try_from(index).unwrap_or(u32::MAX))
    }

    /// The string behind `id`; empty if `id` comes from another `Names`.
    #[must_use]
    pub fn name(&self, id: Id) -> &str {
        self.known.get(id.0 as usize).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_share_an_id_and_give_the_name_back() {
        let mut names = Names::default();
        let alice = names.id("alice@bastion");
        let bob = names.id("bob@bastion");
        assert_eq!(alice, names.id("alice@bastion"));
        assert_ne!(alice, bob);
        assert_eq!(names.name(bob), "bob@bastion");
        assert_eq!(Names::default().name(bob), "");
    }

    #[test]
    fn an_earlier_holder_has_the_id_of_its_present_name_unless_it_is_another_user() {
        let mut names = Names::default();
        names.add_earlier_holder("alice@bastion", "alice", "alice");
        let alice = names.id("alice");
        assert_eq!(names.holder("alice@bastion", None), alice);
        assert_eq!(names.holder("alice@bastion", Some("alice")), alice);
        assert_ne!(names.holder("alice@bastion", Some("admin")), alice);
        assert_ne!(names.holder("alice@laptop", None), alice);
        assert_eq!(names.name(alice), "alice");
    }
}
