//! Running the program with a deadline, and reading what it leaves behind.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use aiperf_clock::{Mono, now};
use aiperf_mock_server::{Server, Settings, Stats};
use rustix::process::{Pid, Signal};
use serde_json::Value;
use tempfile::TempDir;

/// Nothing here takes longer, however busy the host is.
const DEADLINE: Duration = Duration::from_mins(1);

/// The program, in an environment of its own.
pub(crate) fn aiperf() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aiperf"));
    clean(&mut command);
    command
}

/// A shell that runs `script`; `$AIPERF` in it is the program.
pub(crate) fn shell(script: &str) -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", script]);
    clean(&mut command);
    command.env("AIPERF", env!("CARGO_BIN_EXE_aiperf"));
    command
}

fn clean(command: &mut Command) {
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).stdin(Stdio::null());
}

/// A folder for one run, gone at the end of the test.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn root(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// `aiperf profile` for a model `demo`, whose results go to `out` in this folder. `line` is split at white space.
    pub(crate) fn profile(&self, url: &str, line: &str) -> Command {
        let mut command = aiperf();
        command.current_dir(self.root());
        command.args(["profile", "--model", "demo", "--tokenizer", "builtin", "--artifact-dir", "out"]);
        command.args(["--url", url]).args(line.split_whitespace());
        if !line.contains("--ui ") {
            command.args(["--ui", "none"]);
        }
        command
    }

    /// Runs [`Place::profile`] to its end.
    pub(crate) fn run(&self, url: &str, line: &str) -> Ran {
        Live::start(&mut self.profile(url, line)).end()
    }

    /// What the run left in `out`.
    pub(crate) fn results(&self) -> Results {
        Results { dir: self.path("out") }
    }

    /// Whether a run wrote nothing here.
    pub(crate) fn is_untouched(&self) -> bool {
        !self.path("out").exists() && !self.path("artifacts").exists()
    }
}

/// A process that came to its end.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) took: Duration,
    pub(crate) ended: Mono,
}

impl Ran {
    /// Checks the exit code; everything else is in the message when it is another one.
    #[track_caller]
    pub(crate) fn with_code(self, code: i32) -> Ran {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.out, self.err);
        self
    }
}

#[derive(Default)]
struct Heard {
    bytes: Mutex<Vec<u8>>,
    more: Condvar,
}

impl Heard {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }
}

/// A running process; killed when it is dropped before its end.
pub(crate) struct Live {
    pid: Pid,
    begin: Mono,
    out: Arc<Heard>,
    err: Arc<Heard>,
    end: Receiver<(Option<i32>, Mono)>,
    over: bool,
}

impl Live {
    pub(crate) fn start(command: &mut Command) -> Live {
        let begin = now();
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_child(&child);
        let (out, err) = (Arc::default(), Arc::default());
        let readers =
            [listen(child.stdout.take().unwrap(), &out), listen(child.stderr.take().unwrap(), &err)];
        let (ended, end) = channel();
        std::thread::spawn(move || {
            let (code, at) = wait(child);
            for reader in readers {
                reader.join().unwrap();
            }
            let _ = ended.send((code, at));
        });
        Live { pid, begin, out, err, end, over: false }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        rustix::process::kill_process(self.pid, signal).unwrap();
    }

    pub(crate) fn signal_until_it_ends(&self, signal: Signal) {
        while rustix::process::kill_process(self.pid, signal).is_ok() {
            std::thread::yield_now();
        }
    }

