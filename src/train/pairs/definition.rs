//! A sentence that says what something is in, the question it answers out.
//!
//! Rules for English alone; a sentence of another language or shape gives no question.

/// Words of the longest thing that is asked about.
const SUBJECT_WORDS: usize = 6;

/// Words that a sentence about something named above, or about no thing at all, begins with.
const NO_SUBJECT: [&str; 62] = [
    "a", "after", "all", "although", "an", "and", "another", "as", "at", "because", "before",
    "both", "but", "by", "during", "each", "for", "from", "he", "her", "here", "his", "how",
    "however", "i", "if", "in", "it", "its", "my", "no", "of", "on", "one", "or", "our", "over",
    "she", "since", "so", "some", "such", "that", "the", "their", "then", "there", "these", "they",
    "this", "those", "to", "under", "we", "what", "when", "where", "which", "while", "who", "with",
    "you",
];

/// What makes `X is ...` say what X is.
const KIND: [&str; 8] = ["a", "an", "any", "defined", "one", "the", "those", "when"];

/// The question that `sentence` answers: `what is X` of `X is a ...`.
pub(super) fn question(sentence: &str) -> Option<String> {
    let words: Vec<&str> = sentence.split_whitespace().take(SUBJECT_WORDS + 3).collect();
    let (at, question) = (1..words.len()).find_map(|at| {
        let next = *words.get(at + 1)?;
        let question = match words[at] {
            "is" | "are" | "was" | "were" if KIND.contains(&next) => ("what", words[at], ""),
            "means" => ("what does", "", "mean"),
            "mean" => ("what do", "", "mean"),
            "refers" if next == "to" => ("what does", "", "refer to"),
            "stands" if next == "for" => ("what does", "", "stand for"),
            _ => return None,
        };
        Some((at, question))
    })?;
    let subject = subject(&words[..at])?;
    let (start, verb, end) = question;
    let parts = [start, verb, &subject, end];
    Some(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" "))
}

/// What the words before the verb name, if they name something.
fn subject(words: &[&str]) -> Option<String> {
    // "The X" and "A X" name something if an X follows.
    let article = matches!(words[0], "The" | "A" | "An");
    let first = words.get(usize::from(article))?;
    if NO_SUBJECT.binary_search(&first.to_lowercase().as_str()).is_ok() {
        return None;
    }
    let mut subject: Vec<String> = Vec::new();
    let mut aside = false;
    for (at, word) in words.iter().enumerate() {
        // "Deoxyribonucleic acid (DNA)": what stands in brackets is another name.
        aside |= word.starts_with('(');
        if !aside {
            subject.push(if article && at == 0 { word.to_lowercase() } else { (*word).into() });
        }
        aside &= !word.ends_with(')');
    }
    let subject = subject.join(" ");
    let subject = subject.trim_matches(|c: char| "\"'“”‘’*_`".contains(c));
    let named = subject.chars().any(char::is_alphanumeric)
        && !subject.contains([',', ':', ';', '?', '!', '=', '|']);
    (!aside && named).then(|| subject.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_sorted_for_the_search() {
        assert!(NO_SUBJECT.is_sorted() && KIND.is_sorted());
    }

    #[test]
    fn definitions_become_questions() {
        let cases = [
            ("A gerund is a noun made from a verb.", Some("what is a gerund")),
            ("The present perfect is the tense of news.", Some("what is the present perfect")),
            ("Deoxyribonucleic acid (DNA) is a molecule.", Some("what is Deoxyribonucleic acid")),
            ("Mitochondria are the powerhouses.", Some("what are Mitochondria")),
            ("Transitive means that an object follows.", Some("what does Transitive mean")),
            ("BPE stands for byte pair encoding.", Some("what does BPE stand for")),
            ("It is a noun.", None),
            ("The other day, he is a guest.", None),
            ("In this case the verb is the first word.", None),
            ("There is a rule.", None),
            ("Prices are rising.", None),
            ("Many years of hard and careful work later he is a king.", None),
            ("Der Hund ist ein Tier.", None),
            ("is a", None),
            ("", None),
        ];
        for (sentence, expected) in cases {
            assert_eq!(expected, question(sentence).as_deref(), "{sentence}");
        }
    }
}
