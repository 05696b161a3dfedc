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
}

impl Names {
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
}
