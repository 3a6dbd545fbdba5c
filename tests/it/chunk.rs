//! Chunks tile their document, whatever the text and the strategy.

use std::{sync::LazyLock, time::Instant};

use minirag::{
    chunk::{ChunkSettings, Chunker, Length, Strategy},
    embed::{Embedder, HashingEmbedder},
    tokenizer::Tokenizer,
    types::{Chunk, Document, Vectors},
};
use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

use crate::{files, models, shared};

static TOKENIZER: LazyLock<Tokenizer> =
    LazyLock::new(|| Tokenizer::load(models().join("tokenizer")).unwrap());

fn document(format: &str, text: &str) -> Document {
    Document {
        id: "doc.md".into(),
        title: "Title".into(),
        text: text.to_owned(),
        metadata: [("format".to_owned(), format.to_owned())].into(),
    }
}

fn embed(texts: &[&str]) -> minirag::Result<Vectors> {
    HashingEmbedder::new(64).embed_passages(texts)
}

fn split(settings: &str, length: Length<'_>, document: &Document) -> Vec<Chunk> {
    let settings = settings.parse().unwrap();
    Chunker::new(settings, length, Some(&embed)).unwrap().split(document).unwrap()
}

fn markdown(settings: &str, text: &str) -> Vec<Chunk> {
    split(settings, Length::Tokens(&TOKENIZER), &document("markdown", text))
}

/// What holds for the chunks of every document.
#[track_caller]
fn check_tiles(document: &Document, chunks: &[Chunk]) {
    let text = &document.text;
    let mut rebuilt = String::new();
    let mut before: Option<&Chunk> = None;
    for (ordinal, chunk) in chunks.iter().enumerate() {
        assert_eq!(chunk.text, text[chunk.span.clone()]);
        assert_eq!(ordinal, chunk.ordinal);
        assert!(!chunk.text.trim().is_empty());
        if let Some(before) = before {
            assert!(chunk.span.start > before.span.start && chunk.span.end > before.span.end);
            assert!(chunk.token_offset > before.token_offset, "ids must differ");
            let shared = before.span.end.saturating_sub(chunk.span.start);
            let ends = before.token_offset + before.tokens;
            assert_eq!(ends.saturating_sub(chunk.token_offset), chunk.overlap);
            assert!(shared > 0 || chunk.overlap == 0);
        }
        // What lies between two chunks is blank; what they share is there once.
        let gap = &text[rebuilt.len()..chunk.span.start.max(rebuilt.len())];
        assert!(gap.trim().is_empty(), "lost {gap:?}");
        rebuilt.push_str(gap);
        rebuilt.push_str(&text[rebuilt.len()..chunk.span.end]);
        before = Some(chunk);
    }
    assert!(text[rebuilt.len()..].trim().is_empty(), "lost the end");
    rebuilt.push_str(&text[rebuilt.len()..]);
    assert!(rebuilt == *text);
}

/// Every strategy on `text`, in tokens and in characters.
#[track_caller]
fn check_all(text: &str, tokens: usize, overlap: usize) {
    for strategy in Strategy::ALL {
        for format in ["markdown", "text"] {
            let document = document(format, text);
            for length in [Length::Tokens(&TOKENIZER), Length::Chars] {
                let settings = format!("{strategy}:{tokens}:{overlap}");
                let chunks = split(&settings, length, &document);
                check_tiles(&document, &chunks);
                let hard = 2 * tokens.max(1);
                for chunk in &chunks {
                    // Few graphemes of very many tokens cannot be cut.
                    let few = chunk.text.graphemes(true).take(hard + 2).count() <= hard + 1;
                    let exempt = strategy == Strategy::Whole || few;
                    assert!(exempt || chunk.tokens <= hard, "{settings}: {}", chunk.tokens);
                }
            }
        }
    }
}

