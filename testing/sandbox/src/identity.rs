//! Generated names and uids: random, or repeatable with a seed.

/// Generates uids and the suffixes of generated names.
#[derive(Debug)]
pub(crate) struct Identities(fastrand::Rng);

impl Identities {
    /// The same seed gives the same identities in the same order.
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    pub(crate) fn random() -> Self {
        Self(fastrand::Rng::new())
    }

    /// A random (version 4) UUID.
    pub(crate) fn uid(&mut self) -> String {
        const VERSION: u128 = 4 << 76;
        const VARIANT: u128 = 0b10 << 62;
        let bits = self.0.u128(..) & !(0xf << 76) & !(0b11 << 62) | VERSION | VARIANT;
        let hex = format!("{bits:032x}");
        format!(
            "{}-{}-{}-{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        )
    }

    /// Five characters that form no words, as the server appends them to `generateName`.
    pub(crate) fn suffix(&mut self) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..5)
            .map(|_| char::from(ALPHABET[self.0.usize(..ALPHABET.len())]))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_is_a_version_4_uuid() {
        let uid = Identities::seeded(7).uid();
        let groups: Vec<usize> = uid.split('-').map(str::len).collect();
        assert_eq!(groups, [8, 4, 4, 4, 12]);
        assert_eq!(&uid[14..15], "4");
        assert!("89ab".contains(&uid[19..20]), "{uid}");
    }

    #[test]
    fn the_same_seed_gives_the_same_identities() {
        let (mut one, mut other) = (Identities::seeded(1), Identities::seeded(1));
        assert_eq!((one.uid(), one.suffix()), (other.uid(), other.suffix()));
    }
}
