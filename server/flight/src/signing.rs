//! What asof hands out and takes back, authenticated: session tokens and tickets.
//!
//! Signed with the warehouse's key (HMAC-SHA256), so that every server of the warehouse takes what another gave, and nobody else's is taken.
//! A kind is part of what is signed: a ticket never passes for a token.

use asof_catalog::SessionKey;
use asof_catalog::warehouse::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// How asof's session tokens begin.
const TOKEN: &str = "asof1.";
/// First byte of a sealed ticket.
const TICKET: u8 = 1;
/// Bytes of a signature.
const SIGNATURE: usize = 32;

/// What a presented text turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presented {
    /// A session's key that a server of this warehouse minted.
    Session(SessionKey),
    /// One of asof's tokens, of another warehouse or forged.
    Forged,
    /// Something else: a user's own token.
    Foreign,
}

/// Signs and checks.
#[derive(Clone)]
pub struct Signer {
    mac: Hmac<Sha256>,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signer(…)")
    }
}

impl Signer {
    /// With a warehouse's key.
    #[must_use]
    pub fn new(secret: &Secret) -> Self {
        Self::from_bytes(secret.bytes())
    }

    fn from_bytes(key: &[u8]) -> Self {
        #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
        let mac = Hmac::new_from_slice(key).expect("a key of any length");
        Self { mac }
    }

    /// The token of a session.
    #[must_use]
    pub fn token(&self, key: &SessionKey) -> String {
        let signature = self.signed("session", key.0.as_bytes()).finalize().into_bytes();
        format!("{TOKEN}{}.{}", key.0, URL_SAFE_NO_PAD.encode(signature))
    }

    /// Whose a presented token is.
    #[must_use]
    pub fn check_token(&self, presented: &str) -> Presented {
        let Some(rest) = presented.strip_prefix(TOKEN) else { return Presented::Foreign };
        let parts = rest.split_once('.').and_then(|(key, signature)| Some((key, URL_SAFE_NO_PAD.decode(signature).ok()?)));
        match parts {
            Some((key, signature)) if self.signed("session", key.as_bytes()).verify_slice(&signature).is_ok() => {
                Presented::Session(SessionKey(key.to_owned()))
            }
            _ => Presented::Forged,
        }
    }

    /// Bytes that only a server of this warehouse can have made.
    #[must_use]
    pub fn seal(&self, content: &[u8]) -> Bytes {
        let signature = self.signed("ticket", content).finalize().into_bytes();
        let mut sealed = Vec::with_capacity(1 + SIGNATURE + content.len());
        sealed.push(TICKET);
        sealed.extend_from_slice(&signature);
        sealed.extend_from_slice(content);
        sealed.into()
    }

    /// The content of sealed bytes; `None` when they are not ours.
    #[must_use]
    pub fn open<'a>(&self, sealed: &'a [u8]) -> Option<&'a [u8]> {
        let (first, rest) = sealed.split_first()?;
        let (signature, content) = rest.split_at_checked(SIGNATURE)?;
        (*first == TICKET && self.signed("ticket", content).verify_slice(signature).is_ok()).then_some(content)
    }

    fn signed(&self, kind: &str, content: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.mac.clone();
        mac.update(kind.as_bytes());
        mac.update(&[0]);
        mac.update(content);
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_go_round_and_others_do_not_pass() {
        let (ours, theirs) = (Signer::from_bytes(b"ours"), Signer::from_bytes(b"theirs"));
        let key = SessionKey("00112233".to_owned());
        let token = ours.token(&key);
        assert_eq!(ours.check_token(&token), Presented::Session(key));
        assert_eq!(theirs.check_token(&token), Presented::Forged);
        assert_eq!(ours.check_token(&token.replace("0011", "0012")), Presented::Forged);
        assert_eq!(ours.check_token("asof1.00112233"), Presented::Forged);
        assert_eq!(ours.check_token("asof1.00112233.%%"), Presented::Forged);
        assert_eq!(ours.check_token("eyJhbGciOi"), Presented::Foreign);
        assert_eq!(ours.check_token(""), Presented::Foreign);
    }

    #[test]
    fn tickets_go_round_and_every_changed_byte_is_seen() {
        let signer = Signer::from_bytes(b"ours");
        let sealed = signer.seal(b"content");
        assert_eq!(signer.open(&sealed), Some(b"content".as_slice()));
        for at in 0..sealed.len() {
            let mut changed = sealed.to_vec();
            changed[at] ^= 1;
            assert_eq!(signer.open(&changed), None, "byte {at}");
            assert_eq!(signer.open(&sealed[..at]), None, "first {at}");
        }
        assert_eq!(Signer::from_bytes(b"theirs").open(&sealed), None);
    }
}
