//! nginx, as Debian packages it: TLS, tags, ranges, compression and redirects of a server that nobody here wrote.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

/// A running nginx, gone with this value.
#[derive(Debug)]
pub struct Nginx {
    child: Child,
    directory: PathBuf,
    port: u16,
    tls_port: u16,
}

impl Nginx {
    /// Serves `directory/files` on two ports of 127.0.0.1, the second with TLS by the certificate and key given. `tools` is
    /// where a program that is fetched stays.
    ///
    /// | path | is |
    /// |---|---|
    /// | `/…` | the files, with strong tags and ranges |
    /// | `/untagged/…` | the same without tags |
    /// | `/forced/…` | the same, compressed on the way whatever the client says; not for HEAD |
    /// | `/stored/…` | the `.gz` beside each file, as its content encoding |
    /// | `/moved/…`, `/secure/…`, `/open/…` | redirects: to the same server, to https, to http |
    /// | `/denied/…`, `/busy/…` | 403, 503 |
    pub fn start(tools: &Path, directory: &Path, certificate: &Path, key: &Path) -> Nginx {
        let program = program(tools);
        for name in ["files", "tmp"] {
            fs::create_dir_all(directory.join(name)).expect("a folder for nginx");
        }
        // Another process may take a port before it does: then it ends, and is given others.
        for _ in 0..20 {
            let ports = [free_port(), free_port()];
            let mut child = spawn(&program, directory, &configuration(directory, ports, certificate, key));
            if is_ready(&mut child, directory, ports[0]) {
                return Nginx { child, directory: directory.to_owned(), port: ports[0], tls_port: ports[1] };
            }
        }
        let said = fs::read_to_string(directory.join("error.log")).unwrap_or_default();
        panic!("{} does not start: {said}", program.display());
    }

    /// `http://127.0.0.1:<port>`
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// `https://localhost:<port>`
    pub fn tls_url(&self) -> String {
        format!("https://localhost:{}", self.tls_port)
    }

    /// Puts a file.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        fs::write(self.directory.join("files").join(name), bytes).expect("a file for nginx");
    }

    /// What it was asked so far, a line each: method, path, status and `Range` (or `-`).
    pub fn log(&self) -> Vec<String> {
        // One thing after the other: what it answered before this is in the log.
        let _ = ask(self.port);
        let text = fs::read_to_string(self.directory.join("access.log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

impl Nginx {
    /// TLS connections that ended before a request.
    pub fn broken_handshakes(&self) -> usize {
        let _ = ask(self.port);
        let text = fs::read_to_string(self.directory.join("error.log")).unwrap_or_default();
        text.matches("SSL_do_handshake() failed").count()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
    listener.local_addr().expect("an address").port()
}

fn configuration(directory: &Path, [port, tls_port]: [u16; 2], certificate: &Path, key: &Path) -> String {
    let home = directory.display();
    format!(
        r"
daemon off; master_process off; pid {home}/pid; error_log {home}/error.log info;
events {{ worker_connections 256; }}
http {{
    log_format line '$request_method $request_uri $status $http_range';
    access_log {home}/access.log line;
    client_body_temp_path {home}/tmp/a; proxy_temp_path {home}/tmp/b; fastcgi_temp_path {home}/tmp/c;
    uwsgi_temp_path {home}/tmp/d; scgi_temp_path {home}/tmp/e;
    types {{ application/json json jsonl; }}
    default_type application/octet-stream;
    gzip_types *; gzip_min_length 1;
    server {{
        listen 127.0.0.1:{port};
        listen 127.0.0.1:{tls_port} ssl;
        ssl_certificate {certificate}; ssl_certificate_key {key};
        root {home}/files;
        location /untagged/ {{ alias {home}/files/; etag off; }}
        location /willing/ {{ alias {home}/files/; gzip on; }}
        location /forced/ {{
            proxy_pass http://127.0.0.1:{port}/willing/; proxy_set_header Accept-Encoding gzip; proxy_http_version 1.1;
        }}
        location /stored/ {{ alias {home}/files/; gzip_static always; }}
        location /moved/ {{ rewrite ^/moved/(.*)$ /$1 redirect; }}
        location /secure/ {{ rewrite ^/secure/(.*)$ https://localhost:{tls_port}/$1 redirect; }}
        location /open/ {{ rewrite ^/open/(.*)$ http://localhost:{port}/$1 redirect; }}
        location = /ready {{ access_log off; return 200 '{home}'; }}
        location /denied/ {{ return 403; }}
        location /busy/ {{ return 503; }}
    }}
}}
",
        certificate = certificate.display(),
        key = key.display(),
    )
}

fn spawn(program: &Path, directory: &Path, configuration: &str) -> Child {
    let path = directory.join("nginx.conf");
    fs::write(&path, configuration).expect("a configuration for nginx");
    let mut command = Command::new(program);
    command.arg("-p").arg(directory).arg("-c").arg(&path);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    child.unwrap_or_else(|error| panic!("{} does not start: {error}", program.display()))
}

/// Waits until it answers, and is itself; whether it did.
fn is_ready(child: &mut Child, directory: &Path, port: u16) -> bool {
    loop {
        if !matches!(child.try_wait(), Ok(None)) {
            return false;
        }
        if ask(port).is_ok_and(|text| text.ends_with(&directory.display().to_string())) {
            return true;
        }
        std::thread::yield_now();
    }
}

/// Whether it is there: it answers with its folder.
fn ask(port: u16) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.write_all(b"GET /ready HTTP/1.0\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

/// nginx of this machine, else that of its distribution, unpacked below `tools` and not installed.
fn program(tools: &Path) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock();
    let unpacked = tools.join("nginx/usr/sbin/nginx");
    let found = [PathBuf::from("nginx"), "/usr/sbin/nginx".into(), unpacked.clone()];
    if let Some(found) = found.into_iter().find(|program| runs(program)) {
        return found;
    }
    let folder = tools.join("nginx");
    fs::create_dir_all(&folder).expect("a folder for nginx");
    // A list of packages that is out of date names one that is gone.
    let script = "set -e; fetch() { rm -f nginx_*.deb; apt-get -q download nginx; }
        fetch || { if [ \"$(id -u)\" = 0 ]; then apt-get -q update; else sudo -n apt-get -q update; fi; fetch; }
        dpkg-deb -x nginx_*.deb .; rm -f nginx_*.deb";
    let output = Command::new("sh").arg("-c").arg(script).current_dir(&folder).output();
    let said = output.map_or_else(
        |error| error.to_string(),
        |output| String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    assert!(runs(&unpacked), "these tests need nginx, which cannot be fetched here; install it. {said}");
    unpacked
}

fn runs(program: &Path) -> bool {
    let version = Command::new(program).arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}
