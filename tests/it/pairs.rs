//! Training pairs: the same whatever the threads, held-out texts out of reach, faults named.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    path::Path,
    sync::LazyLock,
};

use minirag::{
    corpus,
    tokenizer::{Tokenizer, TrainSettings, train},
    train::pairs::{
        Example, Labelled, LabelledSettings, LabelledTexts, MineSettings, Pairs, RecipeSettings,
        Unlabelled, UnlabelledSettings, Weights, mine_negatives,
    },
    types::{Document, Hit, Ranking, Row, Scale},
};

use crate::shared;

static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(|| {
    let documents = corpus::embedded().unwrap().documents;
    let texts: Vec<&str> = documents.iter().map(|d| d.text.as_str()).collect();
    let settings = TrainSettings { vocab_size: 2000, lowercase: true, ..Default::default() };
    train(&texts, &settings).unwrap().0
});

fn ids(text: &str) -> Vec<u32> {
    let mut ids = Vec::new();
    TOKENIZER.encode_ids_into(text, &mut ids).unwrap();
    ids
}

fn document(id: &str, title: &str, text: &str) -> Document {
    let metadata = [("format".to_owned(), "markdown".to_owned())].into();
    Document { id: id.into(), title: title.into(), text: text.into(), metadata }
}

/// Documents that each say their own number in every sentence, and nothing else that is rare.
fn numbered(n: usize) -> Vec<Document> {
    let text = |n: usize| -> String {
        let sentence = |s: usize| {
            let words: Vec<String> =
                (0..6).map(|w| format!("w{}", (n * 31 + s * 7 + w) % 997)).collect();
            format!("Here q{n:03}q says {}.", words.join(" "))
        };
        (0..6).map(sentence).collect::<Vec<_>>().join(" ")
    };
    (0..n).map(|n| document(&format!("{n:03}"), &format!("Title q{n:03}q"), &text(n))).collect()
}

/// The numbers that `ids` say.
fn said(ids: &[u32]) -> BTreeSet<String> {
    let pattern = regex::Regex::new(r"q\d{3}q").unwrap();
    let text = TOKENIZER.decode(ids).unwrap();
    pattern.find_iter(&text).map(|found| found.as_str().to_owned()).collect()
}

fn only(weights: Weights) -> RecipeSettings {
    RecipeSettings {
        weights,
        keep: 0.0,
        crop: 0.0,
        headed: 0.0,
        anchor_dropout: 0.0,
        passage_dropout: 0.0,
        ..Default::default()
    }
}

const NONE: Weights =
    Weights { sentence: 0.0, title: 0.0, heading: 0.0, question: 0.0, neighbour: 0.0 };

fn unlabelled(documents: &[Document], recipes: RecipeSettings) -> Unlabelled {
    let settings = UnlabelledSettings { recipes, ..Default::default() };
    Unlabelled::new(documents, &TOKENIZER, settings).unwrap()
}

fn grammar() -> Unlabelled {
    unlabelled(&corpus::embedded().unwrap().documents, RecipeSettings::default())
}

/// Lines of pairs; each passage has a word of its own.
fn lines(n: usize) -> String {
    let line = |n: usize| {
        let positive = format!("Passage q{n:03}q of {} and {}", n * 17, n * 29);
        format!("{{\"anchor\": \"what is q{n:03}q\", \"positive\": \"{positive}\"}}\n")
    };
    (0..n).map(line).collect()
}

fn read(lines: &str) -> minirag::Result<LabelledTexts> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pairs.jsonl");
    std::fs::write(&path, lines).unwrap();
    LabelledTexts::read(&path)
}

fn labelled(lines: &str) -> Labelled {
    Labelled::new(&read(lines).unwrap(), &TOKENIZER, LabelledSettings::default()).unwrap()
}

fn in_pool<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

