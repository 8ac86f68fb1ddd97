//! Ids of sessions and prompts: the CLI only accepts UUIDs.

use std::hash::{DefaultHasher, Hash, Hasher};

/// Generator of UUIDs that are as unique as its seed.
#[derive(Debug)]
pub struct Uuids {
    seed: String,
    last: u64,
}

impl Uuids {
    #[must_use]
    pub fn new(seed: &str) -> Self {
        Self {
            seed: seed.to_owned(),
            last: 0,
        }
    }

    /// Returns the next UUID. It has the form of version 4, but is not random.
    pub fn next(&mut self) -> String {
        self.last += 1;
        let half = |which: u8| {
            let mut hasher = DefaultHasher::new();
            (&self.seed, self.last, which).hash(&mut hasher);
            hasher.finish()
        };
        let bits = (u128::from(half(0)) << 64) | u128::from(half(1));
        let bits = bits & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
        let hex = format!("{bits:032x}");
        [
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..],
        ]
        .join("-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_version_4_uuids() {
        let (mut a, mut b) = (Uuids::new("a"), Uuids::new("b"));
        let all = [a.next(), a.next(), b.next(), b.next()];
        for (n, id) in all.iter().enumerate() {
            assert_eq!(id.len(), 36);
            assert_eq!(&id[14..15], "4", "{id}");
            assert!("89ab".contains(&id[19..20]), "{id}");
            assert!(!all[..n].contains(id));
        }
        assert_eq!(Uuids::new("a").next(), all[0]);
    }
}
