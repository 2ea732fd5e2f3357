//! Z85 (ZeroMQ RFC 32): 4 bytes as 5 printable characters.

const ALPHABET: &[u8; 85] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

/// Encodes; bytes beyond the last group of four are padded with zeros.
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(4) * 5);
    for group in bytes.chunks(4) {
        let mut word = [0; 4];
        word[..group.len()].copy_from_slice(group);
        let word = u32::from_be_bytes(word);
        for power in [85 * 85 * 85 * 85, 85 * 85 * 85, 85 * 85, 85, 1] {
            text.push(char::from(ALPHABET[(word / power % 85) as usize]));
        }
    }
    text
}

/// Decodes; `None` when the text is not Z85.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(5) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 5 * 4);
    for group in text.as_bytes().chunks(5) {
        let mut word: u32 = 0;
        for c in group {
            let digit = ALPHABET.iter().position(|a| a == c)?;
            word = word.checked_mul(85)?.checked_add(u32::try_from(digit).ok()?)?;
        }
        bytes.extend_from_slice(&word.to_be_bytes());
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rfcs_own_vector() {
        let bytes = [0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B];
        assert_eq!(encode(&bytes), "HelloWorld");
        assert_eq!(decode("HelloWorld").as_deref(), Some(&bytes[..]));
    }

    #[test]
    fn what_is_not_z85() {
        for bad in ["Hell", "Hello~~~~~", "#####", "ä6789"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
