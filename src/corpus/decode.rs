//! Bytes in; text out, with the name of the encoding it was in, or the reason why it is no text.
//!
//! In this order: a byte order mark decides (and is not part of the text); bytes that are valid
//! UTF-8 are UTF-8, unless they switch to Japanese by escape sequences (ISO-2022-JP); zero bytes
//! at every second or fourth place are UTF-16 or UTF-32 without a mark, any other zero byte means
//! binary; an XML declaration is believed; UTF-8 with a few broken places stays UTF-8, the broken
//! ones become U+FFFD and are counted; what is left is guessed from the letters (chardetng, the
//! detector of Firefox). Encodings that it does not know (Johab, EBCDIC, some DOS code pages) are
//! taken for another: no rule can tell.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE};

/// One character in this many may be a control character or undecodable in a text.
const NOISE: usize = 32;

/// A decoded file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// The text without its byte order mark.
    pub text: String,
    /// The encoding's name in the WHATWG list, or `UTF-32LE`, `UTF-32BE`.
    pub encoding: String,
    /// Places that could not be decoded and are U+FFFD now.
    pub replaced: usize,
}

/// Decodes a file by rule.
///
/// # Errors
/// The reason why the bytes are no text, as one clause.
pub fn decode(bytes: Vec<u8>) -> Result<Decoded, String> {
    let decoded = match marked(&bytes) {
        Some(decoded) => decoded,
        None if bytes.contains(&0) => unmarked_wide(&bytes)?,
        None => narrow(bytes)?,
    };
    let is_noise = |c: &char| {
        c.is_control()
            && !matches!(
                c,
                '\t' | '\n' | '\r' | '\x08' | '\x0b' | '\x0c' | '\x1a' | '\x1b' | '\u{85}'
            )
    };
    let noise = decoded.text.chars().filter(is_noise).count();
    // Bytes are read as UTF-8 on strong evidence: what is broken is damage, not a wrong guess.
    let undecodable = if decoded.encoding == "UTF-8" { 0 } else { decoded.replaced };
    if (noise + undecodable) * NOISE > decoded.text.chars().count() {
        return Err(format!(
            "not text: {noise} control characters and {undecodable} undecodable places read as {}",
            decoded.encoding
        ));
    }
    Ok(decoded)
}

/// Text that begins with a byte order mark.
fn marked(bytes: &[u8]) -> Option<Decoded> {
    // UTF-32's mark begins with UTF-16's.
    match bytes {
        [0xff, 0xfe, 0, 0, rest @ ..] => Some(utf_32(rest, u32::from_le_bytes, "UTF-32LE")),
        [0, 0, 0xfe, 0xff, rest @ ..] => Some(utf_32(rest, u32::from_be_bytes, "UTF-32BE")),
        [0xef, 0xbb, 0xbf, rest @ ..] => Some(decode_as(UTF_8, rest)),
        [0xff, 0xfe, rest @ ..] => Some(decode_as(UTF_16LE, rest)),
        [0xfe, 0xff, rest @ ..] => Some(decode_as(UTF_16BE, rest)),
        _ => None,
    }
}

/// UTF-16 or UTF-32 without a mark, told by where its zero bytes lie.
fn unmarked_wide(bytes: &[u8]) -> Result<Decoded, String> {
    let mut zeros = [0_usize; 4];
    bytes.iter().enumerate().for_each(|(at, &byte)| zeros[at % 4] += usize::from(byte == 0));
    let [a, b, c, d] = zeros;
    let (len, units) = (bytes.len(), bytes.len() / 4);
    // Most text has ASCII blanks and marks at least, whose high bytes are zero; a low byte is
    // zero in a few characters only (and in surrogates).
    let high = |high: usize, low: usize| len.is_multiple_of(2) && high * 8 >= len && high > 8 * low;
    let guess = if len.is_multiple_of(4) && d == units && 2 * c > units && 2 * a < units {
        Some(utf_32(bytes, u32::from_le_bytes, "UTF-32LE"))
    } else if len.is_multiple_of(4) && a == units && 2 * b > units && 2 * d < units {
        Some(utf_32(bytes, u32::from_be_bytes, "UTF-32BE"))
    } else if high(b + d, a + c) {
        Some(decode_as(UTF_16LE, bytes))
    } else if high(a + c, b + d) {
        Some(decode_as(UTF_16BE, bytes))
    } else {
        None
    };
    guess.filter(|decoded| decoded.replaced == 0 && !decoded.text.contains('\0')).ok_or_else(|| {
        let at = bytes.iter().position(|&byte| byte == 0).unwrap_or_default();
        format!("not text: a zero byte at offset {at}")
    })
}

