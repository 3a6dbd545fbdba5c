//! Answers to the tokens by which they are compared.
//!
//! SQuAD's normalisation (Rajpurkar et al. 2016): lower case, punctuation deleted, articles
//! dropped, blanks run together. As MLQA extends it to other languages (Lewis et al. 2020), all
//! punctuation counts and not only ASCII's, and scripts without spaces are compared character by
//! character; on ASCII text the two are the same.

use crate::{cite::strip_markers, text::is_solid};

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
    fn scripts_without_spaces_compare_by_character() {
        assert_eq!(tokens("¿Qué, «sí»?"), ["qué", "sí"]);
        assert_eq!(tokens("共24次。"), ["共", "24", "次"]);
    }
}
