//! Systems without what Unix has, such as Windows.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::path::Path;

/// Always empty: on Windows the variable `USERNAME` is set.
pub(crate) fn account() -> String {
    "unknown".to_owned()
}

/// Does nothing: early input counts on these systems.
pub(crate) fn discard_typed(_stdin: &io::Stdin) {}

/// Whether `file` exists. Nothing else can be checked here without running it.
pub(crate) fn is_executable(file: &Path) -> bool {
    file.is_file()
}

/// The reading end of a pipe: only commands under a supervisor need one.
pub(crate) struct PipeReader(Infallible);

impl PipeReader {
    pub(crate) fn new(_reader: io::PipeReader) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) async fn readable(&self) -> io::Result<()> {
        match self.0 {}
    }

    pub(crate) fn try_read(&self, _buffer: &mut [u8]) -> io::Result<usize> {
        match self.0 {}
    }
}

/// Completes at Ctrl-C.
pub(crate) async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        pending::<()>().await;
    }
}

/// Never completes: there is no such signal here.
pub(crate) async fn terminated() {
    pending::<()>().await;
}

/// Never completes: there is no such signal here.
pub(crate) async fn hung_up() {
    pending::<()>().await;
}

/// Never completes: there is no such signal here.
pub(crate) async fn quit() {
    pending::<()>().await;
}
