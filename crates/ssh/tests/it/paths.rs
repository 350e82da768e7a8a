//! What is opened at the host is what was judged, whatever links there say.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::target::{Client, Target, has};
use crate::tools::shipped;

struct Linked {
    target: Target,
    client: Client,
    session: String,
}

impl Linked {
    async fn new(more: &str) -> Self {
        let target = Target::new(more);
        let (client, session) = shipped(&target).await;
        let made = Self {
            target,
            client,
            session,
        };
        fs::write(made.at("file"), "one\ntwo\n").unwrap();
        fs::create_dir(made.at("folder")).unwrap();
        for (link, to) in [
            ("shadow", "/etc/shadow"),
            ("plain", &made.at("file")),
            ("up", "/etc"),
            ("out", "/srv"),
            ("loop", &made.at("loop")),
        ] {
            symlink(to, made.at(link)).unwrap();
        }
        made
    }

    fn at(&self, name: &str) -> String {
        self.target.folder.join(name).display().to_string()
    }

    async fn run(&self, command: &str) -> Result<Value, String> {
        self.client.run(&self.session, command).await
    }
}

#[tokio::test]
async fn a_path_that_leads_elsewhere_is_judged_there_and_that_place_is_opened() {
    if !has("sshd") {
        return;
    }
    let on = Linked::new("MaxSessions 1\n").await;
    for (path, place, said) in [
        ("plain", on.at("file"), "one\ntwo\n".to_owned()),
        (
            "up/hostname",
            "/etc/hostname".into(),
            fs::read_to_string("/etc/hostname").unwrap(),
        ),
        (
            "folder/../up/hostname",
            "/etc/hostname".into(),
            fs::read_to_string("/etc/hostname").unwrap(),
        ),
    ] {
        let told = on.run(&format!("cat {}", on.at(path))).await.unwrap();
        let data = &told["structuredContent"];
        assert_eq!(data["stdout"], said, "{path}: {told}");
        assert_eq!(data["opened"], json!({on.at(path): place}), "{path}");
        let asked = json!({"session_id": on.session, "path": on.at(path)});
        let told = on.client.call("ssh_cat_file", asked).await.unwrap();
        let data = &told["structuredContent"];
        assert_eq!(
            (&data["content"], &data["path"]),
            (&json!(said), &json!(place)),
            "{told}"
        );
    }
    let told = on
        .run(&format!("head -n 1 -- {}", on.at("file")))
        .await
        .unwrap();
    assert!(told["structuredContent"].get("opened").is_none(), "{told}");
    assert_eq!(told["structuredContent"]["stdout"], "one\n");
    let told = on.run(&format!("ls {}/", on.at("folder"))).await.unwrap();
    assert_eq!(told["structuredContent"]["stdout"], "");
}

#[tokio::test]
async fn a_path_that_leads_to_a_refused_place_is_refused_by_its_rule_and_nothing_runs() {
    if !has("sshd") {
        return;
    }
    let on = Linked::new("").await;
    for (path, rule) in [
        ("shadow", "ssh-deny-secrets"),
        ("up/shadow", "ssh-deny-secrets"),
        ("folder/../up/shadow", "ssh-deny-secrets"),
        ("out/x", "ssh-deny-other-roots"),
    ] {
        for command in [
            format!("cat {}", on.at(path)),
            format!("head -n 1 -- {}", on.at(path)),
            format!("grep root {}", on.at(path)),
            format!("cat {} {}", on.at("file"), on.at(path)),
        ] {
            let wrong = on.run(&command).await.unwrap_err();
            assert!(wrong.contains(rule), "{command}: {wrong}");
        }
        let asked = json!({"session_id": on.session, "path": on.at(path)});
        let wrong = on.client.call("ssh_cat_file", asked).await.unwrap_err();
        assert!(wrong.contains(rule), "{path}: {wrong}");
        let commands = ["whoami".to_owned(), format!("cat {}", on.at(path))];
        let batch = json!({"session_id": on.session, "commands": commands});
        let wrong = on.client.call("ssh_batch_commands", batch).await;
        assert!(wrong.unwrap_err().contains(rule), "{path}");
    }
    for path in ["loop", "no/where"] {
        let said = on.run(&format!("cat {}", on.at(path))).await.unwrap();
        assert!(said.to_string().contains("leads nowhere"), "{said}");
    }
}

/// Puts one of two links under a name, by turns, until it is dropped.
struct Swapping(Arc<AtomicBool>, Option<std::thread::JoinHandle<()>>);

impl Swapping {
    fn new(link: &Path, to: [&str; 2]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (told, link) = (Arc::clone(&stop), link.to_owned());
        let to = to.map(str::to_owned);
        let next = link.with_extension("next");
        let swapping = std::thread::spawn(move || {
            for to in to.iter().cycle() {
                if told.load(Ordering::Relaxed) {
                    return;
                }
                symlink(to, &next).unwrap();
                fs::rename(&next, &link).unwrap();
            }
        });
        Self(stop, Some(swapping))
    }
}

