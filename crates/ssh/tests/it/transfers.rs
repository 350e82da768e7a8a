//! Files over SFTP, to and from a real OpenSSH.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::target::{Client, Target, has};

struct Moving {
    target: Target,
    client: Client,
    session: String,
}

impl Moving {
    async fn new(policy: Option<&str>, more: &str) -> Self {
        Self::at(Target::new(""), policy, more).await
    }

    async fn at(target: Target, policy: Option<&str>, more: &str) -> Self {
        fs::create_dir(target.folder.join("drop")).unwrap();
        // Another user of the host's writes there.
        fs::create_dir(target.folder.join("far")).unwrap();
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(target.folder.join("far"), open).unwrap();
        let hosts = target.hosts(&format!("local_folders: {{ drop: drop }}\n{more}"));
        let client = Client::new(hosts, policy);
        let session = client.connect("web").await;
        Self {
            target,
            client,
            session,
        }
    }

    fn far(&self, name: &str) -> PathBuf {
        self.target.folder.join("far").join(name)
    }

    fn here(&self, name: &str) -> PathBuf {
        self.target.folder.join("drop").join(name)
    }

    /// Calls a tool for a file of this name on both sides.
    async fn moved(&self, tool: &str, name: &str, more: Value) -> Value {
        let mut arguments = json!({"session_id": self.session, "path": self.far(name), "local": format!("drop/{name}")});
        let own = arguments.as_object_mut().unwrap();
        own.extend(more.as_object().unwrap().clone());
        self.client.call(tool, arguments).await.unwrap()
    }
}

fn bytes(count: u32) -> Vec<u8> {
    (0..count)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect()
}

fn sha256(path: &std::path::Path) -> String {
    let output = Command::new("sha256sum").arg(path).output().unwrap();
    String::from_utf8(output.stdout).unwrap()[..64].to_owned()
}

#[tokio::test]
async fn files_go_both_ways_whole_with_their_hash() {
    if !has("sshd") || !has("sha256sum") {
        return;
    }
    let on = Moving::new(None, "").await;
    for (name, count) in [
        ("empty", 0),
        ("one", 1),
        ("edge", 32 * 1024),
        ("over", 64 * 32 * 1024 + 1),
        ("large", 9_000_001),
    ] {
        fs::write(on.here(name), bytes(count)).unwrap();
        let said = on.moved("ssh_put", name, json!({})).await;
        let data = &said["structuredContent"];
        assert_eq!(data["bytes"], count, "{name}: {said}");
        assert_eq!(fs::read(on.far(name)).unwrap(), bytes(count), "{name}");
        assert_eq!(data["sha256"], sha256(&on.far(name)), "{name}");
        fs::remove_file(on.here(name)).unwrap();
        let said = on.moved("ssh_get", name, json!({})).await;
        assert_eq!(
            said["structuredContent"]["sha256"],
            sha256(&on.far(name)),
            "{name}: {said}"
        );
        assert_eq!(fs::read(on.here(name)).unwrap(), bytes(count), "{name}");
        assert!(!on.here(&format!("{name}.part")).exists());
    }
    // A name may have 255 bytes at the host.
    let long = on.far(&"é".repeat(127));
    let call = json!({"session_id": on.session, "path": long, "local": "drop/one"});
    let said = on.client.call("ssh_put", call).await.unwrap();
    assert_eq!(said["structuredContent"]["bytes"], 1, "{said}");
    assert!(long.exists());
    // What is there is only replaced where that is asked for.
    for tool in ["ssh_get", "ssh_put"] {
        let said = on.moved(tool, "one", json!({})).await;
        assert_eq!(said["isError"], true, "{tool}: {said}");
        let said = on.moved(tool, "one", json!({"overwrite": true})).await;
        assert_eq!(said["structuredContent"]["bytes"], 1, "{tool}: {said}");
    }
}

#[tokio::test]
async fn a_pipe_is_not_opened_and_a_file_of_the_kernel_is_read_to_its_end() {
    if !has("sshd") || !has("mkfifo") {
        return;
    }
    let on = Moving::new(None, "").await;
    let made = Command::new("mkfifo").arg(on.far("pipe")).status();
    assert!(made.unwrap().success());
    fs::write(on.here("pipe"), "text").unwrap();
    // Opened, it would hold up the host's server until somebody writes.
    for (tool, more) in [
        ("ssh_get", json!({"overwrite": true, "timeout_ms": 10_000})),
        ("ssh_put", json!({"overwrite": true, "timeout_ms": 10_000})),
    ] {
        let said = on.moved(tool, "pipe", more).await.to_string();
        assert!(said.contains("pipe is not a plain file"), "{tool}: {said}");
    }
    // It says that it has no bytes, or more than it has.
    for path in [
        "/proc/version",
        "/sys/kernel/notes",
        "/sys/class/net/lo/mtu",
    ] {
        let Ok(whole) = fs::read(path) else {
            continue;
        };
        let call = json!({"session_id": on.session, "path": path, "local": "drop/kernel", "overwrite": true});
        let said = on.client.call("ssh_get", call).await.unwrap();
        let bytes = &said["structuredContent"]["bytes"];
        assert_eq!(bytes, whole.len(), "{path}: {said}");
        assert_eq!(fs::read(on.here("kernel")).unwrap(), whole, "{path}");
    }
}

