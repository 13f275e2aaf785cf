//! How delays are distributed: tables of 4096 quantiles in units of the standard deviation, as tc loads them into the kernel.
use crate::Nanos;
use alloc::vec::Vec;

/// A distribution of delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Distribution {
    /// Evenly, `jitter` to both sides.
    #[default]
    Uniform,
    /// The normal distribution.
    Normal,
    /// The Pareto distribution with shape 3, shifted and scaled to a mean near 0 and a deviation
    /// near 1.
    Pareto,
    /// A quarter of the normal one and three quarters of the Pareto one.
    ParetoNormal,
}

/// What 1.0 is in a table (`NETEM_DIST_SCALE`).
const SCALE: i64 = 8192;
const ROWS: u32 = 4096;

/// Quantiles of a distribution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table(Vec<i16>);

impl Table {
    /// `None`: evenly, without a table.
    pub(super) fn new(distribution: Distribution) -> Option<Table> {
        let row: fn(u32) -> i16 = match distribution {
            Distribution::Uniform => return None,
            Distribution::Normal => normal,
            Distribution::Pareto => pareto,
            Distribution::ParetoNormal => |row| {
                let mixed = 0.25 * f64::from(normal(row)) + 0.75 * f64::from(pareto(row));
                mixed as i16
            },
        };
        Some(Table((0..ROWS).map(row).collect()))
    }
}

/// A delay around `mu`, from 32 random bits (`tabledist`). May be negative: then the packet goes at once.
pub(super) fn spread(mu: Nanos, sigma: Nanos, random: u32, table: Option<&Table>) -> i64 {
    let [mu, sigma] = [mu, sigma].map(|nanos| i64::try_from(nanos).unwrap_or(i64::MAX));
    if sigma == 0 {
        return mu;
    }
    let off = match table {
        None => {
            let width = i128::from(sigma) * 2;
            // All 32 bits count, also for a jitter of more than 2^31 ns.
            let drawn =
                if width > 1 << 32 { (i128::from(random) * width) >> 32 } else { i128::from(random) % width };
            drawn - i128::from(sigma)
        }
        Some(Table(rows)) => {
            let t = rows.get(random as usize % rows.len().max(1)).copied().unwrap_or(0);
            // Rounded to the nearest.
            let product = i128::from(sigma) * i128::from(t);
            let half = i128::from(SCALE / 2) * product.signum();
            (product + half) / i128::from(SCALE)
        }
    };
    i64::try_from(i128::from(mu) + off).unwrap_or(i64::MAX)
}

fn normal(row: u32) -> i16 {
    let p = (f64::from(row) * 4.0 + 0.5) / (f64::from(ROWS) * 4.0);
    libm::round(inverse_normal(p) * SCALE as f64).clamp(i16::MIN.into(), i16::MAX.into()) as i16
}

fn pareto(row: u32) -> i16 {
    let tail = f64::from(ROWS - row) / f64::from(ROWS);
    let quantile = (1.0 / libm::cbrt(tail) - 1.5) * (4.0 / 3.0) * SCALE as f64;
    libm::roundeven(quantile).min(i16::MAX.into()) as i16
}

/// The quantile of the standard normal distribution, to about 1e-9 (Acklam's rational approximation).
fn inverse_normal(p: f64) -> f64 {
    const A: [f64; 6] = [
        -39.696_830_286_653_76,
        220.946_098_424_520_5,
        -275.928_510_446_968_7,
        138.357_751_867_269,
        -30.664_798_066_147_16,
        2.506_628_277_459_239,
    ];
    const B: [f64; 6] = [
        -54.476_098_798_224_06,
        161.585_836_858_040_9,
        -155.698_979_859_886_6,
        66.801_311_887_719_72,
        -13.280_681_552_885_72,
        1.0,
    ];
    const C: [f64; 6] = [
        -0.007_784_894_002_430_293,
        -0.322_396_458_041_136_5,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 5] = [
        0.007_784_695_709_041_462,
        0.322_467_129_070_039_8,
        2.445_134_137_142_996,
        3.754_408_661_907_416,
        1.0,
    ];
    let polynomial = |coefficients: &[f64], x: f64| coefficients.iter().fold(0.0, |sum, c| sum * x + c);
    let tail = |p: f64| {
        let q = libm::sqrt(-2.0 * libm::log(p));
        polynomial(&C, q) / polynomial(&D, q)
    };
    const TAIL: f64 = 0.024_25;
    if p < TAIL {
        tail(p)
    } else if p > 1.0 - TAIL {
        -tail(1.0 - p)
    } else {
        let q = p - 0.5;
        let r = q * q;
        q * polynomial(&A, r) / polynomial(&B, r)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_and_deviation(distribution: Distribution) -> (f64, f64) {
        let Table(rows) = Table::new(distribution).unwrap();
        let values: Vec<f64> = rows.iter().map(|row| f64::from(*row) / SCALE as f64).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let square = values.iter().map(|v| v * v).sum::<f64>() / values.len() as f64;
        (mean, (square - mean * mean).sqrt())
    }

    #[test]
    fn the_tables_are_iproute2s() {
        // Rows of the tables that iproute2 6.1 installs.
        let rows = |distribution, at: [usize; 4]| at.map(|n| Table::new(distribution).unwrap().0[n]);
        assert_eq!(rows(Distribution::Normal, [2046, 2047, 2048, 2049]), [-9, -4, 1, 6]);
        assert!(
            rows(Distribution::Normal, [1, 2, 3, 4])
                .iter()
                .zip([-28307, -26871, -25967, -25298])
                .all(|(a, b)| (i32::from(*a) - b).abs() < 80)
        );
        assert_eq!(rows(Distribution::Pareto, [0, 1, 4, 2047]), [-5461, -5460, -5458, -2625]);
        assert!(
            rows(Distribution::ParetoNormal, [1, 2, 3, 4095])
                .iter()
                .zip([-11171, -10812, -10586, 31789])
                .all(|(a, b)| (i32::from(*a) - b).abs() < 20)
        );
    }

    #[test]
    fn means_and_deviations() {
        let near = |(mean, deviation): (f64, f64), m: f64, d: f64| {
            (mean - m).abs() < 0.002 && (deviation - d).abs() < 0.002
        };
        assert!(near(mean_and_deviation(Distribution::Normal), -0.0008, 1.0));
        assert!(near(mean_and_deviation(Distribution::Pareto), -0.0335, 0.8197));
        assert!(near(mean_and_deviation(Distribution::ParetoNormal), -0.0253, 0.8339));
    }

    #[test]
    fn a_delay_stays_within_its_jitter_unless_it_is_distributed() {
        for random in (0..u32::MAX).step_by(9_999_991) {
            assert!((8_000_000..12_000_000).contains(&spread(10_000_000, 2_000_000, random, None)));
        }
        let table = Table::new(Distribution::Normal);
        assert_eq!(spread(10_000_000, 2_000_000, 0, table.as_ref()), 2_000_000, "four deviations below");
        assert_eq!(spread(7, 0, 123, table.as_ref()), 7);
        assert_eq!(spread(u64::MAX, u64::MAX, u32::MAX, None), i64::MAX);
    }
}
