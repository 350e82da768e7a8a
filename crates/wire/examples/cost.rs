//! What a pass costs, in µs per KiB: `cargo run --release -p wire --example cost`. The budget is 2.
#![expect(clippy::print_stdout, reason = "its output is its purpose")]

use std::hint::black_box;
use std::time::Instant;

use wire::canonical::NameTree;
use wire::{Bounds, Canonical, scan_request};

/// Frames as clients send them, and the worst for each loop.
fn frames() -> Vec<(&'static str, String)> {
    let call = |arguments: String| {
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"write_file","arguments":{arguments}}}}}"#
        )
    };
    let text = |piece: &str, bytes: usize| {
        call(format!(
            r#"{{"path":"/data/notes.txt","content":"{}"}}"#,
            piece.repeat(bytes / piece.len())
        ))
    };
    let list = |item: &str, bytes: usize| {
        let items = vec![item; bytes / item.len()].join(",");
        call(format!(r#"{{"list":[{items}]}}"#))
    };
    let names: Vec<String> = (0..6000).map(|n| format!("\"n{n}\":0")).collect();
    vec![
        ("small call", call(r#"{"path":"/data/notes.txt"}"#.into())),
        (
            "prose, 64 KiB",
            text("The quick brown fox jumps over it. ", 65_536),
        ),
        ("code, 64 KiB", text("\\tlet x = \\\"a\\\";\\n", 65_536)),
        ("Chinese, 64 KiB", text("敏捷的棕色狐狸跳过。", 65_536)),
        ("Chinese, escaped, 64 KiB", text("\\u654f\\u6377", 65_536)),
        ("escaped slashes, 64 KiB", text("\\/a", 65_536)),
        ("line separators, 64 KiB", text("\u{2028}a", 65_536)),
        (
            "objects, 64 KiB",
            list(r#"{ "kind" : "a", "start" : 1, "end" : 2.5e3 }"#, 65_536),
        ),
        ("numbers, 64 KiB", list("1", 65_536)),
        ("names, 64 KiB", call(format!("{{{}}}", names.join(",")))),
    ]
}

/// The least of 200 runs, in µs per KiB: on a shared machine the others measure the neighbours.
fn cost(bytes: usize, mut work: impl FnMut()) -> f64 {
    let rounds = (1 << 16) / bytes.max(1) + 1;
    let least = (0..200)
        .map(|_| {
            let start = Instant::now();
            (0..rounds).for_each(|_| work());
            start.elapsed().as_secs_f64() * 1e6
        })
        .fold(f64::INFINITY, f64::min);
    #[expect(clippy::cast_precision_loss, reason = "both are small")]
    let kib = (rounds * bytes) as f64 / 1024.0;
    least / kib
}

fn main() {
    let bounds = Bounds::default();
    println!(
        "{:28} {:>9} {:>9} {:>9} {:>9}",
        "µs per KiB", "bytes", "scan", "canonical", "arguments"
    );
    for (name, frame) in frames() {
        let bytes = frame.as_bytes();
        let scan = cost(bytes.len(), || {
            let _ = black_box(scan_request(black_box(bytes), &bounds));
        });
        let write = cost(bytes.len(), || {
            let _ = black_box(Canonical::of(black_box(bytes), &bounds));
        });
        let Ok(canonical) = Canonical::of(bytes, &bounds) else {
            println!("{name:28} refused");
            continue;
        };
        let mut declared = NameTree::default();
        for name in ["path", "content", "list"] {
            declared.declare(name);
        }
        let arguments = cost(bytes.len(), || {
            let _ = black_box(black_box(&canonical).arguments_are(&declared));
        });
        println!(
            "{name:28} {:9} {scan:9.2} {write:9.2} {arguments:9.2}",
            bytes.len()
        );
    }
}
