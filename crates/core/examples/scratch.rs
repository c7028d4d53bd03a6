fn main() {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let dir = args.remove(0);
    let policy = args.remove(0);
    let b = pelton_core::Client::builder();
    let b = match policy.as_str() { "hat" => b.policy(pelton_algos::policy::Hat), "lowe" => b.policy(pelton_algos::policy::LowE), "fixed" => b.policy(pelton_algos::policy::Fixed::default()), _ => b };
    let client = b.build().unwrap();
    let mut job = client.download(args).into_dir(dir).start().unwrap();
    let mut ev = job.events();
    while let Some(e) = ev.blocking_next() { match &e { pelton_core::RunEvent::File(f) if f.ok => {}, e => println!("{}", serde_json::to_string(e).unwrap()) } }
    let r = job.blocking_report();
    match r { Ok(r) => std::process::exit(r.summary.exit_code.into()), Err(e) => { eprintln!("{}", e.message()); std::process::exit(e.kind().exit_code().into()) } }
}