#[test]
fn a_batch_is_a_function_of_seed_and_step_alone() {
    let sources: [fn() -> Box<dyn Pairs>; 2] =
        [|| Box::new(grammar()), || Box::new(labelled(&lines(300)))];
    for source in sources {
        let pairs = source();
        let batch = pairs.batch(1, 5, 200);
        assert_eq!(200, batch.len());
        pairs.batch(3, 9, 17);
        for threads in [1, 2, 5] {
            let (again, dev) = in_pool(threads, || {
                let pairs = source();
                (pairs.batch(1, 5, 200), pairs.dev().to_vec())
            });
            assert!(batch == again, "{threads} threads");
            assert!(pairs.dev() == dev, "{threads} threads");
        }
        assert!(batch != pairs.batch(1, 6, 200) && batch != pairs.batch(2, 5, 200));
        assert!(batch.iter().all(|e| !e.anchor.is_empty() && !e.positive.is_empty()));
    }
}

#[test]
fn an_epoch_of_labelled_pairs_has_each_once_and_the_next_another_order() {
    let pairs = labelled(&lines(106));
    assert_eq!(100, pairs.len()); // 5% of 106, rounded up, are held out
    let epoch = |first: u64| -> Vec<Vec<u32>> {
        (first..first + 5).flat_map(|step| pairs.batch(1, step, 20)).map(|e| e.anchor).collect()
    };
    let (first, second) = (epoch(0), epoch(5));
    assert_eq!(100, first.iter().collect::<HashSet<_>>().len());
    assert_eq!(first.iter().collect::<HashSet<_>>(), second.iter().collect());
    assert_ne!(first, second);
    // A batch over the end of an epoch goes on with the next.
    let over = pairs.batch(1, 1, 60);
    assert!(over[..40].iter().map(|e| &e.anchor).eq(&first[60..]));
    assert!(over[40..].iter().map(|e| &e.anchor).eq(&second[..20]));
}

/// Every number said in a held-out example and every number said in many batches.
fn sides(pairs: &dyn Pairs) -> (BTreeSet<String>, BTreeSet<String>) {
    let said_in = |examples: &[Example]| -> BTreeSet<String> {
        let texts = examples.iter().flat_map(|e| {
            [&e.anchor, &e.positive].into_iter().chain(e.negatives.iter().map(|n| &n.ids))
        });
        texts.flat_map(|ids| said(ids)).collect()
    };
    let batches: Vec<Example> = (0..40).flat_map(|step| pairs.batch(1, step, 64)).collect();
    (said_in(pairs.dev()), said_in(&batches))
}

#[test]
fn nothing_is_on_both_sides() {
    let lines = lines(100);
    let recipes = only(Weights { title: 0.3, sentence: 0.7, ..NONE });
    let sources: [Box<dyn Pairs>; 2] =
        [Box::new(unlabelled(&numbered(100), recipes)), Box::new(labelled(&lines))];
    for pairs in sources {
        let (dev, train) = sides(&*pairs);
        assert_eq!((5, 95), (dev.len(), train.len()));
        assert!(dev.is_disjoint(&train));
    }
}

#[test]
fn a_near_duplicate_of_a_held_out_document_is_not_learnt_from() {
    let mut documents = numbered(40);
    let recipes = only(Weights { sentence: 1.0, ..NONE });
    let (dev, _) = sides(&unlabelled(&documents, recipes));
    let held: usize = dev.first().unwrap()[1..4].parse().unwrap();
    // A second copy, with other words at its end, of every document.
    for n in 0..40 {
        let text = format!("{} A twin.", documents[n].text.replace(" says", "  SAYS"));
        documents.push(document(&format!("{n:03}-twin"), "Twin", &text));
    }
    let pairs = unlabelled(&documents, recipes);
    let (dev, train) = sides(&pairs);
    assert!(dev.is_disjoint(&train), "{dev:?}, held out before: {held}");
    // Twins are one group, and others are not.
    let mut groups: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    for example in (0..40).flat_map(|step| pairs.batch(1, step, 64)) {
        groups.entry(example.positive_group).or_default().extend(said(&example.positive));
    }
    assert!(groups.values().all(|said| said.len() == 1), "{groups:?}");
    assert_eq!(train.len(), groups.len());
}

