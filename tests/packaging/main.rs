//! What is shipped with the binary, such as rights and completion, on a real kube-apiserver. Also rules for the source
//! code and the documentation.

mod completion;
mod kube_gaps;
mod layers;
mod links;
#[path = "../support/namespace.rs"]
mod namespace;
mod pasted_hints;
mod release;
mod rights;
mod sentences;
mod shells;
mod source;
mod support;
mod troubleshooting;
mod walk;
