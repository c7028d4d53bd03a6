//! CPU-seconds, wall seconds and peak memory of one large file over loopback into memory, beside
//! curl and wget in the same run: `cargo bench -p pelton-cli`.
//!
//! nginx serves the file from /dev/shm and everything is written there, so that no disk counts.
//! Clients take turns, and medians are printed; a ratio is to curl over the same protocol. Needs
//! nginx, curl, wget, openssl and GNU time.

use std::error::Error;
use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
const SIZE: usize = 1 << 30;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// One measured run.
#[derive(Clone, Copy)]
struct Sample {
    wall: f64,
    user: f64,
    kernel: f64,
    peak_kib: f64,
}

struct Client {
    name: &'static str,
    protocol: &'static str,
    command: Vec<String>,
    samples: Vec<Sample>,
}

struct Server {
    nginx: Child,
    home: PathBuf,
    ports: [u16; 3],
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.nginx.kill();
        let _ = self.nginx.wait();
        let _ = fs::remove_dir_all(&self.home);
    }
}

fn main() -> Outcome<()> {
    let server = start_server()?;
    let out = server.home.join("out");
    let mut clients = clients(&server, &out);
    for round in 1..=ROUNDS {
        for client in &mut clients {
            fs::create_dir_all(&out)?;
            client.samples.push(measure(&client.command, &server.home)?);
            check(&out, client.name)?;
            fs::remove_dir_all(&out)?;
        }
        eprintln!("round {round} of {ROUNDS}");
    }
    report(&clients);
    Ok(())
}

fn start_server() -> Outcome<Server> {
    let home = PathBuf::from(format!("/dev/shm/pelton-loopback-{}", std::process::id()));
    fs::create_dir_all(home.join("www"))?;
    let mut file = fs::File::create(home.join("www/file.bin"))?;
    let block: Vec<u8> =
        (0..1 << 20_u32).map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for _ in 0..SIZE / block.len() {
        file.write_all(&block)?;
    }
    let (key, certificate) = (home.join("key.pem"), home.join("cert.pem"));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
        ])
        .args(["-addext", "basicConstraints=CA:FALSE"])
        .args(["-addext", "subjectAltName=DNS:localhost", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .stderr(Stdio::null())
        .status()?;
    if !made.success() {
        return Err("openssl made no certificate".into());
    }
    let ports = free_ports()?;
    let [clear, h2c, tls] = ports;
    let www = home.join("www");
    let config = format!(
        "daemon off; master_process off; pid {home}/pid; error_log {home}/error.log;
events {{ worker_connections 512; }}
http {{ access_log off; sendfile on; root {www};
server {{ listen 127.0.0.1:{clear}; }}
server {{ listen 127.0.0.1:{h2c} http2; }}
server {{ listen 127.0.0.1:{tls} ssl http2; ssl_certificate {cert}; ssl_certificate_key {key}; }} }}",
        home = home.display(),
        www = www.display(),
        cert = certificate.display(),
        key = key.display(),
    );
    fs::write(home.join("nginx.conf"), config)?;
    let nginx = Command::new("nginx").arg("-c").arg(home.join("nginx.conf")).spawn()?;
    let server = Server { nginx, home, ports };
    let deadline = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(("127.0.0.1", clear)).is_err() {
        if Instant::now() > deadline {
            return Err("nginx did not start".into());
        }
        std::thread::yield_now();
    }
    Ok(server)
}

fn free_ports() -> Outcome<[u16; 3]> {
    let listeners: Vec<TcpListener> =
        (0..3).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
    let mut ports = [0; 3];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}

fn clients(server: &Server, out: &Path) -> Vec<Client> {
    let [clear, h2c, tls] = server.ports;
    let pelton = env!("CARGO_BIN_EXE_pelton");
    let out = out.display();
    let certificate = server.home.join("cert.pem").display().to_string();
    let words = |line: String| line.split_whitespace().map(str::to_owned).collect();
    let client =
        |name, protocol, line| Client { name, protocol, command: words(line), samples: Vec::new() };
    let clear = format!("http://127.0.0.1:{clear}/file.bin");
    let h2c = format!("http://127.0.0.1:{h2c}/file.bin");
    let tls = format!("https://localhost:{tls}/file.bin");
    vec![
        client("curl", "h1", format!("curl -s -o {out}/file.bin {clear}")),
        client("wget", "h1", format!("wget -q -O {out}/file.bin {clear}")),
        client("pelton", "h1", format!("{pelton} get -q -d {out} {clear}")),
        client(
            "curl",
            "h1+tls",
            format!("curl -s --http1.1 --cacert {certificate} -o {out}/file.bin {tls}"),
        ),
        client(
            "pelton",
            "h1+tls",
            format!("{pelton} get -q --http1.1 --cacert {certificate} -d {out} {tls}"),
        ),
        client("curl", "h2+tls", format!("curl -s --cacert {certificate} -o {out}/file.bin {tls}")),
        client(
            "pelton",
            "h2+tls",
            format!("{pelton} get -q --cacert {certificate} -d {out} {tls}"),
        ),
        client("curl", "h2c", format!("curl -s --http2-prior-knowledge -o {out}/file.bin {h2c}")),
        client("pelton", "h2c", format!("{pelton} get -q --http2-prior-knowledge -d {out} {h2c}")),
    ]
}

fn measure(command: &[String], home: &Path) -> Outcome<Sample> {
    let notes = home.join("time");
    let status = Command::new("/usr/bin/time")
        .args(["-f", "%e %U %S %M", "-o"])
        .arg(&notes)
        .args(command)
        .stdout(Stdio::null())
        .status()?;
    if !status.success() {
        return Err(format!("{}: {status}", command.join(" ")).into());
    }
    let numbers: Vec<f64> =
        fs::read_to_string(&notes)?.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let [wall, user, kernel, peak_kib] = numbers[..] else { return Err("unreadable times".into()) };
    Ok(Sample { wall, user, kernel, peak_kib })
}

fn check(out: &Path, name: &str) -> Outcome<()> {
    let length = fs::metadata(out.join("file.bin"))?.len();
    if length == SIZE as u64 { Ok(()) } else { Err(format!("{name} wrote {length} bytes").into()) }
}

fn median(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> f64 {
    let mut values: Vec<f64> = samples.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn report(clients: &[Client]) {
    let cpu = |client: &Client| median(&client.samples, |s| s.user + s.kernel);
    let gigabytes = SIZE as f64 / 1e9;
    println!("client  protocol  wall s/GB  CPU s/GB  of it kernel  CPU : curl  peak MiB");
    for client in clients {
        let curl = clients.iter().find(|c| c.name == "curl" && c.protocol == client.protocol);
        println!(
            "{:7} {:9} {:9.2} {:9.2} {:13.2} {:11.2} {:9.1}",
            client.name,
            client.protocol,
            median(&client.samples, |s| s.wall) / gigabytes,
            cpu(client) / gigabytes,
            median(&client.samples, |s| s.kernel) / gigabytes,
            curl.map_or(f64::NAN, |curl| cpu(client) / cpu(curl)),
            median(&client.samples, |s| s.peak_kib) / 1024.0,
        );
    }
}
