//! Why a value does not fit a column.

use std::borrow::Cow;

/// The message that says why a column does not accept a value.
pub type Mismatch = Cow<'static, str>;
