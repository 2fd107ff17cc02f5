//! Names that Kubernetes allows.

/// A DNS label: what a namespace, and so a cluster, may be called.
pub fn is_label(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    matches!(bytes.len(), 1..=63)
        && bytes.iter().all(|byte| plain(*byte) || *byte == b'-')
        && bytes.first().is_some_and(|byte| plain(*byte))
        && bytes.last().is_some_and(|byte| plain(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_those_of_dns() {
        for good in ["a", "0", "cluster-1", &"a".repeat(63)] {
            assert!(is_label(good), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a.b", "a_b", "ä", &"a".repeat(64)] {
            assert!(!is_label(bad), "{bad}");
        }
    }
}
