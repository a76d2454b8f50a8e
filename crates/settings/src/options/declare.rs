//! How options are declared: one row each, inside the struct that they fill.
//!
//! ```text
//! options! {
//!     /// The limits of the queue.
//!     #[derive(Clone, Debug, PartialEq)]
//!     pub struct Queue of Any reload Live {
//!         /// Maximum number of requests.
//!         requests_max("max_requests"): u32 as count(1, 10_000_000) = "10000";
//!     }
//! }
//! ```
//!
//! The comment above a row is the documentation of the field and the meaning in the reference page. The name of the
//! field is the name of the option; an option with another name is written `field("option")`. After `as` come its kind
//! (`kinds`) and range, then its default as it would be written in a file: `= "10000"`, `= required`, `= inner` (a
//! table of which each option has a default), or nothing. `of` states to which kind of pool the options belong, and
//! `reload` whether a reload changes them. A row can differ from its struct: `, reload(Restart)`, `, of(WorkerKind::Program)`,
//! `, instead("…")`, `, needs(Needs::Pipes)`. `, former(&["…"])` lists its former names.
//!
//! A field without a kind is a struct whose rows belong to the same table. A field that is made from several options,
//! or from one option in a special way, names the function that makes it and has its rows in braces: `field: Type =>
//! function { rows };`.

/// Declares a struct of the model, and the options that fill it.
macro_rules! options {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident of $of:ident reload $reload:ident { $(
            $(#[doc = $about:literal])+
            $field:ident $(($option:literal))?: $type:ty
                $(as $kind:ident $(($($range:expr),+))? $(= $default:tt)? $(, $mark:ident($value:expr))*)?
                $(=> $made:ident { $(
                    $(#[doc = $row_about:literal])*
                    $row:ident $(($row_option:literal))?: $row_type:ty
                        $(as $row_kind:ident $(($($row_range:expr),+))? $(= $row_default:tt)?
                            $(, $row_mark:ident($row_value:expr))*)?;
                )* })?;
        )+ }
    ) => {
        $(#[$meta])*
        $vis struct $name { $(
            $(#[doc = $about])+
            $vis $field: $type,
        )+ }

        impl $crate::options::Setting for $name {
            type As = $crate::options::read_as::Table;
            const OPTIONS: &'static [$crate::options::Opt] = {
                const PARTS: &[&[&[$crate::options::Opt]]] = &[ $(
                    $crate::options::part!([$of $reload] [$($about)+] ($field $($option)?) [$type]
                        [$(($kind [$($($range),+)?] [$($default)?] [$($mark($value))*]))?]
                        [$($made [$(
                            ([$of $reload] [$($row_about)*] ($row $($row_option)?) [$row_type]
                                [$(($row_kind [$($($row_range),+)?] [$($row_default)?]
                                    [$($row_mark($row_value))*]))?] [])
                        )*])?]),
                )+ ];
                &$crate::options::joined::<{ $crate::options::length(PARTS) }>(PARTS)
            };

            fn of(value: Option<&$crate::options::Value>) -> Self {
                match value {
                    Some($crate::options::Value::Group(group)) => {
                        <Self as $crate::options::Options>::fill(group)
                    }
                    other => unreachable!("the table gives {} to {other:?}", stringify!($name)),
                }
            }
        }

        impl $crate::options::Options for $name {
            fn fill(group: &$crate::options::Group) -> Self {
                Self { $(
                    $field: $crate::options::filled!(group, $type, ($field $($option)?) [$($kind)?] [$($made)?]),
                )+ }
            }

            fn changed(&self, new: &Self) -> Vec<&'static $crate::options::Opt> {
                let mut found: Vec<&'static $crate::options::Opt> = Vec::new();
                $(if self.$field != new.$field {
                    $crate::options::change!(found, self.$field, new.$field, ($field $($option)?) [$($kind)?]
                        [$($(($row $($row_option)?))*)?] [$($made)?]);
                })+
                found
            }
        }
    };
}
pub(crate) use options;

/// Expands to the name of an option: the name of its field, unless another one is declared.
macro_rules! option_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $option:literal) => {
        $option
    };
}
pub(crate) use option_name;

