//! Why a value does not fit a column.

use std::borrow::Cow;

/// Why a column does not take a value, for people.
pub type Misfit = Cow<'static, str>;
