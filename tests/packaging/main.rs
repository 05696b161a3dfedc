//! What is shipped beside the binary, as its users meet it: rights and completion. Each test runs on
//! a real kube-apiserver.

mod completion;
mod layers;
mod rights;
mod shells;
mod support;
mod walk;
