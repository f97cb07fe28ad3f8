//! The initial state.

use std::ops::Range;

/// The largest change that noise makes to either species of a cell.
pub const NOISE_AMPLITUDE: f32 = 0.01;

/// The initial `(u, v)` of a grid, row after row: U = 1 and V = 0 everywhere but in one rectangle, a little
/// off-centre, where U = 0 and V = 1.
///
/// With a `noise` seed every cell and species is moved by an amount below [`NOISE_AMPLITUDE`], away from the
/// end of `0..=1` that it stands at, so that all stay in `0..=1`. Equal seeds give equal states on every
/// machine.
///
/// ```
/// let (u, v) = gray_scott::model::initial(256, 256, None);
/// assert_eq!((u[0], v[0]), (1.0, 0.0));
/// assert_eq!((u[115 * 256 + 120], v[115 * 256 + 120]), (0.0, 1.0));
/// ```
pub fn initial(rows: usize, cols: usize, noise: Option<u64>) -> (Vec<f32>, Vec<f32>) {
    let (mut u, mut v) = (vec![1.0; rows * cols], vec![0.0; rows * cols]);
    let (spot_rows, spot_cols) = spot(rows, cols);
    for row in spot_rows {
        let cells = row * cols + spot_cols.start..row * cols + spot_cols.end;
        u[cells.clone()].fill(0.0);
        v[cells].fill(1.0);
    }
    if let Some(seed) = noise {
        disturb(&mut u, &mut v, seed);
    }
    (u, v)
}

/// Rows and columns of the rectangle.
fn spot(rows: usize, cols: usize) -> (Range<usize>, Range<usize>) {
    let row = |sixteenths: usize| (rows * sixteenths / 16).saturating_sub(4);
    let col = |sixteenths: usize| cols * sixteenths / 16;
    (row(7)..row(8), col(7)..col(8))
}

fn disturb(u: &mut [f32], v: &mut [f32], seed: u64) {
    let mut state = seed;
    let inwards = |value: &mut f32, bits: u32| {
        let amount = NOISE_AMPLITUDE * unit(bits);
        *value = if *value > 0.5 { *value - amount } else { *value + amount };
    };
    for (u, v) in u.iter_mut().zip(v) {
        let bits = splitmix64(&mut state);
        inwards(u, (bits >> 32) as u32);
        inwards(v, bits as u32);
    }
}

/// The upper 24 bits as a number in `0..1`, without rounding.
fn unit(bits: u32) -> f32 {
    (bits >> 8) as f32 / (1 << 24) as f32
}

/// SplitMix64, the generator of Steele, Lea and Flood (<https://doi.org/10.1145/2660193.2660195>): one 64-bit
/// number for each call, from any seed.
fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rectangle_is_where_the_model_says() {
        assert_eq!(spot(256, 256), (108..124, 112..128));
        assert_eq!(spot(1080, 1920), (468..536, 840..960));
        assert_eq!(spot(100, 173), (39..46, 75..86));
    }

    #[test]
    fn every_size_has_an_initial_state() {
        for (rows, cols) in [(1, 1), (1, 100), (7, 3), (9, 16)] {
            let (u, v) = initial(rows, cols, None);
            assert_eq!((u.len(), v.len()), (rows * cols, rows * cols));
            assert!(u.iter().zip(&v).all(|(u, v)| u + v == 1.0));
        }
        assert_eq!(spot(1, 1), (0..0, 0..0));
        assert_eq!(spot(9, 16), (0..0, 7..8));
    }

    #[test]
    fn noise_is_small_stays_in_range_and_depends_on_its_seed() {
        let (u, v) = initial(40, 30, None);
        let (nu, nv) = initial(40, 30, Some(7));
        assert_eq!((nu.clone(), nv.clone()), initial(40, 30, Some(7)));
        assert_ne!(nu, initial(40, 30, Some(8)).0);
        for (plain, noisy) in u.iter().chain(&v).zip(nu.iter().chain(&nv)) {
            assert!((0.0..=1.0).contains(noisy) && (plain - noisy).abs() <= NOISE_AMPLITUDE);
        }
        let mean = nv.iter().zip(&v).map(|(noisy, plain)| (noisy - plain).abs()).sum::<f32>() / 1200.0;
        assert!((mean - NOISE_AMPLITUDE / 2.0).abs() < 5e-4, "mean {mean}");
    }

    #[test]
    fn the_generator_gives_the_published_numbers() {
        let mut state = 1_234_567;
        let numbers = [(); 3].map(|()| splitmix64(&mut state));
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }
}
