//! How a command ended, and signals.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::signal_numbers;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// It exited with this code. 127 also means that the command does not exist, and 126 that it can't be
    /// executed. In these cases the reason was printed on stderr.
    Code(u8),
    /// This signal ended it.
    Signal(Signal),
}

impl Exit {
    /// The exit code for failures of the wrapper itself and not of its command, as in `timeout`, `nohup` and
    /// `env`.
    pub const OF_WRAPPER: u8 = 125;

    /// The code that a shell would return: the command's own, or 128 plus the signal's number.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(Signal(number)) => u8::try_from(128 + number).unwrap_or(u8::MAX),
        }
    }
}

/// A signal by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Signal(pub i32);

impl Signal {
    /// Whether the signal asks a command to end.
    #[must_use]
    pub fn asks_to_end(self) -> bool {
        [Self::INT, Self::TERM, Self::HUP, Self::QUIT].contains(&self)
    }
}

macro_rules! signals {
    ($($name:ident,)*) => {
        impl Signal {
            $(#[doc = concat!("SIG", stringify!($name), ".")]
            pub const $name: Self = Self(signal_numbers::$name);)*
        }

        impl fmt::Display for Signal {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    $(Self::$name => f.write_str(concat!("SIG", stringify!($name))),)*
                    Self(number) => write!(f, "signal {number}"),
                }
            }
        }
    };
}

signals! {
    HUP,
    INT,
    QUIT,
    KILL,
    USR1,
    USR2,
    TERM,
    CONT,
    STOP,
    TSTP,
    TTIN,
    TTOU,
}
