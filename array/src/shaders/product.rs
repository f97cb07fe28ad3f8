//! Products of matrices. A group of invocations computes a tile of the product, and reads each element of
//! both matrices once for all of its invocations.

use super::{parameter, wgsl};
use crate::{array::Array, error::ArrayError, numeric::Numeric};
use anabranch::device::Wgsl;

/// The side of a tile.
const TILE: usize = 16;

/// `c = a · b`, where the product has elements.
#[track_caller]
pub(crate) fn multiply<T: Numeric>(
    a: &Array<T, 2>,
    b: &Array<T, 2>,
    c: &Array<T, 2>,
) -> Result<(), ArrayError> {
    let ([rows, inner], [_, columns]) = (a.shape(), b.shape());
    let number = wgsl::<T>();
    let text = format!(
        "var<workgroup> tile_a: array<{number}, 256>;
        var<workgroup> tile_b: array<{number}, 256>;

        fn group(id: vec3u, local: vec3u, index: u32) {{
            let row = id.y * 16u + local.y;
            let column = id.x * 16u + local.x;
            var sum = {number}(0);
            for (var k = 0u; k < inner(); k = k + 16u) {{
                tile_a[index] = {number}(0);
                if (row < rows() && k + local.x < inner()) {{
                    tile_a[index] = a_get(row * inner() + k + local.x);
                }}
                tile_b[index] = {number}(0);
                if (k + local.y < inner() && column < columns()) {{
                    tile_b[index] = b_get((k + local.y) * columns() + column);
                }}
                workgroupBarrier();
                for (var i = 0u; i < 16u; i = i + 1u) {{
                    sum = sum + tile_a[local.y * 16u + i] * tile_b[i * 16u + local.x];
                }}
                workgroupBarrier();
            }}
            if (row < rows() && column < columns()) {{
                c_set(row * columns() + column, sum);
            }}
        }}"
    );
    let groups = [rows.div_ceil(TILE), columns.div_ceil(TILE)];
    let shader = Wgsl::new(text).names(["a", "b", "c"]).groups([TILE as u32; 2], groups);
    let shader = shader
        .uninitialized_workgroup()
        .parameter("rows", parameter(rows))
        .parameter("inner", parameter(inner));
    let shader = shader.parameter("columns", parameter(columns));
    let task = c.group().task("matmul").over([c.len()]).read(a.buffer(), a.whole());
    let task = task.read(b.buffer(), b.whole()).write(c.buffer(), c.whole());
    c.place().of(task).shader(shader).submit()?;
    Ok(())
}
