//! Which point each invocation of a shader has, and the dispatches that have all points of a box.

use super::{GROUP, WgslError};

/// The fields at the front of the block, all `u32`.
pub(crate) const HEAD: [&str; 8] =
    ["first_z", "first_y", "first_x", "planes", "rows", "columns", "width", "fold"];

/// A dispatch for a part of a box.
pub(crate) struct Part {
    /// The values of the [`HEAD`].
    pub(crate) head: [u32; 8],
    /// The number of groups in each dimension of the dispatch.
    pub(crate) groups: [u32; 3],
}

/// The dispatches for the points from the first of `points` to below the second. `most` is the number of groups that a device takes in each
/// dimension.
pub(crate) fn parts(points: [[usize; 3]; 2], most: u32) -> Result<Vec<Part>, WgslError> {
    let [min, max] = points;
    if (0..3).any(|dim| max[dim] <= min[dim]) {
        return Ok(Vec::new());
    }
    if max.iter().any(|&end| end > 1 << 32) || (0..3).any(|dim| max[dim] - min[dim] > u32::MAX as usize) {
        return Err(WgslError::TooManyPoints { end: max });
    }
    let columns = (max[2] - min[2]) as u64;
    // Short rows: a group has several.
    let width = columns.next_power_of_two().trailing_zeros().min(GROUP.trailing_zeros());
    let rows_of_group = u64::from(GROUP >> width);
    let groups_x = columns.div_ceil(1 << width);
    let is_flat = max[0] - min[0] == 1;
    // A plane has no use for the third dimension of the dispatch, so long rows go on there.
    let fold = if is_flat && groups_x > u64::from(most) { most } else { 0 };
    let most_x = if fold > 0 { u64::from(most) * u64::from(most) } else { u64::from(most) };
    let step = [u64::from(most), u64::from(most) * rows_of_group, most_x << width];
    let mut parts = Vec::new();
    for z in (min[0]..max[0]).step_by(step[0] as usize) {
        for y in (min[1]..max[1]).step_by(step[1] as usize) {
            for x in (min[2]..max[2]).step_by(step[2].min(usize::MAX as u64) as usize) {
                let first = [z, y, x];
                let count = [0, 1, 2].map(|dim| ((max[dim] - first[dim]) as u64).min(step[dim]));
                let ([z, y, x], [planes, rows, columns]) =
                    (first.map(|at| at as u32), count.map(|count| count as u32));
                let groups_x = count[2].div_ceil(1 << width);
                let groups_z = if fold > 0 { groups_x.div_ceil(u64::from(fold)) } else { count[0] };
                let groups = [groups_x.min(u64::from(most)), count[1].div_ceil(rows_of_group), groups_z];
                parts.push(Part {
                    head: [z, y, x, planes, rows, columns, width, fold],
                    groups: groups.map(|groups| groups as u32),
                });
            }
        }
    }
    Ok(parts)
}

/// The beginning of the entry point, which finds the point of an invocation: `z`, `y` and `x`. The variable `launch` has the [`HEAD`].
pub(crate) fn entry(name: &str, launch: &str) -> String {
    let log_group = GROUP.trailing_zeros();
    format!(
        "
@compute @workgroup_size({GROUP}, 1, 1)
fn {name}(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {{
    let column = ((group.x + group.z * {launch}.fold) << {launch}.width) | (lane & ((1u << {launch}.width) - 1u));
    let row = (group.y << ({log_group}u - {launch}.width)) | (lane >> {launch}.width);
    if column >= {launch}.columns || row >= {launch}.rows {{
        return;
    }}
    let z = {launch}.first_z + select(group.z, 0u, {launch}.fold > 0u);
    let y = {launch}.first_y + row;
    let x = {launch}.first_x + column;
"
    )
}
