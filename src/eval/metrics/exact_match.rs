//! Answer and gold forms to exact match.

use super::normalize;

/// 1 where the answer equals one of the gold forms after normalisation, else 0; `None` without a
/// gold form.
pub fn exact_match(answer: &str, gold: &[String]) -> Option<f64> {
    let answer = normalize(answer);
    let matches = |form: &String| f64::from(u8::from(normalize(form) == answer));
    gold.iter().map(matches).max_by(f64::total_cmp)
}
