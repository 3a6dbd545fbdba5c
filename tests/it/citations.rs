//! Markers to citations: every one resolves to the bytes it stands for, or is taken out.

use std::ops::Range;

use minirag::{
    cite::{Cited, cite, markers, strip_markers},
    prompt,
    text::Analyzer,
    types::{Answer, Chunk, ChunkId, DocumentId, Draft, Prompt, Reason, Source},
};

const TEXT: &str = "# Eat\n\nThe past simple of eat is ate. The participle is eaten.\n";

fn source(marker: usize, name: &str) -> Source {
    let document = DocumentId::from(name);
    // The chunk leaves out the heading, so that spans of the document and the chunk differ.
    let chunk = Chunk {
        id: ChunkId::new(&document, 4),
        title: "Eat".into(),
        ordinal: 3,
        token_offset: 4,
        tokens: 14,
        overlap: 0,
        span: 7..TEXT.len(),
        text: TEXT[7..].to_owned(),
        heading: String::new(),
        table_header: String::new(),
        chunker: "recursive:150:20".into(),
        document,
    };
    let evidence = prompt::evidence(&chunk);
    Source { marker, chunk, score: 1.0, evidence, shown: String::new() }
}

fn resolve(draft: &str) -> (Answer, Vec<usize>) {
    let cited = resolve_used(draft, &[]);
    (cited.answer, cited.unknown_markers)
}

fn resolve_used(draft: &str, used: &[(usize, Range<usize>)]) -> Cited {
    let prompt = Prompt {
        question: "?".into(),
        // Best last: markers are names, not places.
        sources: vec![source(2, "b.md"), source(1, "a.md")],
        text: String::new(),
        dropped: Vec::new(),
        dropped_tokens: 0,
    };
    let draft = Draft { text: draft.into(), value: None, used: used.to_vec() };
    cite(draft, &prompt, Analyzer::default(), (Some(0.9), Some(0.5))).unwrap()
}

fn cited_documents(answer: &Answer) -> Vec<(usize, String)> {
    let Answer::Cited { citations, .. } = answer else { return Vec::new() };
    citations.iter().map(|c| (c.marker, c.document.to_string())).collect()
}

#[test]
fn a_marker_means_its_source_whatever_the_order_of_the_prompt() {
    let (answer, _) = resolve("The past simple of eat is ate [#1].");
    assert_eq!(cited_documents(&answer), [(1, "a.md".to_owned())]);
    let Answer::Cited { citations, .. } = answer else { unreachable!() };
    assert_eq!(citations[0].quote, "The past simple of eat is ate.");
    assert_eq!(TEXT[citations[0].span.clone()], citations[0].quote);
    assert_eq!(citations[0].anchor, "a.md:3");
    assert!(citations[0].supported);
}

#[test]
fn unknown_markers_are_taken_out_and_reported() {
    let (answer, unknown) = resolve("The past simple of eat is ate [#7] [#1]. Also [#0].");
    assert_eq!(unknown, [7, 0]);
    let Answer::Cited { text, .. } = answer else { panic!("refused") };
    assert_eq!(text, "The past simple of eat is ate [#1]. Also.");
}

#[test]
fn duplicated_and_adjacent_markers_cite_once_each() {
    let (answer, _) = resolve("The past simple of eat is ate [#1][#2] [#1].");
    assert_eq!(cited_documents(&answer), [(1, "a.md".to_owned()), (2, "b.md".to_owned())]);
}

#[test]
fn only_the_marker_form_is_a_citation() {
    let (answer, unknown) = resolve("In a[1], [1] and [#x] the past simple of eat is ate [#2].");
    assert!(unknown.is_empty());
    assert_eq!(cited_documents(&answer), [(2, "b.md".to_owned())]);
    let none = "a[1] [#] [#1 [#-1] [#+1] [# 1] [#99999999999999999999]";
    assert_eq!(markers(none).count(), 0);
    assert_eq!(markers(&"[#1".repeat(200_000)).count(), 0);
}

#[test]
fn a_repeated_citation_has_the_least_support_it_gives() {
    let cited = resolve_used("The past simple of eat is ate [#1]. Bananas glow [#1].", &[]);
    assert_eq!(cited.unsupported, 1);
    assert_eq!(
        cited.answer,
        Answer::Unknown { reason: Reason::NotSupported, best: Some(0.9), threshold: Some(0.5) }
    );
    let cited = resolve_used("The past simple of eat is ate [#1][#2]. Bananas glow [#1].", &[]);
    let Answer::Cited { citations, .. } = cited.answer else { panic!("refused") };
    let support: Vec<(usize, bool)> = citations.iter().map(|c| (c.marker, c.supported)).collect();
    assert_eq!(support, [(1, false), (2, true)]);
}

#[test]
fn each_place_of_a_marker_quotes_what_the_reader_used_there() {
    let second = TEXT.find("The participle").unwrap();
    let used = [(1, 7..second - 1), (1, second..TEXT.len() - 1)];
    let draft = "The past simple of eat is ate [#1]. The participle is eaten [#1].";
    let cited = resolve_used(draft, &used);
    let Answer::Cited { citations, .. } = cited.answer else { panic!("refused") };
    let quotes: Vec<&str> = citations.iter().map(|c| c.quote.as_str()).collect();
    assert_eq!(quotes, ["The past simple of eat is ate.", "The participle is eaten."]);
    assert!(citations.iter().all(|c| c.supported && c.marker == 1));
    assert_eq!(cited.unsupported, 0);
}

#[test]
fn sentences_without_a_supported_citation_are_counted() {
    let ate = "The past simple of eat is ate [#1].";
    for (more, unsupported) in [
        ("", 0),
        (" Bananas glow.", 1),
        (" Bananas glow. Apples sing [#2]. The end", 3),
        (" [#2]", 0),
        (" Bananas glow [#9].", 1),
        (" Apples sing [#1] The past simple is ate. [#1]", 1),
    ] {
        assert_eq!(resolve_used(&format!("{ate}{more}"), &[]).unsupported, unsupported, "{more}");
    }
}

#[test]
fn a_claim_that_its_citation_does_not_carry_is_refused() {
    let (answer, _) = resolve("Bananas glow brightly at midnight [#1].");
    let expected =
        Answer::Unknown { reason: Reason::NotSupported, best: Some(0.9), threshold: Some(0.5) };
    assert_eq!(answer, expected);
    assert!(matches!(resolve("No marker at all.").0, Answer::Unknown { .. }));
}

#[test]
fn an_empty_draft_is_a_refusal() {
    for draft in ["", " \n"] {
        let (answer, _) = resolve(draft);
        assert!(matches!(answer, Answer::Unknown { reason: Reason::ReaderRefused, .. }));
    }
}

#[test]
fn markers_are_stripped_with_the_blanks_before_them() {
    assert_eq!(strip_markers("Ate [#1]. Eaten [#2] [#3]"), "Ate. Eaten");
    assert_eq!(strip_markers("a[1]"), "a[1]");
}
