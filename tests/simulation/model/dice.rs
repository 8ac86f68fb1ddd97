//! Where all choices come from: a generator that repeats itself, or the bytes of a fuzzer.

/// What is rolled.
#[derive(Debug, Clone)]
pub enum Dice {
    /// Without end, the same for the same seed.
    Seeded(u64),
    /// These, one after the other; then zeros.
    Bytes(Vec<u8>, usize),
}

impl Dice {
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_vec(), 0)
    }

    /// Whether there is nothing left to choose.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        matches!(self, Self::Bytes(bytes, at) if *at >= bytes.len())
    }

    /// Whether a fuzzer chooses.
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

    /// Any number.
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

    /// A number below `n`, which is at most 256 where it matters.
    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.byte() % n as u64).unwrap_or_default()
    }

    /// So often of a hundred; never, once nothing is left to choose.
    pub fn percent(&mut self, p: usize) -> bool {
        self.below(100) >= 100 - p
    }

    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// At most so many bytes of a fuzzer; of a seed, any.
    pub fn bytes(&mut self, most: usize) -> Vec<u8> {
        let len = self.below(most + 1);
        (0..len)
            .map(|_| u8::try_from(self.byte() & 0xff).unwrap_or_default())
            .collect()
    }
}
