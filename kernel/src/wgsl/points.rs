//! Which point each invocation of a shader has, and the dispatches that have all points of a box.

use super::error::WgslError;
use smallvec::SmallVec;

/// The number of points of a group.
pub const GROUP: u32 = 256;

/// The fields at the front of the block, all `u32`.
pub(crate) const HEAD: [&str; 9] =
    ["first_z", "first_y", "first_x", "planes", "rows", "columns", "width", "fold", "turns"];

/// Their bytes.
pub(super) const HEAD_BYTES: usize = 4 * HEAD.len();

/// The most columns of a group that has several rows: a line of a GPU's cache, twice.
const COLUMNS: u32 = 64;

/// A dispatch for a part of a box.
pub(crate) struct Part {
    /// The values of the [`HEAD`].
    pub(crate) head: [u32; 9],
    /// The number of groups in each dimension of the dispatch.
    pub(crate) groups: [u32; 3],
}

/// The most columns of a dispatch. The numbers of those behind the last one have 32 bits, too.
const MOST_COLUMNS: u64 = 1 << 31;

/// The dispatches for the points from the first of `points` to below the second. `most` is the number of
/// groups that a device takes in each dimension.
pub(crate) fn parts(points: [[usize; 3]; 2], most: u32) -> Result<SmallVec<[Part; 1]>, WgslError> {
    let [min, max] = points;
    if (0..3).any(|dim| max[dim] <= min[dim]) {
        return Ok(SmallVec::new());
    }
    if max.iter().any(|&end| end > 1 << 32) || (0..3).any(|dim| max[dim] - min[dim] > u32::MAX as usize) {
        return Err(WgslError::TooManyPoints { end: max });
    }
    let columns = (max[2] - min[2]) as u64;
    // A group has several rows if there are some: they are short, or kernels that read neighbours share what
    // is above and below.
    let most_columns = if max[1] - min[1] > 1 { COLUMNS } else { GROUP };
    let width = columns.next_power_of_two().trailing_zeros().min(most_columns.trailing_zeros());
    let rows_of_group = u64::from(GROUP >> width);
    let is_flat = max[0] - min[0] == 1;
    let blocks = columns.div_ceil(1 << width);
    let others = ((max[1] - min[1]) as u64).div_ceil(rows_of_group).saturating_mul((max[0] - min[0]) as u64);
    let turns = turns(blocks, others);
    let groups_x = blocks.div_ceil(turns);
    // A plane has no use for the third dimension of the dispatch, so long rows go on there.
    let is_folded = is_flat && groups_x > u64::from(most);
    let most_x = if is_folded { u64::from(most) * u64::from(most) } else { u64::from(most) };
    let step =
        [u64::from(most), u64::from(most) * rows_of_group, ((most_x * turns) << width).min(MOST_COLUMNS)];
    let mut parts = SmallVec::new();
    for z in (min[0]..max[0]).step_by(step[0] as usize) {
        for y in (min[1]..max[1]).step_by(step[1] as usize) {
            for x in (min[2]..max[2]).step_by(step[2].min(usize::MAX as u64) as usize) {
                let first = [z, y, x];
                let count = [0, 1, 2].map(|dim| ((max[dim] - first[dim]) as u64).min(step[dim]));
                let ([z, y, x], [planes, rows, columns]) =
                    (first.map(|at| at as u32), count.map(|count| count as u32));
                let groups_x = count[2].div_ceil(turns << width);
                let folds = groups_x.div_ceil(u64::from(most));
                let (fold, along_x, groups_z) = match is_folded {
                    // Equal parts: a group without points takes as long to start as any other.
                    true => (groups_x.div_ceil(folds) as u32, groups_x.div_ceil(folds), folds),
                    false => (0, groups_x, count[0]),
                };
                let groups = [along_x, count[1].div_ceil(rows_of_group), groups_z];
                parts.push(Part {
                    head: [z, y, x, planes, rows, columns, width, fold, turns as u32],
                    groups: groups.map(|groups| groups as u32),
                });
            }
        }
    }
    Ok(parts)
}

/// The points that an invocation has, in a launch with `blocks` of columns in each of `others` rows of
/// groups. With one point each, a GPU starts groups more slowly than they read and write.
fn turns(blocks: u64, others: u64) -> u64 {
    let groups = blocks.saturating_mul(others);
    // The numbers of the columns behind the last one have 32 bits, too.
    let is_small = blocks < 1 << 20;
    [16, 8, 4, 2]
        .into_iter()
        .find(|&turns| is_small && blocks >= turns && groups >= turns * LEAST)
        .unwrap_or(1)
}

/// The least groups of a launch whose invocations have several points: enough for each GPU.
const LEAST: u64 = 1 << 13;

/// The beginning of the entry point, which finds the points of an invocation: `z`, `y` and `x`. The variable
/// `launch` has the [`HEAD`]. What is done for a point comes next, and then [`END`].
pub(crate) fn entry(name: &str, launch: &str) -> String {
    let log_group = GROUP.trailing_zeros();
    format!(
        "
@compute @workgroup_size({GROUP}, 1, 1)
fn {name}(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {{
    let row = (group.y << ({log_group}u - {launch}.width)) | (lane >> {launch}.width);
    if row >= {launch}.rows {{
        return;
    }}
    for (var turn = 0u; turn < {launch}.turns; turn++) {{
    let block = (group.x + group.z * {launch}.fold) * {launch}.turns + turn;
    let column = (block << {launch}.width) | (lane & ((1u << {launch}.width) - 1u));
    if column >= {launch}.columns {{
        return;
    }}
    let z = {launch}.first_z + select(group.z, 0u, {launch}.fold > 0u);
    let y = {launch}.first_y + row;
    let x = {launch}.first_x + column;
"
    )
}

/// The entry point of a recording, whose functions are `results` and `store`. Where there are `at_once`
/// points to compute, it computes the results of all of them before it stores any.
pub(super) fn entry_of_recording(at_once: u32) -> String {
    let begin = format!(
        "
@compute @workgroup_size({GROUP}, 1, 1)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {{
    let row = (group.y << ({}u - launch.width)) | (lane >> launch.width);
    if row >= launch.rows {{
        return;
    }}
    let width = 1u << launch.width;
    let first = (((group.x + group.z * launch.fold) * launch.turns) << launch.width) | (lane & (width - 1u));
    let z = launch.first_z + select(group.z, 0u, launch.fold > 0u);
    let y = launch.first_y + row;
    var turn = 0u;
",
        GROUP.trailing_zeros()
    );
    let several = match at_once {
        1 => String::new(),
        _ => {
            let each = |text: &dyn Fn(u32) -> String| (0..at_once).map(text).collect::<String>();
            let last = at_once - 1;
            format!(
                "    for (; turn + {last}u < launch.turns && first + (turn + {last}u) * width < launch.columns; turn += {at_once}u) {{
        let x = launch.first_x + first + turn * width;
{}{}    }}
",
                each(&|at| format!("        let point{at} = results(z, y, x + {at}u * width);\n")),
                each(&|at| format!("        store(point{at}, z, y, x + {at}u * width);\n")),
            )
        }
    };
    format!(
        "{begin}{several}    for (; turn < launch.turns; turn++) {{
        let column = first + turn * width;
        if column >= launch.columns {{
            return;
        }}
        let x = launch.first_x + column;
        store(results(z, y, x), z, y, x);
    }}
}}
"
    )
}

/// The end of the entry point.
pub(crate) const END: &str = "    }\n}\n";
