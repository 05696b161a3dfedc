//! Consistent renamings of a state, for exhaustive searches.
//!
//! The rules compare times by their differences, ids by equality and versions by order. Renaming all of
//! them consistently does not change the behavior, so an exhaustive search needs to visit only one state
//! of each kind.

use super::clocks::BootInstant;
use super::decision::Write;
use super::lease::{Acquisition, Lease, Version};
use super::names::Id;
use super::time::Span;

/// A renaming of everything that a state is made of.
pub trait Relabel {
    /// A Lease as it was seen.
    fn lease(&mut self, lease: &mut Lease);
    /// A write that was sent.
    fn write(&mut self, write: &mut Write);
    /// An intended acquisition.
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
