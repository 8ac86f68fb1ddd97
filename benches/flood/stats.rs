//! Medians, ranges and quantiles over rounds.

/// Median and range over rounds.
pub(crate) struct Spread {
    pub(crate) low: f64,
    pub(crate) median: f64,
    pub(crate) high: f64,
}

impl Spread {
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.into_iter().collect();
        Self {
            low: quantile(&values, 0.0),
            median: quantile(&values, 0.5),
            high: quantile(&values, 1.0),
        }
    }

    /// Computes median and range of one quantile that is taken in each round.
    pub(crate) fn of_quantile<'r>(rounds: impl IntoIterator<Item = &'r [f64]>, part: f64) -> Self {
        Self::of(rounds.into_iter().map(|values| quantile(values, part)))
    }
}

fn quantile(values: &[f64], part: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let at = (values.len().saturating_sub(1) as f64 * part).round();
    values.get(at as usize).copied().unwrap_or(f64::NAN)
}
