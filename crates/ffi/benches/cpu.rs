//! CPU-seconds a gigabyte through the C ABI beside the Rust library, on the same list:
//! `cargo bench -p pelton-ffi`.
//!
//! nginx serves the list from /dev/shm and everything is written there, so that no disk counts. Each
//! download is a process of its own, all of whose CPU time counts; the two take turns, and which comes
//! first alternates. Needs nginx and a C compiler.

#![expect(unsafe_code, reason = "no crate that is linked here has getrusage for children")]

use std::error::Error;
use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use pelton::Client;

const WARM_UP: usize = 2;
const PAIRS: usize = 20;

/// Sizes of the list's files in MiB, and how many there are of each.
const LIST: [(usize, usize); 3] = [(256, 1), (8, 24), (1, 64)];

/// Told by its first argument, this program is the Rust half.
const AS_CLIENT: &str = "--download";

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((first, rest)) if first == AS_CLIENT => download(rest),
        _ => compare(),
    }
}

/// The same as client.c.
fn download(arguments: &[String]) -> Outcome<()> {
    let (directory, urls) = arguments.split_first().ok_or("no directory")?;
    let mut job = Client::builder().build()?.download(urls.to_vec()).into_dir(directory).start()?;
    let mut events = job.events();
    while events.blocking_next().is_some() {}
    let report = job.blocking_report()?;
    if report.is_complete() { Ok(()) } else { Err("not every file came".into()) }
}

fn compare() -> Outcome<()> {
    let server = Server::start()?;
    let c = compile(&server.home)?;
    let rust = std::env::current_exe()?;
    let measure = |program: &Path, as_client: bool| server.measure(program, as_client);
    let mut pairs = Vec::new();
    for round in 0..WARM_UP + PAIRS {
        let (rust, c) = if round % 2 == 0 {
            let first = measure(&rust, true)?;
            (first, measure(&c, false)?)
        } else {
            let first = measure(&c, false)?;
            (measure(&rust, true)?, first)
        };
        if round >= WARM_UP {
            pairs.push((rust, c));
        }
    }
    report(&pairs);
    Ok(())
}

/// The C client, and the library beside it under the name by which it finds it.
fn compile(home: &Path) -> Outcome<PathBuf> {
    let here = std::env::current_exe()?;
    let built = here.parent().ok_or("no directory of this program")?.join("libpelton_ffi.so");
    for name in ["libpelton.so", "libpelton.so.0"] {
        symlink(&built, home.join(name))?;
    }
    let ffi = Path::new(env!("CARGO_MANIFEST_DIR"));
    let client = home.join("client");
    let status = Command::new("cc")
        .args(["-O2", "-std=c99", "-I"])
        .arg(ffi.join("include"))
        .arg(ffi.join("benches/client.c"))
        .arg("-L")
        .arg(home)
        .arg("-lpelton")
        .arg(format!("-Wl,-rpath,{}", home.display()))
        .arg("-o")
        .arg(&client)
        .status()?;
    if status.success() { Ok(client) } else { Err("client.c does not compile".into()) }
}

struct Server {
    nginx: Child,
    home: PathBuf,
    urls: Vec<String>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.nginx.kill();
        let _ = self.nginx.wait();
        let _ = fs::remove_dir_all(&self.home);
    }
}

impl Server {
    fn start() -> Outcome<Self> {
        let home = PathBuf::from(format!("/dev/shm/pelton-ffi-{}", std::process::id()));
        let www = home.join("www");
        fs::create_dir_all(&www)?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mib: Vec<u8> =
            (0..1 << 20_u32).map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let mut urls = Vec::new();
        for (size, count) in LIST {
            for number in 0..count {
                let name = format!("{size}-{number}.bin");
                let mut file = fs::File::create(www.join(&name))?;
                for _ in 0..size {
                    file.write_all(&mib)?;
                }
                urls.push(format!("http://127.0.0.1:{port}/{name}"));
            }
        }
        let config = format!(
            "daemon off; master_process off; pid {home}/pid; error_log {home}/error.log;
events {{ worker_connections 512; }}
http {{ access_log off; sendfile on; root {www}; server {{ listen 127.0.0.1:{port}; }} }}",
            home = home.display(),
            www = www.display(),
        );
        fs::write(home.join("nginx.conf"), config)?;
        let nginx = Command::new("nginx").arg("-c").arg(home.join("nginx.conf")).spawn()?;
        let server = Self { nginx, home, urls };
        let deadline = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if Instant::now() > deadline {
                return Err("nginx did not start".into());
            }
            std::thread::yield_now();
        }
        Ok(server)
    }

    /// CPU-seconds of one download by a process of its own.
    fn measure(&self, program: &Path, as_client: bool) -> Outcome<f64> {
        let out = self.home.join("out");
        let before = cpu_of_children()?;
        let mut command = Command::new(program);
        if as_client {
            command.arg(AS_CLIENT);
        }
        let status = command.arg(&out).args(&self.urls).env("no_proxy", "*").status()?;
        let used = cpu_of_children()? - before;
        if !status.success() {
            return Err(format!("{}: {status}", program.display()).into());
        }
        let mut bytes = 0;
        for entry in fs::read_dir(&out)? {
            bytes += entry?.metadata()?.len();
        }
        if bytes != size_of_list() as u64 {
            return Err(format!("{} wrote {bytes} bytes", program.display()).into());
        }
        fs::remove_dir_all(&out)?;
        Ok(used)
    }
}

fn size_of_list() -> usize {
    LIST.iter().map(|(size, count)| (size * count) << 20).sum()
}

/// User and kernel time of every child that has ended, seconds.
fn cpu_of_children() -> Outcome<f64> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the structure is this function's, and zeros are a value of it.
    let usage = unsafe {
        if libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) != 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        usage.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(seconds(usage.ru_utime) + seconds(usage.ru_stime))
}

fn report(pairs: &[(f64, f64)]) {
    let gigabytes = size_of_list() as f64 / 1e9;
    let sorted = |of: &dyn Fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = pairs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let median =
        |values: &[f64]| f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2]);
    let ratios = sorted(&|(rust, c)| c / rust);
    let files: usize = LIST.iter().map(|(_, count)| count).sum();
    println!("{} pairs of {files} files, {gigabytes:.3} GB", pairs.len());
    println!("Rust  {:.3} CPU s/GB", median(&sorted(&|(rust, _)| *rust)) / gigabytes);
    println!("C     {:.3} CPU s/GB", median(&sorted(&|(_, c)| *c)) / gigabytes);
    // Order statistics of the sign test: between these two the median is with at least 95 %.
    let (low, high) = (ratios[5], ratios[PAIRS - 6]);
    println!("C : Rust, median of the pairs: {:.3} (95 %: {low:.3} to {high:.3})", median(&ratios));
}
