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
    let (mut u, mut v) = (vec![0.0; rows * cols], vec![0.0; rows * cols]);
    initial_rows([rows, cols], noise, 0..rows, &mut u, &mut v);
    (u, v)
}

/// Some `rows` of the [`initial`] state of a grid of this shape.
///
/// # Panics
/// If the rows are not all in the grid, or `u` and `v` do not have as many elements.
pub fn initial_rows(shape: [usize; 2], noise: Option<u64>, rows: Range<usize>, u: &mut [f32], v: &mut [f32]) {
    let cells = rows.len() * shape[1];
    assert!(rows.end <= shape[0] && u.len() == cells && v.len() == cells, "{rows:?} of {shape:?}");
    u.fill(1.0);
    v.fill(0.0);
    let (spot_rows, spot_cols) = spot(shape[0], shape[1]);
    for row in spot_rows.start.max(rows.start)..spot_rows.end.min(rows.end) {
        let start = (row - rows.start) * shape[1];
        let cells = start + spot_cols.start..start + spot_cols.end;
        u[cells.clone()].fill(0.0);
        v[cells].fill(1.0);
    }
    if let Some(seed) = noise {
        let before = rows.start as u64 * shape[1] as u64;
        disturb(u, v, seed.wrapping_add(before.wrapping_mul(GAMMA)));
    }
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

/// The difference between two states of the generator. So the state before any number is known.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64, the generator of Steele, Lea and Flood (<https://doi.org/10.1145/2660193.2660195>): one 64-bit
/// number for each call, from any seed.
fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(GAMMA);
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
    fn rows_are_those_of_the_whole_state() {
        for noise in [None, Some(7)] {
            let (u, v) = initial(100, 33, noise);
            for rows in [0..1, 0..100, 17..42, 41..47, 99..100, 50..50] {
                let cells = rows.start * 33..rows.end * 33;
                let (mut part_u, mut part_v) = (vec![9.0; cells.len()], vec![9.0; cells.len()]);
                initial_rows([100, 33], noise, rows.clone(), &mut part_u, &mut part_v);
                assert!(part_u == u[cells.clone()] && part_v == v[cells], "{rows:?}");
            }
        }
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