/// Expands to the rows of one field.
macro_rules! part {
    // A row.
    ([$of:ident $reload:ident] [$($about:literal)+] ($($name:tt)+) [$type:ty]
        [($kind:ident [$($range:expr),*] [$($default:tt)?] [$($mark:ident($value:expr))*])] []) => {
        &[&[$crate::options::Opt {
            name: $crate::options::option_name!($($name)+),
            kind: $crate::options::kinds::$kind::<$type>($($range),*),
            default: $crate::options::default!($($default)?),
            of: $crate::options::WorkerKind::$of,
            about: concat!($($about),+).trim_ascii_start(),
            reload: $crate::options::Reload::$reload,
            instead: None,
            needs: None,
            former: &[],
        }$(.$mark($value))*]]
    };
    // A struct of the same table.
    ([$of:ident $reload:ident] [$($about:literal)*] ($($name:tt)+) [$type:ty] [] []) => {
        &[<$type as $crate::options::Setting>::OPTIONS]
    };
    // A field made of several rows.
    ([$of:ident $reload:ident] [$($about:literal)*] ($($name:tt)+) [$type:ty] [] [$made:ident [$(($($row:tt)+))*]]) => {
        &[&{
            const PARTS: &[&[&[$crate::options::Opt]]] = &[$($crate::options::part!($($row)+)),*];
            $crate::options::joined::<{ $crate::options::length(PARTS) }>(PARTS)
        }]
    };
}
pub(crate) use part;

/// Expands to the default of a row.
macro_rules! default {
    () => {
        $crate::options::Default::None
    };
    (required) => {
        $crate::options::Default::Required
    };
    (inner) => {
        $crate::options::Default::Inner
    };
    ($text:literal) => {
        $crate::options::Default::Is($text)
    };
    ((program $program:literal, database $database:literal)) => {
        $crate::options::Default::ByWorker { program: $program, database: $database }
    };
    ((handler $handler:literal, other $other:literal)) => {
        $crate::options::Default::Handlers { handler: $handler, other: $other }
    };
}
pub(crate) use default;

/// Expands to the value of a field.
macro_rules! filled {
    ($group:ident, $type:ty, ($($name:tt)+) [$kind:ident] []) => {
        <$type as $crate::options::Setting>::of($group.value($crate::options::option_name!($($name)+)))
    };
    ($group:ident, $type:ty, ($($name:tt)+) [] []) => {
        <$type as $crate::options::Options>::fill($group)
    };
    ($group:ident, $type:ty, ($($name:tt)+) [] [$made:ident]) => {
        $made($group)
    };
}
pub(crate) use filled;

/// Expands to the options of a field that differs. If several rows make the field, it is the first of them.
macro_rules! change {
    ($found:ident, $old:expr, $new:expr, ($($name:tt)+) [$kind:ident] [] []) => {
        $found.extend($crate::options::find(
            <Self as $crate::options::Setting>::OPTIONS,
            $crate::options::option_name!($($name)+),
        ))
    };
    ($found:ident, $old:expr, $new:expr, ($($name:tt)+) [] [] []) => {
        $found.extend($crate::options::Options::changed(&$old, &$new))
    };
    ($found:ident, $old:expr, $new:expr, ($($name:tt)+) [] [($($row:tt)+) $($rows:tt)*] [$made:ident]) => {
        $found.extend($crate::options::find(
            <Self as $crate::options::Setting>::OPTIONS,
            $crate::options::option_name!($($row)+),
        ))
    };
    // Its rows are in another table.
    ($found:ident, $old:expr, $new:expr, ($($name:tt)+) [] [] [$made:ident]) => {};
}
pub(crate) use change;

/// Declares a type whose values are words, or the words of a type that has other values too.
macro_rules! words {
    (
        $(#[doc = $title:literal])+
        pub enum $name:ident { $($(#[doc = $about:literal])+ $variant:ident = $word:literal),+ $(,)? }
    ) => {
        $(#[doc = $title])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[doc = $about])+ $variant),+ }

        $crate::options::words! { impl $name { $($(#[doc = $about])+ Self::$variant = $word),+ } }
    };
    (impl $name:ident { $($(#[doc = $about:literal])+ Self::$variant:ident $(($inner:expr))? = $word:literal),+ $(,)? }) => {
        impl $crate::options::Setting for $name {
            type As = $crate::options::read_as::Words;
            const WORDS: &'static [$crate::options::Word] = &[$($crate::options::Word {
                name: $word,
                about: concat!($($about),+).trim_ascii_start(),
            }),+];

            fn of(value: Option<&$crate::options::Value>) -> Self {
                match value {
                    $(Some($crate::options::Value::Word($word)) => Self::$variant $(($inner))?,)+
                    other => unreachable!("the table gives {} to {other:?}", stringify!($name)),
                }
            }
        }
    };
}
pub(crate) use words;