/// Encodings of single bytes and their sequences.
fn narrow(bytes: Vec<u8>) -> Result<Decoded, String> {
    let bytes = match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\x1b') => return Ok(utf_8(text, 0)),
        Ok(text) => {
            let decoded = decode_as(guess(text.as_bytes()), text.as_bytes());
            let is_japanese = decoded.encoding == ISO_2022_JP.name() && decoded.replaced == 0;
            return Ok(if is_japanese { decoded } else { utf_8(text, 0) });
        }
        Err(error) => error.into_bytes(),
    };
    if let Some(label) = declared(&bytes) {
        match Encoding::for_label_no_replacement(label) {
            // The bytes are not valid UTF-8, nor, without zero bytes, likely to be wide.
            Some(encoding) if encoding != UTF_8 && encoding.is_ascii_compatible() => {
                return Ok(decode_as(encoding, &bytes));
            }
            Some(_) => {}
            None => {
                let label = String::from_utf8_lossy(label);
                return Err(format!("it declares the encoding {label}, which has no decoder"));
            }
        }
    }
    let (mended, surrogates) = without_surrogates(&bytes);
    if let Ok(text) = String::from_utf8(mended) {
        return Ok(utf_8(text, surrogates));
    }
    // Sequences that are valid by accident are rare in every other encoding.
    let (valid, broken) = multi_byte(&bytes);
    let encoding = if valid >= 2 * broken { UTF_8 } else { guess(&bytes) };
    Ok(decode_as(encoding, &bytes))
}

fn utf_8(text: String, replaced: usize) -> Decoded {
    Decoded { text, encoding: UTF_8.name().to_owned(), replaced }
}

fn decode_as(encoding: &'static Encoding, bytes: &[u8]) -> Decoded {
    let (text, had_errors) = encoding.decode_without_bom_handling(bytes);
    let replaced = if had_errors { text.matches('\u{fffd}').count() } else { 0 };
    Decoded { text: text.into_owned(), encoding: encoding.name().to_owned(), replaced }
}

fn utf_32(bytes: &[u8], value: fn([u8; 4]) -> u32, name: &str) -> Decoded {
    let (units, rest) = bytes.as_chunks::<4>();
    let mut replaced = usize::from(!rest.is_empty());
    let mut text: String = units
        .iter()
        .map(|&unit| {
            char::from_u32(value(unit)).unwrap_or_else(|| {
                replaced += 1;
                char::REPLACEMENT_CHARACTER
            })
        })
        .collect();
    if !rest.is_empty() {
        text.push(char::REPLACEMENT_CHARACTER);
    }
    Decoded { text, encoding: name.to_owned(), replaced }
}

fn guess(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(bytes, true);
    detector.guess(None, Utf8Detection::Deny)
}

/// The label in `<?xml ... encoding="label" ...?>` at the start of the file.
fn declared(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.strip_prefix(b"<?xml")?;
    let end = rest.iter().position(|&byte| byte == b'>')?;
    let key = b"encoding=";
    let at = rest[..end].windows(key.len()).position(|window| window == key)? + key.len();
    let (&quote, value) = rest[at..end].split_first()?;
    value.split(|&byte| byte == quote).next()
}

