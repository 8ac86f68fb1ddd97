//! Source of all random choices: a seeded generator, or the bytes of a fuzzer.

#[derive(Debug, Clone)]
pub enum Dice {
    /// An endless generator with this state.
    Seeded(u64),
    /// These bytes in order, from this position; then zeros.
    Bytes(Vec<u8>, usize),
}

impl Dice {
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_vec(), 0)
    }

    /// Returns `true` if no choices are left.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        matches!(self, Self::Bytes(bytes, at) if *at >= bytes.len())
    }

    /// Returns `true` if a fuzzer chooses.
    #[must_use]
    pub fn is_fuzzer(&self) -> bool {
        matches!(self, Self::Bytes(..))
    }

    fn byte(&mut self) -> u64 {
        match self {
            Self::Seeded(_) => self.roll(),
            Self::Bytes(bytes, at) => {
                *at += 1;
                bytes.get(*at - 1).copied().unwrap_or_default().into()
            }
        }
    }

    /// Returns any number.
    pub fn roll(&mut self) -> u64 {
        match self {
            Self::Seeded(state) => {
                *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut z = *state;
                z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                z ^ (z >> 31)
            }
            Self::Bytes(..) => (0..8).fold(0, |number, _| number << 8 | self.byte()),
        }
    }

    /// Returns a number below `n`; with a fuzzer at most 255.
    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.byte() % n as u64).unwrap_or_default()
    }

    /// Returns `true` with a probability of `p` percent. Without choices left it is `false`, unless `p` is
    /// 100.
    pub fn percent(&mut self, p: usize) -> bool {
        self.below(100) >= 100 - p
    }

    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// Returns at most so many bytes: the fuzzer's, or random ones.
    pub fn bytes(&mut self, most: usize) -> Vec<u8> {
        let len = self.below(most + 1);
        (0..len)
            .map(|_| u8::try_from(self.byte() & 0xff).unwrap_or_default())
            .collect()
    }
}