#[test]
fn labelled_pairs_that_ask_what_is_held_out_are_left_out() {
    // Two passages an anchor: some anchors have one on either side.
    let line = |n: usize, copy: &str| {
        format!(
            "{{\"anchor\": \"What is q{n:03}q?\", \"positive\": \"{copy} q{n:03}q {}\"}}\n",
            n * 31
        )
    };
    let all: String = (0..60).flat_map(|n| [line(n, "first"), line(n, "as another")]).collect();
    let pairs = labelled(&all);
    let (dev, train) = sides(&pairs);
    assert!(dev.is_disjoint(&train) && dev.len() >= 4);
    assert_eq!(60, dev.len() + train.len());
    let batch = pairs.batch(1, 0, pairs.len());
    let groups: HashSet<u64> = batch.iter().map(|e| e.anchor_group).collect();
    assert_eq!(train.len(), groups.len());
}

#[test]
fn a_sentence_asks_for_what_is_left_of_its_passage() {
    let pairs = unlabelled(&numbered(30), only(Weights { sentence: 1.0, ..NONE }));
    for example in (0..10).flat_map(|step| pairs.batch(1, step, 64)).chain(pairs.dev().to_vec()) {
        let holds = example.positive.windows(example.anchor.len()).any(|w| w == example.anchor);
        assert!(!holds);
        assert_eq!(said(&example.anchor), said(&example.positive));
    }
}

/// The mean of `what` over some thousands of examples.
#[track_caller]
fn check_mean(pairs: &dyn Pairs, expected: f64, what: impl Fn(&Example) -> f64) {
    let examples: Vec<Example> = (0..20).flat_map(|step| pairs.batch(1, step, 200)).collect();
    let mean = examples.iter().map(what).sum::<f64>() / examples.len() as f64;
    // Four deviations of a share over 4,000 draws are at most 0.032.
    assert!((mean - expected).abs() < 0.032, "{mean}, not {expected}");
}

#[test]
fn shares_are_what_the_settings_say() {
    let title = "title ".repeat(100);
    let documents: Vec<Document> = numbered(20)
        .into_iter()
        .map(|d| document(&d.id.0, &title, &format!("{} {}", d.text, d.text)))
        .collect();
    let title = ids(&title).len() as f64;
    let recipes = only(Weights { title: 1.0, ..NONE });
    let dropped = RecipeSettings { anchor_dropout: 0.15, passage_dropout: 0.1, ..recipes };
    let whole = unlabelled(&documents, recipes).batch(1, 0, 1)[0].positive.len() as f64;
    check_mean(&unlabelled(&documents, dropped), 0.85, |e| e.anchor.len() as f64 / title);
    check_mean(&unlabelled(&documents, dropped), 0.9, |e| e.positive.len() as f64 / whole);

    let documents = numbered(20);
    let sentences = only(Weights { sentence: 1.0, ..NONE });
    let is_inside = |e: &Example| e.positive.windows(e.anchor.len()).any(|w| w == e.anchor);
    let kept = RecipeSettings { keep: 0.1, ..sentences };
    check_mean(&unlabelled(&documents, kept), 0.1, |e| f64::from(u8::from(is_inside(e))));
    let headed = RecipeSettings { headed: 0.8, ..sentences };
    let start = ids("Title");
    check_mean(&unlabelled(&documents, headed), 0.8, |e| {
        f64::from(u8::from(e.positive.starts_with(&start)))
    });
    let cropped = RecipeSettings { crop: 0.5, crop_tokens: (4, 6), ..sentences };
    check_mean(&unlabelled(&documents, cropped), 0.5, |e| {
        assert!(e.anchor.len() >= 4);
        f64::from(u8::from(e.anchor.len() <= 6))
    });
    let both = Weights { title: 0.25, sentence: 0.75, ..NONE };
    check_mean(&unlabelled(&documents, only(both)), 0.25, |e| {
        f64::from(u8::from(e.anchor.starts_with(&start)))
    });
}

