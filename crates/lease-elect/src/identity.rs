//! The identity of this process in the election.

use maintenance_lease::env::{Env as _, Machine};

/// An identity that no other process has. It consists of the host (in a cluster, the pod), the process id,
/// and a random part. The random part is needed because in a container the process id is always 1.
pub(crate) fn of_this_process() -> String {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut bytes = [0; 8];
    Machine.random(&mut bytes);
    let nonce: String = bytes
        .iter()
        .map(|byte| char::from(ALPHABET[usize::from(byte % 32)]))
        .collect();
    let host = gethostname::gethostname();
    let host: String = host.to_string_lossy().chars().take(100).collect();
    format!("{host}_{}_{nonce}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_the_same_even_of_one_process_id() {
        let (one, other) = (of_this_process(), of_this_process());
        assert_ne!(one, other);
        assert!(one.contains(&format!("_{}_", std::process::id())), "{one}");
    }
}
