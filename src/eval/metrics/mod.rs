//! One question's result and its gold to one number; one measure a file.
//!
//! Retrieval measures read a [`Judged`] ranking and agree with `trec_eval`. Answer measures
//! compare strings after SQuAD's normalisation. Whatever does not apply to a question (an answer
//! metric without a gold answer) is `None`; a question that was refused or found nothing is a 0.

mod answer_relevance;
mod auroc;
mod citations;
mod contains;
mod exact_match;
mod f1;
mod faithfulness;
mod hit_rate;
mod judged;
mod map;
mod mrr;
mod ndcg;
mod normalize;
mod precision;
mod recall;
mod refusal;
mod word_overlap;

use std::{fmt, str::FromStr};

pub use answer_relevance::answer_relevance;
pub use auroc::auroc;
pub use citations::{Cited, citation_precision, citation_recall, document_precision};
pub use contains::contains;
pub use exact_match::exact_match;
pub use f1::f1;
pub use faithfulness::{Faithfulness, SUPPORTED, faithfulness};
pub use hit_rate::hit_rate;
pub use judged::Judged;
pub use map::average_precision;
pub use mrr::reciprocal_rank;
pub use ndcg::ndcg;
pub use normalize::{normalize, tokens};
pub use precision::precision;
pub use recall::recall;
pub use refusal::{Outcome, Refusals};
pub use word_overlap::word_overlap;

use crate::error::Error;

/// Goes before a retrieval measure's name where documents are judged beside chunks.
pub const DOCUMENT_PREFIX: &str = "doc_";

/// Goes before a retrieval measure's name where the reranked ranking is judged.
pub const RERANKED_PREFIX: &str = "reranked_";

/// The metrics that are no [`Measure`], in the order in which reports show them.
pub const OTHER_METRICS: [&str; 17] = [
    "answer_rate",
    "answer_contains",
    "exact_match",
    "f1",
    "faithfulness",
    "token_precision",
    "answer_relevance",
    "citation_precision",
    "citation_recall",
    "supported_citations",
    "refusal_precision",
    "refusal_recall",
    "refusal_f1",
    "refusal_precision_balanced",
    "refusal_f1_balanced",
    "refusal_auroc",
    "word_overlap",
];

/// A retrieval measure with its cut-off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// Normalised discounted cumulative gain.
    Ndcg(usize),
    /// Share of what is relevant among the first k.
    Recall(usize),
    /// Share of the first k that is relevant.
    Precision(usize),
    /// One over the rank of the first relevant one.
    Mrr(usize),
    /// Mean average precision over the whole ranking.
    Map,
    /// Whether anything relevant is among the first k.
    Hit(usize),
}

impl Measure {
    /// The measures that a report leads with.
    pub const HEADLINE: [Self; 6] = [
        Self::Ndcg(10),
        Self::Recall(5),
        Self::Precision(1),
        Self::Mrr(10),
        Self::Map,
        Self::Hit(5),
    ];

    /// The headline measures and every family at each of `ks`, each once, in order.
    pub fn at(ks: &[usize]) -> Vec<Self> {
        let families = [Self::Ndcg, Self::Recall, Self::Precision, Self::Mrr, Self::Hit];
        let mut measures: Vec<Self> =
            ks.iter().flat_map(|&k| families.map(|family| family(k))).collect();
        measures.extend(Self::HEADLINE);
        measures.sort_unstable();
        measures.dedup();
        measures
    }

    /// The rank down to which it looks; `None` for the whole ranking.
    pub fn cut_off(self) -> Option<usize> {
        match self {
            Self::Ndcg(k) | Self::Recall(k) | Self::Precision(k) | Self::Mrr(k) | Self::Hit(k) => {
                Some(k)
            }
            Self::Map => None,
        }
    }

    /// The measure of one question, 0 to 1.
    pub fn of(self, judged: &Judged) -> f64 {
        match self {
            Self::Ndcg(k) => ndcg(judged, k),
            Self::Recall(k) => recall(judged, k),
            Self::Precision(k) => precision(judged, k),
            Self::Mrr(k) => reciprocal_rank(judged, k),
            Self::Map => average_precision(judged),
            Self::Hit(k) => hit_rate(judged, k),
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ndcg(k) => write!(f, "ndcg@{k}"),
            Self::Recall(k) => write!(f, "recall@{k}"),
            Self::Precision(k) => write!(f, "precision@{k}"),
            Self::Mrr(k) => write!(f, "mrr@{k}"),
            Self::Map => f.write_str("map"),
            Self::Hit(k) => write!(f, "hit@{k}"),
        }
    }
}

impl FromStr for Measure {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let unknown = || {
            Error::Setting(format!(
                "no measure is called `{name}`: ndcg@K, recall@K, precision@K, mrr@K, hit@K with \
                 K from 1, and map"
            ))
        };
        if name == "map" {
            return Ok(Self::Map);
        }
        let (family, k) = name.split_once('@').ok_or_else(unknown)?;
        let k = k.parse().ok().filter(|k| *k > 0).ok_or_else(unknown)?;
        match family {
            "ndcg" => Ok(Self::Ndcg(k)),
            "recall" => Ok(Self::Recall(k)),
            "precision" => Ok(Self::Precision(k)),
            "mrr" => Ok(Self::Mrr(k)),
            "hit" => Ok(Self::Hit(k)),
            _ => Err(unknown()),
        }
    }
}

/// The place of a metric in tables; `None` for a name that no metric has.
pub(crate) fn position(name: &str) -> Option<(usize, Option<Measure>)> {
    let prefixes = [(1, RERANKED_PREFIX), (2, DOCUMENT_PREFIX)];
    let prefixed = prefixes.into_iter().find_map(|(group, p)| Some((group, name.strip_prefix(p)?)));
    let (group, measure) = prefixed.unwrap_or((0, name));
    match (measure.parse(), OTHER_METRICS.iter().position(|other| *other == name)) {
        (Ok(measure), _) => Some((group, Some(measure))),
        (_, Some(at)) => Some((3 + at, None)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for measure in Measure::at(&[1, 3, 5, 10, 100]) {
            assert_eq!(measure.to_string().parse::<Measure>().unwrap(), measure);
        }
        for name in ["recall", "recall@0", "recall@-1", "recal@5", "map@", "@5", ""] {
            assert!(name.parse::<Measure>().is_err(), "{name}");
        }
        assert!(position("doc_recall@5").is_some());
        assert!(position("doc_f1").is_none());
        assert!(position("refusal_f1").is_some());
    }
}