    /// Processes that this one has started and that still run.
    pub(crate) fn children(&self) -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid.as_raw_nonzero())).unwrap();
        let children = tasks
            .map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default());
        children.flat_map(|pids| pids.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
    }

    /// Names of its threads.
    pub(crate) fn threads(&self) -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid.as_raw_nonzero())).unwrap();
        tasks
            .map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).unwrap_or_default())
            .map(|name| name.trim().to_owned())
            .collect()
    }

    /// Waits until standard error has `words`.
    pub(crate) fn await_err(&self, words: &str) {
        await_words(&self.err, words);
    }

    /// Waits until standard output has `words`; all of it so far.
    pub(crate) fn await_out(&self, words: &str) -> String {
        await_words(&self.out, words);
        self.out.text()
    }

    pub(crate) fn end(mut self) -> Ran {
        let (code, ended) = self.end.recv_timeout(DEADLINE).unwrap_or_else(|_| {
            panic!("still running after {DEADLINE:?}\n{}\n{}", self.out.text(), self.err.text())
        });
        self.over = true;
        let took = Duration::from_nanos(ended.saturating_since(self.begin));
        Ran { code, out: self.out.text(), err: self.err.text(), took, ended }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if !self.over {
            let _ = rustix::process::kill_process(self.pid, Signal::KILL);
        }
    }
}

fn wait(mut child: Child) -> (Option<i32>, Mono) {
    let status = child.wait().unwrap();
    (status.code(), now())
}

fn listen(mut stream: impl Read + Send + 'static, heard: &Arc<Heard>) -> std::thread::JoinHandle<()> {
    let heard = Arc::clone(heard);
    std::thread::spawn(move || {
        let mut chunk = [0; 16 * 1024];
        while let Ok(count) = stream.read(&mut chunk) {
            if count == 0 {
                break;
            }
            heard.bytes.lock().unwrap().extend_from_slice(&chunk[..count]);
            heard.more.notify_all();
        }
    })
}

fn await_words(heard: &Heard, words: &str) {
    let has = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(words);
    let (bytes, wait) =
        heard.more.wait_timeout_while(heard.bytes.lock().unwrap(), DEADLINE, |bytes| !has(bytes)).unwrap();
    assert!(!wait.timed_out(), "no '{words}' in {}", String::from_utf8_lossy(&bytes));
}

/// The files of a run.
pub(crate) struct Results {
    pub(crate) dir: PathBuf,
}

/// Every file a run with the usual names writes, whatever its end.
pub(crate) const ALWAYS: [&str; 6] = [
    "profile_export_aiperf.json",
    "profile_export_aiperf.csv",
    "profile_export.jsonl",
    "profile_export_console.txt",
    "logs/aiperf.log",
    ".aiperf_results_ready.json",
];

impl Results {
    pub(crate) fn text(&self, name: &str) -> String {
        let path = self.dir.join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.text(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn summary(&self) -> Value {
        self.json("profile_export_aiperf.json")
    }

    pub(crate) fn lines(&self, name: &str) -> Vec<Value> {
        let text = self.text(name);
        assert!(text.is_empty() || text.ends_with('\n'), "{name} ends within a line");
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
    }

    pub(crate) fn records(&self) -> Vec<Value> {
        self.lines("profile_export.jsonl")
    }

    /// Every file, by its path below the folder.
    pub(crate) fn files(&self) -> Vec<String> {
        fn visit(dir: &Path, base: &Path, found: &mut Vec<String>) {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    visit(&path, base, found);
                } else {
                    found.push(path.strip_prefix(base).unwrap().display().to_string());
                }
            }
        }
        let mut found = Vec::new();
        visit(&self.dir, &self.dir, &mut found);
        found.sort();
        found
    }

    /// Checks that every file is there, and that the marker says how the run ended.
    #[track_caller]
    pub(crate) fn assert_complete(&self, was_cancelled: bool) {
        for name in ALWAYS {
            assert!(self.dir.join(name).is_file(), "{name} is missing");
        }
        let marker = self.json(".aiperf_results_ready.json");
        assert_eq!(marker["ready"], true);
        assert_eq!(marker["was_cancelled"], was_cancelled);
        assert_eq!(self.summary()["was_cancelled"], was_cancelled);
    }

    /// Sent requests are valid, failed or cut off: nothing else.
    #[track_caller]
    pub(crate) fn assert_all_accounted_for(&self) {
        self.assert_all_accounted_for_with(None);
    }

