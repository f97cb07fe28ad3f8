//! Selects rows by full name, by the beginning of names, or by a pattern with `*` and `?`.

/// A name or pattern that matches no row.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("no benchmark is called `{asked}`; {}", hint(.similar))]
pub struct UnknownName {
    asked: String,
    similar: Vec<String>,
}

fn hint(similar: &[String]) -> String {
    match similar {
        [] => "`list` prints all names".into(),
        similar => format!("did you mean {}? (`list` prints all names)", similar.join(", ")),
    }
}

/// Returns the indices into `names` that `asked` selects, each once and in the order of `names`.
///
/// # Errors
/// The first element of `asked` that matches no name.
pub fn select(names: &[&str], asked: &[String]) -> Result<Vec<usize>, UnknownName> {
    let mut chosen = vec![false; names.len()];
    for asked in asked {
        let matching = matching(names, asked);
        if matching.is_empty() {
            return Err(UnknownName { asked: asked.clone(), similar: similar(names, asked) });
        }
        matching.into_iter().for_each(|i| chosen[i] = true);
    }
    Ok((0..names.len()).filter(|&i| chosen[i]).collect())
}

fn matching(names: &[&str], asked: &str) -> Vec<usize> {
    if asked == "all" {
        return (0..names.len()).collect();
    }
    // A full name selects that row alone, even if other names begin with it.
    if let Some(i) = names.iter().position(|name| *name == asked) {
        return vec![i];
    }
    let pattern = asked.contains(['*', '?']);
    let matches =
        |name: &str| if pattern { glob(asked.as_bytes(), name.as_bytes()) } else { name.starts_with(asked) };
    (0..names.len()).filter(|&i| matches(names[i])).collect()
}

/// Whether `name` matches `pattern`: `*` stands for any characters, `?` for one.
fn glob(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', pattern @ ..], _) => (0..=name.len()).any(|skip| glob(pattern, &name[skip..])),
        ([b'?', pattern @ ..], [_, name @ ..]) => glob(pattern, name),
        ([a, pattern @ ..], [b, name @ ..]) if a == b => glob(pattern, name),
        _ => false,
    }
}

/// Up to three names that resemble `asked`.
fn similar(names: &[&str], asked: &str) -> Vec<String> {
    let likeness = |name: &str| {
        let last = name.rsplit('/').next().unwrap_or(name);
        strsim::jaro_winkler(name, asked).max(strsim::jaro_winkler(last, asked))
    };
    let mut scored: Vec<_> = names.iter().map(|name| (likeness(name), *name)).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().filter(|(score, _)| *score > 0.7).take(3).map(|(_, name)| name.into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] =
        ["region/empty", "region/empty-cold", "gray-scott/512x512/1t", "gray-scott/512x512/2t", "store/fs"];

    fn chosen(asked: &[&str]) -> Result<Vec<usize>, UnknownName> {
        select(&NAMES, &asked.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn rows_are_chosen_by_name_prefix_and_pattern() {
        assert_eq!(chosen(&["region/empty"]), Ok(vec![0]));
        assert_eq!(chosen(&["region"]), Ok(vec![0, 1]));
        assert_eq!(chosen(&["gray-scott/*/2t", "region/empty-cold"]), Ok(vec![1, 3]));
        assert_eq!(chosen(&["gray-scott/512x512/?t", "gray"]), Ok(vec![2, 3]));
        assert_eq!(chosen(&["all"]).unwrap().len(), NAMES.len());
    }

    #[test]
    fn the_error_for_an_unknown_name_proposes_similar_ones() {
        let error = chosen(&["region/emty-cold"]).unwrap_err();
        assert_eq!(error.similar[0], "region/empty-cold");
        assert!(
            error.to_string().starts_with("no benchmark is called `region/emty-cold`; did you mean region/")
        );
        assert_eq!(chosen(&["empty-cold"]).unwrap_err().similar[0], "region/empty-cold");
        let error = chosen(&["zzz"]).unwrap_err().to_string();
        assert_eq!(error, "no benchmark is called `zzz`; `list` prints all names");
    }
}
