//! The exact size of a largest conflict-free set, by branch and bound, of graphs of up to 128 vertices.

/// `rows[v]` are the neighbours of `v`.
pub fn optimum(rows: &[u128]) -> usize {
    let all = (0..rows.len()).fold(0, |set, v| set | 1 << v);
    let mut best = 0;
    branch(rows, all, 0, &mut best);
    best
}

fn branch(rows: &[u128], mut free: u128, mut size: usize, best: &mut usize) {
    loop {
        let bits = |set: u128| (0..rows.len()).filter(move |v| set >> v & 1 == 1);
        let degree = |v: usize| (rows[v] & free).count_ones();
        let Some(leaf) = bits(free).find(|&v| degree(v) <= 1) else {
            *best = size.max(*best);
            if size + cliques(rows, free) <= *best {
                return;
            }
            // The vertex with the most conflicts is either part of the set or not.
            let Some(v) = bits(free).max_by_key(|&v| degree(v)) else { return };
            branch(rows, free & !(rows[v] | 1 << v), size + 1, best);
            free &= !(1 << v);
            continue;
        };
        size += 1;
        free &= !(rows[leaf] | 1 << leaf);
    }
}

/// The number of cliques in a cover of `free`. No conflict-free set is larger.
fn cliques(rows: &[u128], mut free: u128) -> usize {
    let mut cliques = 0;
    while free != 0 {
        cliques += 1;
        let mut common = free;
        while common != 0 {
            let v = common.trailing_zeros() as usize;
            free &= !(1 << v);
            common &= rows[v];
        }
    }
    cliques
}
