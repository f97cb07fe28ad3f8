// Several steps in one launch. The text before this one sets STEPS, the steps of the launch, and LANES, the invocations of a group.
//
// A group has a tile of the grid and STEPS cells around it, and each invocation one column of these. The group goes down the rows once and makes all
// steps on the way. In a turn, it reads the next row of the state before the launch. The first step then has the neighbours of the row above that one.
// Each further step is two rows behind the one before it, so that it has what it needs from the turns before. An invocation keeps three rows
// of its column for each step, and gets from its neighbours the sums of their columns, which the group has in its own memory.
//
// The cells around the tile are computed by its neighbours, too, so a group waits for no other. The outermost cells of a group are wrong. With each step
// that reaches one cell further in, up to the edge of the tile.
//
// The lines between `for each step` and `end` stand for STEPS copies of them, in which the sign for a number is 0, 1 and so on. In a loop, a
// device would keep the rows in its memory.

const_assert LANES > 2 * STEPS;

const PERIODIC = 1u;
const CLAMPED = 2u;

// For each step, the sums of three cells below each other, of U and V, in each column. An array has room for two turns: while invocations read the sums
// of one turn, others write those of the next one.
// for each step
var<workgroup> sums_#: array<vec2f, 2 * LANES>;
// end

// Where the state of a cell is, along one dimension. It may be outside of the grid.
fn source(at: i32, size: i32) -> i32 {
    if edges() == PERIODIC {
        return (at % size + size) % size;
    }
    if edges() == CLAMPED {
        // In a mirror at the edge, cells have the neighbours that they have with edges that repeat the nearest cell.
        var place = at % (2 * size);
        if place < 0 {
            place += 2 * size;
        }
        return min(place, 2 * size - 1 - place);
    }
    return at;
}

fn is_inside(place: i32, size: i32) -> bool {
    return (place >= 0) & (place < size);
}

// U and V of a cell after a step. `around` is the weighted sum over it and its neighbours.
fn stepped(here: vec2f, around: vec2f) -> vec2f {
    let u = here.x;
    let v = here.y;
    let uv = dt() * u * v;
    let change = u_spread() * around.x + (feed() - u_loss() * u);
    let kept = v_spread() * around.y + v_keep() * v;
    return vec2f(u + (change - uv * v), uv * v + kept);
}

fn group(id: vec3u, local: vec3u, index: u32) {
    let size = vec2i(u_extent());
    let end = vec2i(end_point());
    let tile = vec2i(first_point()) + vec2i(id.xy) * vec2i(LANES - 2 * STEPS, i32(height()));
    let end_row = min(end.y, tile.y + i32(height()));
    let lane = i32(index);
    let left = max(lane - 1, 0);
    let right = min(lane + 1, LANES - 1);
    let column = tile.x - STEPS + lane;
    // Beyond the last points of this launch, cells farther than the steps may not be here. An invocation that needs no cell reads another one, because a
    // device has several reads on their way at once only if they depend on no condition.
    let source_column = source(min(column, end.x + STEPS - 1), size.x);
    let has_column = is_inside(source_column, size.x);
    let column_read = u32(clamp(source_column, 0, size.x - 1));
    // The rows of this column that are cells. With absorbing edges these are in the grid, and the others are 0.
    var first_cell = -0x40000000;
    var cells = 0x80000000u;
    if edges() != PERIODIC && edges() != CLAMPED {
        first_cell = 0;
        cells = select(0u, u32(size.y), is_inside(column, size.x));
    }
    // The rows that this invocation writes, from the first one of the tile.
    let is_in_tile = lane >= STEPS && lane < LANES - STEPS && column < end.x;
    let rows_written = select(0u, u32(end_row - tile.y), is_in_tile);

    // The last three rows that each step has got.
    // for each step
    var above_# = vec2f(0.0);
    var here_# = vec2f(0.0);
    var below_# = vec2f(0.0);
    // end
    var buffer = 0;
    // The first turn only reads. Row `y` is the last one that the first step has, and the last step is 2 STEPS - 1 rows behind.
    for (var y = tile.y - STEPS - 1; y < end_row + 2 * STEPS - 1; y++) {
        let source_row = source(min(y + 1, end_row + STEPS - 1), size.y);
        let row_read = u32(clamp(source_row, 0, size.y - 1));
        let read = vec2f(u_get(row_read, column_read), v_get(row_read, column_read));
        let at = buffer + lane;
        // for each step
        let sum_# = 2.0 * here_# + (above_# + below_#);
        sums_#[at] = sum_#;
        // end
        workgroupBarrier();
        let at_left = buffer + left;
        let at_right = buffer + right;
        // The row that a step gets from the one before it.
        var next = select(vec2f(0.0), read, has_column & is_inside(source_row, size.y));
        // for each step
        {
            let around = 2.0 * sum_# + (sums_#[at_left] + sums_#[at_right]);
            let after = stepped(here_#, around);
            above_# = here_#;
            here_# = below_#;
            below_# = next;
            next = select(vec2f(0.0), after, u32(y - (2 * # + 1) - first_cell) < cells);
        }
        // end
        let row = y - (2 * STEPS - 1);
        if u32(row - tile.y) < rows_written {
            if marks() == 1u {
                // 0 times infinity is NaN. The compiler does not know that this is 0, so it cannot leave it out.
                next.y += zero() * next.x;
            }
            next_u_set(u32(row), u32(column), next.x);
            next_v_set(u32(row), u32(column), next.y);
        }
        buffer = LANES - buffer;
    }
}
