//! Commands that the user can paste into a shell.

use std::path::Path;

/// A call of this program with these arguments and a path: by its name, or through Cargo where Cargo has
/// started it.
pub fn command(arguments: &str, path: &Path) -> String {
    // Cargo sets this for the programs that it runs.
    let by_cargo = std::env::var_os("CARGO_PKG_NAME").is_some_and(|name| name == env!("CARGO_PKG_NAME"));
    let program = if by_cargo { "cargo run --release --" } else { env!("CARGO_PKG_NAME") };
    format!("{program} {arguments} {}", word(path))
}

/// The command that continues the run in this file.
pub fn resume_command(path: &Path) -> String {
    command("simulate --resume -o", path)
}

/// The path as one word of a command. A path with a NUL byte, which no file has, stays as it is.
fn word(path: &Path) -> String {
    let text = path.to_string_lossy();
    shlex::try_quote(&text).map_or_else(|_| text.to_string(), Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_where_a_shell_would_split_them() {
        assert_eq!(word(Path::new("a/b-1.h5")), "a/b-1.h5");
        let quoted = word(Path::new("my run's.h5"));
        assert_eq!(shlex::split(&quoted).unwrap(), ["my run's.h5"], "{quoted}");
    }
}
