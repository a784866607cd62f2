//! Encryption at rest: one key for all documents of a store.
//!
//! Called by `codec.rs`, and by the opening of a store, which checks that the key is the right one.
//! XChaCha20-Poly1305 with a random nonce; what a document belongs to is authenticated with it. A key is
//! never printed, nor any part of it.

use chacha20poly1305::{
    AeadCore, KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, OsRng, Payload},
};
use std::fmt;

const NONCE: usize = 24;

/// What `store.key_check` has under the key.
const KNOWN: &[u8] = b"paraph store, format 1";

/// A key for documents at rest.
#[derive(Clone)]
pub struct Seal(XChaCha20Poly1305);

/// Why a text is no key. Says nothing of the text but its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// Neither of the two forms has so many characters.
    #[error(
        "an encryption key has 64 hexadecimal digits or 44 characters of base64 (32 bytes); this one has {0} characters"
    )]
    Length(usize),
    /// A character that its form does not have.
    #[error(
        "an encryption key has 64 hexadecimal digits or 44 characters of base64 (32 bytes); character {0} of this one fits neither"
    )]
    Character(usize),
}

/// Why a store is not opened with this key, or without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyMismatch {
    /// Encrypted, and there is no key.
    #[error("the store is encrypted: give its key (PARAPH_ENCRYPTION_KEY)")]
    Missing,
    /// Encrypted under another key.
    #[error("the store is encrypted under another key than the one that was given")]
    Wrong,
    /// Not encrypted, and there is a key.
    #[error(
        "the store is not encrypted, and a key was given: open it without one, or begin a new store with the key"
    )]
    Plain,
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal(…)")
    }
}

impl std::str::FromStr for Seal {
    type Err = BadKey;

    /// From 64 hexadecimal digits, or 44 characters of base64.
    fn from_str(text: &str) -> Result<Self, BadKey> {
        let text = text.trim();
        let mut key = [0; 32];
        match text.chars().count() {
            64 => from_hex(text, &mut key)?,
            44 => from_base64(text, &mut key)?,
            n => return Err(BadKey::Length(n)),
        }
        Ok(Seal(XChaCha20Poly1305::new(&key.into())))
    }
}

impl Seal {
    /// A nonce, and the text under the key.
    pub(crate) fn close(&self, text: &[u8], bound: &[u8]) -> Vec<u8> {
        let nonce = XChaCha20Poly1305::generate_nonce(&mut OsRng);
        let payload = Payload {
            msg: text,
            aad: bound,
        };
        let mut closed = nonce.to_vec();
        // It fails only beyond 256 GiB, and then nothing is stored that could be opened.
        closed.extend(self.0.encrypt(&nonce, payload).unwrap_or_default());
        closed
    }

    /// What was closed for the same place; nothing if it was not, or not under this key.
    pub(crate) fn open(&self, closed: &[u8], bound: &[u8]) -> Option<Vec<u8>> {
        let (nonce, text) = closed.split_at_checked(NONCE)?;
        let payload = Payload {
            msg: text,
            aad: bound,
        };
        self.0.decrypt(XNonce::from_slice(nonce), payload).ok()
    }

    /// What a new store keeps in `key_check`.
    pub(crate) fn check(&self) -> Vec<u8> {
        self.close(KNOWN, b"store")
    }
}

/// Whether a store with this `key_check` is to be opened with this key.
///
/// # Errors
/// Why not.
pub(crate) fn fits(key_check: Option<&[u8]>, key: Option<&Seal>) -> Result<(), KeyMismatch> {
    match (key_check, key) {
        (None, None) => Ok(()),
        (Some(_), None) => Err(KeyMismatch::Missing),
        (None, Some(_)) => Err(KeyMismatch::Plain),
        (Some(check), Some(key)) => match key.open(check, b"store") {
            Some(known) if known == KNOWN => Ok(()),
            _ => Err(KeyMismatch::Wrong),
        },
    }
}

fn from_hex(text: &str, key: &mut [u8; 32]) -> Result<(), BadKey> {
    for (i, digit) in text.chars().enumerate() {
        let digit = digit
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok());
        let digit = digit.ok_or(BadKey::Character(i + 1))?;
        if let Some(byte) = key.get_mut(i / 2) {
            *byte = *byte << 4 | digit;
        }
    }
    Ok(())
}

