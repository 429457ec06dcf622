//! Which bands find a pair of a given similarity with a given probability?

use crate::error::{Error, invalid_if};

/// Number and size of bands, and their recall at the threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BandPlan {
    pub bands: u32,
    pub rows: u32,
    /// Probability that a pair with a similarity of exactly the threshold shares a band.
    pub recall: f64,
}

/// Returns `1 - (1 - similarity^rows)^bands`: the probability that a pair shares a band.
pub fn s_curve(similarity: f64, bands: u32, rows: u32) -> f64 {
    let similarity = similarity.clamp(0.0, 1.0);
    let band_differs = 1.0 - libm::pow(similarity, f64::from(rows));
    1.0 - libm::pow(band_differs, f64::from(bands))
}

/// Returns the plan with the most rows (fewest chance candidates) whose recall at `threshold` is at least `recall`.
pub fn plan_bands(num_slots: u32, threshold: f64, recall: f64) -> Result<BandPlan, Error> {
    invalid_if(!(1..=65_535).contains(&num_slots), "num_slots", || {
        format!("{num_slots} is outside 1 to 65535")
    })?;
    invalid_if(!(threshold > 0.0 && threshold <= 1.0), "threshold", || {
        format!("{threshold} is not above 0 and at most 1")
    })?;
    invalid_if(!(recall > 0.0 && recall < 1.0), "recall", || {
        format!("{recall} is not above 0 and below 1")
    })?;
    for rows in (1..=num_slots).rev() {
        let bands = num_slots / rows;
        let reached = s_curve(threshold, bands, rows);
        if reached >= recall {
            return Ok(BandPlan {
                bands,
                rows,
                recall: reached,
            });
        }
    }
    let reachable = s_curve(threshold, num_slots, 1);
    // 1 - (1 - t)^m >= recall, solved for m.
    let needed = libm::ceil(libm::log1p(-recall) / libm::log1p(-threshold));
    let more_slots = if needed <= 65_535.0 {
        format!("use num_slots >= {needed}, ")
    } else {
        String::new()
    };
    Err(Error::invalid(
        "recall",
        format!(
            "{recall} cannot be reached: {num_slots} slots find a pair of similarity {threshold} with a probability of at most \
             {reachable:.6}; {more_slots}lower the recall, or raise the threshold"
        ),
    ))
}

/// Returns `num_slots * (t - 3*sqrt(t*(1-t)/num_slots))`, rounded up, at least 0: three deviations below the threshold.
pub fn min_equal_slots(num_slots: u32, threshold: f64) -> u32 {
    let slots = f64::from(num_slots);
    let threshold = threshold.clamp(0.0, 1.0);
    let deviation = libm::sqrt(threshold * (1.0 - threshold) / slots);
    // The cast turns a negative number or NaN (no slots) into 0.
    libm::ceil(slots * (threshold - 3.0 * deviation)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_plans() {
        // (slots, threshold, recall) -> (bands, rows), computed by hand from the formula.
        for (slots, threshold, recall, bands, rows) in [
            (64, 0.7, 0.95, 16, 4),
            (64, 0.7, 0.99, 21, 3),
            (64, 0.8, 0.95, 10, 6),
            (64, 0.8, 0.99, 12, 5),
            (64, 0.9, 0.99, 9, 7),
            (128, 0.7, 0.95, 25, 5),
            (128, 0.7, 0.99, 32, 4),
            (128, 0.8, 0.95, 18, 7),
            (128, 0.8, 0.99, 21, 6),
            (128, 0.9, 0.99, 12, 10),
            (256, 0.7, 0.95, 36, 7),
            (256, 0.8, 0.99, 32, 8),
            (256, 0.9, 0.99, 18, 14),
        ] {
            let plan = plan_bands(slots, threshold, recall).unwrap();
            assert_eq!(
                (plan.bands, plan.rows),
                (bands, rows),
                "{slots} {threshold}"
            );
            assert!(plan.recall >= recall);
            assert!(s_curve(threshold, slots / (rows + 1), rows + 1) < recall);
        }
        // 1 - (1 - 0.6^7)^18, by hand: 0.6^7 = 0.0279936, 0.9720064^18 = 0.59990...
        assert!((s_curve(0.6, 18, 7) - 0.400_1).abs() < 1e-3);
        assert_eq!(s_curve(1.0, 3, 5), 1.0);
        assert_eq!(s_curve(0.0, 3, 5), 0.0);
    }

    #[test]
    fn a_threshold_of_one_takes_all_slots_as_one_band() {
        let plan = plan_bands(128, 1.0, 0.95).unwrap();
        assert_eq!((plan.bands, plan.rows, plan.recall), (1, 128, 1.0));
    }

    #[test]
    fn out_of_reach_says_what_is_reachable() {
        let Err(Error::InvalidParameter { name, message }) = plan_bands(4, 0.2, 0.99) else {
            panic!("refused")
        };
        assert_eq!(name, "recall");
        // 1 - 0.8^4 = 0.5904; 0.8^21 < 0.01 < 0.8^20.
        assert!(message.contains("0.590400"), "{message}");
        assert!(message.contains("num_slots >= 21"), "{message}");
        assert!(plan_bands(21, 0.2, 0.99).is_ok() && plan_bands(20, 0.2, 0.99).is_err());
        assert!(plan_bands(0, 0.5, 0.9).is_err());
        assert!(plan_bands(8, f64::NAN, 0.9).is_err());
        assert!(plan_bands(8, 0.5, 1.0).is_err());
    }

    #[test]
    fn estimate_bound() {
        // 128*(0.8 - 3*sqrt(0.16/128)) = 88.82...
        assert_eq!(min_equal_slots(128, 0.8), 89);
        assert_eq!(min_equal_slots(128, 1.0), 128);
        assert_eq!(min_equal_slots(4, 0.1), 0);
        assert_eq!(min_equal_slots(128, 0.0), 0);
        assert_eq!(min_equal_slots(0, 0.5), 0);
    }
}
