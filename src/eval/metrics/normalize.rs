//! Answers to the tokens by which they are compared.
//!
//! SQuAD's normalisation (Rajpurkar et al. 2016): lower case, punctuation deleted, articles
//! dropped, blanks run together. As MLQA extends it to other languages (Lewis et al. 2020), all
//! punctuation counts and not only ASCII's, and scripts without spaces are compared character by
//! character; on ASCII text the two are the same.

use std::borrow::Cow;

use crate::text::is_solid;

/// The tokens of an answer; citation markers like `[#1]` are no part of it.
pub fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut token = String::new();
    let flush = |token: &mut String, tokens: &mut Vec<String>| {
        if !token.is_empty() {
            let done = std::mem::take(token);
            tokens.extend((!matches!(done.as_str(), "a" | "an" | "the")).then_some(done));
        }
    };
    for c in strip_markers(text).chars().flat_map(char::to_lowercase) {
        match c {
            c if is_punctuation(c) => {}
            c if c.is_whitespace() => flush(&mut token, &mut tokens),
            c if is_solid(c) => {
                flush(&mut token, &mut tokens);
                tokens.push(c.to_string());
            }
            c => token.push(c),
        }
    }
    flush(&mut token, &mut tokens);
    tokens
}

/// The tokens joined by blanks.
pub fn normalize(text: &str) -> String {
    tokens(text).join(" ")
}

/// The text without citation markers `[#1]` and the blanks before them.
pub fn strip_markers(text: &str) -> Cow<'_, str> {
    if !text.contains("[#") {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("[#") {
        let digits = rest[at + 2..].bytes().take_while(u8::is_ascii_digit).count();
        let after = at + 2 + digits;
        if digits > 0 && rest[after..].starts_with(']') {
            kept.push_str(rest[..at].trim_end_matches(' '));
            rest = &rest[after + 1..];
        } else {
            kept.push_str(&rest[..after]);
            rest = &rest[after..];
        }
    }
    kept.push_str(rest);
    Cow::Owned(kept)
}

fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation()
        || matches!(c,
            '¡' | '§' | '«' | '¶' | '·' | '»' | '¿' | '।' | '॥'
            | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}'
            | '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301f}' | '・'
            | '\u{ff01}'..='\u{ff0f}' | '\u{ff1a}'..='\u{ff20}'
            | '\u{ff3b}'..='\u{ff40}' | '\u{ff5b}'..='\u{ff65}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_taken_out_and_nothing_else() {
        assert_eq!(
            strip_markers("Eaten [#1][#12]. See a[1], [#x], [#"),
            "Eaten. See a[1], [#x], [#"
        );
        assert_eq!(strip_markers("[#3] Eaten"), " Eaten");
        assert_eq!(strip_markers("é[#1]é"), "éé");
    }

    #[test]
    fn scripts_without_spaces_compare_by_character() {
        assert_eq!(tokens("¿Qué, «sí»?"), ["qué", "sí"]);
        assert_eq!(tokens("共24次。"), ["共", "24", "次"]);
    }
}
