//! Errors of the kernel, in four bytes.

use std::fmt;
use std::io;

use rustix::io::Errno;

/// An error of the kernel, as reported in a [`Reason`](crate::Reason) or an [`Event`](crate::Event).
///
/// It converts to an [`io::Error`], and has the error number of the system if there is one. A kernel that refuses
/// something by itself, such as a simulated kernel, returns only a kind.
///
/// ```
/// use event::Reason;
///
/// fn describe(reason: Reason) -> String {
///     match reason {
///         Reason::ConnectFailed(error) => format!("no connection: {}", std::io::Error::from(error)),
///         reason => format!("ended: {reason:?}"),
///     }
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KernelError {
    kind: io::ErrorKind,
    /// The error number; 0 if there is none.
    errno: u16,
}

impl KernelError {
    /// The kind of the error. Unlike the kind of an [`io::Error`], it is `QuotaExceeded` if the process or the system
    /// has no descriptor left, and `OutOfMemory` if the system has no buffers left.
    #[must_use]
    pub const fn kind(self) -> io::ErrorKind {
        self.kind
    }

    /// The error number of the system (errno), if there is one.
    #[must_use]
    pub fn raw_os_error(self) -> Option<i32> {
        (self.errno != 0).then(|| i32::from(self.errno))
    }
}

impl From<&io::Error> for KernelError {
    fn from(error: &io::Error) -> Self {
        let errno = Errno::from_io_error(error);
        let kind = match errno {
            Some(Errno::MFILE | Errno::NFILE) => io::ErrorKind::QuotaExceeded,
            Some(Errno::NOBUFS) => io::ErrorKind::OutOfMemory,
            _ => error.kind(),
        };
        // The numbers of Linux are below 4096.
        let errno = errno.and_then(|errno| u16::try_from(errno.raw_os_error()).ok());
        Self { kind, errno: errno.unwrap_or(0) }
    }
}

impl From<io::ErrorKind> for KernelError {
    fn from(kind: io::ErrorKind) -> Self {
        Self { kind, errno: 0 }
    }
}

impl From<KernelError> for io::Error {
    fn from(error: KernelError) -> Self {
        error.raw_os_error().map_or_else(|| error.kind.into(), Self::from_raw_os_error)
    }
}

impl fmt::Debug for KernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.raw_os_error() {
            Some(number) => write!(f, "{:?}({number})", self.kind),
            None => self.kind.fmt(f),
        }
    }
}

impl fmt::Display for KernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        io::Error::from(*self).fmt(f)
    }
}

impl std::error::Error for KernelError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_keeps_its_number_and_a_refusal_has_only_a_kind() {
        let error = KernelError::from(&io::Error::from(Errno::CONNREFUSED));
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert_eq!(error.raw_os_error(), Some(Errno::CONNREFUSED.raw_os_error()));
        assert_eq!(io::Error::from(error).raw_os_error(), error.raw_os_error());
        assert!(error.to_string().contains("refused"), "{error}");
        let refusal = KernelError::from(&io::Error::from(io::ErrorKind::QuotaExceeded));
        assert_eq!(refusal, io::ErrorKind::QuotaExceeded.into());
        assert_eq!(
            (refusal.raw_os_error(), format!("{refusal:?}")),
            (None, "QuotaExceeded".into())
        );
        assert_eq!(io::Error::from(refusal).kind(), io::ErrorKind::QuotaExceeded);
        for none_left in [Errno::MFILE, Errno::NFILE] {
            let error = KernelError::from(&io::Error::from(none_left));
            assert_eq!(error.kind(), io::ErrorKind::QuotaExceeded);
            assert_eq!(error.raw_os_error(), Some(none_left.raw_os_error()));
        }
    }
}
