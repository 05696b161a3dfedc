//! Checks whether there is enough memory to run two compilers.

use std::fs;

/// Go's linkers need 2 GB, and rustc needs as much per core for the largest crates.
const BOTH_COMPILERS_KB: u64 = 8 * 1024 * 1024;

/// Whether there is enough memory to compile Go and Rust at the same time. If the size is unknown, the
/// answer is no.
pub(crate) fn allows_two_compilers() -> bool {
    fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|info| available_kb(&info))
        .is_some_and(|available| available >= BOTH_COMPILERS_KB)
}

fn available_kb(info: &str) -> Option<u64> {
    let value = info
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    value.trim().strip_suffix(" kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::available_kb;

    #[test]
    fn available_memory_is_read_not_free_memory() {
        let info = "MemTotal:       24640000 kB\nMemFree:  100 kB\nMemAvailable:   23068672 kB\n";
        assert_eq!(available_kb(info), Some(23_068_672));
        assert_eq!(available_kb("MemTotal: 1 kB\n"), None);
    }
}
