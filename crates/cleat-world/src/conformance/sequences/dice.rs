//! A replayable stream of choices (SplitMix64): a seed and a number are a sequence.

pub(crate) struct Dice(u64);

impl Dice {
    /// The choices of one sequence of a run. Neighbours have nothing in common.
    pub(crate) fn new(seed: u64, index: u64) -> Self {
        let mut dice = Self(seed);
        let start = dice.draw();
        Self(start ^ index.wrapping_mul(0xd134_2543_de82_ef95))
    }

    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `sides`.
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        (self.draw() % sides.max(1) as u64) as usize
    }

    pub(crate) fn one_in(&mut self, sides: usize) -> bool {
        self.roll(sides) == 0
    }

    /// One of the options, which must not be none.
    pub(crate) fn of<T: Clone + Default>(&mut self, options: &[T]) -> T {
        options.get(self.roll(options.len())).cloned().unwrap_or_default()
    }
}
