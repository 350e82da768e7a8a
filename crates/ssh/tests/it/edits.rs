//! A text file at a real sshd, changed as it was shown, or not at all.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use crate::target::{Client, Target, has};

/// A folder that whoever logs in may write to, with a file.
fn folder(target: &Target, text: &[u8]) -> std::path::PathBuf {
    let folder = target.folder.join("open");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).unwrap();
    fs::write(folder.join("app.conf"), text).unwrap();
    fs::set_permissions(folder.join("app.conf"), PermissionsExt::from_mode(0o664)).unwrap();
    folder
}

async fn edit(client: &Client, session: &str, path: &str, edits: Value) -> Result<Value, String> {
    let arguments = json!({"session_id": session, "path": path, "edits": edits});
    let said = client.call("ssh_edit_file", arguments).await?;
    match said["isError"] == true {
        true => Err(said.to_string()),
        false => Ok(said["structuredContent"].clone()),
    }
}

#[tokio::test]
async fn a_file_is_changed_whole_or_not_at_all() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let folder = folder(&target, "port = 80\nname = \"é\"\nlog = off\n".as_bytes());
    let file = folder.join("app.conf");
    let at = file.display().to_string();
    let client = target.client();
    let session = client.connect("web").await;
    let both = json!([{"old_text": "port = 80", "new_text": "port = 8080"}, {"old_text": "log = off\n", "new_text": ""}]);
    let told = edit(&client, &session, &at, both.clone()).await.unwrap();
    let now = "port = 8080\nname = \"é\"\n";
    assert_eq!(fs::read_to_string(&file).unwrap(), now);
    assert_eq!(
        (&told["bytes"], &told["path"]),
        (&json!(now.len()), &json!(at)),
        "{told}"
    );
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o664
    );
    for (edits, wrong) in [
        (both, "does not stand in the file"),
        (
            json!([{"old_text": "port", "new_text": "x"}, {"old_text": "none", "new_text": ""}]),
            "edit 2",
        ),
        (
            json!([{"old_text": "0", "new_text": "1"}]),
            "more than once",
        ),
        (json!([{"old_text": "", "new_text": "1"}]), "old_text"),
        (json!([]), "edits"),
    ] {
        let said = edit(&client, &session, &at, edits).await.unwrap_err();
        assert!(said.contains(wrong), "{wrong}: {said}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), now);
    assert_eq!(
        fs::read_dir(&folder).unwrap().count(),
        1,
        "nothing is left beside it"
    );
    fs::write(&file, b"\xff\xfe").unwrap();
    let one = json!([{"old_text": "a", "new_text": "b"}]);
    for (path, wrong) in [
        (at.clone(), "not text in UTF-8"),
        (folder.display().to_string(), "not a plain file"),
        (format!("{at}.none"), "no such file"),
        ("app.conf".into(), "whole path"),
    ] {
        let said = edit(&client, &session, &path, one.clone())
            .await
            .unwrap_err();
        assert!(said.contains(wrong), "{wrong}: {said}");
    }
}

#[tokio::test]
async fn a_file_whose_name_is_as_long_as_names_may_be_is_changed() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let folder = folder(&target, b"");
    let file = folder.join("n".repeat(255));
    fs::write(&file, "a = 1\n").unwrap();
    let client = target.client();
    let session = client.connect("web").await;
    let one = json!([{"old_text": "1", "new_text": "2"}]);
    edit(&client, &session, &file.display().to_string(), one)
        .await
        .unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "a = 2\n");
    assert_eq!(
        fs::read_dir(&folder).unwrap().count(),
        2,
        "nothing is left beside it"
    );
}

#[tokio::test]
async fn a_person_is_asked_and_a_link_is_judged_where_it_leads() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("");
    let folder = folder(&target, b"a\n");
    let shipped = Client::new(target.hosts(""), Some(&ssh::rules::policy()));
    let session = shipped.connect("web").await;
    let one = json!([{"old_text": "a", "new_text": "b"}]);
    let at = |name: &str| folder.join(name).display().to_string();
    let wrong = edit(&shipped, &session, &at("app.conf"), one.clone())
        .await
        .unwrap_err();
    assert!(wrong.contains("a person has to be asked"), "{wrong}");
    let wrong = edit(&shipped, &session, "/etc/shadow", one.clone())
        .await
        .unwrap_err();
    assert!(wrong.contains("ssh-deny-secrets"), "{wrong}");
    let policy = format!(
        r#"{{"rules":[{{"id":"all","effect":"allow","conditions":{{"tool_name":"ssh_connect"}}}},
        {{"id":"open","effect":"allow","conditions":{{"tool_name":"ssh_edit_file","path_pattern":"{}/**"}}}}]}}"#,
        folder.display()
    );
    let client = Client::new(target.hosts(""), Some(&policy));
    let session = client.connect("web").await;
    fs::write(target.folder.join("other"), "a\n").unwrap();
    symlink(target.folder.join("other"), folder.join("link")).unwrap();
    assert!(
        edit(&client, &session, &at("link"), one.clone())
            .await
            .is_err()
    );
    assert_eq!(
        fs::read_to_string(target.folder.join("other")).unwrap(),
        "a\n"
    );
    edit(&client, &session, &at("app.conf"), one).await.unwrap();
    assert_eq!(fs::read_to_string(folder.join("app.conf")).unwrap(), "b\n");
}