const PAGE: &str = "\
---\nauthor: nobody\n---\n\n# Title\n\nIntro to verbs. They are many.\n\n## Present\n\n\
A rule about the present. It has two sentences.\n\n```sh\n# no heading\necho hi\n```\n\n\
~~~\n# nor this\n~~~\n\n    # nor an indented one\n\n### Forms\n\n\
| base | past |\n|---|---|\n| eat | ate |\n| go | went |\n\nPast\n====\n\nSetext *marks* a heading.\n\n\
- an item\n- another, longer item that goes on\n  over two lines\n\n> a quote\n> of two lines\n";

#[test]
fn documents_are_tiled_by_every_strategy() {
    let texts = [
        PAGE.to_owned(),
        PAGE.repeat(9),
        "One sentence that comes again. ".repeat(5),
        "Short paragraph.\n\n".repeat(40),
        "…".repeat(2_000),
        "👍🏽👩‍👩‍👧‍👦🇨🇿".repeat(300),
        format!("e{}", "\u{301}".repeat(3_000)),
        "e\u{301}a\u{308}\u{323}".repeat(900),
        "a\0b\0\n\0".repeat(200),
        "今天天气很好。我们去公园吧！".repeat(60),
        "x".repeat(5_000),
        "\u{2003}\n \n".repeat(500) + "end" + &" ".repeat(2_000) + ".",
        "\r\n\r\nwindows\r\n\r\nlines. Two.\r\n".repeat(40),
        "# \n## \n".repeat(90),
    ];
    for text in &texts {
        for (tokens, overlap) in [(150, 20), (40, 0), (12, 6), (1, 0), (2, 1)] {
            check_all(text, tokens, overlap);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn random_documents_are_tiled(
        text in "(# [ab]{1,9}\n|[a-d]{1,9}[ .!\n]|\\| a \\| b \\|\n(\\|-\\|-\\|\n)?|```\n|> |- |\n\n|\u{301}|é|👍|\\PC){0,120}",
        tokens in 1_usize..60,
        half in 0_usize..30,
    ) {
        check_all(&text, tokens, half.min(tokens / 2));
    }
}

#[test]
fn blank_documents_have_no_chunks_but_are_whole() {
    for text in ["", " \n\t\u{a0}\n"] {
        let blank = document("markdown", text);
        for strategy in Strategy::ALL {
            assert!(split(&strategy.to_string(), Length::Chars, &blank).is_empty());
        }
        let chunker =
            Chunker::new(ChunkSettings::default(), Length::Tokens(&TOKENIZER), None).unwrap();
        assert_eq!(text, chunker.whole(&blank).unwrap().text);
    }
}

#[test]
fn auto_is_named_by_what_it_became() {
    let name = |format, length| split("auto", length, &document(format, PAGE))[0].chunker.clone();
    assert_eq!("markdown:150:20", &*name("markdown", Length::Tokens(&TOKENIZER)));
    assert_eq!("recursive:150:20", &*name("text", Length::Tokens(&TOKENIZER)));
    assert_eq!("recursive:150:20:chars", &*name("text", Length::Chars));
}

#[test]
fn sizes_are_near_the_target_and_counted_as_the_tokenizer_counts() {
    let prose = "The cat that I saw yesterday was not hungry at all, so it went. ".repeat(60);
    for strategy in ["token-window", "sentence", "recursive", "markdown", "semantic"] {
        let chunks = markdown(&format!("{strategy}:100:20"), &prose);
        for chunk in &chunks {
            let alone = TOKENIZER.count(&chunk.text).unwrap();
            assert!(alone.abs_diff(chunk.tokens) <= 2, "{alone} {}", chunk.tokens);
            assert!(chunk.tokens <= 110);
            assert!(chunk.text.ends_with('.'), "{strategy}: {:?}", chunk.text);
        }
        assert!(chunks[1..].iter().all(|chunk| (10..=20).contains(&chunk.overlap)), "{strategy}");
    }
}

#[test]
fn promised_overlap_is_there_or_a_boundary_forbids_it() {
    // Paragraphs shorter than the target.
    let text = "A paragraph of some eight words or so.\n\n".repeat(60);
    for strategy in ["token-window", "sentence", "recursive", "markdown"] {
        let chunks = markdown(&format!("{strategy}:60:12"), &text);
        assert!(chunks.len() > 5);
        assert!(chunks[1..].iter().all(|chunk| (1..=12).contains(&chunk.overlap)), "{strategy}");
    }
    let sections = "## Heading\n\n".to_owned() + &"Words and more words. ".repeat(15) + "\n\n";
    let chunks = markdown("markdown:70:12", &sections.repeat(4));
    for chunk in &chunks {
        assert_eq!(chunk.text.starts_with("## "), chunk.overlap == 0);
    }
}

#[test]
fn windows_cut_at_a_blank_line_or_a_sentence_near_the_target() {
    let sentence = "one two three four five six seven eight nine. ";
    let text = sentence.repeat(9) + "\n\n" + &sentence.repeat(9);
    let near = TOKENIZER.count(&sentence.repeat(9)).unwrap();
    let chunks = markdown(&format!("token-window:{}:0", near - 4), &text);
    assert_eq!(sentence.repeat(9).trim_end(), chunks[0].text);
    let words = "word ".repeat(500);
    let chunks = markdown("token-window:50:0", &words);
    assert!(chunks.iter().all(|chunk| chunk.text.ends_with("word") && chunk.tokens <= 55));
}

#[track_caller]
fn check_headings(text: &str, expected: &[(&str, &str)]) {
    let chunks = markdown("markdown:28:0", text);
    let found: Vec<(&str, &str)> = chunks
        .iter()
        .map(|chunk| (chunk.heading.as_str(), chunk.text.lines().next().unwrap()))
        .collect();
    assert_eq!(expected, found);
}

#[test]
fn heading_paths_are_those_of_a_real_parser() {
    let body = "Some words of text that fill a chunk of this size all alone here.\n\n";
    check_headings(
        &format!(
            "---\ntitle: x\n---\n\n# Title\n\n{body}## One `code`\n\n{body}### Deep\n\n{body}\
             Setext\n------\n\n{body}~~~\n# no\n~~~\n\n# Other #\n\n{body}"
        ),
        &[
            ("", "---"),
            ("", "# Title"),
            ("One code", "## One `code`"),
            ("One code > Deep", "### Deep"),
            ("Setext", "Setext"),
            ("Setext", "~~~"),
            ("Other", "# Other #"),
        ],
    );
}

#[test]
fn a_heading_is_never_alone_when_text_follows() {
    let long = "Some words of text that fill a chunk of this size all alone here. ".repeat(3);
    let text = format!("# Title\n\n## One\n\n### Two\n\n{long}\n\n## Three\n\n```\n{long}\n```\n");
    for chunk in markdown("markdown:18:4", &text) {
        assert!(chunk.text.lines().any(|l| !l.is_empty() && !l.starts_with('#')), "{chunk:?}");
    }
    assert_eq!("One > Two", markdown("markdown:18:4", &text)[0].heading);
}

#[test]
fn small_sections_are_joined_under_what_they_have_in_common() {
    let text =
        "# Title\n\n## A\n\n### A1\n\nfirst\n\n### A2\n\nsecond\n\n## B\n\nthird\n\n## C\n\nx";
    let chunks = markdown("markdown:150:20", text);
    let heads: Vec<&str> = chunks.iter().map(|chunk| chunk.heading.as_str()).collect();
    assert_eq!([""], heads[..], "all headings stand in the text: {chunks:?}");
    let filler = "Words that fill. ".repeat(8);
    let text = format!("## A\n\n{filler}\n\n### A1\n\none\n\n### A2\n\ntwo\n\n## B\n\nthree\n");
    let chunks = markdown("markdown:40:0", &text);
    // The last of A does not join B, whose chunk would no longer say that it is A's.
    let heads: Vec<&str> = chunks.iter().map(|chunk| chunk.heading.as_str()).collect();
    assert_eq!(["A", "A", "B"], heads[heads.len() - 3..], "{chunks:?}");
}

#[test]
fn code_and_tables_stay_whole_and_long_tables_keep_their_header() {
    let code = format!("```rust\n{}```", "let x = 1; // a line\n".repeat(6));
    let text = format!("Words before.\n\n{code}\n\nWords after. {}", "More words. ".repeat(40));
    let whole = markdown("markdown:60:10", &text);
    assert!(whole.iter().any(|chunk| chunk.text.contains(&code)), "{whole:#?}");

    let header = "| base | past | participle |";
    let rows = "| eat | ate | eaten |\n| go | went | gone |\n".repeat(30);
    let table = format!("## Verbs\n\n{header}\n|---|---|---|\n{rows}\nAfter the table.\n");
    let chunks = markdown("markdown:60:10", &table);
    assert!(chunks[0].text.starts_with("## Verbs\n\n| base"));
    assert_eq!("", chunks[0].table_header);
    for chunk in &chunks[1..chunks.len() - 1] {
        assert_eq!((header, 0), (chunk.table_header.as_str(), chunk.overlap));
        assert!(chunk.text.lines().all(|line| line.starts_with('|') && line.ends_with('|')));
        assert!(chunk.index_text().contains("participle"));
    }
}

#[test]
fn ids_hang_on_document_and_place_alone() {
    let chunks = markdown("markdown:30:5", PAGE);
    let again = markdown("markdown:30:5", PAGE);
    assert_eq!(chunks, again);
    let mut other = document("markdown", PAGE);
    other.id = "else.md".into();
    let chunker = |threads: usize| {
        let documents = vec![document("markdown", PAGE), other.clone(), document("text", "")];
        let settings = "markdown:30:5".parse().unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let chunker = Chunker::new(settings, Length::Tokens(&TOKENIZER), None).unwrap();
            chunker.split_all(&documents).unwrap()
        })
    };
    let all = chunker(1);
    assert_eq!(all, chunker(4));
    assert_eq!(chunks[..], all[..chunks.len()]);
    assert!(all[chunks.len()..].iter().zip(&chunks).all(|(a, b)| a.id != b.id));
}

