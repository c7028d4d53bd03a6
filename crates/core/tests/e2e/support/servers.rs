//! nginx and Python's file server, started for one test and stopped when it ends.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use pelton_lab::content::VirtualFile;
use tempfile::TempDir;

/// Times that nginx is started before it counts as broken: another process may take a port between
/// the moment when it was found free and the moment when nginx binds it.
const ATTEMPTS: usize = 5;

/// A process that ends with its owner.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// nginx with directory listings: HTTP/1.1, HTTP/2 in cleartext, and TLS with either.
pub(crate) struct Nginx {
    _server: Server,
    directory: TempDir,
    http1: u16,
    http2: u16,
    tls: u16,
}

impl Nginx {
    /// Serves `files`. Nothing when nginx is not installed.
    pub(crate) fn start(files: &[VirtualFile]) -> Option<Self> {
        Self::start_with(files, "")
    }

    /// The same with further `directives`.
    pub(crate) fn start_with(files: &[VirtualFile], directives: &str) -> Option<Self> {
        let program = tool(&["nginx", "/usr/sbin/nginx"], "-v", "nginx")?;
        let directory = served(files);
        certify(directory.path());
        let mut said = String::new();
        for _ in 0..ATTEMPTS {
            let [http1, http2, tls] = free_ports();
            write_config(directory.path(), [http1, http2, tls], directives);
            match launch(program, directory.path()) {
                Ok(server) => {
                    return Some(Self { _server: server, directory, http1, http2, tls });
                }
                Err(log) => said = log,
            }
        }
        panic!("nginx does not start: {said}");
    }

    pub(crate) fn http1(&self) -> String {
        format!("http://127.0.0.1:{}/", self.http1)
    }

    pub(crate) fn http2(&self) -> String {
        format!("http://127.0.0.1:{}/", self.http2)
    }

    pub(crate) fn tls(&self) -> String {
        format!("https://127.0.0.1:{}/", self.tls)
    }

    /// The certificate to trust, as a PEM file.
    pub(crate) fn certificate(&self) -> PathBuf {
        self.directory.path().join("certificate.pem")
    }

    /// One line a request: protocol, method, path, status, body bytes.
    pub(crate) fn access_log(&self) -> String {
        fs::read_to_string(self.directory.path().join("access.log")).unwrap()
    }
}

/// Python's `http.server`: HTTP/1.0, no ranges.
pub(crate) struct Python {
    _server: Server,
    _directory: TempDir,
    port: u16,
}

impl Python {
    /// Serves `files`. Nothing when Python is not installed.
    pub(crate) fn start(files: &[VirtualFile]) -> Option<Self> {
        let program = tool(&["python3"], "--version", "python3")?;
        let directory = served(files);
        let mut child = Command::new(program)
            .args(["-u", "-m", "http.server", "--bind", "127.0.0.1", "--directory"])
            .arg(directory.path().join("files"))
            .arg("0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut greeting = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut greeting).unwrap();
        let server = Server(child);
        let after_port = greeting.split(" port ").nth(1).expect("Python names its port");
        let port = after_port.split(' ').next().unwrap().parse().unwrap();
        Some(Self { _server: server, _directory: directory, port })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }
}

/// The first of `programs` that runs. Without any the caller's test says so and passes, unless
/// `PELTON_REQUIRE_TOOLS` is 1.
fn tool(programs: &[&'static str], probe: &str, package: &str) -> Option<&'static str> {
    let runs = |program: &&&str| {
        Command::new(program)
            .arg(probe)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    let found = programs.iter().find(runs).copied();
    if found.is_none() {
        let message = format!("{} is missing: install the Debian package {package}", programs[0]);
        assert!(std::env::var_os("PELTON_REQUIRE_TOOLS").is_none_or(|it| it != "1"), "{message}");
        eprintln!("skipped: {message}");
    }
    found
}

/// `files` on disk below `files/`.
fn served(files: &[VirtualFile]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let root = directory.path().join("files");
    fs::create_dir(&root).unwrap();
    for file in files {
        file.write_to(&root).unwrap();
    }
    directory
}

fn certify(directory: &Path) {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    fs::write(directory.join("certificate.pem"), made.cert.pem()).unwrap();
    fs::write(directory.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
}

fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

fn write_config(directory: &Path, [http1, http2, tls]: [u16; 3], directives: &str) {
    let home = directory.display();
    let config = format!(
        "daemon off;
master_process off;
worker_processes 1;
pid {home}/nginx.pid;
error_log stderr notice;
events {{ worker_connections 512; }}
http {{
    log_format line '$server_protocol $request_method $uri $status $body_bytes_sent';
    access_log {home}/access.log line;
    client_body_temp_path {home}/tmp-body;
    proxy_temp_path {home}/tmp-proxy;
    fastcgi_temp_path {home}/tmp-fastcgi;
    uwsgi_temp_path {home}/tmp-uwsgi;
    scgi_temp_path {home}/tmp-scgi;
    default_type application/octet-stream;
    ssl_certificate {home}/certificate.pem;
    ssl_certificate_key {home}/key.pem;
    server {{
        listen 127.0.0.1:{http1};
        listen 127.0.0.1:{http2} http2;
        listen 127.0.0.1:{tls} ssl http2;
        root {home}/files;
        autoindex on;
        {directives}
    }}
}}
"
    );
    fs::write(directory.join("nginx.conf"), config).unwrap();
}

/// Starts nginx and waits until it says that it has its ports. Otherwise what it said.
fn launch(program: &str, directory: &Path) -> Result<Server, String> {
    let mut child = Command::new(program)
        .args(["-e", "stderr", "-c"])
        .arg(directory.join("nginx.conf"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let server = Server(child);
    let mut said = String::new();
    // The last line of its start; it listens by then.
    while !said.contains("getrlimit(RLIMIT_NOFILE)") {
        if log.read_line(&mut said).unwrap() == 0 || said.contains("bind() to") {
            return Err(said);
        }
    }
    // It would wait for a reader once the pipe is full.
    std::thread::spawn(move || log.read_to_end(&mut Vec::new()));
    Ok(server)
}
