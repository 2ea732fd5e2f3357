//! The client `asof`: library and shell, over the wire only.
