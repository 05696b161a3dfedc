//! What differs between operating systems. Elsewhere, this program does nothing because commands cannot be
//! supervised, so the stand-in is never used.

#[cfg(not(unix))]
pub(crate) use elsewhere::SignalListener;
#[cfg(unix)]
pub(crate) use unix::SignalListener;

#[cfg(unix)]
mod unix {
    use std::io;

    use supervisor::Signal;
    use tokio::signal::unix::{self, SignalKind, signal};

    /// Listens for one signal.
    pub(crate) struct SignalListener(unix::Signal);

    impl SignalListener {
        pub(crate) fn new(wanted: Signal) -> io::Result<Self> {
            signal(SignalKind::from_raw(wanted.0)).map(Self)
        }

        /// Completes once it is sent. Dropping the future loses nothing.
        pub(crate) async fn received(&mut self) {
            self.0.recv().await;
        }
    }
}

#[cfg(not(unix))]
mod elsewhere {
    use std::convert::Infallible;
    use std::io;

    use supervisor::Signal;

    pub(crate) struct SignalListener(Infallible);

    impl SignalListener {
        pub(crate) fn new(_wanted: Signal) -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(crate) async fn received(&mut self) {
            match self.0 {}
        }
    }
}
