//! moto's S3: the versions, listings, permissions and signatures of the real one.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use crate::python::venv;

/// A server and a client of it, in one process that ends with this one.
pub struct Moto {
    process: Mutex<(Child, ChildStdin, BufReader<ChildStdout>)>,
    endpoint: String,
}

/// Serves until its input ends, and runs what it reads, one JSON string a line.
const SERVER: &str = r#"
import json, os, sys, io, contextlib, logging, urllib.request
logging.disable(logging.CRITICAL)
from moto.server import ThreadedMotoServer
import boto3
from botocore.config import Config
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
endpoint = f"http://{host}:{port}"
def client(service, key="a", secret="b", token=None):
    return boto3.client(service, endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id=key,
        aws_secret_access_key=secret, aws_session_token=token,
        config=Config(s3={"addressing_style": "path"}))
s3 = client("s3")
names = {"s3": s3, "client": client, "endpoint": endpoint, "json": json, "urllib": urllib}
print(endpoint, flush=True)
for line in sys.stdin:
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(json.loads(line), names)
        print(json.dumps([True, out.getvalue().strip()]), flush=True)
    except Exception as error:
        print(json.dumps([False, repr(error)]), flush=True)
os._exit(0)
"#;

impl Moto {
    /// Starts one; its packages are installed below `tools` where they are not.
    pub fn start(tools: &Path) -> Moto {
        let python =
            venv(tools, "python-moto-5.2", "import moto.server, flask, boto3", &["moto[server]==5.2.*"]);
        let mut child = Command::new(python)
            .args(["-c", SERVER])
            .env_remove("AWS_PROFILE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("Python runs");
        let (input, mut output) =
            (child.stdin.take().expect("a pipe"), BufReader::new(child.stdout.take().expect("a pipe")));
        let mut endpoint = String::new();
        output.read_line(&mut endpoint).expect("moto says where it is");
        Moto { process: Mutex::new((child, input, output)), endpoint: endpoint.trim().to_owned() }
    }

    /// Runs Python; what it printed.
    pub fn run(&self, script: &str) -> String {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(process.1, "{}", serde_json::json!(script)).expect("moto listens");
        let mut line = String::new();
        process.2.read_line(&mut line).expect("moto answers");
        let (worked, said): (bool, String) = serde_json::from_str(&line).expect("moto answers in JSON");
        assert!(worked, "{script}: {said}");
        said
    }

    /// Its URL.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Puts objects into a bucket that is there: the version of each, a line each.
    pub fn put(&self, bucket: &str, objects: &[(&str, &[u8])]) -> String {
        let puts = objects.iter().fold(String::new(), |text, (key, bytes)| {
            text + &format!(
                "print(s3.put_object(Bucket={bucket:?}, Key={key:?}, Body=bytes({bytes:?})).get('VersionId'))\n"
            )
        });
        self.run(&puts)
    }
}

impl std::fmt::Debug for Moto {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Moto({})", self.endpoint)
    }
}
