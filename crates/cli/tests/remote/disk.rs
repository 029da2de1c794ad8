//! Disks that are full or cannot be written, and several processes at once.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use aiperf_test_servers::{Answer, Request, Server, StubHub, StubRepo, StubStore, sign_on};

use crate::machine::{Machine, TRACE, files_below, stderr};

/// How a program is put into a mount namespace of its own here; `None` where nobody may. What a full disk does is also
/// tested without one, beside the code that writes.
fn namespace() -> Option<Command> {
    [&["--mount"][..], &["--user", "--map-root-user", "--mount"]].into_iter().find_map(|flags| {
        let mut command = Command::new("unshare");
        command.args(flags);
        let mut attempt = Command::new("unshare");
        attempt.args(flags).args(["mount", "-t", "tmpfs", "none", "/tmp"]);
        let works = attempt.stdout(Stdio::null()).stderr(Stdio::null()).status();
        works.is_ok_and(|status| status.success()).then_some(command)
    })
}

/// Runs `aiperf` after a script that sets up what it finds mounted.
fn with_mounts(machine: &Machine, script: &str, arguments: &[&str]) -> Option<Output> {
    let mut command = namespace()?;
    let run = format!("set -e; {script}; exec \"$@\"");
    command.args(["sh", "-c", &run, "sh", env!("CARGO_BIN_EXE_aiperf")]);
    Some(machine.through(command, arguments).output().unwrap())
}

fn tmpfs(size: &str) -> String {
    format!("mkdir -p cache; mount -t tmpfs -o size={size} none cache")
}

/// A machine whose cache can be mounted.
fn mountable() -> Machine {
    let mut machine = Machine::bare();
    let cache = machine.home.path().join("cache").display().to_string();
    machine.set("AIPERF_DATASET_REMOTE_CACHE_DIR", &cache);
    machine.set("HF_HUB_CACHE", &cache);
    machine
}

fn serve(bytes: usize, has_length: bool) -> (Server, String) {
    let body: Arc<[u8]> = TRACE.iter().copied().cycle().take(bytes).collect();
    let server = Server::start(move |request| match request.path() {
        "/x.jsonl" => Answer {
            without_length: !has_length,
            ..Answer::status(200).with("ETag", "\"a\"").body(Arc::clone(&body))
        },
        _ => Answer::status(404),
    });
    let url = format!("{}/x.jsonl", server.url());
    (server, url)
}

fn transfers(server: &Server) -> usize {
    server.log().iter().filter(|request| request.method == "GET" && request.path() == "/x.jsonl").count()
}

#[test]
fn a_disk_that_is_too_small_is_told_before_the_transfer_or_where_it_ends() {
    for (bytes, has_length, size, part, asked) in [
        (3_000_000, true, "1m", "not enough disk space in ", 0),
        (3_000_000, false, "1m", "not enough disk space in ", 1),
        // A stream that may have no end leaves room to others.
        (70 << 20, false, "200m", "a stream of unknown length left less than 1 GiB free", 1),
    ] {
        let (server, url) = serve(bytes, has_length);
        let machine = mountable();
        let script = format!("{}; trap 'ls -R cache >left' EXIT; set +e; \"$@\"; exit $?", tmpfs(size));
        let Some(output) = with_mounts(&machine, &script, &["dataset", "fetch", &url]) else { return };
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(part) && said.contains("AIPERF_DATASET_REMOTE_CACHE_DIR"), "{said}");
        assert_eq!(transfers(&server), asked, "{said}");
        let left = std::fs::read_to_string(machine.home.path().join("left")).unwrap();
        assert!(!left.contains("incomplete") && !left.contains("x.jsonl"), "{left}");
    }
}

#[test]
fn a_cache_that_cannot_be_written_serves_hits_and_names_its_variable_on_a_miss() {
    let (server, url) = serve(1_000, true);
    let hub =
        StubHub::start(&[("org/set", StubRepo::new(&[("lfs:x.jsonl", TRACE), ("lfs:y.jsonl", b"{}\n")]))]);
    let mut machine = mountable();
    machine.set("HF_ENDPOINT", &hub.endpoint());
    for reference in [url.as_str(), "hf://org/set/x.jsonl"] {
        assert_eq!(machine.aiperf(&["dataset", "fetch", reference]).status.code(), Some(0));
    }
    let before = files_below(&machine.home.path().join("cache")).len();
    hub.clear_logs();
    server.clear_log();
    let script = "mkdir m; mount -t tmpfs none m; cp -a cache/. m/; mount -o remount,ro m; mount --bind m cache; \
                  ! touch cache/x 2>/dev/null";
    let arguments = ["dataset", "fetch", &url, "hf://org/set/x.jsonl"];
    let Some(output) = with_mounts(&machine, script, &arguments) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(hub.storage_log().is_empty() && transfers(&server) == 0);
    std::fs::remove_dir(machine.home.path().join("m")).unwrap();
    let missing = format!("{url}?other");
    let arguments = ["dataset", "fetch", &missing, "hf://org/set/y.jsonl"];
    let output = with_mounts(&machine, script, &arguments).unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for variable in ["AIPERF_DATASET_REMOTE_CACHE_DIR", "HF_HUB_CACHE"] {
        assert!(said.contains(&format!("set {variable} to another directory")), "{said}");
    }
    assert_eq!(said.matches("cannot write ").count(), 2, "{said}");
    assert_eq!(files_below(&machine.home.path().join("cache")).len(), before);
}

