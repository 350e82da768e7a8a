//! Any change of any byte, any cut, any bytes at all; and the vector that the documentation gives.

use std::fs;
use std::path::PathBuf;

use crate::journal_support::{self, NOW_MS, Place, calls, random};
use ed25519_dalek::{Signer as _, SigningKey};
use gate::effect::Effect;
use gate::journal::audit::{Filter, Note, latest, verify};
use gate::journal::{
    Decision, EntryHash, Line, MatchedRule, PublicKey, Record, SegmentId, body_hash, entry_hash,
};

fn small(name: &str) -> (Place, PathBuf, Vec<u8>) {
    let place = Place::new(name);
    let journal = place.open();
    calls(&journal, 1..3);
    journal.close(NOW_MS, "stopped").unwrap();
    let path = place.files().remove(0);
    let bytes = fs::read(&path).unwrap();
    (place, path, bytes)
}

#[test]
fn a_flip_of_any_byte_is_found() {
    let (place, path, bytes) = small("flip");
    let (mut random, mut mask) = (random(), [0_u8]);
    for at in 0..bytes.len() {
        random(&mut mask);
        let mut changed = bytes.clone();
        changed[at] ^= mask[0].max(1);
        fs::write(&path, &changed).unwrap();
        let report = verify(&place.directory, &[place.keys.public()]).unwrap();
        assert!(
            !report.is_intact(),
            "byte {at} of {}: {report:?}",
            bytes.len()
        );
    }
}

#[test]
fn a_cut_at_any_byte_is_named() {
    let (place, path, bytes) = small("cut");
    for length in 0..bytes.len() {
        fs::write(&path, &bytes[..length]).unwrap();
        let report = verify(&place.directory, &[place.keys.public()]).unwrap();
        assert!(report.is_intact(), "{length}: {report:?}");
        let on_a_record = length == 0 || bytes[length - 1] == b'\n';
        let torn = report
            .notes
            .iter()
            .any(|note| matches!(note, Note::TornTail { .. }));
        let open = report
            .notes
            .iter()
            .any(|note| matches!(note, Note::NotClosed { .. }));
        assert_eq!(
            (torn, open),
            (!on_a_record, on_a_record),
            "{length}: {report:?}"
        );
    }
}

#[test]
fn any_bytes_are_read_without_a_panic() {
    let (place, path, bytes) = small("any");
    let mut random = random();
    for round in 0..2_000_usize {
        // Half of the rounds splice noise into a true journal, so that deeper code is reached.
        let mut noise = vec![0; round % 97];
        random(&mut noise);
        let mut at = [0; 8];
        random(&mut at);
        let at = u64::from_le_bytes(at) as usize % bytes.len();
        let spliced = [
            &bytes[..at],
            &noise,
            &bytes[(at + round % 31).min(bytes.len())..],
        ]
        .concat();
        fs::write(&path, if round % 2 == 0 { &noise } else { &spliced }).unwrap();
        verify(&place.directory, &[place.keys.public()]).unwrap();
        latest(&place.directory, &Filter::default(), 10).unwrap();
    }
}

#[test]
fn bodies_of_any_json_are_read_without_a_panic() {
    let (place, path, bytes) = small("json");
    let id = SegmentId::parse(
        path.file_stem()
            .unwrap()
            .to_str()
            .unwrap()
            .rsplit_once('-')
            .unwrap()
            .1,
    )
    .unwrap();
    let header = bytes.split_inclusive(|byte| *byte == b'\n').next().unwrap();
    let previous = Line::parse(header.trim_ascii_end()).unwrap().entry;
    let deep = format!("{{\"time\":{}1{}}}", "[".repeat(10_000), "]".repeat(10_000));
    for body in [
        "{}",
        "{\"time\":1,\"kind\":2}",
        "{\"time\":\"2026-11-21T03:38:09.123Z\",\"kind\":\"decision\"}",
        "{\"time\":\"2026-11-21T03:38:09.123Z\",\"kind\":\"operation\",\"op\":\"x\"}",
        "{\"time\":\"9999-99-99\",\"kind\":\"system\",\"event\":\"checkpoint\",\"signature\":\"00\"}",
        "{\"time\":\"2026-11-21T03:38:09.123Z\",\"kind\":\"system\",\"event\":\"checkpoint\"}",
        "{\"time\":\"2026-11-21T03:38:09.123Z\",\"kind\":\"system\",\"event\":\"segment_opened\"}",
        "{\"kind\":\"system\",\"kind\":\"system\"}",
        &deep,
    ] {
        let line = journal_support::forge(id, 1, previous, body.as_bytes());
        fs::write(&path, [header, &line].concat()).unwrap();
        let report = verify(&place.directory, &[place.keys.public()]).unwrap();
        assert!(!report.is_intact(), "{body}: {report:?}");
    }
}

