//! Training gives the same bytes; the lean engine agrees with the tokenizers crate.

use std::{process::Command, sync::LazyLock};

use minirag::{
    rng::Rng,
    tokenizer::{Tokenizer, TrainSettings, train},
};
use proptest::prelude::*;

use crate::{models, shared};

static OURS: LazyLock<Tokenizer> =
    LazyLock::new(|| Tokenizer::load(models().join("tokenizer")).unwrap());

static LIBRARY: LazyLock<tokenizers::Tokenizer> = LazyLock::new(|| {
    let mut library =
        tokenizers::Tokenizer::from_file(models().join("tokenizer/tokenizer.json")).unwrap();
    library.set_encode_special_tokens(true);
    library
});

#[track_caller]
fn check(text: &str) {
    let ours = OURS.encode(text).unwrap();
    let theirs = LIBRARY.encode(text, false).unwrap();
    assert_eq!(theirs.get_ids(), ours.ids, "ids of {text:?}");
    let offsets: Vec<(usize, usize)> = ours.offsets.iter().map(|o| (o.start, o.end)).collect();
    assert_eq!(theirs.get_offsets(), offsets, "offsets of {text:?}");
    assert_eq!(ours.ids.len(), OURS.count(text).unwrap());
    assert_eq!(text, OURS.decode(&ours.ids).unwrap());
}

const HARD: [&str; 14] = [
    "",
    " ",
    "   \n\n\t x  5  y 12\u{a0}\u{2003}½Ⅷ²٣",
    "don't it's we'RE 'tis ''s 'll'd x's5's  's",
    "<|endoftext|> is text <|endoftext|>",
    "a\r\nb\r\n\r\n  c\u{85}d\u{2028}\u{2028}e",
    "naïve cafe\u{301} Straße ﬁ ﬀ \u{feff}\0\u{1}\u{7f}",
    "今天。明天！กินข้าว नमस्ते ئۇيغۇر",
    "👩‍👩‍👧‍👦👍🏽🇨🇿🇪🇸 ……………",
    "x\u{301}\u{302}\u{303}\u{304}   \u{301}",
    "http://a.b/c?d=e&f#g --- === ``` |a|b|",
    "   5",
    "\u{e0001}\u{10ffff}\u{1f1e6}",
    "\u{2028}5\u{3000}５",
];

#[test]
fn hard_texts_are_encoded_as_by_the_library() {
    HARD.iter().for_each(|text| check(text));
    check(&HARD.concat());
    check(&"ab".repeat(5_000));
}

#[test]
fn every_character_is_encoded_as_by_the_library() {
    // No character of the planes between is assigned.
    let all: Vec<char> = ('\0'..'\u{33500}').chain('\u{e0000}'..'\u{e0200}').collect();
    // Between letters, spaces and quotes each class of character shows.
    for block in all.chunks(2_000) {
        let text: String =
            block.iter().flat_map(|&c| ['a', c, ' ', c, '\'', c, ' ', ' ']).collect();
        let ours = OURS.encode(&text).unwrap();
        let theirs = LIBRARY.encode(text.as_str(), false).unwrap();
        assert!(theirs.get_ids() == ours.ids, "from {:?}", block[0]);
    }
}

proptest! {
    #[test]
    fn random_texts_are_encoded_as_by_the_library(text in "\\PC*", spaced in "[ a's\n5é.|\u{301}]{0,60}") {
        check(&text);
        check(&spaced);
    }
}

