//! What the requests and bytes of a plan cost.

use clap::Args;

/// Prices of an object store, for --explain. The defaults are those of `docs/remote.md`.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct PriceArgs {
    /// URLs, with --explain: the price of 1,000 GETs in US dollars
    #[arg(long, value_name = "USD", default_value_t = 0.0004, value_parser = price)]
    #[arg(requires = "explain")]
    price_get: f64,
    /// URLs, with --explain: the price of 1 GB that leaves the service, in US dollars; 0 within the
    /// region
    #[arg(long, value_name = "USD", default_value_t = 0.09, value_parser = price)]
    #[arg(requires = "explain")]
    price_gb: f64,
}

fn price(text: &str) -> Result<f64, String> {
    let price = text.parse().ok().filter(|price: &f64| price.is_finite() && *price >= 0.0);
    price.ok_or_else(|| "a price in US dollars, as in 0.0004, is needed".into())
}

impl PriceArgs {
    /// The cost of so many GETs and bytes, in US dollars.
    pub(crate) fn cost(&self, gets: u64, bytes: u64) -> f64 {
        gets as f64 / 1e3 * self.price_get + bytes as f64 / 1e9 * self.price_gb
    }

    /// The cost in words.
    pub(crate) fn in_words(&self, gets: u64, bytes: u64) -> String {
        format!(
            "{} USD, at {} USD for 1,000 GETs and {} USD for 1 GB",
            digits(self.cost(gets, bytes)),
            self.price_get,
            self.price_gb
        )
    }
}

/// A price with three significant digits.
fn digits(price: f64) -> String {
    let before = if price > 0.0 { price.log10().floor() as i32 } else { 0 };
    let after = (2 - before).clamp(0, 12) as usize;
    format!("{price:.after$}")
}

#[cfg(test)]
mod tests {
    use super::{PriceArgs, digits};

    #[test]
    fn requests_and_bytes_have_their_prices() {
        let prices = PriceArgs { price_get: 0.0004, price_gb: 0.09 };
        assert!((prices.cost(10_000, 2_000_000_000) - 0.184).abs() < 1e-12);
        let shown = [12.345, 0.184, 0.000_012_34, 0.0, 1234.5].map(digits);
        assert_eq!(shown, ["12.3", "0.184", "0.0000123", "0.00", "1234"]);
    }
}
