//! Folders of static bi-encoders: read and written as sentence-transformers does, or refused.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use candle_core::DType;
use minirag::{
    embed::{self, BiEncoder, Embedder},
    nn::params::{CHECKPOINT, read_tensors, write_tensors},
    train::{MiniBiEncoder, bi_encoder::TextEncoder},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::training::{documents, encoder};

const TEXTS: [&str; 4] = ["bor1ak is near the tan1el.", "", "Příliš žluťoučký 猫 🙂", "of and the"];

/// A fresh network's folder.
fn saved() -> (BiEncoder, TempDir) {
    let root = tempfile::tempdir().unwrap();
    let embedder = encoder(3).static_embedder().unwrap();
    embedder.save(root.path()).unwrap();
    (embedder, root)
}

fn embed(embedder: &dyn Embedder, texts: &[&str]) -> Vec<f32> {
    embedder.embed_passages(texts).unwrap().data().to_vec()
}

#[track_caller]
fn refused(folder: &Path, parts: &[&str]) {
    let error = BiEncoder::open(folder).err().expect("it is accepted").to_string();
    for part in parts {
        assert!(error.contains(part), "no {part:?} in: {error}");
    }
}

fn apart(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn replace(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replace(from, to)).unwrap();
}

#[test]
fn a_saved_folder_embeds_as_before_to_the_bit() {
    let (embedder, root) = saved();
    let opened = BiEncoder::open(root.path()).unwrap();
    assert_eq!(embed(&embedder, &TEXTS), embed(&opened, &TEXTS));
    assert_eq!(embedder.fingerprint(), opened.fingerprint());
    let any = embed::open(root.path()).unwrap();
    assert_eq!((any.fingerprint(), any.dim()), (embedder.fingerprint(), 16));
    let queries = opened.embed_queries(&TEXTS).unwrap();
    assert_eq!(queries.data(), embed(&embedder, &TEXTS));

    let again = tempfile::tempdir().unwrap();
    opened.save(again.path()).unwrap();
    for name in ["model.safetensors", "1_Dense/model.safetensors", "modules.json", "config.json"] {
        let read = |root: &TempDir| fs::read(root.path().join(name)).unwrap();
        assert!(read(&root) == read(&again), "{name}");
    }
    let further = MiniBiEncoder::open(root.path(), DType::F32).unwrap().static_embedder().unwrap();
    assert_eq!(embed(&further, &TEXTS), embed(&embedder, &TEXTS), "to be trained further");
    assert_ne!(encoder(4).static_embedder().unwrap().fingerprint(), embedder.fingerprint());
}

#[test]
fn a_text_has_one_vector_whatever_stands_beside_it() {
    let (embedder, _root) = saved();
    let documents = documents(40);
    let long = documents[3].1.repeat(20);
    let mut texts: Vec<&str> = documents.iter().map(|(_, text)| &**text).collect();
    texts.extend([&*long, "bor1ak"]);
    let together = embed(&embedder, &texts.repeat(3));
    for (row, text) in together.chunks(16).zip(texts.repeat(3)) {
        assert!(apart(row, &embed(&embedder, &[text])) <= 1e-5, "{text}");
    }
}

#[test]
fn rows_are_unit_and_an_empty_text_is_zeros() {
    let (embedder, root) = saved();
    // Biases, so that the layers make something of zeros.
    let path = root.path().join("2_Dense/model.safetensors");
    let mut tensors = read_tensors(&path).unwrap();
    let bias = tensors["linear.bias"].ones_like().unwrap();
    tensors.insert("linear.bias".to_owned(), bias);
    write_tensors(&path, &tensors, CHECKPOINT).unwrap();
    for embedder in [embedder, BiEncoder::open(root.path()).unwrap()] {
        let vectors = embedder.embed_passages(&TEXTS).unwrap();
        let norms: Vec<f32> = vectors.rows().map(|row| row.iter().map(|x| x * x).sum()).collect();
        assert_eq!(norms[1], 0.0);
        for text in [0, 2, 3] {
            assert!((norms[text] - 1.0).abs() < 1e-6, "{}: {}", TEXTS[text], norms[text]);
        }
        assert_eq!(embed(&embedder, &[]), [0.0; 0]);
    }
}

#[test]
fn what_a_folder_lacks_is_named() {
    for name in [
        "modules.json",
        "model.safetensors",
        "tokenizer.json",
        "1_Dense/config.json",
        "2_Dense/model.safetensors",
    ] {
        let (_, root) = saved();
        let path = root.path().join(name);
        fs::remove_file(&path).unwrap();
        refused(root.path(), &[path.to_str().unwrap()]);
    }
    let none = Path::new("no/such/folder");
    let error = embed::open(none).err().unwrap().to_string();
    assert!(error.contains("no/such/folder") && error.contains("train-biencoder"), "{error}");
}

#[test]
fn a_file_that_is_cut_off_is_named() {
    for name in ["modules.json", "model.safetensors", "tokenizer.json", "1_Dense/model.safetensors"]
    {
        let (_, root) = saved();
        let path = root.path().join(name);
        let whole = fs::read(&path).unwrap();
        for length in [0, 5, whole.len() / 2, whole.len() - 3] {
            fs::write(&path, &whole[..length]).unwrap();
            refused(root.path(), &[path.to_str().unwrap()]);
        }
    }
}

#[test]
fn what_would_give_other_vectors_is_refused() {
    let change = |file: &str, from: &str, to: &str, parts: &[&str]| {
        let (_, root) = saved();
        let path = root.path().join(file);
        replace(&path, from, to);
        refused(root.path(), &[&[root.path().to_str().unwrap()], parts].concat());
    };
    change("modules.json", "models.Dense", "models.LayerNorm", &["modules.json", "`LayerNorm`"]);
    change("modules.json", "models.StaticEmbedding", "models.Transformer", &["`Transformer`"]);
    change("modules.json", "models.Normalize", "models.StaticEmbedding", &["`StaticEmbedding`"]);
    let gelu = "activation.GELU";
    change("1_Dense/config.json", gelu, "activation.SiLU", &["activation.SiLU", "1_Dense", gelu]);
    change("1_Dense/config.json", "32", "30", &["1_Dense", "[32, 16]", "[30, 16]"]);
    change("1_Dense/config.json", "\"bias\": true", "\"bias\": false", &["`linear.bias`"]);
    change("1_Dense/config.json", "out_features", "out", &["1_Dense/config.json", "out_features"]);
    change(
        "1_Dense/config.json",
        "\"bias\": true",
        "\"bias\": true, \"use_residual\": true",
        &["1_Dense", "use_residual"],
    );
    let (_, root) = saved();
    fs::write(root.path().join("modules.json"), "[]").unwrap();
    refused(root.path(), &["modules.json", "no modules"]);
}

/// Writes the tensors of a file anew, each under another name or not at all.
fn rewrite(path: &Path, name: impl Fn(&str) -> Vec<&str>) {
    let tensors = read_tensors(path).unwrap();
    let named = |(from, tensor): (&String, &candle_core::Tensor)| {
        let names: Vec<_> =
            name(from).into_iter().map(|to| (to.to_owned(), tensor.clone())).collect();
        names
    };
    write_tensors(path, &tensors.iter().flat_map(named).collect(), CHECKPOINT).unwrap();
}

#[test]
fn a_table_or_layer_of_another_size_or_name_is_refused() {
    let (_, root) = saved();
    let table = root.path().join("model.safetensors");
    rewrite(&table, |name| vec![name, "weights"]);
    refused(root.path(), &[table.to_str().unwrap(), "`weights`"]);
    rewrite(&table, |_| vec!["vectors"]);
    refused(root.path(), &[table.to_str().unwrap(), "`vectors`", "`embeddings`"]);

    let (_, root) = saved();
    let table = root.path().join("model.safetensors");
    let tensors = read_tensors(&table).unwrap();
    let rows = |from: usize, count: usize, dim: usize| {
        let tensor = &tensors["embedding.weight"].narrow(1, from, dim).unwrap();
        let tensor = tensor.narrow(0, 0, count).unwrap().contiguous().unwrap();
        write_tensors(&table, &[("embedding.weight".to_owned(), tensor)].into(), CHECKPOINT)
    };
    let (vocabulary, dim) = tensors["embedding.weight"].dims2().unwrap();
    rows(0, vocabulary - 1, dim).unwrap();
    let place = root.path().to_str().unwrap();
    let sizes = [&(vocabulary - 1).to_string()[..], &vocabulary.to_string()];
    refused(root.path(), &[place, "vocabulary", sizes[0], sizes[1]]);
    rows(0, vocabulary, dim - 1).unwrap();
    refused(root.path(), &[place, "expected 15, got 16"]);
}

#[test]
fn a_table_of_model2vec_is_read() {
    let (embedder, root) = saved();
    rewrite(&root.path().join("model.safetensors"), |_| vec!["embeddings"]);
    let opened = BiEncoder::open(root.path()).unwrap();
    assert_eq!(embed(&opened, &TEXTS), embed(&embedder, &TEXTS));
}

#[test]
fn half_precision_is_half_as_large_and_nearly_the_same() {
    let (embedder, whole) = saved();
    let half = tempfile::tempdir().unwrap();
    embedder.save_as(half.path(), DType::F16).unwrap();
    let size =
        |root: &TempDir| fs::metadata(root.path().join("model.safetensors")).unwrap().len() as f64;
    assert!(size(&half) < 0.51 * size(&whole) + 100.0);
    let opened = BiEncoder::open(half.path()).unwrap();
    let apart = apart(&embed(&opened, &TEXTS), &embed(&embedder, &TEXTS));
    assert!(apart > 0.0 && apart < 2e-3, "{apart}");
    // What was read is not rounded once more.
    let again = tempfile::tempdir().unwrap();
    opened.save_as(again.path(), DType::F16).unwrap();
    let reopened = BiEncoder::open(again.path()).unwrap();
    assert_eq!(embed(&reopened, &TEXTS), embed(&opened, &TEXTS));
}

/// What sentence-transformers saved, by `scripts/reference/static_model.py`.
fn theirs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/st_static")
}