#[test]
fn headings_definitions_and_neighbours_ask_for_their_passages() {
    let text = |n: usize| {
        format!(
            "# Tense {n}\n\nSome words about it.\n\n## Use {n} of it\n\n\
             A gerund{n} is a noun. It ends in letters.\n\n| Base | Past |\n|---|---|\n| go{n} | went |\n"
        )
    };
    let documents: Vec<Document> =
        (0..40).map(|n| document(&n.to_string(), &format!("Tense {n}"), &text(n))).collect();
    let decoded = |weights| -> Vec<(String, String)> {
        let pairs = unlabelled(&documents, RecipeSettings { headed: 1.0, ..only(weights) });
        let decode = |ids: &[u32]| TOKENIZER.decode(ids).unwrap();
        pairs.batch(1, 0, 50).iter().map(|e| (decode(&e.anchor), decode(&e.positive))).collect()
    };
    for (anchor, positive) in decoded(Weights { question: 1.0, ..NONE }) {
        let asked = anchor.strip_prefix("whatisa").unwrap();
        assert!(positive.contains(&format!("a{asked}isanoun.")), "{anchor}: {positive}");
    }
    for (anchor, positive) in decoded(Weights { heading: 1.0, ..NONE }) {
        let n = anchor.strip_prefix("use").unwrap().strip_suffix("ofit").unwrap();
        assert!(positive.starts_with(&format!("tense{n}some")), "{positive}");
        assert!(!positive.contains(&anchor));
        assert!(positive.ends_with(&format!("go{n}—past:went")), "{positive}");
    }
    let long = numbered(3).into_iter().map(|d| d.text).collect::<Vec<_>>().join(" ");
    let documents: Vec<Document> = (0..4)
        .map(|n| document(&n.to_string(), "", &long.replace("q0", &format!("q{n}"))))
        .collect();
    let settings = UnlabelledSettings {
        passage_tokens: 60,
        recipes: only(Weights { neighbour: 1.0, ..NONE }),
    };
    let pairs = Unlabelled::new(&documents, &TOKENIZER, settings).unwrap();
    for example in pairs.batch(1, 0, 50) {
        assert!(example.positive.len() <= 60 && example.anchor.len() <= 64);
        assert!(!example.positive.windows(example.anchor.len()).any(|w| w == example.anchor));
    }
}

#[test]
fn long_documents_are_cut_into_passages_that_are_told_apart() {
    let book: String = numbered(60).iter().map(|d| format!("{}\n\n", d.text)).collect();
    let solid = "ab12".repeat(4_000);
    let documents = [document("book", "Book", &book), document("solid", "Solid", &solid)];
    let settings = UnlabelledSettings { passage_tokens: 100, ..Default::default() };
    let alone = Unlabelled::new(&documents[..1], &TOKENIZER, settings).unwrap();
    let (dev, _) = sides(&alone);
    assert!(!dev.is_empty());
    let groups: HashSet<u64> = alone.batch(1, 0, 500).iter().map(|e| e.positive_group).collect();
    assert!(groups.len() > 20 && alone.len() >= groups.len(), "{}", groups.len());
    // One word without end is still cut into passages.
    let both = Unlabelled::new(&documents, &TOKENIZER, settings).unwrap();
    let longest = both.batch(1, 0, 500).iter().map(|e| e.positive.len()).max().unwrap();
    assert!(longest <= 100 + ids("Solid").len(), "{longest}");
}

#[test]
fn malformed_lines_are_named_with_a_cure() {
    let good = lines(4);
    let cases = [
        ("{\"anchor\": \"a\"}", "missing field `positive`; expected {\"anchor\": TEXT"),
        ("{\"positive\": \"a\"}", "missing field `anchor`"),
        ("{\"anchor\": 5, \"positive\": \"a\"}", "expected a string"),
        ("not json", "expected"),
        ("{\"anchor\": \" \", \"positive\": \"a\"}", "the anchor is empty: fill it in"),
        ("{\"anchor\": \"a\", \"positive\": \"\"}", "the positive is empty"),
        (
            "{\"anchor\": \"a\", \"positive\": \"b\", \"negative\": [\"c\", \"\"]}",
            "negative is empty",
        ),
        ("{\"anchor\": \"a\", \"positive\": \"b\", \"negative\": {}}", "expected {\"anchor\""),
    ];
    for (line, expected) in cases {
        let message = read(&format!("{good}\n{line}\n{good}")).unwrap_err().to_string();
        assert!(message.contains("pairs.jsonl:6: "), "{message}");
        assert!(message.contains(expected), "{message}");
    }
    assert!(read("\n \n").unwrap_err().to_string().contains("holds no pair"));
    assert!(LabelledTexts::read(Path::new("no/such.jsonl")).is_err());
    let other =
        "\u{feff}\n{\"anchor\": \"a\", \"id\": 7, \"positive\": \"b\", \"negative\": \"c\"}\r\n\n";
    let texts = read(other).unwrap();
    assert_eq!((1, 2), (texts.anchors.len(), texts.passages.len()));
    assert_eq!(vec![1], texts.pairs[0].negatives);
}

