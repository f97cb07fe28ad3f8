// Several steps in one launch. Each group has a tile of the grid and the cells around it in its own memory, and computes the cells around it
// itself, fewer with each step: it waits for no other group.
//
// An invocation has a strip of cells below each other. From cell to cell it reads one row of neighbours and keeps the two rows above.
//
// The lines between `repeat N` and `end` stand for N copies of them, in which the sign for a number is 0, 1 and so on. In a loop, a device would keep
// what belongs to each cell in its memory, and would wait for each element before it asks for the next one.

const TILE = 32;
const MOST = 4;
const SIDE = TILE + 2 * MOST;
const CELLS = SIDE * SIDE;
const LANES = 256;
// The strips of a column, the cells of each, and the invocations that have one.
const STRIPS = LANES / SIDE;
const STRIP = (SIDE + STRIPS - 1) / STRIPS;
const BUSY = STRIPS * SIDE;
// What is repeated 7 times has all cells of a strip, and all shares of the cells that an invocation reads.
const_assert STRIP == 7 && (CELLS + LANES - 1) / LANES == 7 && TILE * TILE == 4 * LANES;

const PERIODIC = 1u;
const CLAMPED = 2u;

// U and V of each cell.
var<workgroup> cells: array<vec2f, CELLS>;

// The neighbours of a strip to the left, in it, and to the right.
struct Row {
    left: vec2f,
    here: vec2f,
    right: vec2f,
}

fn row_of(y: i32, columns: vec3i) -> Row {
    let first = clamp(y, 0, SIDE - 1) * SIDE;
    return Row(cells[first + columns.x], cells[first + columns.y], cells[first + columns.z]);
}

// U and V of the cell in the middle of three rows, after a step.
fn stepped(above: Row, row: Row, below: Row, marks: bool) -> vec2f {
    let left = 2.0 * row.left + (above.left + below.left);
    let middle = 2.0 * row.here + (above.here + below.here);
    let right = 2.0 * row.right + (above.right + below.right);
    let around = 2.0 * middle + (left + right);
    let u = row.here.x;
    let v = row.here.y;
    let uv = dt() * u * v;
    let change = u_spread() * around.x + (feed() - u_loss() * u);
    let kept = v_spread() * around.y + v_keep() * v;
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
    let count = i32(steps());
    // The outermost cells that fewer steps do not need.
    let spare = MOST - count;
    // The tile may reach beyond the points of this launch, whose last ones need no cells farther than the steps: on several nodes only those are here.
    let needed = vec2i(end_point()) + count;
    // repeat 7
    var start_# = vec2f(0.0);
    {
        let cell = i32(index) + # * LANES;
        let at = vec2i(cell % SIDE, cell / SIDE);
        var place = origin + at;
        if edges() == PERIODIC {
            place = (place % size + size) % size;
        }
        let is_needed = all(at >= vec2i(spare)) && all(at < vec2i(SIDE - spare)) && all(origin + at < needed);
        if is_needed && all(place >= vec2i(0)) && all(place < size) {
            let row = u32(place.y);
            let col = u32(place.x);
            start_# = vec2f(u_get(row, col), v_get(row, col));
        }
    }
    // end
    // repeat 7
    if i32(index) + # * LANES < CELLS {
        cells[i32(index) + # * LANES] = start_#;
    }
    // end
    workgroupBarrier();
    let column = i32(index) % SIDE;
    let first = i32(index) / SIDE * STRIP;
    // The first and the last cells of the tile that are neighbours of others: with clamped edges those of the grid.
    var low = vec2i(0);
    var high = vec2i(SIDE - 1);
    if edges() == CLAMPED {
        low = max(low, -origin);
        high = min(high, size - 1 - origin);
    }
    let columns = vec3i(clamp(column - 1, low.x, high.x), column, clamp(column + 1, low.x, high.x));
    // The rows of the strip that are cells of the grid. Others stay as they are, and are 0.
    var inside = vec2i(0, SIDE);
    if edges() != PERIODIC {
        inside = vec2i(max(0, -origin.y), min(SIDE, size.y - origin.y));
        if origin.x + column < 0 || origin.x + column >= size.x {
            inside.y = 0;
        }
    }
    if i32(index) >= BUSY {
        inside.y = 0;
    }
    for (var step = 1; step <= count; step++) {
        let edge = spare + step;
        var rows = vec2i(max(inside.x, edge), min(inside.y, SIDE - edge));
        if column < edge || column >= SIDE - edge {
            rows.y = 0;
        }
        let marked = marks() == 1u && step == count;
        var above = row_of(first - 1, columns);
        var row = row_of(first, columns);
        // repeat 7
        var after_# = vec2f(0.0);
        {
            let y = first + #;
            var below = row_of(y + 1, columns);
            if y == low.y {
                above = row;
            }
            if y == high.y {
                below = row;
            }
            if y >= rows.x && y < rows.y {
                after_# = stepped(above, row, below, marked);
            }
            above = row;
            row = below;
        }
        // end
        workgroupBarrier();
        // repeat 7
        if i32(index) < BUSY && first + # < SIDE {
            cells[(first + #) * SIDE + column] = after_#;
        }
        // end
        workgroupBarrier();
    }
    // repeat 4
    {
        let cell = i32(index) + # * LANES;
        let inside = vec2i(cell % TILE, cell / TILE);
        let place = vec2u(tile + inside);
        if all(place < end_point()) {
            let at = (inside.y + MOST) * SIDE + inside.x + MOST;
            next_u_set(place.y, place.x, cells[at].x);
            next_v_set(place.y, place.x, cells[at].y);
        }
    }
    // end
}