#[test]
fn what_cannot_be_cut_is_an_error_that_says_why() {
    let semantic = "semantic".parse().unwrap();
    let error = Chunker::new(semantic, Length::Chars, None).err().unwrap();
    assert!(error.to_string().contains("embedder"), "{error}");
    let none = |_: &[&str]| Vectors::new(4, Vec::new());
    let chunker = Chunker::new(semantic, Length::Chars, Some(&none)).unwrap();
    assert!(chunker.split(&document("text", "Some text. More.")).is_err());
}

#[test]
fn hostile_files_are_tiled_in_linear_time() {
    let Some(hard) = shared("data/hard-inputs") else { return };
    let paths = ["markdown", "generated", "text"].map(|folder| files(&hard.join(folder))).concat();
    assert!(paths.len() > 30);
    for path in paths {
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        let start = Instant::now();
        for strategy in ["token-window", "sentence", "recursive", "markdown", "semantic"] {
            for format in ["markdown", "text"] {
                let document = document(format, &text);
                check_tiles(&document, &split(strategy, Length::Tokens(&TOKENIZER), &document));
            }
        }
        assert!(start.elapsed().as_secs() < 20, "{} is slow", path.display());
    }
}

#[test]
fn a_megabyte_of_anything_is_linear() {
    let texts = [
        ">".repeat(200_000) + "x",
        "# h\n".to_owned() + &" \n".repeat(200_000) + &"a. ".repeat(100_000),
        "# ".to_owned() + &"word ".repeat(100_000),
        "- ".repeat(100_000),
        "🇨🇿".repeat(60_000),
        "| a | b |\n|---|---|\n".to_owned() + &"| c | d |\n".repeat(40_000),
        "```\n".to_owned() + &"code\n".repeat(100_000),
        ". ".repeat(200_000),
        "[".repeat(100_000),
    ];
    for text in &texts {
        for strategy in ["recursive", "markdown"] {
            let start = Instant::now();
            let document = document("markdown", text);
            check_tiles(&document, &split(strategy, Length::Tokens(&TOKENIZER), &document));
            let seconds = start.elapsed().as_secs_f32();
            assert!(seconds < 5.0, "{strategy}: {seconds} s for {:?}", &text[..4]);
        }
    }
}
