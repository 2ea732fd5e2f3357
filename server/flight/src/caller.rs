//! Who calls, in which session.
//!
//! Anonymous for now: a user name is believed (the server listens on loopback only), a password or a foreign token is not looked at. The
//! session is the one whose token asof minted: an `authorization: Bearer` header, or the cookie `arrow_flight_session_id`. A request with
//! neither is offered one, in both ways at once, with the answer's headers: ADBC adopts the header, JDBC the cookie.

use std::sync::Arc;

use asof_catalog::{Session, Sessions};
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use tonic::metadata::{MetadataMap, MetadataValue};

use crate::error::{Error, Result};
use crate::signing::{Presented, Signer};

const AUTHORIZATION: &str = "authorization";
const COOKIE: &str = "cookie";
const SET_COOKIE: &str = "set-cookie";
/// The cookie's name, by convention of Flight clients.
const COOKIE_NAME: &str = "arrow_flight_session_id";
/// Longest user name, in bytes.
const LONGEST_NAME: usize = 256;
/// Go's drivers send base64 without padding.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent));

/// One request's caller.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Its session.
    pub session: Arc<Session>,
    /// The token to send back: set when the session was made for this request.
    offered: Option<String>,
}

impl Caller {
    /// From a request's headers.
    ///
    /// # Errors
    /// `NoSession` for a session that is gone; `Unauthenticated` for a token of another warehouse, or a header that is none; `InvalidSetting`
    /// for a setting in the headers that is none.
    pub fn identify(headers: &MetadataMap, sessions: &Sessions, signer: &Signer) -> Result<Self> {
        let credentials = Credentials::from_headers(headers)?;
        let presented = credentials.bearer.as_deref().into_iter().chain(credentials.cookie.as_deref());
        for token in presented {
            match signer.check_token(token) {
                Presented::Session(key) => return Ok(Self { session: sessions.get(&key)?, offered: None }),
                Presented::Forged => {
                    return Err(Error::Unauthenticated(
                        "the session token is of another warehouse, or was changed; connect again".to_owned(),
                    ));
                }
                Presented::Foreign => {}
            }
        }
        Self::with_new(sessions.offer(credentials.name()), headers, signer)
    }

    /// A new session at a handshake.
    ///
    /// # Errors
    /// As [`Caller::identify`].
    pub fn handshake(headers: &MetadataMap, basic: Option<String>, sessions: &Sessions, signer: &Signer) -> Result<Self> {
        let mut credentials = Credentials::from_headers(headers)?;
        if let Some(Presented::Session(key)) = credentials.bearer.as_deref().map(|token| signer.check_token(token)) {
            return Self::with_new(sessions.get(&key)?, headers, signer);
        }
        credentials.user = credentials.user.or(basic);
        Self::with_new(sessions.offer(credentials.name()), headers, signer)
    }

    /// What a JDBC URL says beyond the driver's own properties arrives as headers, with each request.
    fn with_new(session: Arc<Session>, headers: &MetadataMap, signer: &Signer) -> Result<Self> {
        for name in ["timestamps", "time_zone", "schema"] {
            if let Some(value) = headers.get_all(name).iter().next_back() {
                let value = value.to_str().map_err(|_| Error::Request(format!("the header {name} is not text")))?;
                session.configure(name, value)?;
            }
        }
        let offered = (!session.is_transient()).then(|| signer.token(session.key()));
        Ok(Self { session, offered })
    }

    /// The token to send back.
    pub fn offered(&self) -> Option<&str> {
        self.offered.as_deref()
    }

    /// Adds the offered token to an answer's headers.
    pub fn stamp(&self, headers: &mut MetadataMap) {
        let Some(token) = &self.offered else { return };
        if let Ok(value) = MetadataValue::try_from(format!("Bearer {token}")) {
            headers.insert(AUTHORIZATION, value);
        }
        if let Ok(value) = MetadataValue::try_from(format!("{COOKIE_NAME}={token}; Path=/; HttpOnly")) {
            headers.append(SET_COOKIE, value);
        }
    }
}

/// What a request's headers say of who it is.
#[derive(Debug, Default)]
struct Credentials {
    user: Option<String>,
    bearer: Option<String>,
    cookie: Option<String>,
}

impl Credentials {
    fn from_headers(headers: &MetadataMap) -> Result<Self> {
        let mut found = Self::default();
        // Values are appended by some clients: the last is the most specific.
        for value in headers.get_all(AUTHORIZATION) {
            let value = value.to_str().map_err(|_| Error::Unauthenticated("the authorization header is not text".to_owned()))?;
            match value.split_once(' ') {
                Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => found.bearer = Some(token.trim().to_owned()),
                Some((scheme, basic)) if scheme.eq_ignore_ascii_case("basic") => found.user = Some(user(basic.trim())?),
                _ => return Err(Error::Unauthenticated("the authorization header is neither Basic nor Bearer".to_owned())),
            }
        }
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        found.cookie = cookies.flat_map(|line| line.split(';')).filter_map(session_cookie).next_back();
        Ok(found)
    }

    fn name(&self) -> &str {
        match self.user.as_deref() {
            Some(name) if !name.is_empty() => name,
            _ => "anonymous",
        }
    }
}

fn session_cookie(cookie: &str) -> Option<String> {
    let (name, value) = cookie.trim().split_once('=')?;
    (name == COOKIE_NAME).then(|| value.trim_matches('"').to_owned())
}

/// The user of `user:password` in base64.
fn user(basic: &str) -> Result<String> {
    let refuse = || Error::Unauthenticated("the Basic header is not base64 of user:password".to_owned());
    let decoded = BASE64.decode(basic).map_err(|_| refuse())?;
    let text = String::from_utf8(decoded).map_err(|_| refuse())?;
    let (user, _) = text.split_once(':').ok_or_else(refuse)?;
    if user.len() > LONGEST_NAME || user.chars().any(char::is_control) {
        return Err(Error::Unauthenticated(format!("the user name is longer than {LONGEST_NAME} bytes, or holds control characters")));
    }
    Ok(user.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> MetadataMap {
        let mut map = MetadataMap::new();
        for (name, value) in lines {
            map.append(*name, value.parse().unwrap());
        }
        map
    }

    #[test]
    fn who_a_request_says_it_is() {
        fn check(lines: &[(&'static str, &str)], expect: (&str, Option<&str>, Option<&str>)) {
            let got = Credentials::from_headers(&headers(lines)).unwrap();
            assert_eq!((got.name(), got.bearer.as_deref(), got.cookie.as_deref()), expect, "{lines:?}");
        }
        check(&[], ("anonymous", None, None));
        check(&[("authorization", "Basic YWxpY2U6eA==")], ("alice", None, None));
        check(&[("authorization", "Basic YWxpY2U6eA")], ("alice", None, None));
        check(&[("authorization", "basic Ong=")], ("anonymous", None, None));
        check(&[("authorization", "Bearer t1"), ("authorization", "Bearer t2")], ("anonymous", Some("t2"), None));
        check(&[("cookie", "a=b; arrow_flight_session_id=s1; c=d")], ("anonymous", None, Some("s1")));
        check(&[("cookie", "a=b"), ("cookie", "arrow_flight_session_id=\"s2\"")], ("anonymous", None, Some("s2")));
    }

    #[test]
    fn headers_that_are_none_are_refused() {
        for bad in ["Basic %%%", "Basic YWxpY2U=", "Digest x", "x"] {
            let got = Credentials::from_headers(&headers(&[("authorization", bad)]));
            assert!(matches!(got, Err(Error::Unauthenticated(_))), "{bad}");
        }
    }
}
