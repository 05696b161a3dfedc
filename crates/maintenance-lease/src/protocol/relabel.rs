//! Other names for the same state, for those who explore states.
//!
//! The rules look at times through their differences, at ids through equality and at versions
//! through order. A state in which all of them are renamed alike behaves alike, so that whoever
//! explores every state need visit only one of each kind.

use super::deadline::BootInstant;
use super::lease::{Acquisition, Lease, Version};
use super::names::Id;
use super::time::Span;
use super::transition::Write;

/// A renaming of everything that a state is made of.
pub trait Relabel {
    /// A Lease as it was seen.
    fn lease(&mut self, lease: &mut Lease);
    /// A write that was sent.
    fn write(&mut self, write: &mut Write);
    /// An acquisition that is meant.
    fn acquisition(&mut self, of: &mut Acquisition);
    /// Somebody's identity.
    fn id(&mut self, id: &mut Id);
    /// A version that was seen.
    fn version(&mut self, version: &mut Version);
    /// An instant that matters until it has passed.
    fn until(&mut self, at: &mut BootInstant);
    /// An instant that matters until `length` after it.
    fn since(&mut self, at: &mut BootInstant, length: Span);
}