#[test]
fn too_little_to_learn_from_is_an_error_that_counts() {
    let message = |documents: &[Document]| {
        let settings = UnlabelledSettings::default();
        Unlabelled::new(documents, &TOKENIZER, settings).err().unwrap().to_string()
    };
    let one = message(&[document("a", "", "One sentence.")]);
    assert!(one.contains("1 documents with 1 sentences make 1 passages, 0 of which"), "{one}");
    assert!(message(&[]).contains("0 documents"));
    assert!(message(&numbered(2)).contains("2 documents with 12 sentences"));
    // Copies of one document are no two documents.
    let copies: Vec<Document> =
        (0..9).map(|n| document(&n.to_string(), "Title", &numbered(1)[0].text)).collect();
    assert!(message(&copies).contains("9 documents"));
    let few = Labelled::new(&read(&lines(2)).unwrap(), &TOKENIZER, Default::default());
    let few = few.err().unwrap().to_string();
    assert!(few.contains("pairs.jsonl: 2 pairs of 2 anchors and 2 different passages"), "{few}");
    let weights = RecipeSettings { weights: NONE, ..Default::default() };
    let wrong = RecipeSettings { keep: 1.5, ..Default::default() };
    for recipes in [weights, wrong] {
        let settings = UnlabelledSettings { recipes, ..Default::default() };
        assert!(Unlabelled::new(&numbered(9), &TOKENIZER, settings).is_err());
    }
    let nothing = LabelledSettings { max_tokens: 0, ..Default::default() };
    assert!(Labelled::new(&read(&lines(99)).unwrap(), &TOKENIZER, nothing).is_err());
}

/// A BEIR folder: query n asks for document n, and document n + 1 is judged wrong.
fn beir(qrels: &str) -> minirag::Result<LabelledTexts> {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: String| {
        std::fs::write(folder.path().join(name), content).unwrap();
    };
    std::fs::create_dir(folder.path().join("qrels")).unwrap();
    let lines = |line: &dyn Fn(usize) -> String| (0..40).map(|n| line(n) + "\n").collect();
    write(
        "corpus.jsonl",
        lines(&|n| {
            format!(
                "{{\"_id\": \"d{n}\", \"title\": \"Title q{n:03}q\", \"text\": \"about {}\"}}",
                n * 7
            )
        }),
    );
    let corpus = std::fs::read_to_string(folder.path().join("corpus.jsonl")).unwrap();
    write("corpus.jsonl", corpus + "{\"_id\": \"empty\", \"title\": \"\", \"text\": \" \"}\n");
    write("queries.jsonl", lines(&|n| format!("{{\"_id\": \"{n}\", \"text\": \"ask q{n:03}q\"}}")));
    write("qrels/train.tsv", format!("query-id\tcorpus-id\tscore\n{qrels}"));
    LabelledTexts::beir(folder.path(), "train")
}

#[test]
fn a_beir_split_gives_positives_and_judged_negatives() {
    let judged = |n: usize| format!("{n}\td{n}\t2\n{n}\td{}\t0\n", (n + 1) % 40);
    let texts = beir(&(0..30).map(judged).collect::<String>()).unwrap();
    assert_eq!((30, 41, 30), (texts.anchors.len(), texts.passages.len(), texts.pairs.len()));
    for pair in &texts.pairs {
        let n = said_in(&texts.anchors[pair.anchor]);
        let positive = &texts.passages[pair.positive];
        assert_eq!(format!("Title q{n:03}q about {}", n * 7), *positive);
        assert_eq!(1, pair.negatives.len());
        assert_eq!((n + 1) % 40, said_in(&texts.passages[pair.negatives[0]]));
    }
    let pairs = Labelled::new(&texts, &TOKENIZER, LabelledSettings::default()).unwrap();
    let (dev, train) = sides(&pairs);
    assert!(dev.len() >= 2 && train.len() >= 28);
    let dev_positives: BTreeSet<String> =
        pairs.dev().iter().flat_map(|e| said(&e.positive)).collect();
    assert!(dev_positives.is_disjoint(&train));
    assert!(pairs.batch(1, 0, 28).iter().any(|e| e.negatives.len() == 1));

    let hollow = beir("1\td1\t1\n1\tempty\t1\n2\td2\t1\n").unwrap();
    assert_eq!((1, 2), (hollow.without_text, hollow.pairs.len()));
    let message = |qrels: &str| beir(qrels).unwrap_err().to_string();
    assert!(message("1\td99\t1\n").contains("judges `d99`, which corpus.jsonl lacks"));
    assert!(message("1\td1\t0\n").contains("no document above 0"));
}