#[test]
fn a_cache_that_is_deleted_or_is_a_file_is_one_error() {
    let (_server, url) = serve(1_000, true);
    let mut machine = Machine::bare();
    let file = machine.home.path().join("file");
    std::fs::write(&file, b"x").unwrap();
    machine.set("AIPERF_DATASET_REMOTE_CACHE_DIR", &file.display().to_string());
    let output = machine.aiperf(&["dataset", "fetch", &url]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot write "), "{}", stderr(&output));
    assert_eq!(std::fs::read(&file).unwrap(), b"x");
    // Deleted while the transfer goes on: the file has no place any more.
    let machine = Machine::bare();
    let cache = machine.cache();
    let server = Server::start(move |request| {
        if request.path() != "/x.jsonl" {
            return Answer::status(404);
        }
        if request.method == "GET" {
            std::fs::remove_dir_all(&cache).unwrap();
        }
        Answer::file(request, &TRACE.into()).with("ETag", "\"a\"")
    });
    let output = machine.aiperf(&["dataset", "fetch", &format!("{}/x.jsonl", server.url())]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("cannot write "), "{}", stderr(&output));
    assert!(!files_below(&machine.cache()).iter().any(|path| path.ends_with("entry.json")));
}

/// A server that answers a GET of `/x.jsonl` once it is told to.
pub(crate) struct Gate {
    server: Server,
    open: Arc<(Mutex<bool>, Condvar)>,
    asked: Arc<AtomicUsize>,
}

impl Gate {
    pub(crate) fn new() -> Gate {
        let open = Arc::new((Mutex::new(false), Condvar::new()));
        let asked = Arc::new(AtomicUsize::new(0));
        let (its_open, its_asked) = (Arc::clone(&open), Arc::clone(&asked));
        let server = Server::start(move |request| {
            if request.path() != "/x.jsonl" {
                return Answer::status(404);
            }
            if request.method == "GET" {
                its_asked.fetch_add(1, Ordering::SeqCst);
                let (open, changed) = &*its_open;
                drop(changed.wait_while(open.lock().unwrap(), |open| !*open));
            }
            Answer::file(request, &TRACE.into()).with("ETag", "\"a\"")
        });
        Gate { server, open, asked }
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/x.jsonl", self.server.url())
    }

    pub(crate) fn open(&self) {
        *self.open.0.lock().unwrap() = true;
        self.open.1.notify_all();
    }

    fn wait_for(&self, requests: usize) {
        while self.asked.load(Ordering::SeqCst) < requests {
            std::thread::yield_now();
        }
    }
}

/// Reads the talk of a child up to a line with `part`.
fn wait_for(child: &mut std::process::Child, part: &str) {
    let mut talk = BufReader::new(child.stderr.as_mut().unwrap());
    let mut line = String::new();
    while !line.contains(part) {
        line.clear();
        assert!(talk.read_line(&mut line).unwrap() > 0, "it ended without a word of {part}");
    }
}

/// One that transfers a file, and one that waits for it.
fn two(machine: &Machine, gate: &Gate) -> (std::process::Child, std::process::Child) {
    let first = machine.start(&["dataset", "fetch", &gate.url()]);
    gate.wait_for(1);
    let mut second = machine.start(&["dataset", "fetch", &gate.url()]);
    wait_for(&mut second, "waiting for another process that holds ");
    (first, second)
}

#[test]
fn two_processes_at_once_make_one_transfer() {
    let gate = Gate::new();
    let machine = Machine::bare();
    let (mut first, mut second) = two(&machine, &gate);
    gate.open();
    assert!(first.wait().unwrap().success() && second.wait().unwrap().success());
    assert_eq!(gate.asked.load(Ordering::SeqCst), 1);
}

#[test]
fn whoever_waits_goes_on_when_the_other_is_killed() {
    let gate = Gate::new();
    let machine = Machine::bare();
    let (mut first, mut second) = two(&machine, &gate);
    first.kill().unwrap();
    first.wait().unwrap();
    gate.wait_for(2);
    gate.open();
    assert!(second.wait().unwrap().success());
    assert_eq!(machine.cached(), TRACE);
}

#[test]
fn an_interrupt_does_not_wait_for_a_program_that_is_asked_for_credentials() {
    let mut machine = Machine::bare();
    let config = machine.home.path().join("config");
    let script = "[default]\ncredential_process = touch started; sleep 30; touch ended\n";
    std::fs::write(&config, script).unwrap();
    machine.set("AWS_CONFIG_FILE", config.to_str().unwrap());
    machine.set("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9");
    machine.set("AWS_EC2_METADATA_DISABLED", "true");
    let child = machine.start(&["dataset", "fetch", "s3://traces/x.jsonl"]);
    while !machine.home.path().join("started").exists() {
        std::thread::yield_now();
    }
    let interrupted = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(interrupted, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("it was interrupted"), "{}", stderr(&output));
    assert!(!machine.home.path().join("ended").exists());
}

/// The same on the Hub, whose files others fetch, too.
#[test]
fn a_killed_transfer_from_the_hub_is_never_taken_for_a_file() {
    let hub = StubHub::start(&[("org/set", StubRepo::new(&[("lfs:x.jsonl", &TRACE.repeat(20_000))]))]);
    let stalls = Arc::new(AtomicBool::new(true));
    let (its_stalls, body) = (Arc::clone(&stalls), Arc::<[u8]>::from(TRACE.repeat(20_000)));
    hub.fault(move |request| {
        let stalled = request.target.contains("Signature=") && its_stalls.load(Ordering::SeqCst);
        stalled.then(|| Answer { stall_after: Some(1_000_000), ..Answer::file(request, &body) })
    });
    let machine = Machine::new(&hub);
    let blobs = machine.home.path().join(".cache/huggingface/hub/datasets--org--set/blobs");
    let child = machine.start(&["dataset", "fetch", "hf://org/set/x.jsonl"]);
    let has_bytes =
        || files_below(&blobs).iter().any(|path| path.metadata().is_ok_and(|found| found.len() > 0));
    while !has_bytes() {
        std::thread::yield_now();
    }
    // Ctrl-C cleans up; what is killed cannot.
    let interrupted = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(interrupted, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("it was interrupted. Run again; nothing was left behind."), "{said}");
    assert!(files_below(&blobs).is_empty());
    let mut child = machine.start(&["dataset", "fetch", "hf://org/set/x.jsonl"]);
    while !has_bytes() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        files_below(&blobs).iter().all(|path| path.extension().is_some_and(|ending| ending == "incomplete"))
    );
    stalls.store(false, Ordering::SeqCst);
    assert_eq!(machine.fetched("hf://org/set/x.jsonl")["bytes"], TRACE.len() * 20_000);
}

