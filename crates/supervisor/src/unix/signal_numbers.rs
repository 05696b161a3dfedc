//! The numbers of signals. Some differ between Unix systems.

use rustix::process::Signal;

pub(crate) const HUP: i32 = Signal::HUP.as_raw();
pub(crate) const INT: i32 = Signal::INT.as_raw();
pub(crate) const QUIT: i32 = Signal::QUIT.as_raw();
pub(crate) const KILL: i32 = Signal::KILL.as_raw();
pub(crate) const USR1: i32 = Signal::USR1.as_raw();
pub(crate) const USR2: i32 = Signal::USR2.as_raw();
pub(crate) const TERM: i32 = Signal::TERM.as_raw();
pub(crate) const CONT: i32 = Signal::CONT.as_raw();
pub(crate) const STOP: i32 = Signal::STOP.as_raw();
pub(crate) const TSTP: i32 = Signal::TSTP.as_raw();
pub(crate) const TTIN: i32 = Signal::TTIN.as_raw();
pub(crate) const TTOU: i32 = Signal::TTOU.as_raw();
