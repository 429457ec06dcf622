//! Which radius finds pairs of a given cosine?

/// Returns the least radius k with `P(Binomial(bits, acos(threshold)/pi) <= k) >= recall`, and that probability; `bits`
/// if rounding keeps the sum below.
pub fn radius_for(bits: u32, threshold: f64, recall: f64) -> (u32, f64) {
    let flip = libm::acos(threshold.clamp(0.0, 1.0)) / std::f64::consts::PI;
    // flip <= 1/2, so the first term is at least 2^-256 and every ratio is finite. All terms are positive, so the sum
    // loses no precision.
    let mut term = libm::pow(1.0 - flip, f64::from(bits));
    let odds = flip / (1.0 - flip);
    let mut sum = term;
    let mut k = 0;
    while sum < recall && k < bits {
        term *= f64::from(bits - k) / f64::from(k + 1) * odds;
        sum += term;
        k += 1;
    }
    (k, sum.min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_table() {
        // Equal-size sets of Jaccard J have cosine 2J/(1+J); P(distance of 64 <= k) as published for J = .9 and .95.
        for (jaccard, k, p) in [
            (0.9, 3, 0.090),
            (0.9, 10, 0.936),
            (0.95, 6, 0.822),
            (0.98, 3, 0.671),
        ] {
            let cosine = 2.0 * jaccard / (1.0 + jaccard);
            let (radius, reached) = radius_for(64, cosine, p - 0.001);
            assert_eq!(radius, k, "J = {jaccard}");
            assert!((reached - p).abs() < 0.001, "{reached} for {p}");
        }
    }

    #[test]
    fn ends_of_the_range() {
        assert_eq!(radius_for(64, 1.0, 0.99), (0, 1.0));
        let (k, p) = radius_for(256, 0.0, 0.5);
        // Binomial(256, 1/2) is symmetric about 128.
        assert_eq!(k, 128);
        assert!(p > 0.5 && p < 0.53);
        assert_eq!(radius_for(32, 0.5, 1.5).0, 32);
    }
}
