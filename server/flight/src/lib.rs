//! The wire: Arrow Flight SQL, configuration, telemetry; the server `asofd`.
