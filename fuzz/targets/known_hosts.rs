//! Any text as a file of known hosts: no panic, no key is known that does not stand there, and a revoked one never is.
#![no_main]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str, &[u8])| {
    let (text, host, blob) = input;
    let said = ssh::known_key(text, host, "ssh-ed25519", blob);
    let key = STANDARD.encode(blob);
    if said == "known" {
        assert!(text.contains(&key), "{key}");
    }
    let plain = !host.is_empty() && host.bytes().all(|b| b.is_ascii_lowercase() || b == b'.');
    if plain && !blob.is_empty() {
        let revoked = format!("{text}\n@revoked {host} ssh-ed25519 {key}\n");
        assert_eq!(
            ssh::known_key(&revoked, host, "ssh-ed25519", blob),
            "revoked"
        );
        if said == "unknown" {
            let known = format!("{text}\n{host} ssh-ed25519 {key}\n");
            assert_eq!(ssh::known_key(&known, host, "ssh-ed25519", blob), "known");
        }
    }
});
