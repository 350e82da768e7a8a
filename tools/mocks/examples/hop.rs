//! Times `tools/call echo` through any command line: `hop CALLS LAUNCHES CMD [ARG…]`. Prints p50 and p99 in
//! microseconds, a line per launch. It is the floor of a bench, not the bench.

use mcp::client::{Client, Era};
use std::{error::Error, io::Write, time::Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let usage = "usage: hop CALLS LAUNCHES CMD [ARG…]";
    let calls: u32 = args.next().ok_or(usage)?.parse()?;
    let launches: u32 = args.next().ok_or(usage)?.parse()?;
    let program = args.next().ok_or(usage)?;
    let args: Vec<String> = args.collect();
    for _ in 0..launches {
        let mut client = Client::spawn(&program, &args)?;
        client.handshake(Era::Legacy("2025-11-25"))?;
        let mut times = Vec::new();
        for number in 0..calls + calls / 10 {
            let line = format!(
                r#"{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"hello"}}}}}}"#
            );
            let start = Instant::now();
            client.process().send_line(line.as_bytes())?;
            let reply = client.process().read_line()?;
            times.push(start.elapsed());
            let head = format!(r#"{{"jsonrpc":"2.0","id":{number},"#);
            if !reply.starts_with(head.as_bytes()) {
                return Err(format!("wrong reply: {}", String::from_utf8_lossy(&reply)).into());
            }
        }
        let mut kept: Vec<f64> = times
            .iter()
            .skip(calls as usize / 10)
            .map(|time| time.as_secs_f64() * 1e6)
            .collect();
        kept.sort_by(f64::total_cmp);
        let at = |share: f64| {
            kept.get((kept.len() as f64 * share) as usize)
                .copied()
                .unwrap_or_default()
        };
        writeln!(
            std::io::stdout(),
            "p50 {:.2} µs  p99 {:.2} µs",
            at(0.5),
            at(0.99)
        )?;
    }
    Ok(())
}