#[tokio::test]
async fn a_sent_file_has_the_mode_of_the_one_it_replaces_its_own_or_the_one_asked_for() {
    if !has("sshd") {
        return;
    }
    let on = Moving::new(None, "").await;
    let set = |path: PathBuf, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let at_host = |name: &str| fs::metadata(on.far(name)).unwrap().permissions().mode() & 0o7777;
    // The mode here, the mode that is asked for, the mode at the host.
    for (name, own, asked, expected) in [
        ("secret", 0o600, json!({}), 0o600),
        ("program", 0o755, json!({}), 0o755),
        ("text", 0o644, json!({}), 0o644),
        ("open", 0o777, json!({}), 0o777),
        ("setuid", 0o4755, json!({}), 0o755),
        ("asked", 0o600, json!({"mode": "0640"}), 0o640),
        ("short", 0o755, json!({"mode": "600"}), 0o600),
    ] {
        fs::write(on.here(name), "text").unwrap();
        set(on.here(name), own);
        let said = on.moved("ssh_put", name, asked).await;
        assert_eq!(said["structuredContent"]["bytes"], 4, "{name}: {said}");
        assert_eq!(at_host(name), expected, "{name}: {:o}", at_host(name));
    }
    // A file that is replaced keeps its mode, unless one is asked for.
    for (name, own, before) in [("secret", 0o644, 0o600), ("program", 0o600, 0o755)] {
        set(on.here(name), own);
        let said = on.moved("ssh_put", name, json!({"overwrite": true})).await;
        assert_eq!(said["structuredContent"]["bytes"], 4, "{name}: {said}");
        assert_eq!(at_host(name), before, "{name}");
        let asked = json!({"overwrite": true, "mode": "0444"});
        let said = on.moved("ssh_put", name, asked).await;
        assert_eq!(said["structuredContent"]["bytes"], 4, "{name}: {said}");
        assert_eq!(at_host(name), 0o444, "{name}");
    }
    for mode in ["4755", "rwx", "08", "0999"] {
        let call = json!({"session_id": on.session, "path": on.far("x"), "local": "drop/text", "mode": mode});
        let said = on.client.call("ssh_put", call).await;
        let is_refused = said.as_ref().map_or(true, |said| said["isError"] == true);
        assert!(is_refused && !on.far("x").exists(), "{mode}: {said:?}");
    }
    // A fetched file is this user's alone.
    let said = on
        .moved("ssh_get", "open", json!({"overwrite": true}))
        .await;
    assert_eq!(said["structuredContent"]["bytes"], 4, "{said}");
    let mode = fs::metadata(on.here("open")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// Where OpenSSH's SFTP server is.
fn sftp_server() -> Option<&'static str> {
    [
        "/usr/lib/openssh/sftp-server",
        "/usr/libexec/openssh/sftp-server",
        "/usr/lib/ssh/sftp-server",
        "/usr/libexec/sftp-server",
    ]
    .into_iter()
    .find(|path| std::path::Path::new(path).exists())
}

#[tokio::test]
async fn a_file_that_cannot_be_written_to_its_end_takes_no_place() {
    let Some(server) = sftp_server().filter(|_| has("sshd")) else {
        return;
    };
    // A file may have 512 KiB there, as on a disk that is full then.
    let folder = crate::target::folder();
    let script = folder.join("server");
    fs::write(
        &script,
        format!("trap '' XFSZ; ulimit -f 1024; exec {server}\n"),
    )
    .unwrap();
    crate::target::keygen(&folder.join("host"), &[]);
    crate::target::keygen(&folder.join("user"), &[]);
    let no = crate::target::NO_SFTP;
    let config = format!("{no}Subsystem sftp /bin/sh {}\n", script.display());
    let on = Moving::at(Target::start(folder, &config, None), None, "").await;
    for name in ["new", "old"] {
        fs::write(on.here(name), bytes(3_000_000)).unwrap();
    }
    fs::write(on.far("old"), "as it was").unwrap();
    let open = fs::Permissions::from_mode(0o666);
    fs::set_permissions(on.far("old"), open).unwrap();
    for name in ["new", "old"] {
        let said = on.moved("ssh_put", name, json!({"overwrite": true})).await;
        assert_eq!(said["isError"], true, "{name}: {said}");
    }
    assert!(!on.far("new").exists());
    assert_eq!(fs::read_to_string(on.far("old")).unwrap(), "as it was");
    // Where there is room, it goes on from what is there, and has the mode of what was there.
    fs::write(on.here("old"), &bytes(3_000_000)[..500_000]).unwrap();
    let said = on.moved("ssh_put", "old", json!({"overwrite": true})).await;
    assert_eq!(said["structuredContent"]["bytes"], 500_000, "{said}");
    let mode = fs::metadata(on.far("old")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o666);
    let said = on.moved("ssh_put", "new", json!({"resume": true})).await;
    assert_eq!(said["isError"], true, "{said}");
    assert!(!on.far("new").exists());
    let names = fs::read_dir(on.target.folder.join("far")).unwrap();
    let names: Vec<_> = names.flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[tokio::test]
async fn a_transfer_that_was_cut_off_goes_on_where_it_ended() {
    if !has("sshd") {
        return;
    }
    let on = Moving::new(None, "").await;
    let whole = bytes(3_000_000);
    fs::write(on.far("get"), &whole).unwrap();
    fs::write(on.here("get.part"), &whole[..1_000_003]).unwrap();
    let said = on.moved("ssh_get", "get", json!({"resume": true})).await;
    let data = &said["structuredContent"];
    assert_eq!(
        (&data["resumed_from"], &data["bytes"]),
        (&json!(1_000_003), &json!(3_000_000)),
        "{said}"
    );
    assert_eq!(fs::read(on.here("get")).unwrap(), whole);
    assert_eq!(data["sha256"], sha256(&on.far("get")));
    // Without being told to, it begins anew.
    fs::write(on.far("anew"), &whole).unwrap();
    fs::write(on.here("anew.part"), "something else").unwrap();
    let said = on.moved("ssh_get", "anew", json!({})).await;
    assert_eq!(said["structuredContent"]["resumed_from"], 0, "{said}");
    assert_eq!(fs::read(on.here("anew")).unwrap(), whole);
    fs::write(on.here("put"), &whole).unwrap();
    let writable = |name: &str, bytes: &[u8]| {
        fs::write(on.far(name), bytes).unwrap();
        fs::set_permissions(on.far(name), fs::Permissions::from_mode(0o666)).unwrap();
    };
    writable("put", &whole[..2_000_001]);
    let said = on.moved("ssh_put", "put", json!({"resume": true})).await;
    assert_eq!(
        said["structuredContent"]["resumed_from"], 2_000_001,
        "{said}"
    );
    assert_eq!(fs::read(on.far("put")).unwrap(), whole);
    assert_eq!(said["structuredContent"]["sha256"], sha256(&on.far("put")));
    // What is there is not the beginning of it.
    let mut other = whole[..2_000_001].to_vec();
    other[1_999_999] ^= 1;
    writable("put", &other);
    let said = on.moved("ssh_put", "put", json!({"resume": true})).await;
    assert!(
        said.to_string()
            .contains("is not the beginning of this file"),
        "{said}"
    );
    assert_eq!(fs::read(on.far("put")).unwrap(), other);
}

#[tokio::test]
async fn only_plain_files_of_the_named_folders_are_used_here() {
    if !has("sshd") {
        return;
    }
    let on = Moving::new(None, "limits: { transfer_bytes_max: 10 }\n").await;
    fs::write(on.far("file"), "text").unwrap();
    fs::write(on.far("long"), "eleven byte").unwrap();
    fs::write(on.far("link"), "text").unwrap();
    fs::write(on.target.folder.join("outside"), "outside").unwrap();
    symlink(on.target.folder.join("outside"), on.here("link")).unwrap();
    symlink(on.target.folder.join("outside"), on.here("file.part")).unwrap();
    fs::create_dir(on.here("folder")).unwrap();
    // Parts of earlier transfers that are something else by now.
    fs::write(on.here("own"), "own").unwrap();
    fs::hard_link(on.here("own"), on.here("twin.part")).unwrap();
    let pipe = Command::new("mkfifo").arg(on.here("pipe.part")).status();
    assert!(pipe.unwrap().success());
    for name in ["twin", "pipe"] {
        fs::write(on.far(name), "own text").unwrap();
    }
    for (local, wrong) in [
        ("drop/../outside", "not a name of a plain file"),
        ("drop/.hidden", "not a name of a plain file"),
        ("drop/x.part", "not a name of a plain file"),
        ("drop/a/b", "not a name of a plain file"),
        (
            "other/x",
            "there is no folder \\\"other\\\"; the folders are drop",
        ),
        ("/etc/x", "there is no folder \\\"\\\""),
        ("file", "is not FOLDER/FILE"),
    ] {
        for tool in ["ssh_get", "ssh_put"] {
            let arguments =
                json!({"session_id": on.session, "path": on.far("file"), "local": local});
            let said = on.client.call(tool, arguments).await.unwrap();
            assert!(
                said["isError"] == true && said.to_string().contains(wrong),
                "{tool} {local}: {said}"
            );
        }
    }
    for (tool, name, more, wrong) in [
        ("ssh_get", "link", json!({}), "is here already"),
        ("ssh_put", "link", json!({}), "link here"),
        ("ssh_put", "folder", json!({}), "it is not a plain file"),
        ("ssh_put", "missing", json!({}), "missing here"),
        ("ssh_get", "file", json!({"resume": true}), "file here"),
        (
            "ssh_get",
            "twin",
            json!({"resume": true}),
            "leave out resume",
        ),
        (
            "ssh_get",
            "pipe",
            json!({"resume": true}),
            "leave out resume",
        ),
        (
            "ssh_get",
            "long",
            json!({}),
            "has 11 bytes; transfers take 10 at most",
        ),
        ("ssh_get", "missing", json!({}), "there is no such file"),
    ] {
        let said = on.moved(tool, name, more).await;
        assert!(
            said["isError"] == true && said.to_string().contains(wrong),
            "{tool} {name}: {said}"
        );
    }
    let here = json!({"session_id": on.session, "path": on.target.folder.join("far"), "local": "drop/far"});
    let said = on.client.call("ssh_get", here).await.unwrap();
    assert!(
        said.to_string()
            .contains("is a directory, not a plain file"),
        "{said}"
    );
    assert_eq!(
        fs::read_to_string(on.target.folder.join("outside")).unwrap(),
        "outside"
    );
    // A link in its place is no file that could be replaced by accident.
    let said = on.moved("ssh_get", "file", json!({})).await;
    assert_eq!(said["structuredContent"]["bytes"], 4, "{said}");
}

#[tokio::test]
async fn directories_are_listed_and_refused_places_are_neither_listed_nor_moved() {
    if !has("sshd") {
        return;
    }
    let on = Moving::new(Some(&ssh::rules::policy()), "").await;
    fs::write(on.far("b"), "1234").unwrap();
    fs::create_dir(on.far("a")).unwrap();
    symlink("/etc/shadow", on.far("c")).unwrap();
    symlink("/etc", on.far("etc")).unwrap();
    fs::set_permissions(on.far("b"), fs::Permissions::from_mode(0o640)).unwrap();
    let list = async |path: String, limit: u64| {
        let arguments = json!({"session_id": on.session, "path": path, "limit": limit});
        on.client.call("ssh_list_dir", arguments).await
    };
    let far = on.target.folder.join("far").display().to_string();
    let said = list(far.clone(), 100).await.unwrap();
    let data = &said["structuredContent"];
    let told: Vec<_> = data["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            (
                entry["name"].as_str().unwrap(),
                entry["kind"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("a", "directory"),
            ("b", "file"),
            ("c", "link"),
            ("etc", "link")
        ]
    );
    assert_eq!(data["entries"][1]["bytes"], 4);
    assert_eq!(data["entries"][1]["mode"], "0640");
    assert_eq!(data["truncated"], false);
    let said = list(far, 2).await.unwrap();
    assert_eq!(
        (
            &said["structuredContent"]["count"],
            &said["structuredContent"]["truncated"]
        ),
        (&json!(2), &json!(true))
    );
    let said = list(on.far("b").display().to_string(), 2).await.unwrap();
    assert_eq!(said["isError"], true, "{said}");
    for path in ["/etc/sudoers.d", "/srv", "/etc/../srv"] {
        assert!(
            list(path.into(), 9).await.unwrap_err().contains("ssh-deny"),
            "{path}"
        );
    }
    for name in ["c", "etc/shadow"] {
        let arguments = json!({"session_id": on.session, "path": on.far(name), "local": "drop/x"});
        let wrong = on.client.call("ssh_get", arguments).await.unwrap_err();
        assert!(wrong.contains("ssh-deny-secrets"), "{name}: {wrong}");
    }
    let arguments = json!({"session_id": on.session, "path": on.far("new"), "local": "drop/x"});
    let wrong = on.client.call("ssh_put", arguments).await.unwrap_err();
    assert_eq!(wrong, "a person has to be asked");
    let relative = json!({"session_id": on.session, "path": "far", "local": "drop/x"});
    let said = on.client.call("ssh_get", relative).await.unwrap();
    assert!(
        said["isError"] == true && said.to_string().contains("must be a whole path"),
        "{said}"
    );
    assert!(!on.here("x").exists() && !on.here("x.part").exists());
}
