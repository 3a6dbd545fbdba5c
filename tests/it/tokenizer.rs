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

/// An uncased tokenizer whose merges reach beyond ASCII, and the library's reading of it.
static UNCASED: LazyLock<(Tokenizer, tokenizers::Tokenizer)> = LazyLock::new(|| {
    let documents = minirag::corpus::embedded().unwrap().documents;
    let mut texts: Vec<&str> = documents.iter().map(|d| d.text.as_str()).collect();
    texts.extend(HARD.iter().chain(&HARD_UNCASED).cycle().take(4 * 30));
    let settings = TrainSettings { vocab_size: 3000, lowercase: true, ..Default::default() };
    let (ours, _) = train(&texts, &settings).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut library = tokenizers::Tokenizer::from_file(ours.save(folder.path()).unwrap()).unwrap();
    library.set_encode_special_tokens(true);
    (ours, library)
});

#[track_caller]
fn check_uncased(text: &str) {
    let (ours, library) = &*UNCASED;
    let theirs = library.encode(text, false).unwrap();
    let mut ids = vec![7];
    ours.encode_ids_into(text, &mut ids).unwrap();
    assert_eq!(theirs.get_ids(), &ids[1..], "ids of {text:?}");
    assert_eq!(7, ids[0]);
    assert_eq!(ids.len() - 1, ours.count(text).unwrap());
    let encoding = ours.encode(text).unwrap();
    assert_eq!(encoding.ids, &ids[1..]);
    let offsets: Vec<_> = encoding.offsets.iter().map(|o| (o.start, o.end)).collect();
    assert_eq!(theirs.get_offsets(), offsets, "offsets of {text:?}");
    assert_eq!(library.decode(&encoding.ids, true).unwrap(), ours.decode(&encoding.ids).unwrap());
}

/// Texts that NFKC, lower case or the split at marks treat in a way of their own.
const HARD_UNCASED: [&str; 16] = [
    "The CAT'S_2 cats, x-Ray (A1)!",
    "ﬁ ﬀ ＡＢＣ１２ Ⅷ ½ № ㎏ ℃ ™",
    "İstanbul ISIK ıI ß ẞ Straße ΣΑΣ ΌΔΟΣ ς",
    "e\u{301}E\u{301} cafe\u{301}s x\u{301}\u{316}\u{302}y \u{301} a \u{301}",
    "a=\u{338}b <\u{338} >\u{338}> 1\u{338} _\u{301}",
    "a\u{a8}b \u{b4}\u{2dc}x \u{2017} \u{a0}\u{3000}y\u{2003}z\u{85}w\u{2028}v",
    "ｶﾞ ﾊﾟ か\u{3099} \u{1100}\u{1161}\u{11a8} 각 가\u{11a8}",
    "क\u{93c} ਲ\u{a3c} \u{958} \u{fb2c} \u{2adc}",
    "今天。明天！ＯＫ？ 「東京」タワー",
    "กินข้าว กำ ນໍ້າ ခင်ဗျား",
    "👩‍👩‍👧‍👦👍🏽🇨🇿 a👍b ZWJ\u{200d}x\u{200c}y",
    "\0\0\0a\0B\u{1}\u{7f}\u{1c}\u{1f}x \0",
    "K Å Ω ſ Å ÅNGSTRÖM ǅ ǆ ᾳ ᾼ ŉ",
    "\u{feff}bom \u{200b}zero \u{ad}soft\u{ad}hyphen \u{fffd}",
    "_Snake_Case_ __x__ it's don’t “quoted”",
    "\u{1f1e6}\u{10ffff}\u{e0001} \u{1d400}\u{1d7d8} \u{2f800}",
];

#[test]
fn hard_texts_are_encoded_uncased_as_by_the_library() {
    HARD.iter().chain(&HARD_UNCASED).for_each(|text| check_uncased(text));
    check_uncased(&HARD.concat());
    check_uncased(&HARD_UNCASED.concat());
    // Lengths about those that the cache tells apart, in either case.
    let letters = "AbcDefgHij".repeat(6);
    for length in 1..60 {
        check_uncased(&letters[..length]);
        check_uncased(&format!("x {} Y", &letters[..length]));
    }
    check_uncased(&"aB".repeat(5_000));
    check_uncased(&"é".repeat(5_000));
}

#[test]
fn every_character_is_encoded_uncased_as_by_the_library() {
    let all: Vec<char> = ('\0'..'\u{33500}').chain('\u{e0000}'..'\u{e0200}').collect();
    let (ours, library) = &*UNCASED;
    for block in all.chunks(2_000) {
        // Alone, and after and before letters and marks, with which it may compose.
        let text: String = block
            .iter()
            .flat_map(|&c| ['a', c, 'B', c, ' ', c, ' ', '.', c, '=', ' ', 'é', c, 'É', '\n'])
            .collect();
        let mut ids = Vec::new();
        ours.encode_ids_into(&text, &mut ids).unwrap();
        let theirs = library.encode_fast(text.as_str(), false).unwrap();
        assert!(theirs.get_ids() == ids, "from {:?}", block[0]);
    }
}

#[test]
fn the_uncased_form_ignores_case_blanks_and_compatibility_forms() {
    let (ours, _) = &*UNCASED;
    let ids = |text: &str| ours.encode(text).unwrap().ids;
    assert_eq!(ids("the first café 12"), ids("The\nﬁRST  cafe\u{301} １２"));
    assert_eq!(ids("a,b"), ids("A , B"));
    assert_ne!(ids("ab"), ids("a b"));
    let ends = ours.ends("The ﬁ CAFÉ.").unwrap();
    assert_eq!((Some(&3), Some(&14)), (ends.first(), ends.last()));
    let id = ours.special_id("<|endoftext|>").unwrap();
    assert!(!ids("<|endoftext|>").contains(&id));
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
        check_uncased(&text);
        check_uncased(&spaced);
    }

    #[test]
    fn random_composing_texts_are_encoded_uncased_as_by_the_library(
        text in "[ aE=<'\n1_.\u{301}\u{338}\u{316}\u{345}éÉßİſﬁ\u{fb4f}か\u{3099}\u{1100}\u{1161}\u{11a8}각今\u{a8}\u{a0}\u{3000}]{0,40}",
    ) {
        check_uncased(&text);
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

#[test]
fn hard_files_are_encoded_uncased_as_by_the_library() {
    let (ours, library) = &*UNCASED;
    for folder in ["markdown", "text", "generated", "html", "encodings"] {
        let Some(folder) = shared(&format!("data/hard-inputs/{folder}")) else { return };
        for file in crate::files(&folder) {
            let bytes = std::fs::read(&file).unwrap();
            let text = String::from_utf8_lossy(&bytes[..bytes.len().min(200_000)]);
            let mut ids = Vec::new();
            ours.encode_ids_into(&text, &mut ids).unwrap();
            let theirs = library.encode_fast(text.as_ref(), false).unwrap();
            assert!(theirs.get_ids() == ids, "{}", file.display());
        }
    }
}
