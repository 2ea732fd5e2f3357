//! What the user most likely meant: names near a misspelt one, for error texts.

/// Similarity from which a name is worth suggesting: 1 is equal, 0 has nothing in common.
const WORTH_SUGGESTING: f64 = 0.6;

/// The candidates near `asked`, best first, at most three. Case does not count.
///
/// A candidate that holds `asked`, or is held in it, is near even where the spelling distance is large (`orders` and `orders_2026`).
pub fn nearest<'a>(asked: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let asked = asked.to_lowercase();
    let mut scored: Vec<(f64, &str)> = candidates
        .into_iter()
        .map(|candidate| (similarity(&asked, &candidate.to_lowercase()), candidate))
        .filter(|(score, _)| *score >= WORTH_SUGGESTING)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.into_iter().take(3).map(|(_, candidate)| candidate).collect()
}

fn similarity(asked: &str, candidate: &str) -> f64 {
    let spelling = strsim::normalized_damerau_levenshtein(asked, candidate);
    let held = asked.len() >= 3 && candidate.len() >= 3 && (candidate.contains(asked) || asked.contains(candidate));
    if held { spelling.max(WORTH_SUGGESTING) } else { spelling }
}

/// `did you mean "a" or "b"?`, or nothing when nothing is near.
pub fn did_you_mean<'a>(asked: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let near: Vec<String> = nearest(asked, candidates).into_iter().map(|name| format!("{name:?}")).collect();
    if near.is_empty() { None } else { Some(format!("did you mean {}?", near.join(" or "))) }
}

/// The names themselves, the first few: `a, b, c and 7 more`.
pub fn a_few<S: AsRef<str>>(names: &[S]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<&str> = names.iter().take(SHOWN).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_near_are_suggested_and_far_ones_are_not() {
        fn check(asked: &str, candidates: &[&str], expect: &[&str]) {
            assert_eq!(nearest(asked, candidates.iter().copied()), expect, "{asked}");
        }
        check("oders", &["orders", "customers", "lineitem"], &["orders"]);
        check("ORDERS", &["orders"], &["orders"]);
        check("orders", &["orders_2026", "x"], &["orders_2026"]);
        check("tmie_zone", &["time_zone", "timestamps"], &["time_zone"]);
        check("zebra", &["orders", "customers"], &[]);
        check("", &["orders"], &[]);
    }

    #[test]
    fn long_lists_are_cut() {
        assert_eq!(a_few(&["a", "b"]), "a, b");
        assert_eq!(a_few(&["a", "b", "c", "d", "e", "f", "g"]), "a, b, c, d, e and 2 more");
    }
}
