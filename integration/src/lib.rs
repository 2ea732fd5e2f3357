//! Whole-system tests: real drivers against a real server.
