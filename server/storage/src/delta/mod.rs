//! Delta Lake, over delta_kernel.

/// What Delta keeps of a version: the kernel's snapshot, protocol and metadata.
#[derive(Debug)]
pub struct DeltaSnapshot {}
