//! The words of a text: as much of the syntax of WGSL as the checks of names need.

use super::error::ShaderError;

/// A word or sign of a text, and the line that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    pub(super) line: u32,
    /// The number of brackets around it.
    pub(super) depth: usize,
}

impl Token<'_> {
    pub(super) fn is_word(&self) -> bool {
        self.text.starts_with(is_word_start)
    }
}

/// The words and signs of a text, without its comments.
///
/// # Errors
/// [`ShaderError::Unbalanced`].
pub(super) fn scan(text: &str) -> Result<Vec<Token<'_>>, ShaderError> {
    Scanner { text, rest: text, line: 1, tokens: Vec::new(), open: Vec::new() }.run()
}

/// The text of a line.
pub(super) fn line(text: &str, line: u32) -> String {
    text.split('\n').nth(line as usize - 1).unwrap_or_default().trim_end().to_string()
}

fn is_word_start(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

/// What ends a comment of one line.
fn is_line_end(c: char) -> bool {
    matches!(c, '\u{a}'..='\u{d}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// What separates words: also the marks of a direction, which WGSL counts as space.
fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{200e}' | '\u{200f}')
}

struct Scanner<'a> {
    text: &'a str,
    rest: &'a str,
    line: u32,
    tokens: Vec<Token<'a>>,
    /// The open brackets, and their lines.
    open: Vec<(char, u32)>,
}

impl<'a> Scanner<'a> {
    fn run(mut self) -> Result<Vec<Token<'a>>, ShaderError> {
        while let Some(first) = self.rest.chars().next() {
            if self.rest.starts_with("//") {
                self.take(|c| !is_line_end(c));
            } else if self.rest.starts_with("/*") {
                self.comment()?;
            } else if first.is_alphanumeric() || first == '_' {
                let line = self.line;
                let text = self.take(|c| c.is_alphanumeric() || c == '_');
                self.token(text, line);
            } else {
                let (text, line) = (&self.rest[..first.len_utf8()], self.line);
                self.advance(first.len_utf8());
                self.sign(first, text, line)?;
            }
        }
        match self.open.last() {
            Some(&(bracket, line)) => Err(self.error(line, format!("`{bracket}` without its end"))),
            None => Ok(self.tokens),
        }
    }

    fn sign(&mut self, sign: char, text: &'a str, line: u32) -> Result<(), ShaderError> {
        let opening = match sign {
            ')' => '(',
            '}' => '{',
            ']' => '[',
            '(' | '{' | '[' => {
                self.token(text, line);
                self.open.push((sign, line));
                return Ok(());
            }
            _ if is_space(sign) => return Ok(()),
            _ => {
                self.token(text, line);
                return Ok(());
            }
        };
        if self.open.pop().is_none_or(|(open, _)| open != opening) {
            return Err(self.error(line, format!("`{sign}` without its beginning")));
        }
        self.token(text, line);
        Ok(())
    }

    /// A comment of several lines, which may have others inside.
    fn comment(&mut self) -> Result<(), ShaderError> {
        let (line, mut depth) = (self.line, 0);
        loop {
            if self.rest.starts_with("/*") {
                depth += 1;
                self.advance(2);
            } else if self.rest.starts_with("*/") {
                depth -= 1;
                self.advance(2);
            } else {
                let Some(c) = self.rest.chars().next() else {
                    return Err(self.error(line, "`/*` without its end".to_string()));
                };
                self.advance(c.len_utf8());
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn token(&mut self, text: &'a str, line: u32) {
        self.tokens.push(Token { text, line, depth: self.open.len() });
    }

    /// Takes the characters for which a condition holds.
    fn take(&mut self, is_taken: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !is_taken(c)).unwrap_or(self.rest.len());
        let taken = &self.rest[..end];
        self.advance(end);
        taken
    }

    fn advance(&mut self, bytes: usize) {
        let (taken, rest) = self.rest.split_at(bytes);
        self.line += taken.matches('\n').count() as u32;
        self.rest = rest;
    }

    fn error(&self, at: u32, what: String) -> ShaderError {
        ShaderError::Unbalanced { line: at, text: line(self.text, at), what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<(&str, u32, usize)> {
        scan(text).unwrap().iter().map(|token| (token.text, token.line, token.depth)).collect()
    }

    #[test]
    fn comments_are_left_out_and_lines_are_counted() {
        let text = "a /* b\n /* c */ d\n */ e1 // f\u{2028}g {\nh_2\n}";
        let expected = [("a", 1, 0), ("e1", 3, 0), ("g", 3, 0), ("{", 3, 0), ("h_2", 4, 1), ("}", 5, 0)];
        assert_eq!(words(text), expected);
    }

    #[test]
    fn all_spaces_of_wgsl_separate_words() {
        let spaces = "\t\u{b}\u{c}\r \u{85}\u{200e}\u{200f}\u{2028}\u{2029}";
        for space in spaces.chars() {
            assert_eq!(
                words(&format!("@{space}a{space}b")),
                [("@", 1, 0), ("a", 1, 0), ("b", 1, 0)],
                "{space:?}"
            );
        }
    }

    #[test]
    fn brackets_and_comments_have_an_end_and_a_beginning() {
        for (text, line, what) in [
            ("a\nfn b() {", 2, "`{` without its end"),
            ("a\n}\n", 2, "`}` without its beginning"),
            ("(\n]", 2, "`]` without its beginning"),
            ("x\n\n/* /* */", 3, "`/*` without its end"),
        ] {
            let error = scan(text).unwrap_err();
            let ShaderError::Unbalanced { line: at, what: found, .. } = error else { panic!("{error}") };
            assert_eq!((at, &*found), (line, what));
        }
    }
}
