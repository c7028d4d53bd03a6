//! `pelton meter` and the meters that `get` may be told to use.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Command;
use std::thread;

use serde_json::Value;

use crate::common::{Run, pelton, said};

#[test]
fn the_model_of_the_machine_is_shown_with_its_source() {
    let flags = ["--json", "--radio", "wifi", "--interval", "20ms", "--duration", "100ms"];
    let run = pelton(&[&["meter", "--power-meter", "model"], &flags[..]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let lines: Vec<Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() >= 2, "{}", run.stdout);
    let joules: Vec<f64> = lines.iter().map(|line| line["joules"].as_f64().unwrap()).collect();
    assert!(joules[0] > 0.0 && joules.is_sorted(), "{joules:?}");
    for line in &lines {
        assert_eq!(line["event"], "power");
        assert_eq!(line["scope"], "device");
        assert!(line["source"].as_str().unwrap().starts_with("modelled: wifi"), "{line}");
    }
}

#[cfg(unix)]
#[test]
fn control_c_ends_it_cleanly_with_the_totals() {
    let run = Run::new();
    let mut child = run.command(&["meter", "--interval", "10ms"]).spawn().unwrap();
    let mut first = String::new();
    // Held until it ends: without a reader it ends by itself.
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut first).unwrap();
    assert!(first.contains(" W ") && first.contains(" J "), "{first}");
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let said = said(child.wait_with_output().unwrap());
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stderr.lines().last().unwrap().contains("modelled: "), "{}", said.stderr);
}

#[test]
fn a_meter_that_gives_nothing_is_named_with_the_reason() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for command in [&["meter"][..], &["get", "http://127.0.0.1:9/x"]] {
        let meter = format!("--power-meter=scpi:{closed}");
        let run = pelton(&[command, &[&meter]].concat());
        assert_eq!(run.code, 2);
        assert!(run.stderr.contains(&format!("scpi {closed} can't be read")), "{}", run.stderr);
    }
}

#[test]
fn a_bench_meter_is_read_over_tcp() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut stream = BufReader::new(stream);
        let mut query = String::new();
        while stream.read_line(&mut query).is_ok_and(|read| read > 0) {
            if stream.get_mut().write_all(b"4.5E+00\n").is_err() {
                return;
            }
        }
    });
    let meter = format!("--power-meter=scpi:{address}");
    let run = pelton(&["meter", &meter, "--json", "--interval=300ms", "--duration=900ms"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let last: Value = serde_json::from_str(run.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(last["source"], format!("measured: scpi {address}"));
    let watts = last["watts"].as_f64().unwrap();
    assert!((watts - 4.5).abs() < 1e-6, "{last}");
}

#[test]
fn an_instrument_that_hangs_up_is_said_and_fails() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut query = String::new();
            // The first answer is taken before the run.
            if stream.read_line(&mut query).is_ok() {
                let _ = stream.get_mut().write_all(b"2.0\n");
            }
        }
    });
    let meter = format!("--power-meter=scpi:{address}");
    let run = pelton(&["meter", &meter, "--interval", "50ms", "--duration", "500ms"]);
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains("closed the connection"), "{}", run.stderr);
}