impl Drop for Swapping {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        if let Some(swapping) = self.1.take() {
            let _ = swapping.join();
        }
    }
}

#[tokio::test]
async fn a_link_that_is_swapped_between_the_check_and_the_use_opens_nothing_that_was_refused() {
    if !has("sshd") {
        return;
    }
    const SECRET: &str = "what-only-the-refused-file-says";
    let on = Linked::new("").await;
    fs::create_dir(on.at("refused")).unwrap();
    fs::create_dir(on.at("refused/.ssh")).unwrap();
    fs::write(on.at("refused/.ssh/file"), SECRET).unwrap();
    fs::write(on.at("folder/file"), "allowed").unwrap();
    for link_to in [
        ["folder/file", "refused/.ssh/file"],
        ["folder", "refused/.ssh"],
    ] {
        let link = on.target.folder.join("swapped");
        let to = link_to.map(|to| on.at(to));
        symlink(&to[0], &link).unwrap();
        let swapping = Swapping::new(&link, [&to[0], &to[1]]);
        let path = if link_to[0] == "folder" {
            on.at("swapped/file")
        } else {
            on.at("swapped")
        };
        let began = Instant::now();
        let mut seen = (false, false);
        // Until both were seen, and often, so that links are swapped in between.
        for round in 0.. {
            if round >= 40 && seen == (true, true) {
                break;
            }
            assert!(began.elapsed() < Duration::from_secs(120), "seen: {seen:?}");
            let asked = json!({"session_id": on.session, "path": path});
            for said in [
                on.run(&format!("cat {path}")).await,
                on.client.call("ssh_cat_file", asked).await,
            ] {
                match said {
                    Ok(said) => {
                        assert!(!said.to_string().contains(SECRET), "{said}");
                        seen.0 |= said.to_string().contains("allowed");
                    }
                    Err(wrong) => {
                        assert!(wrong.contains("ssh-deny-secrets"), "{wrong}");
                        seen.1 = true;
                    }
                }
            }
        }
        drop(swapping);
        fs::remove_file(&link).unwrap();
    }
}

#[tokio::test]
async fn a_file_that_is_replaced_after_it_was_judged_is_not_read() {
    if !has("sshd") {
        return;
    }
    const SECRET: &str = "what-only-the-refused-file-says";
    let on = Linked::new("").await;
    fs::create_dir(on.at("refused")).unwrap();
    fs::write(on.at("refused/file"), SECRET).unwrap();
    fs::write(on.at("folder/file"), "allowed").unwrap();
    // The words that run once `folder/file` was judged, when its folder is a link to another one.
    let judged = on.at("folder/file");
    let words = ssh::guarded(100, &judged);
    let output = |words: &[String]| {
        Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let said = output(&words);
    assert_eq!(
        (said.stdout.as_slice(), said.status.code()),
        (b"allowed".as_slice(), Some(0))
    );
    fs::rename(on.at("folder"), on.at("away")).unwrap();
    symlink(on.at("refused"), on.at("folder")).unwrap();
    let said = output(&words);
    assert_eq!(
        (said.stdout.as_slice(), said.status.code()),
        (b"".as_slice(), Some(1))
    );
    let told = String::from_utf8(said.stderr).unwrap();
    assert!(told.contains("was replaced while it was opened"), "{told}");
    fs::remove_file(on.at("folder")).unwrap();
    fs::rename(on.at("away"), on.at("folder")).unwrap();
    fs::remove_file(on.at("folder/file")).unwrap();
    symlink(on.at("refused/file"), on.at("folder/file")).unwrap();
    let said = output(&words);
    assert_eq!(
        (said.stdout.as_slice(), said.status.code()),
        (b"".as_slice(), Some(1))
    );
}

#[tokio::test]
async fn what_a_program_opens_is_what_was_judged() {
    if !has("sshd") || !has("strace") {
        return;
    }
    let on = Linked::new("").await;
    fs::write(on.at("pattern"), "two\n").unwrap();
    symlink(on.at("pattern"), on.at("linked-pattern")).unwrap();
    let trace = on.at("trace");
    // The rules have no strace, so everything passes here; what counts is which files are opened.
    let client = on.target.client();
    let session = client.connect("web").await;
    let command = format!(
        "strace -f -e trace=openat -o {trace} grep -f {} {}",
        on.at("linked-pattern"),
        on.at("plain")
    );
    fs::write(&trace, "").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    fs::set_permissions(&trace, mode).unwrap();
    let said = client.run(&session, &command).await.unwrap();
    assert_eq!(said["structuredContent"]["stdout"], "two\n", "{said}");
    let opened = fs::read_to_string(&trace).unwrap();
    for (name, is_opened) in [
        ("file", true),
        ("pattern", true),
        ("plain", false),
        ("linked-pattern", false),
    ] {
        let is_there = opened.contains(&format!("\"{}\"", on.at(name)));
        assert_eq!(is_there, is_opened, "{name}: {opened}");
    }
}
