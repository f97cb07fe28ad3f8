//! Texts of shaders from bytes: any characters, words of WGSL, and right shaders with changes.

use arbitrary::Arbitrary;

/// How a text is written.
#[derive(Arbitrary, Debug)]
pub enum Text<'b> {
    Characters(&'b str),
    /// One word for each byte.
    Words(&'b [u8]),
    /// A shader, and its changes: where, how many words are left out, and which ones are written there.
    Changed(u8, Vec<(u16, u8, [u8; 3])>),
    /// A shader, in which another one begins at a word.
    Joined(u8, u16, u8),
}

/// Longer texts are slower and find no more.
const MOST: usize = 3000;

impl Text<'_> {
    pub fn written(&self) -> String {
        let shader = |number: u8| SHADERS[usize::from(number) % SHADERS.len()];
        match self {
            Self::Characters(text) => text.chars().take(MOST).collect(),
            Self::Words(words) => {
                words.iter().take(MOST / 4).map(|&word| format!("{} ", self::word(word))).collect()
            }
            Self::Changed(number, changes) => {
                let mut words = split(shader(*number));
                for &(at, out, new) in changes.iter().take(20) {
                    let at = usize::from(at) % (words.len() + 1);
                    let end = (at + usize::from(out % 8)).min(words.len());
                    // 0 writes nothing.
                    let new = new.into_iter().filter(|&word| word > 0).map(|new| word(new).to_string());
                    words.splice(at..end, new);
                }
                words.concat()
            }
            Self::Joined(first, at, second) => {
                let mut words = split(shader(*first));
                let at = usize::from(*at) % (words.len() + 1);
                words.splice(at..at, [shader(*second).to_string()]);
                words.concat()
            }
        }
    }
}

fn word(number: u8) -> &'static str {
    WORDS[usize::from(number) % WORDS.len()]
}

/// Words, spaces and signs.
fn split(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    for c in text.chars() {
        match words.last_mut() {
            Some(last) if is_word(c) && last.ends_with(is_word) => last.push(c),
            _ => words.push(c.to_string()),
        }
    }
    words
}

/// Shaders that are right for some setups.
const SHADERS: [&str; 10] = [
    "fn each(x: u32) {\n    v_set(x, u_get(x) * p());\n}\n",
    "fn each(y: u32, x: u32) {\n    let last = u_extent() - 1u;\n    v_set(y, x, u_get(min(y + 1u, last.y), x));\n}\n",
    "fn each(z: u32, y: u32, x: u32) { var a = u_get(z, y, x); v_set(z, y, x, a); }",
    "var<workgroup> part: array<u32, 64>;\nfn group(id: vec3u, local: vec3u, index: u32) {\n    part[index] = id.x;\n    \
     workgroupBarrier();\n    for (var half = 32u; half > 0u; half /= 2u) {\n        if index < half { part[index] += part[index + half]; }\n        \
     workgroupBarrier();\n    }\n}\n",
    "struct Pair { a: f32, b: vec2<u32> }\nalias Number = f32;\nconst factor: Number = 2.5;\noverride n: u32 = 4;\nvar<private> pair: Pair;\n\
     fn twice(a: Number) -> Number { return factor * a; }\nfn each(x: u32) { pair.a = twice(f32(u_get(x))); }\n",
    "/* a /* b */ c */ // d\nfn inner(a: ptr<function, u32>) { *a += 1u; }\nfn each(x: u32) { var b = x; inner(&b); let c = &b; v_set(*c, u_get(b)); }\n",
    "enable f16;\n@must_use fn f() -> f32 { return 1f; }\nfn each() { v_set(f()); let a = first_point(); }\n",
    "fn each(x: u32) { switch x { case 0, 1: { return; } default { loop { if x > 3 { break; } continuing { break if true; } } } } }",
    "fn each(x: u32) { var e = u_get(x); for (var at = 0u; at < 3u; at++) { e[at] += e[at]; } v_set(x, e); }",
    "diagnostic(off, derivative_uniformity);\nconst_assert 1 < 2;\n@id(3) override m = 1u;\nfn each(x: u32) { while x < m { discard; } }",
];

/// Words and signs, spaces of all sorts, and the names that the generated part has.
const WORDS: [&str; 173] = [
    "",
    " ",
    "\n",
    "\t",
    "\r",
    "\r\n",
    "\u{b}",
    "\u{c}",
    "\u{85}",
    "\u{a0}",
    "\u{200b}",
    "\u{200e}",
    "\u{200f}",
    "\u{2028}",
    "\u{2029}",
    "\u{3000}",
    "\u{feff}",
    "\0",
    "//",
    "///",
    "//!",
    "/*",
    "*/",
    "/**",
    "/*!",
    "/",
    "*",
    ";",
    ":",
    ",",
    ".",
    "@",
    "<",
    ">",
    "<<",
    ">>",
    "<=",
    ">=",
    "==",
    "=",
    "!=",
    "!",
    "&",
    "&&",
    "|",
    "||",
    "+",
    "++",
    "-",
    "--",
    "->",
    "+=",
    "%",
    "^",
    "~",
    "_",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "'",
    "\"",
    "#",
    "$",
    "\\",
    "fn",
    "struct",
    "alias",
    "const",
    "override",
    "var",
    "let",
    "const_assert",
    "enable",
    "requires",
    "diagnostic",
    "if",
    "else",
    "for",
    "while",
    "loop",
    "switch",
    "case",
    "default",
    "break",
    "continue",
    "continuing",
    "return",
    "discard",
    "true",
    "false",
    "group",
    "binding",
    "compute",
    "workgroup_size",
    "must_use",
    "id",
    "builtin",
    "location",
    "align",
    "size",
    "vertex",
    "storage",
    "uniform",
    "immediate",
    "push_constant",
    "handle",
    "private",
    "workgroup",
    "function",
    "read",
    "write",
    "read_write",
    "ptr",
    "array",
    "atomic",
    "vec2",
    "vec3",
    "vec4",
    "vec2u",
    "vec3u",
    "mat2x2",
    "u32",
    "i32",
    "f32",
    "f64",
    "i64",
    "u64",
    "f16",
    "bool",
    "0",
    "1",
    "1u",
    "0x1fu",
    "1.5f",
    "1e5",
    "0x",
    "1.",
    ".5",
    "4294967295u",
    "99999999999999999999",
    "atomicExchange",
    "select",
    "arrayLength",
    "bitcast",
    "min",
    "each",
    "u_get",
    "u_set",
    "v_get",
    "v_set",
    "u_extent",
    "v_extent",
    "p",
    "first_point",
    "end_point",
    "anabranch_0",
    "anabranch_1",
    "anabranch_launch",
    "anabranch_status",
    "anabranch_has0",
    "anabranch_main",
    "anabranch_outside",
    "AnabranchLaunch",
    "AnabranchStatus",
    "1anabranch_0",
    "anabranch",
    "x",
    "y",
    "z",
    "a",
];