/// The number that a text says.
fn said_in(text: &str) -> usize {
    text.split('q').find_map(|part| part.parse().ok()).unwrap()
}

#[test]
fn mined_negatives_keep_their_distance_from_the_positive() {
    let mut all = lines(50);
    // A passage that is right for q000q as well, and a copy of another pair's.
    all += "{\"anchor\": \"What is Q000q?\", \"positive\": \"right as well\"}\n";
    all += "{\"anchor\": \"x\", \"positive\": \"PASSAGE q000q of 0, and 0\"}\n";
    let texts = read(&all).unwrap();
    // Passage n + i scores 1 - i / 50 for anchor n, but for the last pairs'.
    let search = |text: &str, k: usize| {
        let n = if text.contains('q') || text.contains('Q') {
            said_in(&text.to_lowercase())
        } else {
            49
        };
        let hit = |i: usize| Hit { row: Row(((n + i) % 52) as u32), score: 1.0 - i as f32 / 50.0 };
        Ranking::new(Scale::Bm25, (0..50).map(hit).collect(), k)
    };
    let settings = MineSettings { negatives: 5, depth: 20, ..Default::default() };
    let mut mined = texts.clone();
    let report = mine_negatives(&mut mined, &search, &settings).unwrap();
    assert_eq!(report.mined, mined.pairs.iter().map(|p| p.negatives.len()).sum::<usize>());
    assert!(report.too_near >= 90 && report.without_score >= 1, "{report:?}");
    for (n, pair) in mined.pairs[..50].iter().enumerate() {
        assert_eq!(5, pair.negatives.len());
        for &negative in &pair.negatives {
            // 1 - i / 50 is at most .95 from i = 3 on; the twentieth hit is i = 19.
            let i = (negative + 52 - n) % 52;
            assert!((3..20).contains(&i), "{i}");
            let right = if n == 0 { vec![0, 50, 51] } else { vec![n] };
            assert!(!right.contains(&negative));
        }
    }
    let offsets: HashSet<usize> = (mined.pairs[..50].iter().enumerate())
        .flat_map(|(n, pair)| pair.negatives.iter().map(move |at| (at + 52 - n) % 52))
        .collect();
    assert!(offsets.len() >= 15, "drawn from all of the rest: {offsets:?}");
    let mut again = texts.clone();
    in_pool(1, || mine_negatives(&mut again, &search, &settings)).unwrap();
    assert_eq!(mined, again);
    let mut other = texts.clone();
    mine_negatives(&mut other, &search, &MineSettings { seed: 1, ..settings }).unwrap();
    assert_ne!(mined, other);

    let stray =
        |_: &str, k: usize| Ranking::new(Scale::Bm25, vec![Hit { row: Row(99), score: 1.0 }], k);
    assert!(mine_negatives(&mut other, &stray, &settings).is_err());
    let wide = MineSettings { margin: 1.5, ..settings };
    assert!(mine_negatives(&mut other, &search, &wide).is_err());
}

#[test]
fn the_shared_sets_can_be_learnt_from() {
    let Some(folder) = shared("data/beir/scifact") else { return };
    let texts = LabelledTexts::beir(&folder, "train").unwrap();
    let pairs = Labelled::new(&texts, &TOKENIZER, LabelledSettings::default()).unwrap();
    assert!(pairs.len() > 700 && pairs.dev().len() > 30, "{} {}", pairs.len(), pairs.dev().len());
    let documents = corpus::load(&folder).unwrap();
    let settings = UnlabelledSettings::of(documents.kind);
    let pairs = Unlabelled::new(&documents.documents, &TOKENIZER, settings).unwrap();
    assert!(pairs.len() > 4_800 && pairs.dev().len() == 512);
}
