//! A run of the plugin in an otherwise empty environment.

use std::ffi::OsStr;
use std::fmt;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use regex::Regex;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{inherited, schema};

/// How long a test waits for a line.
const LIMIT: Duration = Duration::from_secs(60);

/// A command line of the plugin.
pub(crate) struct Maint {
    command: Command,
    words: Vec<String>,
    prefix: String,
    stdin: Vec<u8>,
    stdout: OutputPipe,
    stderr: OutputPipe,
}

/// The other end of a pipe.
#[derive(Clone, Copy)]
enum OutputPipe {
    Open,
    /// It was closed before anything was written.
    Closed,
}

/// A run in progress.
pub(crate) struct Running {
    child: Child,
    /// Set if the test has read lines of it.
    stdout: Option<BufReader<ChildStdout>>,
    writer: JoinHandle<()>,
    stderr: StderrLines,
    words: Vec<String>,
    prefix: String,
}

/// The result of a run. Its text has stdout, stderr and the exit code, and values that differ between runs are
/// replaced.
pub(crate) struct Run {
    words: Vec<String>,
    prefix: String,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

/// The stderr of a run so far.
struct StderrLines {
    lines: Receiver<String>,
    heard: String,
    ended: bool,
}

impl StderrLines {
    /// Reads in its own thread, so that a run that writes is never blocked.
    fn from(stderr: Option<ChildStderr>) -> Self {
        let (sender, lines) = channel();
        if let Some(stderr) = stderr {
            std::thread::spawn(move || {
                let mut stderr = BufReader::new(stderr);
                loop {
                    let mut line = String::new();
                    let length = stderr.read_line(&mut line).expect("output is UTF-8");
                    if length == 0 || sender.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        Self {
            lines,
            heard: String::new(),
            ended: false,
        }
    }

    fn listen(&mut self) {
        match self.lines.recv_timeout(LIMIT) {
            Ok(line) => self.heard.push_str(&line),
            Err(RecvTimeoutError::Disconnected) => self.ended = true,
            Err(RecvTimeoutError::Timeout) => panic!("nothing more was said:\n{}", self.heard),
        }
    }
}

impl Maint {
    /// `kubectl-maint` as alice, in UTC, with this kubeconfig and home directory. The variable `$PLUGIN` contains its
    /// path.
    pub(super) fn new(kubeconfig: &Path, home: &Path, prefix: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-maint"));
        command
            .env_clear()
            .env("KUBECONFIG", kubeconfig)
            .env("HOME", home)
            .env("TZ", "UTC")
            .env("PLUGIN", env!("CARGO_BIN_EXE_kubectl-maint"))
            .env("KUBECTL_MAINT_HOLDER", "alice@bastion");
        Self {
            command,
            words: Vec::new(),
            prefix: prefix.to_owned(),
            stdin: Vec::new(),
            stdout: OutputPipe::Open,
            stderr: OutputPipe::Open,
        }
    }

    pub(crate) fn args<S: AsRef<str>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        for argument in arguments {
            self = self.arg(argument.as_ref());
        }
        self
    }

    /// Adds an argument of any bytes.
    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.words
            .push(argument.as_ref().to_string_lossy().into_owned());
        self.command.arg(argument);
        self
    }

    /// Runs as another holder.
    pub(crate) fn holder(self, holder: &str) -> Self {
        self.env("KUBECTL_MAINT_HOLDER", holder)
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Uses another kubeconfig, for example of another user or of a proxy.
    pub(crate) fn kubeconfig(self, path: impl AsRef<OsStr>) -> Self {
        self.env("KUBECONFIG", path)
    }

    pub(crate) fn without_env(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    pub(crate) fn stdin(mut self, text: impl Into<Vec<u8>>) -> Self {
        self.stdin = text.into();
        self
    }

    /// Closes the other end of stdout.
    pub(crate) fn unread_stdout(mut self) -> Self {
        self.stdout = OutputPipe::Closed;
        self
    }

    /// Closes the other end of stderr.
    pub(crate) fn unread_stderr(mut self) -> Self {
        self.stderr = OutputPipe::Closed;
        self
    }

    /// Starts with `signals` ignored, as `nohup` ignores SIGHUP.
    pub(crate) fn ignoring(mut self, signals: &str) -> Self {
        let script = format!(r#"trap "" {signals}; exec "$0" "$@""#);
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", &script])
            .arg(self.command.get_program())
            .args(self.command.get_args())
            .env_clear()
            .envs(
                self.command
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            );
        self.command = shell;
        self
    }

    /// The command that would be run, for tests that start it themselves.
    pub(crate) fn command(self) -> Command {
        self.command
    }

    pub(crate) fn run(self) -> Run {
        self.start().ends()
    }

    /// Starts it, for tests that act while it runs.
    pub(crate) fn start(mut self) -> Running {
        inherited::catch_what_is_ignored();
        let mut child = self
            .command
            .stdin(Stdio::piped())
            .stdout(self.stdout.pipe())
            .stderr(self.stderr.pipe())
            .spawn()
            .expect("the plugin was built");
        let mut stdin = child.stdin.take().expect("a pipe");
        let stderr = StderrLines::from(child.stderr.take());
        let text = std::mem::take(&mut self.stdin);
        let writer = std::thread::spawn(move || {
            // The plugin may end without reading this.
            let _ = stdin.write_all(&text);
        });
        Running {
            child,
            stdout: None,
            writer,
            stderr,
            words: self.words,
            prefix: self.prefix,
        }
    }

    /// Starts it, and waits until it has printed `text` on stderr.
    #[track_caller]
    pub(crate) fn until_it_says(self, text: &str) -> Running {
        let mut run = self.start();
        run.says(text);
        run
    }

    /// Runs it and expects success.
    #[track_caller]
    pub(crate) fn succeeds(self) -> Run {
        let run = self.run();
        assert_eq!(run.code, 0, "{run}");
        run
    }

    /// Runs it and expects this exit code.
    #[track_caller]
    pub(crate) fn fails(self, code: i32) -> Run {
        let run = self.run();
        assert_eq!(run.code, code, "{run}");
        run
    }
}

impl OutputPipe {
    fn pipe(self) -> Stdio {
        match self {
            Self::Open => Stdio::piped(),
            Self::Closed => {
                let (_, writer) = std::io::pipe().expect("a pipe");
                writer.into()
            }
        }
    }
}

impl Running {
    /// Sends the signal of Ctrl-C.
    pub(crate) fn interrupt(&self) {
        self.is_sent(Signal::INT);
    }

    pub(crate) fn is_sent(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is our child");
    }

    /// Waits until it has printed `text` on stderr.
    #[track_caller]
    pub(crate) fn says(&mut self, text: &str) {
        while !self.stderr.heard.contains(text) {
            let heard = &self.stderr.heard;
            assert!(!self.stderr.ended, "it never said {text:?}:\n{heard}");
            self.stderr.listen();
        }
    }

    /// Whether it has ended.
    #[allow(dead_code, reason = "not every binary of tests asks")]
    pub(crate) fn is_over(&mut self) -> bool {
        self.child.try_wait().expect("it is our child").is_some()
    }

    /// The running child processes that it started.
    pub(crate) fn children(&self) -> Vec<Pid> {
        let pid = self.child.id();
        let path = format!("/proc/{pid}/task/{pid}/children");
        let children = std::fs::read_to_string(path).expect("it runs");
        let children = children.split_whitespace();
        children
            .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
            .collect()
    }

    /// Waits for the end of a killed run, and until no process has its stdout open.
    pub(crate) fn ends_killed(mut self) {
        let status = self.child.wait().expect("it ends");
        assert_eq!(status.code(), None);
        while !self.line().is_empty() {}
    }

    /// The next line of stdout, of the run or of a command that it runs.
    pub(crate) fn line(&mut self) -> String {
        let stdout = &mut self.child.stdout;
        let stdout = self
            .stdout
            .get_or_insert_with(|| BufReader::new(stdout.take().expect("a pipe")));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("stdout is text");
        line.trim_end().to_owned()
    }

    /// Waits for its end, and until no process has its stdout and stderr open.
    pub(crate) fn ends(mut self) -> Run {
        let rest = self.stdout.take().map(|mut stdout| {
            std::thread::spawn(move || {
                let mut rest = Vec::new();
                stdout.read_to_end(&mut rest).map(|_| rest)
            })
        });
        let mut output = self.child.wait_with_output().expect("the plugin ends");
        if let Some(rest) = rest {
            let rest = rest.join().expect("the reader ends");
            output.stdout = rest.expect("stdout can be read");
        }
        while !self.stderr.ended {
            self.stderr.listen();
        }
        self.writer.join().expect("the writer ends");
        let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
        let stdout = text(output.stdout);
        // A run whose lines the test has read prints no JSON or YAML.
        schema::check(&self.words, &stdout);
        Run {
            words: self.words,
            prefix: self.prefix,
            stdout,
            stderr: self.stderr.heard,
            code: output.status.code().expect("it was not killed"),
        }
    }
}

/// Repeats the run if the server stalled for longer than the time limit of a release after an interrupt or timeout.
#[allow(dead_code, reason = "not every binary of tests asks")]
#[track_caller]
pub(crate) fn unless_stalled(mut run: impl FnMut() -> Run) -> Run {
    for _ in 0..10 {
        let run = run();
        if !run.stderr.contains("could not be released") {
            return run;
        }
    }
    panic!("nothing is ever released");
}

impl Run {
    /// The last command that the output suggests.
    #[allow(dead_code, reason = "not every binary of tests asks")]
    #[track_caller]
    pub(crate) fn next_command(&self) -> Vec<&str> {
        let (_, line) = self.stderr.rsplit_once("kubectl maint ").expect("a line");
        let (line, _) = line.split_once(['`', ';', '\n']).expect("its end");
        line.split(' ').collect()
    }

    /// The `--resume=ID` of its hint.
    #[allow(dead_code, reason = "not every binary of tests asks")]
    #[track_caller]
    pub(crate) fn resume(&self) -> &str {
        let start = self.stderr.rfind("--resume=").expect("a hint");
        let rest = &self.stderr[start..];
        rest.split([' ', ';', '\n']).next().expect("a word")
    }

    /// The only item of the list that it prints as JSON.
    #[track_caller]
    pub(crate) fn item(&self) -> Value {
        let mut list: Value = serde_json::from_str(&self.stdout).expect("JSON");
        let items = list["items"].as_array_mut().expect("a list");
        assert_eq!(items.len(), 1, "{self}");
        items.remove(0)
    }

    /// Leaves out stdout, which the test has already checked.
    pub(crate) fn without_stdout(mut self) -> Self {
        self.stdout.clear();
        self
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |text: &str| same_every_time(text, &self.prefix);
        let words: Vec<String> = self.words.iter().map(|word| quoted(word)).collect();
        writeln!(f, "$ kubectl maint {}", shown(&words.join(" ")))?;
        write!(f, "{}", shown(&self.stdout))?;
        if !self.stderr.is_empty() {
            writeln!(f, "-- stderr")?;
            write!(f, "{}", shown(&self.stderr))?;
        }
        write!(f, "-- exit code {}", self.code)
    }
}

fn quoted(word: &str) -> String {
    let word: String = word.chars().take(60).collect();
    if word.is_empty()
        || word.contains([' ', '\'', '"', '$', '\u{202e}'])
        || word.contains(char::is_control)
    {
        format!("{word:?}")
    } else {
        word
    }
}

/// `text` without the test's prefix, and with placeholders for times, running lengths of time, tokens, versions and
/// addresses.
pub(super) fn same_every_time(text: &str, prefix: &str) -> String {
    static CHANGING: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        [
            (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "[time]"),
            (r"(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d UTC", "[time]"),
            // The in-memory server does not record field managers.
            (r"cordoned by unknown (\d+[ydhms]){1,2} ago", "cordoned"),
            (r"\b(\d+[ydhms]){1,2} (ago|left)", "[length] $2"),
            (
                r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\.\d+\.[0-9a-z]{20}",
                "[lock-id]",
            ),
            (
                r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
                "[uid]",
            ),
            (r"--resume=[0-9a-f]{20}\b", "--resume=[id]"),
            (r"/with-\d+-[0-9a-f]{6}", "/with-[process]"),
            (
                r#""(fencingNumber|secondsLeft|secondsExpired)": \d+"#,
                r#""$1": [number]"#,
            ),
            (r"https?://127\.0\.0\.1:\d+", "[server]"),
            (r"127\.0\.0\.1:\d+", "[server]"),
            (r"context [a-z]+, ", "context [context], "),
            (r", user (sandbox|admin):", ", user [user]:"),
        ]
        .into_iter()
        .map(|(pattern, shown)| (Regex::new(pattern).expect("a pattern"), shown))
        .collect()
    });
    let text = text.replace(prefix, "");
    CHANGING.iter().fold(text, |text, (pattern, shown)| {
        pattern.replace_all(&text, *shown).into_owned()
    })
}
