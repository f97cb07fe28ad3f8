//! Sorting of lines by networks of comparisons (K. E. Batcher, *Sorting networks and their applications*, AFIPS
//! 1968, <https://doi.org/10.1145/1468075.1468121>).
//!
//! A network merges sorted halves: it compares each element of the first half with its mirror image in the
//! second half, and then elements at half of that distance, and so on. The lesser element always goes to the
//! front. So a network for a power of two sorts a shorter line as well: the places behind its end would have
//! the greatest elements, which never move, and comparisons with them are left out.
//!
//! A group sorts a *tile*, and the near comparisons of larger merges, in the memory that it shares. Comparisons
//! at larger distances are a launch each. A line of few elements is sorted by one invocation.

use super::{
    GROUP, parameter,
    rank::{self, Specials},
    wgsl,
};
use crate::{array::Array, error::ArrayError, numeric::Numeric, shape::Lines};
use anabranch::device::Wgsl;

/// One invocation sorts a line that is not longer.
const SHORT: usize = 32;

/// The elements that a group sorts. All devices have the memory for them.
fn tile<T>() -> usize {
    8192 / size_of::<T>()
}

/// Sorts each line of an array that has elements. The elements of a line lie side by side.
#[track_caller]
pub(crate) fn lines<T: Numeric, const D: usize>(array: &Array<T, D>, lines: Lines) -> Result<(), ArrayError> {
    if lines.len < 2 {
        return Ok(());
    }
    if lines.len <= SHORT {
        return launch(array, lines.outer, lines, Wgsl::new(of_invocation::<T>()));
    }
    let tile = tile::<T>();
    near(array, lines, SORT, tile.min(lines.len.next_power_of_two()))?;
    let mut sorted = tile;
    while sorted < lines.len {
        far(array, lines, sorted, true)?;
        let mut distance = sorted / 2;
        while distance >= tile {
            far(array, lines, distance, false)?;
            distance /= 2;
        }
        near(array, lines, MERGE, tile)?;
        sorted *= 2;
    }
    Ok(())
}

/// Does this with each tile, of which the network has this many places.
#[track_caller]
fn near<T: Numeric, const D: usize>(
    array: &Array<T, D>,
    lines: Lines,
    body: &str,
    width: usize,
) -> Result<(), ArrayError> {
    let count = lines.len.div_ceil(tile::<T>());
    let shader = Wgsl::new(in_tiles::<T>(body)).groups([GROUP as u32], [lines.outer * count]);
    let shader = shader.uninitialized_workgroup().parameter("count", parameter(count));
    launch(array, lines.outer * count, lines, shader.parameter("width", parameter(width)))
}

/// Compares elements at this distance, or mirror images in halves of this length.
#[track_caller]
fn far<T: Numeric, const D: usize>(
    array: &Array<T, D>,
    lines: Lines,
    half: usize,
    mirrored: bool,
) -> Result<(), ArrayError> {
    let text = format!(
        "{rank}
        fn each(x: u32) {{
            let pair = x % pairs();
            let low = pair / half() * half() * 2u + pair % half();
            var high = low + half();
            if (mirrored() != 0u) {{ high = high + half() - 1u - 2u * (pair % half()); }}
            if (high >= positions()) {{ return; }}
            let first = x / pairs() * positions();
            let a = u_get(first + low);
            let b = u_get(first + high);
            if (rank(b) < rank(a)) {{
                u_set(first + low, b);
                u_set(first + high, a);
            }}
        }}",
        rank = rank::text::<T>(Specials::Sorted),
    );
    // No pair begins behind the last whole block of two halves and a half of the next one.
    let blocks = lines.len / (2 * half);
    let pairs = blocks * half + (lines.len - blocks * 2 * half).min(half);
    let shader = Wgsl::new(text).parameter("pairs", parameter(pairs)).parameter("half", parameter(half));
    let shader = shader.parameter("mirrored", u32::from(mirrored));
    launch(array, lines.outer * pairs, lines, shader)
}

#[track_caller]
fn launch<T: Numeric, const D: usize>(
    array: &Array<T, D>,
    points: usize,
    lines: Lines,
    shader: Wgsl,
) -> Result<(), ArrayError> {
    let task = array.group().task("sort").over([points]).update(array.buffer(), array.whole());
    let shader = shader.names(["u"]).parameter("positions", parameter(lines.len));
    array.place().of(task).shader(shader).submit()?;
    Ok(())
}

/// The text for invocations: each element moves to the front past those that are greater.
fn of_invocation<T: Numeric>() -> String {
    format!(
        "{rank}
        fn each(x: u32) {{
            let first = x * positions();
            for (var next = 1u; next < positions(); next = next + 1u) {{
                let value = u_get(first + next);
                var at = next;
                while (at > 0u) {{
                    let before = u_get(first + at - 1u);
                    if (!(rank(value) < rank(before))) {{ break; }}
                    u_set(first + at, before);
                    at = at - 1u;
                }}
                u_set(first + at, value);
            }}
        }}",
        rank = rank::text::<T>(Specials::Sorted),
    )
}

/// Sorts a tile: merges of 2, 4, 8 elements and so on, up to its width.
const SORT: &str = "
    for (var size = 2u; size <= width(); size = size * 2u) {
        let half = size / 2u;
        for (var pair = index; pair < width() / 2u; pair = pair + GROUP) {
            let low = pair / half * size + pair % half;
            order(low, low + size - 1u - 2u * (pair % half), len);
        }
        workgroupBarrier();
        near(half / 2u, index, len);
    }
";

/// The near comparisons of a merge of several tiles.
const MERGE: &str = "near(width() / 2u, index, len);";

/// The text for groups that do this with their tiles.
fn in_tiles<T: Numeric>(body: &str) -> String {
    format!(
        "{rank}
        var<workgroup> part: array<{number}, {tile}>;

        fn order(low: u32, high: u32, len: u32) {{
            if (high < len) {{
                let a = part[low];
                let b = part[high];
                if (rank(b) < rank(a)) {{
                    part[low] = b;
                    part[high] = a;
                }}
            }}
        }}

        fn near(most: u32, index: u32, len: u32) {{
            for (var distance = most; distance > 0u; distance = distance / 2u) {{
                for (var pair = index; pair < width() / 2u; pair = pair + {GROUP}u) {{
                    let low = pair / distance * distance * 2u + pair % distance;
                    order(low, low + distance, len);
                }}
                workgroupBarrier();
            }}
        }}

        fn group(id: vec3u, local: vec3u, index: u32) {{
            let begin = id.x % count() * {tile}u;
            let first = id.x / count() * positions() + begin;
            let len = min({tile}u, positions() - begin);
            for (var at = index; at < len; at = at + {GROUP}u) {{
                part[at] = u_get(first + at);
            }}
            workgroupBarrier();
            {body}
            for (var at = index; at < len; at = at + {GROUP}u) {{
                u_set(first + at, part[at]);
            }}
        }}",
        rank = rank::text::<T>(Specials::Sorted),
        number = wgsl::<T>(),
        tile = tile::<T>(),
        body = body.replace("GROUP", &format!("{GROUP}u")),
    )
}
