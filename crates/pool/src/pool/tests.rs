//! Scenes with virtual time.