#[test]
fn a_folder_of_sentence_transformers_gives_its_vectors() {
    let cases = fs::read_to_string(theirs().join("expected.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&cases).unwrap();
    assert_eq!(cases.len(), 6);
    let embedder = BiEncoder::open(&theirs()).unwrap();
    let texts: Vec<&str> = cases.iter().map(|case| case["text"].as_str().unwrap()).collect();
    let vectors = embedder.embed_passages(&texts).unwrap();
    for (case, got) in cases.iter().zip(vectors.rows()) {
        let number = |x: &Value| x.as_f64().unwrap() as f32;
        let expected: Vec<f32> = case["vector"].as_array().unwrap().iter().map(number).collect();
        match case["text"].as_str().unwrap() {
            // There they are the biases' vector, which would be near to some texts.
            "" => assert_eq!(got, [0.0; 6]),
            text => assert!(apart(got, &expected) <= 1e-6, "{text}: {got:?}, {expected:?}"),
        }
    }
}

#[test]
fn both_generations_of_module_names_are_read() {
    let newer = fs::read_to_string(theirs().join("modules.json")).unwrap();
    assert!(newer.contains("sentence_transformers.base.modules.dense.Dense"), "{newer}");
    let (embedder, root) = saved();
    let modules = root.path().join("modules.json");
    let older = fs::read_to_string(&modules).unwrap();
    assert!(older.contains("sentence_transformers.models.Dense"), "{older}");
    for (class, module) in [
        ("StaticEmbedding", "sentence_transformer.modules.static_embedding"),
        ("Dense", "base.modules.dense"),
        ("Normalize", "base.modules.normalize"),
    ] {
        replace(&modules, &format!(".models.{class}"), &format!(".{module}.{class}"));
    }
    assert_eq!(embed(&BiEncoder::open(root.path()).unwrap(), &TEXTS), embed(&embedder, &TEXTS));
}

#[test]
fn sentence_transformers_reads_ours_and_agrees() {
    let probe =
        "import importlib.util as u, sys; sys.exit(not u.find_spec('sentence_transformers'))";
    let found = Command::new("python3").args(["-c", probe]).output();
    if !found.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: python3 has no sentence_transformers");
        return;
    }
    let (embedder, root) = saved();
    let texts: Vec<&str> = TEXTS.into_iter().filter(|text| !text.is_empty()).collect();
    let vectors: Vec<Vec<f32>> = embed(&embedder, &texts).chunks(16).map(<[f32]>::to_vec).collect();
    let path = root.path().join("vectors.json");
    fs::write(&path, json!({ "texts": texts, "vectors": vectors }).to_string()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/reference/check_folder.py");
    let output = Command::new("python3").arg(script).args([root.path(), &path]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let apart: f64 = said.trim().parse().unwrap_or_else(|_| panic!("{output:?}"));
    assert!(apart <= 1e-6, "{apart:e}");
}

#[test]
fn a_trained_folder_keeps_the_weights_of_its_tokens() {
    // The mean of idf-weighted rows: without the fold-in the vectors would be others.
    let encoder = encoder(3);
    let embedder = encoder.static_embedder().unwrap();
    let mut ids = Vec::new();
    embedder.tokenizer().encode_ids_into(TEXTS[0], &mut ids).unwrap();
    let trained = minirag::nn::ops::l2_normalize(&encoder.embed(&[&ids]).unwrap()).unwrap();
    let trained = trained.flatten_all().unwrap().to_vec1::<f32>().unwrap();
    assert!(apart(&trained, &embed(&embedder, &TEXTS[..1])) < 1e-5);
}