/// The vector as its parts make it.
fn made() -> String {
    let key = SigningKey::from_bytes(&[1; 32]);
    let id = SegmentId([0x5e; 16]);
    let (mut previous, mut out) = (EntryHash::ZERO, Vec::new());
    for sequence in 0..3_u64 {
        let body = match sequence {
            0 => format!(
                "{{\"time\":\"2026-11-21T03:38:09.123Z\",\"kind\":\"system\",\"event\":\"segment_opened\",\
                 \"format\":\"dwj1\",\"segment\":\"{id}\",\"instance\":\"{}\",\"version\":\"0.1.0\",\
                 \"public_key\":\"{}\",\"checkpoint_records_max\":1000,\"checkpoint_wait_ms_max\":60000,\
                 \"checkpoint_refusal_wait_ms_max\":1000,\"continues\":null}}",
                "07".repeat(16),
                PublicKey(key.verifying_key().to_bytes()),
            ),
            1 => {
                let message = [
                    b"dwj1-checkpoint".as_slice(),
                    &id.0,
                    &sequence.to_be_bytes(),
                    &previous.0,
                ]
                .concat();
                let signature: String = key
                    .sign(&message)
                    .to_bytes()
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect();
                format!(
                    "{{\"time\":\"2026-11-21T03:38:09.123Z\",\"kind\":\"system\",\"event\":\"checkpoint\",\
                     \"signature\":\"{signature}\"}}"
                )
            }
            _ => written(&refused()),
        };
        let line = journal_support::forge(id, sequence, previous, body.as_bytes());
        previous = Line::parse(line.trim_ascii_end()).unwrap().entry;
        out.extend(line);
    }
    String::from_utf8(out).unwrap()
}

fn refused() -> Decision<'static> {
    let mut refused = journal_support::decision(0x0193_4c5f_2b7a_7000_8000_0000_0000_0001);
    refused.decision = Effect::Deny;
    refused.final_rule = Some("no-writes");
    refused.matched_rules = &[MatchedRule {
        id: "no-writes",
        effect: Effect::Deny,
    }];
    refused.tool_name = Some("write_file");
    refused
}

/// The body that a journal writes for this decision.
fn written(decision: &Decision<'_>) -> String {
    let place = Place::new("written");
    let journal = place.open();
    journal.append(NOW_MS, &Record::Decision(decision)).unwrap();
    let bytes = fs::read(&place.files()[0]).unwrap();
    let last = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .next_back()
        .unwrap();
    String::from_utf8(Line::parse(last.trim_ascii_end()).unwrap().body.to_vec()).unwrap()
}

/// A header and checkpoint as a journal writes them are those of the vector, but for what differs from journal to journal.
#[test]
fn the_vector_is_spelt_as_a_journal_spells() {
    let (_place, _path, bytes) = small("spelling");
    let shape = |text: &str| {
        let text = text.replace(concat!("\"", env!("CARGO_PKG_VERSION"), "\""), "\"0.1.0\"");
        let bodies = text
            .lines()
            .take(2)
            .map(|line| line.split("\"body\":").nth(1).unwrap().to_owned());
        let digit = |c: char| if c.is_ascii_hexdigit() { '0' } else { c };
        bodies
            .map(|body| body.chars().map(digit).collect())
            .collect::<Vec<String>>()
    };
    assert_eq!(shape(&made()), shape(std::str::from_utf8(&bytes).unwrap()));
}

#[test]
fn the_documented_vector_holds() {
    let document = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/journal.md"
    ))
    .unwrap();
    let block = document
        .split("```jsonl\n")
        .nth(1)
        .expect("the vector")
        .split("```")
        .next()
        .unwrap();
    assert_eq!(block, made());
    let key = PublicKey(SigningKey::from_bytes(&[1; 32]).verifying_key().to_bytes());
    assert!(document.contains(&key.to_string()));
    let id = SegmentId([0x5e; 16]);
    let mut previous = EntryHash::ZERO;
    for (sequence, text) in block.lines().enumerate() {
        let line = Line::parse(text.as_bytes()).unwrap();
        assert_eq!((line.sequence, line.previous), (sequence as u64, previous));
        assert_eq!(
            entry_hash(id, previous, line.sequence, &body_hash(line.body)),
            line.entry
        );
        previous = line.entry;
    }
    let place = Place::new("vector");
    fs::create_dir_all(&place.directory).unwrap();
    fs::write(
        place
            .directory
            .join(format!("20261121T033809123Z-{id}.jsonl")),
        block,
    )
    .unwrap();
    let report = verify(&place.directory, &[key]).unwrap();
    assert!(report.is_intact(), "{report:?}");
    assert_eq!((report.records, report.signatures), (3, 1));
    assert!(matches!(
        report.notes[..],
        [Note::NotClosed {
            last_sequence: Some(2),
            uncovered_records: 1,
            ..
        }]
    ));
}
