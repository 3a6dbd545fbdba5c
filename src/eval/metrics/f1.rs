//! Answer and gold forms to token F1.

use std::collections::HashMap;

use super::tokens;

/// Harmonic mean of token precision and recall, repeats counted, against the best of the gold
/// forms; `None` without a gold form.
pub fn f1(answer: &str, gold: &[String]) -> Option<f64> {
    let answer = tokens(answer);
    gold.iter().map(|form| overlap(&answer, &tokens(form))).max_by(f64::total_cmp)
}

fn overlap(answer: &[String], gold: &[String]) -> f64 {
    if answer.is_empty() || gold.is_empty() {
        return f64::from(u8::from(answer == gold));
    }
    let mut left: HashMap<&str, usize> = HashMap::new();
    gold.iter().for_each(|token| *left.entry(token).or_default() += 1);
    let shared = answer.iter().filter(|token| match left.get_mut(token.as_str()) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    });
    2.0 * shared.count() as f64 / (answer.len() + gold.len()) as f64
}
