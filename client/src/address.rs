//! Where a server is: people type `asof://`, `grpc://`, `http://`, or just a host and a port.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// The port `asofd` listens on unless told otherwise.
const DEFAULT_PORT: u16 = 50051;

/// Schemes that mean "Flight SQL over plain HTTP/2".
const PLAIN_SCHEMES: [&str; 5] = ["asof", "grpc", "grpc+tcp", "http", "arrow-flight-sql"];

/// Schemes that mean the same over TLS, which this client does not speak yet.
const TLS_SCHEMES: [&str; 3] = ["grpc+tls", "grpcs", "https"];

/// A server's host and port. Written `asof://HOST:PORT`; the scheme may be left out, and so may the port (50051).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Host name, IPv4 address, or IPv6 address without its brackets.
    host: String,
    port: u16,
}

impl Address {
    /// The host: a name, an IPv4 address, or an IPv6 address without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `host:port`, an IPv6 host in brackets.
    fn authority(&self) -> String {
        if self.host.contains(':') { format!("[{}]:{}", self.host, self.port) } else { format!("{}:{}", self.host, self.port) }
    }

    /// As the transport wants it.
    pub(crate) fn http(&self) -> String {
        format!("http://{}", self.authority())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "asof://{}", self.authority())
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(given: &str) -> Result<Self> {
        let wrong = |reason: String| Error::Address { given: given.to_owned(), reason };
        let text = given.trim();
        let rest = match text.split_once("://") {
            None => text,
            Some((scheme, rest)) => {
                let scheme = scheme.to_ascii_lowercase();
                if TLS_SCHEMES.contains(&scheme.as_str()) {
                    return Err(wrong("this client does not speak TLS".into()));
                }
                if !PLAIN_SCHEMES.contains(&scheme.as_str()) {
                    return Err(wrong(format!("`{scheme}` is none of {}", PLAIN_SCHEMES.join(", "))));
                }
                rest
            }
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if let Some(part) = rest.find(['/', '?', '#', '@', ' ']).and_then(|at| rest.get(at..)) {
            return Err(wrong(format!("`{part}` is not part of a host and a port")));
        }
        let (host, port) = split_port(rest).map_err(wrong)?;
        if host.is_empty() {
            return Err(wrong("it names no host".into()));
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

/// `host`, `host:port`, `[v6]`, `[v6]:port`.
fn split_port(text: &str) -> Result<(&str, u16), String> {
    let (host, port) = match text.strip_prefix('[') {
        Some(bracketed) => {
            let (host, after) = bracketed.split_once(']').ok_or("its bracket is not closed")?;
            match after.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if after.is_empty() => (host, None),
                None => return Err(format!("`{after}` follows the bracket")),
            }
        }
        None => match text.split_once(':') {
            Some((_, port)) if port.contains(':') => return Err("an IPv6 address needs brackets, as in [::1]:50051".into()),
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    match port {
        None => Ok((host, DEFAULT_PORT)),
        Some(port) => match port.parse() {
            Ok(port) if port > 0 => Ok((host, port)),
            _ => Err(format!("`{port}` is not a port from 1 to 65535")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_type() {
        let check = |given: &str, expect: &str| {
            let got = match given.parse::<Address>() {
                Ok(address) => address.http(),
                Err(error) => error.to_string(),
            };
            assert!(got.contains(expect), "{given}: {got}");
        };
        check("127.0.0.1:50051", "http://127.0.0.1:50051");
        check("asof://localhost:7", "http://localhost:7");
        check("ASOF://localhost:7/", "http://localhost:7");
        check("grpc://h", "http://h:50051");
        check("grpc+tcp://h:1", "http://h:1");
        check("http://h:1", "http://h:1");
        check("[::1]", "http://[::1]:50051");
        check("asof://[::1]:9", "http://[::1]:9");
        check("::1", "needs brackets");
        check("h:0", "not a port");
        check("h:70000", "not a port");
        check("https://h", "TLS");
        check("ftp://h", "`ftp` is none of");
        check("asof://h:1/x?y", "`/x?y`");
        check("", "names no host");
        check("jdbc:arrow-flight-sql://h:1", "none of");
    }
}
