//! nginx in the server's namespace.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
};

use super::run::{Guarded, spawn_guarded};
use crate::emulator::{Emulator, SERVER};

/// How long nginx may take to start.
const START_TIME: Duration = Duration::from_secs(10);

/// An authority and a server certificate for [`SERVER`], as files.
#[derive(Debug)]
pub(super) struct Certificates {
    pub(super) authority: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
}

impl Certificates {
    /// Writes them into `dir`.
    pub(super) fn make(dir: &Path) -> Result<Self> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name = named("pelton-lab authority");
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(vec![SERVER.to_string()])?;
        params.distinguished_name = named("pelton-lab server");
        let certificate = params.signed_by(&key, &authority)?;
        let write = |name, text: String| {
            let path = dir.join(name);
            fs::write(&path, text).map(|()| path)
        };
        Ok(Self {
            authority: write("authority.pem", authority.as_ref().pem())?,
            certificate: write("server.pem", certificate.pem())?,
            key: write("server.key", key.serialize_pem())?,
        })
    }
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

/// nginx's version.
pub(super) fn version() -> Result<String> {
    let output = Command::new(program()).arg("-v").output().context(
        "can't start nginx, the server of every run; install the Debian package nginx-light",
    )?;
    // It says so on standard error.
    let text = String::from_utf8_lossy(&output.stderr);
    Ok(text.trim().trim_start_matches("nginx version: ").to_owned())
}

/// Debian installs it where users without root do not look.
fn program() -> &'static str {
    if Path::new("/usr/sbin/nginx").exists() { "/usr/sbin/nginx" } else { "nginx" }
}

/// Starts nginx on the emulator's server side, serving `root`: HTTP/1.1 on port 80, and HTTP/2
/// or HTTP/1.1 over TLS on 443. It ends when the value is dropped.
pub(super) fn start(
    emulator: &Emulator,
    guard: &Path,
    dir: &Path,
    root: &Path,
    certificates: &Certificates,
) -> Result<Guarded> {
    let config = dir.join("nginx.conf");
    let log = dir.join("nginx.log");
    fs::write(&config, configuration(dir, root, certificates))?;
    let mut command = Command::new(guard);
    command.args(["guard", "--", program(), "-e"]).arg(&log).arg("-c").arg(&config);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut nginx = spawn_guarded(emulator.server(), command)?;
    let deadline = Instant::now() + START_TIME;
    while emulator.server().run(|| TcpStream::connect((SERVER, 80)))?.is_err() {
        if nginx.try_wait()?.is_some() || Instant::now() > deadline {
            let log = fs::read_to_string(&log).unwrap_or_default();
            bail!("nginx did not start: {}", log.lines().last().unwrap_or("it says nothing"));
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(nginx)
}

/// As Debian configures nginx, but for the log of requests, which is off, and the number of
/// connections, of which the sweeps need more. There is no HTTP/2 in the clear: nginx 1.22 sends such
/// a body only after the client's delayed acknowledgement of its header, 40 ms late. The user is root
/// because a user namespace may have no other.
fn configuration(dir: &Path, root: &Path, certificates: &Certificates) -> String {
    format!(
        "daemon off; master_process off; user root root; pid {dir}/nginx.pid; worker_rlimit_nofile 8192;
events {{ worker_connections 4096; }}
http {{
  types {{ text/html html; text/plain txt; image/jpeg jpg; image/png png; video/mp4 mp4; application/json json; }}
  default_type application/octet-stream;
  access_log off; sendfile on; tcp_nopush on; autoindex on; root {root};
  ssl_protocols TLSv1 TLSv1.1 TLSv1.2 TLSv1.3; ssl_prefer_server_ciphers on;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/fastcgi;
  uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
  server {{ listen {SERVER}:80; }}
  server {{ listen {SERVER}:443 ssl http2; ssl_certificate {certificate}; ssl_certificate_key {key}; }}
}}
",
        dir = dir.display(),
        root = root.display(),
        certificate = certificates.certificate.display(),
        key = certificates.key.display(),
    )
}
