//! The instruction sets that the signal codecs can use on this processor.

use std::sync::OnceLock;

/// A set of instructions that a signal codec can decode with.
///
/// Public for tests and benchmarks, which run every available kernel. The codecs choose the best
/// one themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// Plain Rust: the definition of each codec.
    Scalar,
    /// 8 samples at a time by byte shuffles.
    #[cfg(target_arch = "x86_64")]
    Ssse3,
    /// 16 samples at a time.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 32 samples at a time; a byte expansion (VBMI2) replaces shuffles and tables.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 8 samples at a time by table look-up; every 64-bit ARM has it.
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl Kernel {
    /// The fastest kernel of this machine. The processor is queried once.
    #[must_use]
    pub fn best() -> Self {
        static BEST: OnceLock<Kernel> = OnceLock::new();
        *BEST.get_or_init(|| Self::available().last().copied().unwrap_or(Self::Scalar))
    }

    /// Every kernel that this machine can run, slowest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut kernels = vec![Self::Scalar];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("ssse3") && is_x86_feature_detected!("popcnt") {
                kernels.push(Self::Ssse3);
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
                kernels.push(Self::Avx2);
            }
            if is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512vbmi2")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("popcnt")
            {
                kernels.push(Self::Avx512);
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            kernels.push(Self::Neon);
        }
        kernels
    }

    /// Whether this machine can run the kernel. Debug builds call it for every block, so it must
    /// not allocate.
    pub(crate) fn is_available(self) -> bool {
        static AVAILABLE: OnceLock<Vec<Kernel>> = OnceLock::new();
        AVAILABLE.get_or_init(Self::available).contains(&self)
    }
}
