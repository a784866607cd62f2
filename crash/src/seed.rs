//! Chance that can be repeated: a small generator (SplitMix64), so that a seed says the same for ever.

/// A source of chance.
#[derive(Clone, Copy, Debug)]
pub struct Seed(pub u64);

impl Seed {
    /// Any 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 for an `end` of 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.draw() % end.max(1)
    }

    /// A number from 0 up to but without 1.
    pub fn share(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_says_the_same() {
        let mut seed = Seed(1);
        let drawn = [seed.draw(), seed.draw()];
        assert_eq!(drawn, [0x910A_2DEC_8902_5CC1, 0xBEEB_8DA1_658E_EC67]);
        assert!((0..1000).all(|_| (0.0..1.0).contains(&seed.share()) && seed.below(3) < 3));
        assert_eq!(seed.below(0), 0);
    }
}
