//! Windows has no signal numbers. Exit codes use those of Linux.

pub(crate) const HUP: i32 = 1;
pub(crate) const INT: i32 = 2;
pub(crate) const QUIT: i32 = 3;
pub(crate) const KILL: i32 = 9;
pub(crate) const USR1: i32 = 10;
pub(crate) const USR2: i32 = 12;
pub(crate) const TERM: i32 = 15;
pub(crate) const CONT: i32 = 18;
pub(crate) const STOP: i32 = 19;
pub(crate) const TSTP: i32 = 20;
pub(crate) const TTIN: i32 = 21;
pub(crate) const TTOU: i32 = 22;
