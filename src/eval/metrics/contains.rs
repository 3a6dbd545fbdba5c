//! Text and gold forms to whether the text holds one.

use super::tokens;

/// 1 where the tokens of one gold form follow each other in the text, else 0; `None` without a
/// gold form. A form without tokens is held by nothing.
pub fn contains(text: &str, gold: &[String]) -> Option<f64> {
    let text = tokens(text);
    let held = |form: &String| {
        let form = tokens(form);
        let found = !form.is_empty() && text.windows(form.len()).any(|window| window == form);
        f64::from(u8::from(found))
    };
    gold.iter().map(held).max_by(f64::total_cmp)
}
