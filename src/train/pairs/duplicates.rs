//! Texts in, groups of near-duplicates out.
//!
//! A text is the set of its runs of three words (Broder 1997), case, blanks and marks aside; its
//! signature holds, for each of 128 hash functions, the smallest hash of the set. The share of
//! equal places of two signatures estimates the share of runs that the texts have in common; two
//! texts are near-duplicates from 80% on. Compared are only texts that agree in one of 32 bands of
//! four places, each with the first of its band and with the one before it. Nearness is carried
//! on: where A is near B and B near C, all three are one group.

use rayon::prelude::*;

use super::{Key, mix};
use crate::text::{Analyzer, fold};

/// Words of a run.
const RUN: usize = 3;
const BANDS: usize = 32;
const ROWS: usize = 4;
const HASHES: usize = BANDS * ROWS;
/// Equal places from which two texts are near-duplicates: 80%.
const NEAR: usize = HASHES * 4 / 5;

type Signature = [u32; HASHES];

/// The group of each text: the place of the group's first text.
pub fn near_duplicates(texts: &[&str]) -> Vec<u64> {
    let signatures: Vec<Signature> = texts.par_iter().map(|text| signature(text)).collect();
    let near: Vec<Vec<(u32, u32)>> =
        (0..BANDS).into_par_iter().map(|band| near_in(band, &signatures)).collect();
    let mut parents: Vec<u32> = (0..texts.len() as u32).collect();
    for (a, b) in near.into_iter().flatten() {
        let (a, b) = (root(&mut parents, a), root(&mut parents, b));
        // The smaller place becomes the parent, so that a root is its group's first text.
        parents[a.max(b) as usize] = a.min(b);
    }
    (0..texts.len() as u32).map(|text| u64::from(root(&mut parents, text))).collect()
}

/// Near-duplicates among the texts that agree in the band.
fn near_in(band: usize, signatures: &[Signature]) -> Vec<(u32, u32)> {
    let rows = band * ROWS..(band + 1) * ROWS;
    let mut order: Vec<([u32; ROWS], u32)> = signatures
        .iter()
        .zip(0..)
        .map(|(signature, text)| {
            let mut key = [0; ROWS];
            key.copy_from_slice(&signature[rows.clone()]);
            (key, text)
        })
        .collect();
    order.sort_unstable();
    let is_near = |a: u32, b: u32| {
        let (a, b) = (&signatures[a as usize], &signatures[b as usize]);
        a.iter().zip(b).filter(|(a, b)| a == b).count() >= NEAR
    };
    let mut near = Vec::new();
    for same in order.chunk_by(|(a, _), (b, _)| a == b) {
        for pair in same.windows(2) {
            let (first, before, text) = (same[0].1, pair[0].1, pair[1].1);
            near.extend(
                [first, before]
                    .map(|other| (other, text))
                    .into_iter()
                    .filter(|&(other, text)| is_near(other, text)),
            );
        }
    }
    near
}

fn root(parents: &mut [u32], mut text: u32) -> u32 {
    while parents[text as usize] != text {
        let above = parents[parents[text as usize] as usize];
        parents[text as usize] = above;
        text = above;
    }
    text
}

fn signature(text: &str) -> Signature {
    let mut words = Vec::new();
    let analyzer = Analyzer { stem: false, stop_words: false };
    let hash = |bytes: &str| {
        let mut key = Key::default();
        key.add(bytes.bytes());
        mix(key.0)
    };
    analyzer.words(text, |word| words.push(hash(word)));
    if words.is_empty() {
        words.push(hash(fold(text.trim()).as_ref()));
    }
    let mut smallest = [u32::MAX; HASHES];
    for run in words.windows(RUN.min(words.len())) {
        let run = run.iter().fold(0, |run: u64, word| mix(run.rotate_left(17) ^ word));
        for (place, smallest) in smallest.iter_mut().enumerate() {
            // Multiply-shift by an odd number of its own is a hash function of its own.
            let factor = mix(place as u64 + 1) | 1;
            *smallest = (*smallest).min((run.wrapping_mul(factor) >> 32) as u32);
        }
    }
    smallest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn words(rng: &mut Rng, n: usize) -> Vec<String> {
        (0..n).map(|_| format!("w{}", rng.below(5_000))).collect()
    }

    #[test]
    fn the_estimate_finds_texts_that_share_nine_runs_in_ten_and_no_half() {
        let mut rng = Rng::new(1);
        let mut texts = Vec::new();
        for _ in 0..100 {
            let whole = words(&mut rng, 300);
            let mut near = whole.clone();
            near[150] = "changed".into(); // three runs of 298 differ
            let mut half = whole.clone();
            half.truncate(150);
            texts.extend([whole, near, half].map(|words| words.join(" ")));
        }
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let groups = near_duplicates(&texts);
        for (at, group) in groups.iter().enumerate() {
            let expected = if at % 3 == 1 { at - 1 } else { at };
            assert_eq!(expected as u64, *group, "text {at}");
        }
    }

    #[test]
    fn case_blanks_and_marks_make_no_difference_and_nearness_is_carried_on() {
        let chain: Vec<String> = (0..14)
            .map(|at| (at..at + 60).map(|n| format!("n{n}")).collect::<Vec<_>>().join(" "))
            .collect();
        let mut texts = vec!["The cat sat.", "THE  cat, sat", "", "...", "?!", "A dog"];
        texts.extend(chain.iter().map(String::as_str));
        let groups = near_duplicates(&texts);
        assert_eq!([0, 0, 2, 3, 4, 5], groups[..6]);
        // Neighbours share 57 of 59 runs, the ends only 45 of 71.
        assert!(groups[6..].iter().all(|group| *group == 6), "{groups:?}");
    }
}
