//! What is shipped beside the binary, as its users meet it: rights and completion. Each test runs on
//! a real kube-apiserver.

mod completion;
mod kube_gaps;
mod layers;
mod links;
#[path = "../support/namespace.rs"]
mod namespace;
mod pasted_hints;
mod readme;
mod release;
mod released_schema;
mod rights;
mod sentences;
mod shells;
mod source;
mod support;
mod troubleshooting;
mod walk;
