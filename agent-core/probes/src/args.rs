//! What to ask, where, and for how long.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The agent's pod-local directory, by the name under which the agent takes it too.
pub const LOCAL_DIR_VARIABLE: &str = "AETHER_LOCAL_DIR";
/// That directory where nothing is said.
pub const LOCAL_DIR: &str = "/tmp/aether";
/// The socket inside it.
pub const HEALTH_SOCKET: &str = "health.sock";
/// How long the probe takes at the longest: the kubelet's own `timeoutSeconds` is 1 where nothing is said.
pub const TIMEOUT: Duration = Duration::from_secs(1);
/// The longest that may be asked for.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// What the agent is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Question {
    /// May it be counted on: have its gates passed?
    #[default]
    Ready,
    /// Does it still work?
    Live,
}

impl Question {
    /// The path of the request.
    pub fn path(self) -> &'static str {
        match self {
            Self::Ready => "/readyz",
            Self::Live => "/livez",
        }
    }
}

/// One question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What.
    pub question: Question,
    /// On which socket.
    pub socket: PathBuf,
    /// Within which time.
    pub timeout: Duration,
}

/// What the command line wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// To read the help.
    Help,
    /// An answer.
    Ask(Request),
}

/// Why the command line says nothing that can be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UsageError {
    /// An argument is not known.
    Unknown(OsString),
    /// An option's value is missing.
    NoValue(&'static str),
    /// The time limit is no number of milliseconds in its bounds.
    Timeout(OsString),
}

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown(argument) => write!(f, "{} is no argument of this program", argument.display()),
            Self::NoValue(option) => write!(f, "{option} needs a value"),
            Self::Timeout(value) => write!(
                f,
                "--timeout-ms is {}, and must be a number from 1 to {}",
                value.display(),
                TIMEOUT_MAX.as_millis()
            ),
        }
    }
}

impl std::error::Error for UsageError {}

/// Reads the command line (without the program's name) and the value of [`LOCAL_DIR_VARIABLE`]. A later option wins over
/// an earlier one, and any of them over the variable.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    local_dir: Option<OsString>,
) -> Result<Wish, UsageError> {
    let local_dir = local_dir.filter(|dir| !dir.is_empty()).unwrap_or_else(|| LOCAL_DIR.into());
    let mut request = Request { question: Question::default(), socket: inside(&local_dir), timeout: TIMEOUT };
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let (name, mut value) = split(&argument);
        let mut take = |option| value.take().or_else(|| arguments.next()).ok_or(UsageError::NoValue(option));
        match name.to_str() {
            Some("--local-dir") => request.socket = inside(&take("--local-dir")?),
            Some("--socket") => request.socket = take("--socket")?.into(),
            Some("--timeout-ms") => request.timeout = timeout(take("--timeout-ms")?)?,
            Some("--live") if value.is_none() => request.question = Question::Live,
            Some("--help" | "-h") if value.is_none() => return Ok(Wish::Help),
            _ => return Err(UsageError::Unknown(argument)),
        }
    }
    Ok(Wish::Ask(request))
}

fn inside(local_dir: &OsStr) -> PathBuf {
    Path::new(local_dir).join(HEALTH_SOCKET)
}

/// `--option=value` as its two parts. The value may hold any bytes, the name is text.
fn split(argument: &OsStr) -> (OsString, Option<OsString>) {
    use std::os::unix::ffi::OsStrExt as _;
    let bytes = argument.as_bytes();
    match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) if bytes.starts_with(b"--") => {
            let (name, value) = bytes.split_at(at);
            let value = value.get(1..).unwrap_or_default();
            (OsStr::from_bytes(name).to_owned(), Some(OsStr::from_bytes(value).to_owned()))
        }
        _ => (argument.to_owned(), None),
    }
}

fn timeout(value: OsString) -> Result<Duration, UsageError> {
    let millis = value.to_str().and_then(|text| text.parse().ok()).map(Duration::from_millis);
    millis.filter(|timeout| !timeout.is_zero() && *timeout <= TIMEOUT_MAX).ok_or(UsageError::Timeout(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use aether_domain::paths;

    fn parsed(arguments: &[&str], local_dir: Option<&str>) -> Result<Wish, UsageError> {
        parse(arguments.iter().map(OsString::from), local_dir.map(OsString::from))
    }

    fn request(arguments: &[&str], local_dir: Option<&str>) -> Request {
        match parsed(arguments, local_dir) {
            Ok(Wish::Ask(request)) => request,
            other => panic!("{arguments:?}: {other:?}"),
        }
    }

    #[test]
    fn b02_the_socket_is_the_one_in_the_agents_own_directory() {
        assert_eq!(request(&[], None).socket, Path::new(paths::LOCAL_DIR).join(paths::HEALTH_SOCKET));
        assert_eq!(request(&[], Some("")).socket, Path::new("/tmp/aether/health.sock"));
        assert_eq!(request(&[], Some("/a")).socket, Path::new("/a/health.sock"));
        assert_eq!(request(&["--local-dir", "/b"], Some("/a")).socket, Path::new("/b/health.sock"));
        assert_eq!(request(&["--local-dir=/b=c"], None).socket, Path::new("/b=c/health.sock"));
        assert_eq!(request(&["--local-dir", "/b", "--socket", "x"], None).socket, Path::new("x"));
    }

    #[test]
    fn question_and_time_limit_are_taken() {
        let plain = request(&[], None);
        assert_eq!((plain.question, plain.timeout), (Question::Ready, TIMEOUT));
        let other = request(&["--live", "--timeout-ms=250"], None);
        assert_eq!((other.question, other.timeout), (Question::Live, Duration::from_millis(250)));
        assert_eq!(parsed(&["--live", "--help"], None), Ok(Wish::Help));
    }

    #[test]
    fn what_cannot_be_done_is_named() {
        for wrong in ["0", "60001", "-1", "x", "", "1e3"] {
            let error = parsed(&["--timeout-ms", wrong], None).unwrap_err();
            assert_eq!(error, UsageError::Timeout(wrong.into()));
        }
        assert_eq!(parsed(&["--socket"], None), Err(UsageError::NoValue("--socket")));
        for unknown in ["--dead", "x", "--live=yes", "-help", ""] {
            assert_eq!(parsed(&[unknown], None), Err(UsageError::Unknown(unknown.into())));
        }
    }
}