/// 43 characters of six bits each, the last two bits being 0, and an equals sign.
fn from_base64(text: &str, key: &mut [u8; 32]) -> Result<(), BadKey> {
    let (mut bits, mut held, mut at) = (0_u32, 0, 0);
    for (i, c) in text.chars().enumerate() {
        let bad = BadKey::Character(i + 1);
        let six = match c {
            'A'..='Z' => u32::from(c) - u32::from('A'),
            'a'..='z' => u32::from(c) - u32::from('a') + 26,
            '0'..='9' => u32::from(c) - u32::from('0') + 52,
            '+' | '-' => 62,
            '/' | '_' => 63,
            '=' if i == 43 && bits == 0 => return Ok(()),
            _ => return Err(bad),
        };
        bits = bits << 6 | six;
        held += 6;
        if held >= 8 {
            held -= 8;
            let slot = key.get_mut(at).ok_or(bad)?;
            *slot = (bits >> held).to_le_bytes()[0];
            bits &= (1 << held) - 1;
            at += 1;
        }
    }
    Err(BadKey::Character(44))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

    use super::*;

    #[test]
    fn both_forms_of_a_key_are_the_same_key() {
        // 00 01 … 1f, and by another program in base64.
        let hex: String = (0..32).map(|i| format!("{i:02x}")).collect();
        let base64 = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
        let (one, other): (Seal, Seal) = (hex.parse().unwrap(), base64.parse().unwrap());
        let closed = one.close(b"text", b"here");
        assert_eq!(other.open(&closed, b"here").as_deref(), Some(&b"text"[..]));
        let upper: Seal = format!(" {}\n", hex.to_uppercase()).parse().unwrap();
        assert_eq!(upper.open(&closed, b"here").as_deref(), Some(&b"text"[..]));
    }

    #[test]
    fn what_is_no_key_is_refused_without_repeating_it() {
        let table = [
            (String::new(), BadKey::Length(0)),
            ("secret".into(), BadKey::Length(6)),
            ("f".repeat(63), BadKey::Length(63)),
            (format!("{}g", "f".repeat(63)), BadKey::Character(64)),
            (format!("{}ö", "f".repeat(63)), BadKey::Character(64)),
            ("A".repeat(44), BadKey::Character(44)),
            (format!("{}==", "A".repeat(42)), BadKey::Character(43)),
            // The two bits that stand for nothing are not 0.
            (format!("{}B=", "A".repeat(42)), BadKey::Character(44)),
            (format!("{}*=", "A".repeat(42)), BadKey::Character(43)),
        ];
        for (text, why) in table {
            let error = text.parse::<Seal>().unwrap_err();
            assert_eq!(error, why, "{text}");
            assert!(
                text.is_empty() || !error.to_string().contains(&text),
                "{error}"
            );
        }
    }

    #[test]
    fn a_sealed_text_opens_only_with_its_key_and_at_its_place() {
        let seal: Seal = "0".repeat(64).parse().unwrap();
        let other: Seal = "1".repeat(64).parse().unwrap();
        let closed = seal.close(b"text", b"here");
        assert_ne!(closed, seal.close(b"text", b"here"));
        assert_eq!(seal.open(&closed, b"there"), None);
        assert_eq!(other.open(&closed, b"here"), None);
        for at in 0..closed.len() {
            let mut changed = closed.clone();
            changed[at] ^= 1;
            assert_eq!(seal.open(&changed, b"here"), None, "byte {at}");
            assert_eq!(seal.open(&closed[..at], b"here"), None, "{at} bytes");
        }
        assert_eq!(format!("{seal:?}"), "Seal(…)");
    }

    #[test]
    fn a_store_is_opened_with_its_own_key_or_without_one() {
        let seal: Seal = "0".repeat(64).parse().unwrap();
        let other: Seal = "1".repeat(64).parse().unwrap();
        let check = seal.check();
        assert_eq!(fits(None, None), Ok(()));
        assert_eq!(fits(Some(&check), Some(&seal)), Ok(()));
        assert_eq!(fits(Some(&check), Some(&other)), Err(KeyMismatch::Wrong));
        assert_eq!(fits(Some(b""), Some(&seal)), Err(KeyMismatch::Wrong));
        assert_eq!(fits(Some(&check), None), Err(KeyMismatch::Missing));
        assert_eq!(fits(None, Some(&seal)), Err(KeyMismatch::Plain));
    }
}
