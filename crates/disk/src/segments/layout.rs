//! What stands where in the file of a segment?

/// Bands of signatures, as [`likewise_core::bands`] has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BandPlan {
    /// Slots of a signature.
    pub num_slots: u32,
    /// Bytes of a slot.
    pub slot_bytes: u32,
    /// Bands.
    pub bands: u32,
    /// Slots of a band.
    pub rows: u32,
}

/// Fingerprints that are searched by distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HammingPlan {
    /// Width of a fingerprint.
    pub bits: u32,
    /// The radius.
    pub within: u32,
    /// Most bytes of tables for a fingerprint; as fast as can be where `None`.
    pub table_bytes: Option<u32>,
}