    /// The same for files with a prefix.
    #[track_caller]
    pub(crate) fn assert_all_accounted_for_with(&self, prefix: Option<&str>) {
        let (summary, records) = match prefix {
            None => ("profile_export_aiperf.json".to_owned(), "profile_export.jsonl".to_owned()),
            Some(prefix) => (format!("{prefix}.json"), format!("{prefix}.jsonl")),
        };
        let summary = self.json(&summary);
        let count = |value: &Value| value.as_f64().unwrap_or_default();
        let sent = count(&summary["load_delivery"]["sent_count"]);
        let valid = count(&summary["request_count"]["avg"]);
        let failed = count(&summary["error_request_count"]["avg"]);
        let cut = count(&summary["in_flight_cancelled_count"]);
        assert!(
            (sent - valid - failed - cut).abs() < 0.5,
            "{sent} sent, {valid} valid, {failed} failed, {cut} cut"
        );
        let profiling = self
            .lines(&records)
            .iter()
            .filter(|record| record["metadata"]["benchmark_phase"] == "profiling")
            .count();
        assert_eq!(profiling as f64, valid + failed);
    }
}

/// A mock server in this process.
pub(crate) struct Mock {
    server: Server,
}

impl Mock {
    pub(crate) fn start(settings: &[(&str, &str)]) -> Mock {
        let settings = Settings::from_pairs(settings.iter().copied()).unwrap();
        Mock { server: Server::start(&settings, SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap() }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.server.addr())
    }

    pub(crate) fn port(&self) -> u16 {
        self.server.addr().port()
    }

    pub(crate) fn stats(&self) -> Stats {
        self.server.stats()
    }

    /// Waits until the counters are as wanted.
    pub(crate) fn until(&self, wanted: impl Fn(&Stats) -> bool) {
        let begin = now();
        while !wanted(&self.stats()) {
            assert!(now().saturating_since(begin) < DEADLINE.as_nanos() as u64, "{:?}", self.stats());
            std::thread::park_timeout(Duration::from_millis(2));
        }
    }
}

/// What a server was sent: the head as text, and the body.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// A server of the test's own that keeps every request and answers with what `answer` makes of it.
pub(crate) struct Echo {
    pub(crate) port: u16,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Echo {
    pub(crate) fn start(answer: impl Fn(&Received) -> Vec<u8> + Send + Sync + 'static) -> Echo {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let (kept, answer) = (Arc::clone(&received), Arc::new(answer));
        // Ends with the test process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                std::thread::spawn(move || serve(stream.unwrap(), &kept, &*answer));
            }
        });
        Echo { port, received }
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, kept: &Mutex<Vec<Received>>, answer: &dyn Fn(&Received) -> Vec<u8>) {
    let mut bytes = Vec::new();
    let mut chunk = [0; 16 * 1024];
    loop {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let length = head
                .lines()
                .find_map(|line| {
                    line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok()
                })
                .unwrap_or(0);
            if bytes.len() >= end + 4 + length {
                let request = Received { head, body: bytes[end + 4..end + 4 + length].to_vec() };
                bytes.drain(..end + 4 + length);
                let reply = answer(&request);
                let is_last = request.head.contains(" HTTP/1.0");
                kept.lock().unwrap().push(request);
                if stream.write_all(&reply).is_err() || is_last {
                    return;
                }
                continue;
            }
        }
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => return,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
        }
    }
}

/// A whole HTTP answer.
pub(crate) fn http(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// A chat answer that says `text`.
pub(crate) fn chat(text: &str) -> Vec<u8> {
    let body = serde_json::json!({
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 4, "completion_tokens": 2, "total_tokens": 6},
    });
    http("200 OK", "Content-Type: application/json\r\n", &body.to_string())
}

/// The keys of an object, in order.
pub(crate) fn keys(value: &Value) -> Vec<&str> {
    value.as_object().map(|map| map.keys().map(String::as_str).collect()).unwrap_or_default()
}
