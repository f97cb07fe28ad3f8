//! How deep the expressions and branches of a text are.
//!
//! Compilers walk through what is nested by recursion: through the sums of `a + b + c`, too, and through
//! `else if` after `else if`. A text that is nested too deeply would need more stack than a thread has, which
//! ends the process and not just the task. The compiler itself limits brackets and blocks; what it does not
//! limit is limited here.

use super::{
    error::ShaderError,
    scan::{self, Token},
};

/// The most words and signs of an expression that may depend on each other. In a build without optimisation
/// the compiler takes some 3,000 on a stack of 2 MiB, which threads have by default.
const MOST_TOKENS: u32 = 1000;

/// An `else` takes as much stack as this many words and signs of an expression.
const ELSE: u32 = 4;

/// The most declarations outside of functions. The compiler sorts them by recursion, and takes some 6,000.
const MOST_DECLARATIONS: u32 = 2000;

/// Checks the depth of a text.
///
/// # Errors
/// [`ShaderError::TooLarge`].
pub(super) fn check(text: &str, tokens: &[Token<'_>]) -> Result<(), ShaderError> {
    let error = |token: &Token<'_>, what: String| {
        let line = token.line;
        Err(ShaderError::TooLarge { line, text: scan::line(text, line), what })
    };
    let (mut depth, mut declarations) = (Depth::default(), 0);
    for (at, token) in tokens.iter().enumerate() {
        depth.add(token.text, tokens.get(at + 1).is_some_and(|next| next.text == "else"));
        if depth.now > MOST_TOKENS {
            let what = format!(
                "an expression of more than {MOST_TOKENS} words and signs, or more than {} `else` in a row, for which a compiler may \
                 lack the stack: compute parts of it with `let`, or take a `switch` or a loop",
                MOST_TOKENS / ELSE
            );
            return error(token, what);
        }
        declarations += u32::from(token.depth == 0 && token.is_word() && is_declaration(token.text));
        if declarations > MOST_DECLARATIONS {
            let what = format!("more than {MOST_DECLARATIONS} functions, types, constants and variables");
            return error(token, what);
        }
    }
    Ok(())
}

fn is_declaration(word: &str) -> bool {
    matches!(word, "fn" | "struct" | "alias" | "const" | "override" | "var" | "const_assert")
}

/// How deep a place of a text is.
#[derive(Default)]
struct Depth {
    now: u32,
    /// Where a statement begins: as deep as the block around it.
    block: u32,
    /// Where the statement is: deeper than the block behind each `else`.
    statement: u32,
    open: Vec<Open>,
}

/// An open bracket.
enum Open {
    /// Of a block: the depths of the block and the statement around it.
    Block(u32, u32),
    /// Of another one: where it begins, and how deep its deepest part between commas is.
    Other(u32, u32),
}

impl Depth {
    fn add(&mut self, token: &str, is_before_else: bool) {
        match token {
            "{" => {
                self.open.push(Open::Block(self.block, self.statement));
                self.begin(self.statement + 1);
            }
            "(" | "[" => {
                self.open.push(Open::Other(self.now, self.now));
                self.now += 1;
            }
            "}" | ")" | "]" => match self.open.pop() {
                Some(Open::Block(block, statement)) => {
                    self.begin(block);
                    if is_before_else {
                        (self.statement, self.now) = (statement, statement);
                    }
                }
                Some(Open::Other(_, deepest)) => self.now = self.now.max(deepest) + 1,
                None => {}
            },
            "," => match self.open.last_mut() {
                Some(Open::Other(begin, deepest)) => {
                    *deepest = self.now.max(*deepest);
                    self.now = *begin + 1;
                }
                _ => self.begin(self.block),
            },
            ";" => self.begin(self.block),
            "else" => {
                self.statement += ELSE;
                self.now = self.statement;
            }
            _ => self.now += 1,
        }
    }

    fn begin(&mut self, block: u32) {
        (self.block, self.statement, self.now) = (block, block, block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scan::scan;

    fn line_of(text: &str) -> Option<u32> {
        match check(text, &scan(text).unwrap()) {
            Ok(()) => None,
            Err(ShaderError::TooLarge { line, .. }) => Some(line),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn what_is_beside_each_other_is_not_deep() {
        let terms = vec!["a * (b + c[1])"; 50].join(" + ");
        let statements = vec![format!("x = f({});", [&*terms; 3].join(", ")); 100].join("\n");
        let branches = vec!["if a { b(); } else if c { d(); } else { e(); }"; 300].join("\n");
        let table = vec!["1.5"; 20_000].join(",");
        assert_eq!(
            line_of(&format!("const t = array({table});\nfn f() {{\n{statements}\n{branches}\n}}")),
            None
        );
        assert_eq!(line_of(&"const a = 1;\n".repeat(MOST_DECLARATIONS as usize)), None);
    }

    #[test]
    fn what_is_too_deep_has_a_line() {
        let many = |part: &str| part.repeat(MOST_TOKENS as usize + 1);
        for expression in
            [many("!"), many("a+"), many(".x"), many("[a]"), many("(a)"), format!("f({}, b)", many("a+"))]
        {
            assert_eq!(line_of(&format!("fn f() {{\nx = {expression}a;\n}}")), Some(2), "{expression}");
        }
        let chain =
            |turns: usize| format!("fn f() {{\nif a {{}}\n{}}}", "else if a { b(); }\n".repeat(turns));
        assert_eq!(line_of(&chain(200)), None);
        // The block of the function and what is in the last branch count, too.
        assert_eq!(line_of(&chain(400)), Some(2 + MOST_TOKENS / ELSE - 1));
        // Chains in chains count together.
        let nested = (0..100).fold(String::from("b();"), |inside, _| {
            format!("if a {{}} else if a {{}} else if a {{ {inside} }}")
        });
        assert!(line_of(&format!("fn f() {{ {nested} {nested} }}")).is_none());
        let deeper = format!("fn f() {{ {} }}", nested.replace("b();", &nested));
        assert!(line_of(&deeper).is_some());
        assert_eq!(
            line_of(&"alias a = u32;\n".repeat(MOST_DECLARATIONS as usize + 1)),
            Some(MOST_DECLARATIONS + 1)
        );
    }
}
