//! Keys from a program that a profile names.

use std::collections::HashMap;
use std::io::Read as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqsign_aws_v4::Credential;
use reqsign_core::SigningCredential as _;
use serde::Deserialize;

use super::credentials::MOST_BYTES;

/// Between looks at a program that has said all and has not ended.
const LOOK: Duration = Duration::from_millis(10);
/// What a shell ends with where it finds no program of that name.
const NO_PROGRAM: i32 = 127;

/// What the program prints.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    version: u32,
    access_key_id: String,
    secret_access_key: String,
    session_token: Option<String>,
    expiration: Option<String>,
}

/// Runs a line in a shell, with these variables, and reads the keys that it prints. The error says what happened, in
/// words that follow "its `credential_process`", and nothing of what was printed. The program ends with the future.
pub(super) async fn keys(line: &str, variables: HashMap<String, String>) -> Result<Credential, String> {
    let child = Command::new("sh")
        .arg("-c")
        .arg(line)
        .envs(variables)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("cannot be started: {error}"))?;
    let program = Program(Arc::new(Mutex::new(child)));
    let running = Arc::clone(&program.0);
    let work = tokio::task::spawn_blocking(move || output_of(&running));
    let (status, printed) = work
        .await
        .map_err(|_| "cannot be waited for".to_owned())?
        .map_err(|error| format!("cannot be read from: {error}"))?;
    match status.code() {
        Some(0) => read(&printed),
        Some(NO_PROGRAM) => Err("names a program that is not there".into()),
        Some(code) => Err(format!("ended with exit code {code}")),
        None => Err("was ended by a signal".into()),
    }
}

fn read(printed: &[u8]) -> Result<Credential, String> {
    let answer: Answer = serde_json::from_slice(printed)
        .map_err(|_| "printed no JSON object with Version, AccessKeyId and SecretAccessKey")?;
    if answer.version != 1 {
        return Err(format!("printed Version {} and not 1", answer.version));
    }
    let expires_in = answer.expiration.map(|text| text.parse());
    let expires_in = expires_in.transpose().map_err(|_| "printed an Expiration that is no time")?;
    let keys = Credential {
        access_key_id: answer.access_key_id,
        secret_access_key: answer.secret_access_key,
        session_token: answer.session_token,
        expires_in,
    };
    if keys.is_valid() { Ok(keys) } else { Err("printed keys that are empty or have expired".into()) }
}

/// Ends with this value.
struct Program(Arc<Mutex<Child>>);

impl Drop for Program {
    fn drop(&mut self) {
        let mut child = lock(&self.0);
        // One that has ended and was waited for is not signalled.
        let _ = child.kill();
        let _ = child.try_wait();
    }
}

fn lock(child: &Mutex<Child>) -> MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

fn output_of(child: &Mutex<Child>) -> std::io::Result<(ExitStatus, Vec<u8>)> {
    let mut printed = Vec::new();
    let pipe = lock(child).stdout.take();
    if let Some(pipe) = pipe {
        pipe.take(MOST_BYTES as u64).read_to_end(&mut printed)?;
    }
    loop {
        if let Some(status) = lock(child).try_wait()? {
            return Ok((status, printed));
        }
        std::thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: &str = r#"{"Version":1,"AccessKeyId":"a","SecretAccessKey":"canary","SessionToken":"t""#;

    #[test]
    fn what_is_wrong_with_an_answer_is_told_and_the_answer_is_not() {
        let keys = read(format!("{KEYS},\"Expiration\":\"2099-01-01T00:00:00Z\"}}").as_bytes()).unwrap();
        assert_eq!((keys.access_key_id.as_str(), keys.session_token.as_deref()), ("a", Some("t")));
        assert!(read(format!("{KEYS}}}").as_bytes()).unwrap().expires_in.is_none());
        for (answer, part) in [
            ("canary".to_owned(), "no JSON object"),
            (KEYS.replace("AccessKeyId", "canary") + "}", "no JSON object"),
            (KEYS.replace(":1", ":2") + "}", "Version 2"),
            (format!("{KEYS},\"Expiration\":\"canary\"}}"), "no time"),
            (format!("{KEYS},\"Expiration\":\"2001-01-01T00:00:00Z\"}}"), "have expired"),
            (KEYS.replace("\"a\"", "\"\"") + "}", "are empty"),
        ] {
            let fault = read(answer.as_bytes()).unwrap_err();
            assert!(fault.contains(part) && !fault.contains("canary"), "{answer}: {fault}");
        }
    }

    #[test]
    fn a_program_ends_with_whoever_asked_it() {
        let folder = tempfile::tempdir().unwrap();
        let (started, fifo) = (folder.path().join("pid"), folder.path().join("never"));
        let line = format!(
            "mkfifo {0} && echo $$ > {1}.new && mv {1}.new {1} && exec cat {0}",
            fifo.display(),
            started.display()
        );
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let is_started = async {
                while !started.exists() {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                _ = keys(&line, std::env::vars().collect()) => panic!("it ended by itself"),
                () = is_started => {}
            }
        });
        runtime.shutdown_background();
        let pid = std::fs::read_to_string(&started).unwrap();
        // Gone, or dead and not yet waited for.
        let is_alive = || {
            std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
                .is_ok_and(|stat| !stat.contains(") Z"))
        };
        while is_alive() {
            std::thread::yield_now();
        }
    }
}
