//! Derives a store model from the points of a probe. The engine plans its reads by this model.

use thalweg_io::model::StoreModel;

use super::{Probe, ProbePoint};

/// The model uses the fewest bytes in flight that reach this share of the best bandwidth. Any
/// further gain is smaller than the scatter of the windows.
const ENOUGH: f64 = 0.95;

impl Probe {
    /// The point for the engine: the one with the fewest bytes in flight that comes within 5 % of
    /// the fastest. Of equal points, the one with the fewest requests.
    pub fn chosen(&self) -> Option<&ProbePoint> {
        let enough = self.best()?.bytes_per_s * ENOUGH;
        let good = self.points.iter().filter(|p| !p.scattered && p.bytes_per_s >= enough);
        good.min_by_key(|p| (p.block_bytes * p.depth as u64, p.depth))
    }

    /// The model of this store; `None` if the sweep or the scattered requests gave no figures.
    pub fn store_model(&self) -> Option<StoreModel> {
        let chosen = self.chosen()?;
        let mut scattered = self.points.iter().filter(|p| p.scattered && p.bytes_per_s > 0.0);
        let latency_s = match self.latency {
            Some(latency) => latency.median_s,
            // With one request in flight, each request waits for the one before.
            None => {
                scattered.find(|p| p.depth == 1).map(|p| p.block_bytes as f64 / p.bytes_per_s)?
            }
        };
        Some(StoreModel {
            latency_s,
            latency_p99_s: self.latency.map(|latency| latency.p99_s),
            bandwidth: chosen.bytes_per_s,
            connection: self.connection_bytes_per_s(),
            request_rate: self.requests_per_s()?,
            depth: chosen.depth,
            block: usize::try_from(chosen.block_bytes).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(scattered: bool, block_bytes: u64, depth: usize, bytes_per_s: f64) -> ProbePoint {
        ProbePoint { block_bytes, depth, scattered, windows: Vec::new(), bytes_per_s }
    }

    fn probe(points: Vec<ProbePoint>) -> Probe {
        let memory = Vec::new();
        let notes = Vec::new();
        Probe {
            file: "f".into(),
            file_bytes: 1 << 30,
            direct: true,
            points,
            latency: None,
            single_stream_bytes_per_s: None,
            memory,
            throttle: None,
            twice: None,
            notes,
        }
    }

    #[test]
    fn the_least_in_flight_that_is_nearly_the_best() {
        let p = probe(vec![
            point(false, 1 << 20, 1, 0.5e9),
            point(false, 1 << 20, 4, 1.91e9),
            point(false, 512 << 10, 8, 1.92e9),
            point(false, 1 << 20, 8, 1.97e9),
            point(false, 4 << 20, 16, 2.0e9),
            point(true, 4096, 1, 4096.0 / 80e-6),
            point(true, 4096, 32, 4096.0 * 50_000.0),
        ]);
        let model = p.store_model();
        // Two points have 4 MiB in flight. The one with fewer requests is chosen, although the
        // other is slightly faster.
        assert_eq!(model.map(|m| (m.depth, m.block, m.bandwidth)), Some((4, 1 << 20, 1.91e9)));
        assert!(model.is_some_and(
            |m| (m.latency_s - 80e-6).abs() < 1e-12 && (m.request_rate - 50e3).abs() < 1e-6
        ));
    }

    #[test]
    fn half_a_probe_makes_no_model() {
        assert_eq!(probe(Vec::new()).store_model(), None);
        assert_eq!(probe(vec![point(false, 1 << 20, 1, 1e9)]).store_model(), None);
        assert_eq!(probe(vec![point(true, 4096, 1, 1e6)]).store_model(), None);
    }
}
