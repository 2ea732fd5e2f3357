//! Flight's session actions. Their messages are not in arrow-flight 59, so they are written out here, after `Flight.proto`; they travel bare,
//! not wrapped in `Any`. JDBC sends them at connect and at close, and dies of UNIMPLEMENTED: they always answer.

use std::collections::HashMap;

use asof_catalog::Session;
use prost::Message;

use crate::error::Result;
use crate::node::Node;

/// A value of an option; none asks for the default.
#[derive(Clone, PartialEq, Message)]
pub struct SessionOptionValue {
    /// The value.
    #[prost(oneof = "OptionValue", tags = "1, 2, 3, 4, 5")]
    pub option_value: Option<OptionValue>,
}

/// The kinds of value.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum OptionValue {
    /// Text.
    #[prost(string, tag = "1")]
    String(String),
    /// Truth.
    #[prost(bool, tag = "2")]
    Bool(bool),
    /// A whole number.
    #[prost(sfixed64, tag = "3")]
    Int64(i64),
    /// A number.
    #[prost(double, tag = "4")]
    Double(f64),
    /// Several texts.
    #[prost(message, tag = "5")]
    StringList(StringListValue),
}

/// Several texts.
#[derive(Clone, PartialEq, Message)]
pub struct StringListValue {
    /// Them.
    #[prost(string, repeated, tag = "1")]
    pub values: Vec<String>,
}

/// SetSessionOptions.
#[derive(Clone, PartialEq, Message)]
pub struct SetSessionOptionsRequest {
    /// Option → value.
    #[prost(map = "string, message", tag = "1")]
    pub session_options: HashMap<String, SessionOptionValue>,
}

/// What could not be set.
#[derive(Clone, PartialEq, Message)]
pub struct SetSessionOptionsResult {
    /// Option → why.
    #[prost(map = "string, message", tag = "1")]
    pub errors: HashMap<String, SetSessionOptionError>,
}

/// Why an option could not be set.
#[derive(Clone, PartialEq, Message)]
pub struct SetSessionOptionError {
    /// Why.
    #[prost(enumeration = "ErrorValue", tag = "1")]
    pub value: i32,
}

/// Why an option could not be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum ErrorValue {
    /// Not said.
    Unspecified = 0,
    /// No such option.
    InvalidName = 1,
    /// Not a value of it.
    InvalidValue = 2,
    /// It failed.
    Error = 3,
}

/// GetSessionOptions' answer.
#[derive(Clone, PartialEq, Message)]
pub struct GetSessionOptionsResult {
    /// Option → value.
    #[prost(map = "string, message", tag = "1")]
    pub session_options: HashMap<String, SessionOptionValue>,
}

/// CloseSession's answer.
#[derive(Clone, PartialEq, Message)]
pub struct CloseSessionResult {
    /// How it went.
    #[prost(enumeration = "CloseStatus", tag = "1")]
    pub status: i32,
}

/// How closing went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum CloseStatus {
    /// Not said.
    Unspecified = 0,
    /// Closed.
    Closed = 1,
    /// Being closed.
    Closing = 2,
    /// Cannot be closed.
    NotCloseable = 3,
}

impl Node {
    /// Sets options; each that cannot be set is named with the reason's kind, and the reason is logged.
    ///
    /// # Errors
    /// When the warehouse cannot be listed.
    pub async fn set_options(&self, session: &Session, request: SetSessionOptionsRequest) -> Result<SetSessionOptionsResult> {
        // The message is about nothing but the session: its sender means to keep it.
        session.confirm();
        let mut errors = HashMap::new();
        for (name, value) in request.session_options {
            if let Some(why) = self.set_option(session, &name, value.option_value).await? {
                errors.insert(name, SetSessionOptionError { value: why.into() });
            }
        }
        Ok(SetSessionOptionsResult { errors })
    }

    async fn set_option(&self, session: &Session, name: &str, value: Option<OptionValue>) -> Result<Option<ErrorValue>> {
        if session.knows(name).is_err() {
            tracing::info!(option = name, "an unknown session option was refused");
            return Ok(Some(ErrorValue::InvalidName));
        }
        let Some(value) = value else { return Ok(session.reset(Some(name)).err().map(|_| ErrorValue::Error)) };
        let value = text(value);
        let exists = match name.to_ascii_lowercase().as_str() {
            "catalog" => value.eq_ignore_ascii_case(self.warehouse().catalog()),
            "schema" => value == "information_schema" || self.warehouse().schemas().await?.contains(&value),
            _ => true,
        };
        if !exists {
            return Ok(Some(ErrorValue::InvalidValue));
        }
        match session.set(name, &value) {
            Ok(()) => Ok(None),
            Err(error) => {
                tracing::info!(option = name, %error, "a session option was refused");
                Ok(Some(ErrorValue::InvalidValue))
            }
        }
    }

    /// Closes a session; all it holds is released.
    pub fn close_session(&self, session: &Session) -> CloseSessionResult {
        self.sessions.close(session.key());
        CloseSessionResult { status: CloseStatus::Closed.into() }
    }
}

/// All of a session's settings.
#[must_use]
pub fn options(session: &Session) -> GetSessionOptionsResult {
    let value = |text| SessionOptionValue { option_value: Some(OptionValue::String(text)) };
    GetSessionOptionsResult { session_options: session.settings().into_iter().map(|(name, text)| (name, value(text))).collect() }
}

fn text(value: OptionValue) -> String {
    match value {
        OptionValue::String(text) => text,
        OptionValue::Bool(b) => b.to_string(),
        OptionValue::Int64(i) => i.to_string(),
        OptionValue::Double(d) => d.to_string(),
        OptionValue::StringList(list) => list.values.join(","),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_wire_form_of_flight_proto() {
        fn check(value: OptionValue, bytes: &[u8]) {
            assert_eq!(SessionOptionValue { option_value: Some(value) }.encode_to_vec(), bytes);
        }
        check(OptionValue::String("a".into()), &[0x0a, 1, b'a']);
        check(OptionValue::Bool(true), &[0x10, 1]);
        check(OptionValue::Int64(1), &[0x19, 1, 0, 0, 0, 0, 0, 0, 0]);
        check(OptionValue::Double(1.0), &[0x21, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
        check(OptionValue::StringList(StringListValue { values: vec!["b".into()] }), &[0x2a, 3, 0x0a, 1, b'b']);
        let error = SetSessionOptionError { value: ErrorValue::InvalidName.into() };
        let result = SetSessionOptionsResult { errors: [("x".to_owned(), error)].into() };
        assert_eq!(result.encode_to_vec(), [0x0a, 7, 0x0a, 1, b'x', 0x12, 2, 0x08, 1]);
        assert_eq!(CloseSessionResult { status: CloseStatus::Closed.into() }.encode_to_vec(), [0x08, 1]);
    }
}
