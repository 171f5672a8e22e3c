//! Samples in picoampere: (sample + offset) · (range / digitisation) (SLOW5 specification, "SLOW5
//! record"). They are calculated in 64 bits, in the order of slow5lib, and rounded to 32 at the
//! end.
//!
//! ```
//! use thalweg_codec::picoampere::Calibration;
//!
//! let mut values = Vec::new();
//! Calibration::new(10.0, 1467.6, 8192.0).convert(&[490], &mut values);
//! assert_eq!(values, [89.575195]);
//! ```

use crate::Kernel;

/// What makes picoampere of a read's samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    offset: f64,
    scale: f64,
}

impl Calibration {
    /// The calibration of a read.
    pub fn new(offset: f64, range: f64, digitisation: f64) -> Self {
        Self { offset, scale: range / digitisation }
    }

    /// A sample in picoampere.
    #[inline]
    pub fn of(self, sample: i16) -> f32 {
        ((f64::from(sample) + self.offset) * self.scale) as f32
    }

    /// Appends samples in picoampere.
    pub fn convert(self, samples: &[i16], out: &mut Vec<f32>) {
        self.convert_with(Kernel::best(), samples, out);
    }

    /// [`Calibration::convert`] by a given kernel, which must be available.
    #[doc(hidden)]
    pub fn convert_with(self, kernel: Kernel, samples: &[i16], out: &mut Vec<f32>) {
        kernel.picoampere(self, samples, out);
    }
}
