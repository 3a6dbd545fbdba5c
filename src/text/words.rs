//! Text to words to terms.
//!
//! A word is a run of letters, digits and the marks on them, after NFKC and case folding; an
//! apostrophe between letters and a point or comma between digits belong to it. Scripts written
//! without spaces (Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese) give each character and
//! each pair of neighbours: a word tokenizer made for English finds nothing in them. User text
//! is only ever text here: no character is query syntax.

use std::{borrow::Cow, collections::BTreeSet};

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark, is_nfkc};

/// English words that say nothing about what a text is about.
///
/// No form of a verb is on it: people ask about `was` and `does` by name.
const STOP_WORDS: [&str; 32] = [
    "a", "about", "an", "and", "as", "at", "by", "for", "from", "how", "i", "in", "it", "its",
    "of", "on", "or", "that", "the", "there", "this", "to", "what", "what's", "when", "where",
    "which", "who", "whom", "whose", "why", "with",
];

/// Terms that frame a sentence in English whatever it is about. Searched for like others, since
/// people ask about `was` by name, but no sign of the subject.
const FRAME: [&str; 61] = [
    "am", "any", "are", "be", "been", "being", "can", "could", "did", "do", "doe", "far", "get",
    "got", "had", "has", "have", "he", "her", "him", "his", "is", "let", "like", "long", "made",
    "make", "mani", "may", "me", "mean", "might", "much", "must", "my", "need", "new", "not",
    "now", "often", "old", "our", "say", "shall", "she", "should", "so", "some", "tell", "than",
    "their", "them", "they", "us", "use", "was", "we", "were", "will", "would", "you",
];

/// True for a term that frames a sentence and names no subject, e.g. `have`.
pub fn is_frame(term: &str) -> bool {
    FRAME.binary_search(&term).is_ok()
}

/// What a corpus knows about its terms; implemented by the lexical index.
pub trait TermStats: Send + Sync {
    /// Number of passages.
    fn passages(&self) -> usize;

    /// Number of passages that hold `term`.
    fn holding(&self, term: &str) -> usize;
}

/// How much a term says that `holding` of `passages` hold: `ln(1 + (N - n + 0.5) / (n + 0.5))`,
/// highest for one that none holds.
pub fn idf(passages: usize, holding: usize) -> f32 {
    let (all, n) = (passages as f64, holding as f64);
    ((all - n + 0.5) / (n + 0.5)).ln_1p() as f32
}

/// How words become terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Analyzer {
    /// Reduce English words to their stems (Porter 2).
    pub stem: bool,
    /// Drop English stop words.
    pub stop_words: bool,
}

impl Default for Analyzer {
    fn default() -> Self {
        Self { stem: true, stop_words: true }
    }
}

impl Analyzer {
    /// The settings as one word, for manifests and fingerprints.
    pub fn fingerprint(&self) -> String {
        let on = |flag, name| if flag { name } else { "" };
        format!("words{}{}", on(self.stem, "+stem"), on(self.stop_words, "+stop"))
    }

    /// Calls `on_word` with each word of `text`, folded, not yet stemmed, stop words included.
    pub fn words(&self, text: &str, mut on_word: impl FnMut(&str)) {
        scan(&fold(text), &mut on_word);
    }

    /// The term of a word that [`Analyzer::words`] gave; `None` for a stop word.
    pub fn term<'a>(&self, word: &'a str) -> Option<Cow<'a, str>> {
        if self.stop_words && STOP_WORDS.binary_search(&word).is_ok() {
            return None;
        }
        let english = word.bytes().all(|b| b.is_ascii_lowercase() || b == b'\'');
        if !(self.stem && english) {
            return Some(Cow::Borrowed(word));
        }
        Some(Stemmer::create(Algorithm::English).stem(word))
    }

    /// The distinct terms of `text` that say what it is about.
    pub fn content(&self, text: &str) -> BTreeSet<String> {
        self.terms(text).into_iter().filter(|term| !is_frame(term)).collect()
    }

    /// All terms of `text`, in order, repeats included.
    pub fn terms(&self, text: &str) -> Vec<String> {
        let mut terms = Vec::new();
        self.words(text, |word| terms.extend(self.term(word).map(Cow::into_owned)));
        terms
    }
}

/// NFKC, lower case, typographic apostrophes straightened; for searching, never for showing.
pub fn fold(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return match text.bytes().any(|b| b.is_ascii_uppercase()) {
            true => Cow::Owned(text.to_ascii_lowercase()),
            false => Cow::Borrowed(text),
        };
    }
    let mut folded = String::with_capacity(text.len());
    let mut push = |c: char| match c {
        '\u{2019}' | '\u{02bc}' | '\u{ff07}' => folded.push('\''),
        'ß' | 'ẞ' => folded.push_str("ss"),
        'ς' => folded.push('σ'),
        c if c.is_ascii() => folded.push(c.to_ascii_lowercase()),
        c => folded.extend(c.to_lowercase()),
    };
    match is_nfkc(text) {
        true => text.chars().for_each(&mut push),
        false => text.nfkc().for_each(&mut push),
    }
    Cow::Owned(folded)
}

