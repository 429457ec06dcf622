//! What do two sorted feature sets share?

use crate::isa::Isa;

use super::side::Side;

/// Returns the number of shared features, or any number below `needed` if there are fewer than that.
pub(super) fn num_shared(a: Side<'_>, b: Side<'_>, needed: u64, isa: Isa) -> u64 {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa` of these kinds is created only if the processor has it. AVX-512 would not be faster.
        Isa::Avx2(_) | Isa::Avx512(_) => unsafe { super::intersect_avx2::num_shared(a, b, needed) },
        _ => plain_shared(a, b),
    }
}

/// Returns the sum over shared features of the lesser weight, or of the product (`is_product`), below 2^64.
pub(super) fn sum(a: Side<'_>, b: Side<'_>, is_product: bool, isa: Isa) -> u64 {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::Avx2(_) | Isa::Avx512(_) => unsafe { super::intersect_avx2::sum(a, b, is_product) },
        _ => plain_sum(a, b, is_product) as u64,
    }
}

/// Returns the number of shared features, without branches on the data: the oracle of the vector kernels.
fn plain_shared(a: Side<'_>, b: Side<'_>) -> u64 {
    let (a, b) = (a.features(), b.features());
    let (mut i, mut j, mut num_shared) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        let (x, y) = (a[i], b[j]);
        num_shared += u64::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    num_shared
}

/// Returns the weighted sum: the oracle of the vector kernels.
pub(super) fn plain_sum(a: Side<'_>, b: Side<'_>, is_product: bool) -> u128 {
    let (x, y) = (a.features(), b.features());
    let (mut i, mut j, mut sum) = (0, 0, 0u128);
    while i < x.len() && j < y.len() {
        if x[i] == y[j] {
            let (v, w) = (a.weight(i), b.weight(j));
            sum += if is_product {
                u128::from(v) * u128::from(w)
            } else {
                u128::from(v.min(w))
            };
            (i, j) = (i + 1, j + 1);
        } else if x[i] < y[j] {
            i += 1;
        } else {
            j += 1;
        }
    }
    sum
}
