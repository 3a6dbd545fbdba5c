//! A finished answer and its cited passages to how much of it they carry.
//!
//! A claim is a sentence of the answer. It is supported where at least [`SUPPORTED`] of its
//! content words stand in the cited passages, every number of it stands there too, and it agrees
//! in negation with the passage sentence closest to it: a negated claim needs a negation there,
//! and what is denied there ("not used") is not asserted by a claim without one. A measure of
//! words, not of meaning: it sees what was added, not what was twisted. It takes an [`Answer`],
//! which exists only once the reader is done, so that no streamed prefix can be scored.

use std::collections::BTreeSet;

use super::word_overlap::share;
use crate::{
    cite::strip_markers,
    text::{Analyzer, is_frame, units},
    types::Answer,
};

/// The share of a claim's content words that the cited passages must hold.
pub const SUPPORTED: f64 = 0.8;

const NEGATIONS: [&str; 11] = [
    "no", "not", "never", "none", "nothing", "nobody", "nowhere", "neither", "nor", "cannot",
    "without",
];

/// "one" is not here: it is a pronoun more often than a number.
const NUMBER_WORDS: [(&str, &str); 11] = [
    ("two", "2"),
    ("three", "3"),
    ("four", "4"),
    ("five", "5"),
    ("six", "6"),
    ("seven", "7"),
    ("eight", "8"),
    ("nine", "9"),
    ("ten", "10"),
    ("eleven", "11"),
    ("twelve", "12"),
];

/// How far the cited passages carry an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Faithfulness {
    /// Sentences of the answer that hold a content word.
    pub claims: usize,
    /// Those that the passages support.
    pub supported: usize,
    /// Mean over the claims of the share of content words found: the measure without a cut.
    pub token_precision: f64,
}

impl Faithfulness {
    /// Share of the claims that are supported.
    pub fn share(&self) -> f64 {
        self.supported as f64 / self.claims.max(1) as f64
    }
}

/// Holds an answer against the passages it cites (with their headings, as they were read);
/// `None` for a refusal and for an answer that claims nothing.
pub fn faithfulness(answer: &Answer, passages: &[&str]) -> Option<Faithfulness> {
    let Answer::Cited { text, .. } = answer else { return None };
    let text = strip_markers(text);
    let passages: Vec<Words> =
        passages.iter().flat_map(|passage| sentences(passage)).map(Words::of).collect();
    let held: BTreeSet<String> = passages.iter().flat_map(|p| p.content.iter().cloned()).collect();
    let numbers: BTreeSet<String> =
        passages.iter().flat_map(|p| p.numbers.iter().cloned()).collect();
    let (mut claims, mut supported, mut precision) = (0, 0, 0.0);
    for claim in sentences(&text).into_iter().map(Words::of) {
        let Some(found) = share(&claim.content, &held) else { continue };
        claims += 1;
        precision += found;
        let agrees = claim.numbers.is_subset(&numbers) && claim.agrees_with(&passages);
        supported += usize::from(found >= SUPPORTED && agrees);
    }
    let token_precision = precision / claims.max(1) as f64;
    (claims > 0).then_some(Faithfulness { claims, supported, token_precision })
}

/// What a sentence is compared by.
struct Words {
    content: BTreeSet<String>,
    numbers: BTreeSet<String>,
    /// Whether it holds a negation.
    negated: bool,
    /// The content words that follow a negation.
    denied: BTreeSet<String>,
}

impl Words {
    fn of(sentence: &str) -> Self {
        let analyzer = Analyzer::default();
        let mut words = Self {
            content: BTreeSet::new(),
            numbers: BTreeSet::new(),
            negated: false,
            denied: BTreeSet::new(),
        };
        let mut denying = false;
        analyzer.words(without_interjection(sentence), |word| {
            // "isn't" is "is not", and "is" says nothing; "won't" stays a word of its own.
            let contracted = word.strip_suffix("n't");
            let negation = NEGATIONS.contains(&word);
            let stop = analyzer.term(contracted.unwrap_or(word)).is_none_or(|term| is_frame(&term));
            words.negated |= negation || contracted.is_some();
            denying |= negation || contracted.is_some();
            let spelt = NUMBER_WORDS.iter().find(|(name, _)| *name == word);
            let digits = spelt.map(|(_, digits)| *digits);
            let number = digits.or(word.contains(char::is_numeric).then_some(word));
            words.numbers.extend(number.map(str::to_owned));
            // Negations are compared apart; "two" and "2" must not differ.
            let Some(term) = analyzer.term(number.unwrap_or(word)) else { return };
            if negation || stop {
                return;
            }
            if denying && contracted.is_none() {
                words.denied.insert(term.clone().into_owned());
                denying = false;
            }
            words.content.insert(term.into_owned());
        });
        words
    }

    /// Whether one of the passage sentences that share most words with the claim has its polarity.
    fn agrees_with(&self, passages: &[Self]) -> bool {
        let shared = |passage: &Self| passage.content.intersection(&self.content).count();
        let most = passages.iter().map(shared).max();
        passages.iter().filter(|passage| Some(shared(passage)) == most).any(|closest| {
            match self.negated {
                true => closest.negated,
                false => closest.denied.is_disjoint(&self.content),
            }
        })
    }
}

/// "No, ..." answers the question and denies nothing of what follows.
fn without_interjection(sentence: &str) -> &str {
    let rest = ["No,", "no,", "No:", "No;"].iter().find_map(|no| sentence.strip_prefix(no));
    rest.unwrap_or(sentence)
}

fn sentences(text: &str) -> Vec<&str> {
    units(text).into_iter().map(|unit| &text[unit.span]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Reason;

    #[track_caller]
    fn check(answer: &str, passages: &[&str], expected: Option<f64>) {
        let answer = Answer::Cited { text: answer.to_owned(), value: None, citations: vec![] };
        assert_eq!(faithfulness(&answer, passages).map(|f| f.share()), expected);
    }

    const EAT: &str = "# Eat\n\nThe past participle of *eat* is **eaten**. It has 3 forms.\n\n\
                       Stative verbs are not used in continuous tenses.";

    #[test]
    fn a_claim_needs_its_words_numbers_and_polarity() {
        check("The past participle of eat is eaten [#1].", &[EAT], Some(1.0));
        check("The past participle of eat is ate [#1].", &[EAT], Some(0.0));
        check("It has three forms. [#1] It has 4 forms.", &[EAT], Some(0.5));
        check("Stative verbs are used in continuous tenses.", &[EAT], Some(0.0));
        check("Stative verbs aren't used in continuous tenses.", &[EAT], Some(1.0));
        check("No, stative verbs are not used in continuous tenses.", &[EAT], Some(1.0));
        check("Whether is used.", &["Only *whether*, not *if*, is used."], Some(1.0));
        check("If is used.", &["Only *whether*, not *if*, is used."], Some(0.0));
        check("The past participle of eat is not eaten.", &[EAT], Some(0.0));
    }

    #[test]
    fn all_sentences_of_the_final_answer_count() {
        let whole = "The past participle of eat is eaten [#1]. Bananas glow at midnight.";
        check(whole, &[EAT], Some(0.5));
        check(&whole[..whole.find(" Bananas").unwrap()], &[EAT], Some(1.0));
    }

    #[test]
    fn without_claims_or_answer_there_is_nothing_to_measure() {
        check("It is. [#1]", &[EAT], None);
        check("", &[EAT], None);
        check("Eaten.", &[], Some(0.0));
        let unknown = Answer::Unknown { reason: Reason::NoPassages, best: None, threshold: None };
        assert_eq!(faithfulness(&unknown, &[EAT]), None);
    }
}