fn sample() -> Vec<String> {
    let mut rng = Rng::new(7);
    let word = |rng: &mut Rng| -> String {
        (0..1 + rng.below(9)).map(|_| char::from(b'a' + rng.below(4) as u8)).collect()
    };
    (0..200).map(|_| (0..40).map(|_| word(&mut rng)).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn training_twice_gives_the_same_bytes_whatever_the_threads() {
    let texts = sample();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let settings = TrainSettings { vocab_size: 900, ..Default::default() };
    let (first, report) = train(&texts, &settings).unwrap();
    assert_eq!(900, first.vocab_size());
    assert_eq!(report.fingerprint, first.fingerprint());
    for threads in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let (again, _) = pool.install(|| train(&texts, &settings)).unwrap();
        assert_eq!(first.fingerprint(), again.fingerprint(), "{threads} threads");
    }
}

#[test]
fn two_processes_train_the_same_file() {
    let dir = tempfile::tempdir().unwrap();
    let corpus = dir.path().join("corpus");
    std::fs::create_dir(&corpus).unwrap();
    for (i, text) in sample().iter().enumerate() {
        std::fs::write(corpus.join(format!("{i}.txt")), text).unwrap();
    }
    let files: Vec<Vec<u8>> = ["1", "2"]
        .iter()
        .map(|threads| {
            let output = dir.path().join(threads);
            let status = Command::new(env!("CARGO_BIN_EXE_train-tokenizer"))
                .env("RAYON_NUM_THREADS", threads)
                .args(["--vocab-size", "600", "--corpus"])
                .arg(&corpus)
                .arg("--output")
                .arg(&output)
                .output()
                .unwrap();
            assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
            assert!(output.join("train.json").is_file());
            std::fs::read(output.join("tokenizer.json")).unwrap()
        })
        .collect();
    assert_eq!(files[0], files[1]);
}

#[test]
fn a_saved_tokenizer_loads_from_its_folder_and_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = OURS.save(dir.path().join("new")).unwrap();
    for place in [path.as_path(), path.parent().unwrap()] {
        assert_eq!(OURS.fingerprint(), Tokenizer::load(place).unwrap().fingerprint());
    }
    assert_eq!(1, std::fs::read_dir(path.parent().unwrap()).unwrap().count());
}

#[test]
fn what_cannot_work_is_an_error_that_says_why() {
    let message = |result: minirag::Result<Tokenizer>| result.unwrap_err().to_string();
    assert!(message(Tokenizer::load("no/such/tokenizer.json")).contains("no/such"));
    assert!(message(Tokenizer::from_bytes(b"{}")).contains("not a tokenizer.json"));
    let small = TrainSettings { vocab_size: 100, ..Default::default() };
    assert!(train(&["text"], &small).unwrap_err().to_string().contains("at least 257"));
    assert!(train(&[" \n"], &TrainSettings::default()).is_err());
    assert!(OURS.decode(&[u32::MAX]).is_err());
}

#[test]
fn special_tokens_are_known_but_never_parsed_from_text() {
    let id = OURS.special_id("<|endoftext|>").unwrap();
    assert!(!OURS.encode("<|endoftext|>").unwrap().ids.contains(&id));
    assert_eq!("", OURS.decode(&[id]).unwrap());
    assert_eq!(None, OURS.special_id("the"));
}

/// A file with padding, truncation, a lower-casing normaliser and special tokens around.
const FOREIGN: &str = r###"{"version":"1.0",
  "truncation":{"direction":"Right","max_length":3,"strategy":"LongestFirst","stride":0},
  "padding":{"strategy":{"Fixed":128},"direction":"Right","pad_to_multiple_of":null,
    "pad_id":0,"pad_type_id":0,"pad_token":"[PAD]"},
  "added_tokens":[{"id":0,"content":"[PAD]","single_word":false,"lstrip":false,"rstrip":false,
    "normalized":false,"special":true}],
  "normalizer":{"type":"Lowercase"},"pre_tokenizer":{"type":"Whitespace"},
  "post_processor":null,"decoder":null,
  "model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##",
    "max_input_chars_per_word":100,
    "vocab":{"[PAD]":0,"[UNK]":1,"eat":2,"##en":3,"the":4}}}"###;

#[test]
fn padding_and_truncation_of_a_file_are_off() {
    let foreign = Tokenizer::from_bytes(FOREIGN.as_bytes()).unwrap();
    let encoding = foreign.encode("The eaten é the the eat").unwrap();
    assert_eq!(vec![4, 2, 3, 1, 4, 4, 2], encoding.ids);
    assert_eq!(10..12, encoding.offsets[3]);
    assert_eq!(7, foreign.count("The eaten é the the eat").unwrap());
    assert!(!foreign.encode("[PAD]").unwrap().ids.contains(&0));
    assert_eq!(vec![3, 7, 9, 12], foreign.ends("The eaten é").unwrap());
}

#[test]
fn hard_files_are_encoded_as_by_the_library() {
    let Some(folder) = shared("data/hard-inputs/markdown") else { return };
    for file in crate::files(&folder) {
        check(&String::from_utf8_lossy(&std::fs::read(file).unwrap()));
    }
}
