// Several steps in one launch. Each group has a tile of the grid and the cells around it in its own memory, and computes the cells around it
// itself, fewer with each step: it waits for no other group.

const TILE = 32;
const MOST = 4;
const SIDE = TILE + 2 * MOST;
const CELLS = SIDE * SIDE;
const LANES = 256;
// The cells of one invocation.
const SHARE = (CELLS + LANES - 1) / LANES;

const PERIODIC = 1u;
const CLAMPED = 2u;

var<workgroup> tile_u: array<f32, CELLS>;
var<workgroup> tile_v: array<f32, CELLS>;

// The sum over a cell of the tile and its neighbours, weighted 1 2 1 in both directions. No neighbour is taken beyond `low` and `high`.
fn around_u(at: vec2i, low: vec2i, high: vec2i) -> f32 {
    let up = clamp(at.y - 1, low.y, high.y) * SIDE;
    let here = at.y * SIDE;
    let down = clamp(at.y + 1, low.y, high.y) * SIDE;
    let before = clamp(at.x - 1, low.x, high.x);
    let behind = clamp(at.x + 1, low.x, high.x);
    let left = 2.0 * tile_u[here + before] + (tile_u[up + before] + tile_u[down + before]);
    let middle = 2.0 * tile_u[here + at.x] + (tile_u[up + at.x] + tile_u[down + at.x]);
    let right = 2.0 * tile_u[here + behind] + (tile_u[up + behind] + tile_u[down + behind]);
    return 2.0 * middle + (left + right);
}

fn around_v(at: vec2i, low: vec2i, high: vec2i) -> f32 {
    let up = clamp(at.y - 1, low.y, high.y) * SIDE;
    let here = at.y * SIDE;
    let down = clamp(at.y + 1, low.y, high.y) * SIDE;
    let before = clamp(at.x - 1, low.x, high.x);
    let behind = clamp(at.x + 1, low.x, high.x);
    let left = 2.0 * tile_v[here + before] + (tile_v[up + before] + tile_v[down + before]);
    let middle = 2.0 * tile_v[here + at.x] + (tile_v[up + at.x] + tile_v[down + at.x]);
    let right = 2.0 * tile_v[here + behind] + (tile_v[up + behind] + tile_v[down + behind]);
    return 2.0 * middle + (left + right);
}

// U and V of a cell of the tile after a step.
fn stepped(at: vec2i, low: vec2i, high: vec2i, marks: bool) -> vec2f {
    let u = tile_u[at.y * SIDE + at.x];
    let v = tile_v[at.y * SIDE + at.x];
    let uv = dt() * u * v;
    let change = u_spread() * around_u(at, low, high) + (feed() - u_loss() * u);
    let kept = v_spread() * around_v(at, low, high) + v_keep() * v;
    let new_u = u + (change - uv * v);
    var new_v = uv * v + kept;
    if marks {
        // 0 times infinity is not a number. The compiler does not know that this is 0, so it cannot leave it out.
        new_v += zero() * new_u;
    }
    return vec2f(new_u, new_v);
}

fn group(id: vec3u, local: vec3u, index: u32) {
    let size = vec2i(u_extent());
    let tile = vec2i(first_point() + id.xy * u32(TILE));
    // The place of the first cell around the tile in the grid.
    let origin = tile - MOST;
    var low = vec2i(0);
    var high = vec2i(SIDE - 1);
    if edges() == CLAMPED {
        low = max(low, -origin);
        high = min(high, size - 1 - origin);
    }
    let count = i32(steps());
    // The outermost cells that fewer steps do not need.
    let spare = MOST - count;
    // The tile may reach beyond the points of this launch, whose last ones need no cells farther than the steps: on several nodes only those are here.
    let needed = vec2i(end_point()) + count;
    for (var cell = i32(index); cell < CELLS; cell += LANES) {
        let at = vec2i(cell % SIDE, cell / SIDE);
        var place = origin + at;
        if edges() == PERIODIC {
            place = (place % size + size) % size;
        }
        var start = vec2f(0.0);
        let is_needed = all(at >= vec2i(spare)) && all(at < vec2i(SIDE - spare)) && all(origin + at < needed);
        if is_needed && all(place >= vec2i(0)) && all(place < size) {
            let row = u32(place.y);
            let col = u32(place.x);
            start = vec2f(u_get(row, col), v_get(row, col));
        }
        tile_u[cell] = start.x;
        tile_v[cell] = start.y;
    }
    workgroupBarrier();
    for (var step = 1; step <= count; step++) {
        let first = vec2i(spare + step);
        let end = vec2i(SIDE) - first;
        var after: array<vec2f, SHARE>;
        for (var share = 0; share < SHARE; share++) {
            let cell = i32(index) + share * LANES;
            let at = vec2i(cell % SIDE, cell / SIDE);
            let place = origin + at;
            // Cells outside of the grid stay as they are, and are 0.
            let is_cell = edges() == PERIODIC || (all(place >= vec2i(0)) && all(place < size));
            after[share] = vec2f(0.0);
            if is_cell && all(at >= first) && all(at < end) {
                after[share] = stepped(at, low, high, marks() == 1u && step == count);
            }
        }
        workgroupBarrier();
        for (var share = 0; share < SHARE; share++) {
            let cell = i32(index) + share * LANES;
            if cell < CELLS {
                tile_u[cell] = after[share].x;
                tile_v[cell] = after[share].y;
            }
        }
        workgroupBarrier();
    }
    for (var cell = i32(index); cell < TILE * TILE; cell += LANES) {
        let inside = vec2i(cell % TILE, cell / TILE);
        let place = vec2u(tile + inside);
        if all(place < end_point()) {
            let at = (inside.y + MOST) * SIDE + inside.x + MOST;
            next_u_set(place.y, place.x, tile_u[at]);
            next_v_set(place.y, place.x, tile_v[at]);
        }
    }
}
