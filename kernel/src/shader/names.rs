//! The checks of a text: which names it declares and uses.

use super::{
    builtin, depth,
    error::ShaderError,
    scan::{self, Token, scan},
    source::{Operand, ShaderSource},
};

/// What the names of the generated part begin with that are not for the text.
pub(super) const PREFIX: &str = "anabranch_";

/// The attributes that belong to what is generated: the entry point, and the buffers.
const ATTRIBUTES: [&str; 14] = [
    "group",
    "binding",
    "compute",
    "vertex",
    "fragment",
    "workgroup_size",
    "task",
    "mesh",
    "payload",
    "incoming_payload",
    "ray_generation",
    "any_hit",
    "closest_hit",
    "miss",
];

/// Checks the names and the text of a shader.
pub(super) fn check(source: &ShaderSource) -> Result<(), ShaderError> {
    if let Some(size) = source.group {
        let product = size.iter().try_fold(1_u32, |product, &size| product.checked_mul(size));
        if product.is_none_or(|product| product == 0) {
            return Err(ShaderError::Group { size });
        }
    }
    let generated = generated(source)?;
    let tokens = scan(&source.text)?;
    let checks = Checks { source, generated: &generated, tokens: &tokens };
    checks.words()?;
    checks.declarations()?;
    depth::check(&source.text, &tokens)
}

/// The names of the generated functions for the text, and what they are of.
fn generated(source: &ShaderSource) -> Result<Vec<(String, String)>, ShaderError> {
    let mut all = vec![
        ("first_point".to_string(), "a generated function".to_string()),
        ("end_point".to_string(), "a generated function".to_string()),
    ];
    for Operand { name, element, is_read, is_written, .. } in &source.operands {
        check_name(name, "an operand")?;
        if element.length == Some(0) {
            return Err(ShaderError::EmptyElement { name: name.to_string() });
        }
        let parts = [("get", *is_read), ("set", *is_written), ("extent", true)];
        for (part, _) in parts.iter().filter(|(_, is_there)| *is_there) {
            all.push((format!("{name}_{part}"), format!("a function generated for the operand `{name}`")));
        }
    }
    for (name, _) in &source.parameters {
        check_name(name, "a parameter")?;
        if builtin::of(name).is_some() || **name == *source.function() {
            return Err(ShaderError::Name { name: name.to_string(), what: "a parameter" });
        }
        all.push((name.to_string(), "a parameter".to_string()));
    }
    let twice = (0..all.len()).find(|&at| all[..at].iter().any(|(name, _)| *name == all[at].0));
    match twice {
        Some(at) => Err(ShaderError::Twice { name: all.swap_remove(at).0 }),
        None => Ok(all),
    }
}

/// Checks that a name is one of WGSL, and none that the generated part has for itself.
fn check_name(name: &str, what: &'static str) -> Result<(), ShaderError> {
    let is_right = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.contains("__")
        && !name.ends_with('_')
        && !name.to_ascii_lowercase().starts_with("anabranch");
    if is_right { Ok(()) } else { Err(ShaderError::Name { name: name.to_string(), what }) }
}

struct Checks<'a> {
    source: &'a ShaderSource,
    generated: &'a [(String, String)],
    tokens: &'a [Token<'a>],
}

impl Checks<'_> {
    /// Checks that no word is for the generated part only.
    fn words(&self) -> Result<(), ShaderError> {
        for (at, token) in self.tokens.iter().enumerate() {
            let before = at.checked_sub(1).map_or("", |before| self.tokens[before].text);
            if token.text.starts_with(PREFIX) || token.text.starts_with("Anabranch") {
                let what = format!("`{}`: names that begin so belong to generated code", token.text);
                return Err(self.forbidden(token, what));
            }
            if before == "@" && ATTRIBUTES.contains(&token.text) {
                let name = token.text;
                let what = format!(
                    "`@{name}`: buffers and the entry point are generated from the declarations of the task"
                );
                return Err(self.forbidden(token, what));
            }
        }
        Ok(())
    }

    /// Checks the names that are declared outside of all brackets.
    fn declarations(&self) -> Result<(), ShaderError> {
        let mut has_function = false;
        for (at, token) in self.tokens.iter().enumerate() {
            let declares =
                matches!(token.text, "fn" | "struct" | "alias" | "const" | "override" | "var" | "let");
            if token.depth > 0 || !declares {
                continue;
            }
            let behind = &self.tokens[at + 1..];
            let (space, name) = template(behind);
            if token.text == "var" && !matches!(space, Some("workgroup" | "private")) {
                let what = "a variable that is neither `var<workgroup>` nor `var<private>`: the task declares its buffers, \
                            and `.parameter(…)` adds numbers";
                return Err(self.forbidden(token, what.to_string()));
            }
            // The compiler reports what is no name.
            let Some(name) = name.filter(|name| name.is_word()) else { continue };
            has_function |= token.text == "fn" && name.text == self.source.function();
            self.check_declared(name)?;
        }
        if has_function {
            Ok(())
        } else {
            Err(ShaderError::NoFunction { signature: self.source.signature() })
        }
    }

    fn check_declared(&self, token: &Token<'_>) -> Result<(), ShaderError> {
        let name = token.text;
        let generated = self.generated.iter().find(|(known, _)| known == name);
        let taken = generated.map(|(_, what)| what.clone()).or_else(|| builtin::of(name).map(str::to_string));
        let Some(what) = taken else { return Ok(()) };
        let text = scan::line(&self.source.text, token.line);
        Err(ShaderError::Taken { line: token.line, text, name: name.to_string(), what })
    }

    fn forbidden(&self, token: &Token<'_>, what: String) -> ShaderError {
        ShaderError::Forbidden { line: token.line, text: scan::line(&self.source.text, token.line), what }
    }
}

/// The first word of the template behind a keyword, if there is one, and the name behind both.
fn template<'a>(tokens: &'a [Token<'a>]) -> (Option<&'a str>, Option<&'a Token<'a>>) {
    if tokens.first().is_none_or(|token| token.text != "<") {
        return (None, tokens.first());
    }
    let end = tokens.iter().position(|token| token.text == ">").unwrap_or(tokens.len());
    (tokens.get(1).map(|token| token.text), tokens.get(end + 1))
}
