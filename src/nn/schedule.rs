//! The learning rate of each step.

/// Linear warm-up, then half a cosine down to zero (Loshchilov and Hutter 2017).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// Steps of rising rate.
    pub warmup: u64,
    /// Steps in all.
    pub steps: u64,
}

impl Schedule {
    /// The share of the peak rate at `step`, counted from 0.
    pub fn factor(&self, step: u64) -> f64 {
        let warmup = self.warmup.min(self.steps);
        if step < warmup {
            return (step + 1) as f64 / warmup as f64;
        }
        let progress = (step - warmup) as f64 / (self.steps - warmup).max(1) as f64;
        0.5 * (1.0 + (std::f64::consts::PI * progress.min(1.0)).cos())
    }
}
