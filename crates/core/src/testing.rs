//! Random inputs for tests.

/// A small generator (xorshift64*), the same on every machine.
pub struct Random(u64);

impl Random {
    /// Creates a generator that starts from `seed`.
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Returns the next 64 bits.
    #[allow(clippy::should_implement_trait, reason = "there is always a next one")]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.next()) * limit as u128) >> 64) as usize
    }

    /// Returns up to `max_scalars` scalars of many scripts, most of them difficult cases.
    pub fn text(&mut self, max_scalars: usize) -> String {
        const NASTY: &str = "  \t\n\r\u{b}\u{85}\u{a0}\u{1680}\u{2003}\u{2028}\u{202f}\u{3000}aAzZ09__..,,;:''\"\"-!/@\0\u{7f}\
            éÉßẞİıſﬁǅΣσς’‘“”…·‧‿⁀\u{300}\u{301}\u{323}\u{327}\u{345}\u{344}\u{308}\u{30c}\u{334}\u{338}\u{304}\u{1dce}\
            \u{1100}\u{1161}\u{11a7}\u{11a8}\u{11c2}\u{d558}\u{d55c}가각힣\u{3131}ㅏᅠ\
            カガバハウヽヾﾊﾞﾟｶー・あがゝ\u{3099}\u{309a}漢字猫㍿㌀㎏豈\u{fa0e}\u{2f800}\u{4dc0}\u{e000}\
            \u{200b}\u{200c}\u{200d}\u{2060}\u{feff}\u{ad}\u{fe0f}👩👧🏽❤🇩🇪🇫🇷\
            אבשׁ\u{5b0}\u{5bc}\u{5c1}\u{5f3}\u{5f4}יִּسلام\u{610}\u{600}\u{6dd}\u{fdfa}\u{fdfb}لا\u{651}\u{64b}\
            สวัสดีครับກາမြន်ខ្មែរ\u{93e}\u{915}\u{93c}\u{94d}\u{958}नि\u{9c7}\u{9be}\u{9d7}\u{b47}\u{b3e}\u{1025}\u{102e}\
            １２３，．ＡＢＺ＿①½²ⅧⅧ\u{1d400}\u{1d7ff}\u{113c2}\u{113c5}\u{113b8}\u{113c9}\u{11099}\u{110ba}\u{16121}\u{1611e}\u{16d67}\u{2adc}\u{212b}\u{2126}\u{387}\u{fff9}\u{e0001}\u{e0041}\u{10ffff}";
        let nasty: Vec<char> = NASTY.chars().collect();
        let num_scalars = self.below(max_scalars + 1);
        let style = self.below(4);
        let mut text = String::new();
        for _ in 0..num_scalars {
            let choice = self.below(8);
            text.push(match (style, choice) {
                (0, 0..=5) | (1, 0..=2) => char::from(b" aebc.,'1_"[self.below(10)]),
                (_, 7) => char::from_u32(self.below(0x3_0000) as u32).unwrap_or('x'),
                _ => nasty[self.below(nasty.len())],
            });
        }
        text
    }
}