/// Numbers of valid characters of several bytes, and of broken places, reading as UTF-8.
fn multi_byte(bytes: &[u8]) -> (usize, usize) {
    let mut counts = (0, 0);
    for chunk in bytes.utf8_chunks() {
        counts.0 += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        counts.1 += usize::from(!chunk.invalid().is_empty());
    }
    counts
}

/// The bytes with U+FFFD, which is as long, for each surrogate that was written as if it were a
/// character, as CESU-8 does; and how many there were.
fn without_surrogates(bytes: &[u8]) -> (Vec<u8>, usize) {
    let mut mended = bytes.to_vec();
    let mut surrogates = 0;
    for at in 2..mended.len() {
        if let [0xed, 0xa0..=0xbf, 0x80..=0xbf] = mended[at - 2..=at] {
            mended[at - 2..=at].copy_from_slice("\u{fffd}".as_bytes());
            surrogates += 1;
        }
    }
    (mended, surrogates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], text: &str, encoding: &str, replaced: usize) {
        let decoded = decode(bytes.to_vec()).unwrap();
        assert_eq!((&*decoded.text, &*decoded.encoding), (text, encoding));
        assert_eq!(decoded.replaced, replaced);
    }

    fn wide<const N: usize>(text: &str, unit: impl Fn(u16) -> [u8; N]) -> Vec<u8> {
        text.encode_utf16().flat_map(unit).collect()
    }

    #[test]
    fn a_mark_decides_and_is_not_text() {
        check(b"\xef\xbb\xbfeat", "eat", "UTF-8", 0);
        check(b"\xef\xbb\xbf", "", "UTF-8", 0);
        check(b"\xff\xfee\0\x3d\xd8\x00\xde", "e\u{1f600}", "UTF-16LE", 0);
        check(b"\xfe\xff\0e\0a", "ea", "UTF-16BE", 0);
        check(b"\xff\xfe\0\0e\0\0\0\0\xf6\x01\0", "e\u{1f600}", "UTF-32LE", 0);
        check(b"\0\0\xfe\xff\0\0\0e", "e", "UTF-32BE", 0);
    }

    #[test]
    fn wide_text_without_a_mark_is_told_by_its_zeros() {
        let text = "Plain English, and one café.";
        check(&wide(text, u16::to_le_bytes), text, "UTF-16LE", 0);
        check(&wide(text, u16::to_be_bytes), text, "UTF-16BE", 0);
        check(&wide(text, |unit| u32::from(unit).to_le_bytes()), text, "UTF-32LE", 0);
        check(&wide(text, |unit| u32::from(unit).to_be_bytes()), text, "UTF-32BE", 0);
    }

    #[test]
    fn legacy_text_is_guessed() {
        let latin_1 = b"El pret\xe9rito de \xabcomer\xbb es irregular en ingl\xe9s: ate, no eated.";
        let text = "El pretérito de «comer» es irregular en inglés: ate, no eated.";
        check(latin_1, text, "windows-1252", 0);
        let declared = b"<?xml version='1.0' encoding='koi8-r'?><p>\xd7</p>";
        check(declared, "<?xml version='1.0' encoding='koi8-r'?><p>в</p>", "KOI8-R", 0);
        let unknown = b"<?xml version='1.0' encoding='IBM855'?><p>\xd7</p>".to_vec();
        assert!(decode(unknown).unwrap_err().contains("IBM855"));
    }

    #[test]
    fn broken_utf_8_stays_utf_8() {
        check(b"x \xed\xa0\x80 y\n", "x \u{fffd} y\n", "UTF-8", 1);
        check(
            "née, été\u{201d}".as_bytes().split_last().unwrap().1,
            "née, été\u{fffd}",
            "UTF-8",
            1,
        );
    }

    #[test]
    fn binaries_are_no_text() {
        assert!(decode(b"before\0after\0\0 end\n".to_vec()).unwrap_err().contains("offset 6"));
        let noise: Vec<u8> = (1..=255).cycle().take(2000).collect();
        assert!(decode(noise).unwrap_err().starts_with("not text"));
        assert!(decode(vec![0; 64]).is_err());
    }
}