#[test]
fn a_sign_on_that_was_renewed_and_cannot_be_kept_is_used_all_the_same() {
    let (portal, tokens) = (sign_on::portal(), sign_on::tokens());
    let store = StubStore::start(&[("x.jsonl", TRACE)]);
    let mut machine = Machine::bare();
    let token = machine.home.path().join(".aws").join(sign_on::TOKEN);
    std::fs::create_dir_all(token.parent().unwrap()).unwrap();
    std::fs::write(machine.home.path().join(".aws/config"), sign_on::CONFIG).unwrap();
    let ended = sign_on::ended().to_string();
    std::fs::write(&token, &ended).unwrap();
    for (name, value) in [
        ("AWS_PROFILE", "team"),
        ("AWS_ENDPOINT_URL_S3", &store.endpoint()),
        ("AWS_ENDPOINT_URL_SSO_OIDC", &tokens.url()),
        ("AWS_SSO_ENDPOINT", &portal.url()),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ] {
        machine.set(name, value);
    }
    // Files of this process get no byte, whoever runs it and wherever they lie.
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -f 0; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_aiperf")]);
    let output = machine.through(shell, &["dataset", "resolve", "s3://traces/x.jsonl"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!stderr(&output).contains("canary"), "{}", stderr(&output));
    let signed =
        |request: &Request| request.header("authorization").is_some_and(|text| text.contains("=SSOKEY/"));
    assert!(!store.log().is_empty() && store.log().iter().all(signed));
    assert_eq!(tokens.log().len(), 1);
    // What was there is there, whole, and nothing else beside it.
    assert_eq!(std::fs::read_to_string(&token).unwrap(), ended);
    assert_eq!(files_below(token.parent().unwrap()), [token]);
}

#[test]
fn a_directory_for_scratch_files_that_is_not_there_is_named_with_its_variable() {
    let hub = StubHub::start(&[(
        "me/chat",
        StubRepo::new(&[("aiperf.json", crate::machine::MANIFEST), ("trace.jsonl", TRACE)]),
    )]);
    let mut machine = Machine::new(&hub);
    machine.set("TMPDIR", "/nonexist");
    for output in [
        machine.profile(&["--input-file", "hf://me/chat"]),
        machine.profile(&[
            "--input-file",
            "hf://me/chat/trace.jsonl",
            "--custom-dataset-type",
            "mooncake_trace",
        ]),
        machine.aiperf(&["dataset", "resolve", "hf://me/chat", "--first-record"]),
        machine.aiperf(&["dataset", "resolve", "hf://me/chat/trace.jsonl", "--first-record"]),
    ] {
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("Cannot use hf://me/chat") && said.contains("cannot write /nonexist: "),
            "{said}"
        );
        assert!(said.contains("set TMPDIR to another directory"), "{said}");
    }
}