/// True for a character of a script that is written without spaces between words.
pub fn is_solid(c: char) -> bool {
    class(c) == Class::Solid
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Other,
    Letter,
    Digit,
    /// A character of a script without spaces.
    Solid,
}

fn class(c: char) -> Class {
    match c {
        'a'..='z' | 'A'..='Z' => Class::Letter,
        '0'..='9' => Class::Digit,
        '\0'..='\x7f' | '\u{2000}'..='\u{206f}' => Class::Other,
        // What every text of these scripts is made of; the tables of the general rule take a
        // hundred times as long, and a test holds the two together.
        '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{24f}' // Latin
        | '\u{3b1}'..='\u{3ce}' | '\u{430}'..='\u{45f}' => Class::Letter, // Greek, Cyrillic
        '\u{e01}'..='\u{e3a}' | '\u{e40}'..='\u{e4e}' // Thai
        | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' // Kana
        | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' => Class::Solid, // Han, Hangul
        c => rare_class(c),
    }
}

fn rare_class(c: char) -> Class {
    match c {
        '\u{0e00}'..='\u{0eff}' // Thai, Lao
        | '\u{1000}'..='\u{109f}' // Burmese
        | '\u{1780}'..='\u{17ff}' // Khmer
        | '\u{1100}'..='\u{11ff}' | '\u{ac00}'..='\u{d7ff}' // Hangul
        | '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' // Kana
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' // Han
        | '\u{20000}'..='\u{3ffff}'
            if c.is_alphanumeric() || is_combining_mark(c) => Class::Solid,
        _ if c.is_numeric() => Class::Digit,
        _ if c.is_alphabetic() || is_combining_mark(c) => Class::Letter,
        _ => Class::Other,
    }
}

fn scan(text: &str, on_word: &mut impl FnMut(&str)) {
    let is_word = |class| matches!(class, Class::Letter | Class::Digit);
    let first = |at: usize| text[at..].chars().next();
    let mut word = 0..0; // bytes of the word being read; empty outside a word
    let mut last = Class::Other;
    let mut at = 0;
    while let Some(c) = first(at) {
        // Runs of ASCII, which is most of most texts, need not be decoded one by one.
        let run = text.as_bytes()[at..].iter().take_while(|b| b.is_ascii_alphanumeric()).count();
        let end = at + run.max(c.len_utf8());
        let next_is = |wanted| first(end).is_some_and(|next| class(next) == wanted);
        let now = match c {
            _ if run > 0 => class(char::from(text.as_bytes()[end - 1])),
            // A joiner takes the class of what it joins, so that the word goes on.
            '\'' if last == Class::Letter && next_is(Class::Letter) => last,
            '.' | ',' if last == Class::Digit && next_is(Class::Digit) => last,
            c => class(c),
        };
        if is_word(last) && !is_word(now) {
            on_word(&text[word.clone()]);
        }
        match now {
            Class::Letter | Class::Digit if is_word(last) => word.end = end,
            Class::Letter | Class::Digit => word = at..end,
            Class::Solid => {
                on_word(&text[at..end]);
                if let Some(next) = first(end)
                    && class(next) == Class::Solid
                {
                    on_word(&text[at..end + next.len_utf8()]);
                }
            }
            Class::Other => {}
        }
        last = now;
        at = end;
    }
    if is_word(last) {
        on_word(&text[word]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let mut words = Vec::new();
        Analyzer::default().words(text, |word| words.push(word.to_owned()));
        assert_eq!(expected, words);
    }

    #[test]
    fn stop_words_are_sorted_for_the_search() {
        assert!(STOP_WORDS.is_sorted() && FRAME.is_sorted());
    }

    #[test]
    fn the_shortcuts_to_a_class_agree_with_the_rule() {
        let odd = ('\u{80}'..=char::MAX).find(|c| class(*c) != rare_class(*c));
        assert_eq!(odd, None);
    }

    #[test]
    fn words_are_runs_of_letters_and_digits() {
        check(
            "Don't say “HE’S 3.14 or 1,000”, e.g. C++ (templates)…",
            &["don't", "say", "he's", "3.14", "or", "1,000", "e", "g", "c", "templates"],
        );
        check(
            "'quoted' -not a:b https://x.org/a_b ''",
            &["quoted", "not", "a", "b", "https", "x", "org", "a", "b"],
        );
        check("", &[]);
        check("?!'.,", &[]);
    }

    #[test]
    fn compatibility_forms_and_case_are_folded() {
        check("ﬁnd ＡＢＣ Straße ΣΑΣ ½", &["find", "abc", "strasse", "σασ", "1", "2"]);
        check("cafe\u{301}", &["café"]);
    }

    #[test]
    fn scripts_without_spaces_give_characters_and_pairs() {
        check("黑豹队 ok", &["黑", "黑豹", "豹", "豹队", "队", "ok"]);
        check("กิน", &["ก", "กิ", "ิ", "ิน", "น"]);
    }

    #[test]
    fn terms_are_stems_without_stop_words() {
        let terms = Analyzer::default().terms("What is the Running of the participles?");
        assert_eq!(terms, ["is", "run", "participl"]);
        let content = Analyzer::default().content("What is the Running of the participles?");
        assert_eq!(content, ["participl".to_owned(), "run".to_owned()].into());
    }
}
