//! A host whose disk is full: what is refused says so, nothing is half-written, and the end of what runs is told.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::target::{Client, Target, has, is_root};

struct Full {
    target: Target,
    client: Client,
    session: String,
}

impl Full {
    async fn new() -> Self {
        let target = Target::with_small_home();
        fs::create_dir(target.folder.join("drop")).unwrap();
        let hosts = target.hosts("local_folders: { drop: drop }\n");
        let client = Client::keeping(hosts, &target.folder);
        let session = client.connect("web").await;
        Self {
            target,
            client,
            session,
        }
    }

    fn home(&self, name: &str) -> String {
        self.target
            .folder
            .join("home")
            .join(name)
            .display()
            .to_string()
    }

    async fn call(&self, tool: &str, mut more: Value) -> Value {
        more["session_id"] = json!(self.session);
        self.client.call(tool, more).await.unwrap()
    }

    /// The output of a script at the host.
    async fn script(&self, text: &str) -> String {
        let line = self.target.script("script", text);
        let said = self.call("ssh_run", json!({"command": line})).await;
        let stdout = &said["structuredContent"]["stdout"];
        stdout
            .as_str()
            .unwrap_or_else(|| panic!("{said}"))
            .to_owned()
    }

    /// Leaves no byte of room.
    async fn fill(&self) {
        let fill = format!(
            "head -c 2000000 /dev/zero >>{} 2>/dev/null; :",
            self.home("fill")
        );
        self.script(&fill).await;
    }

    /// What there is in the home, with its sizes.
    async fn files(&self) -> String {
        let text = format!("cd {}; wc -c $(ls -A | grep -v fill)", self.home(""));
        self.script(&text).await
    }

    async fn ended(&self, job: &Value) -> Value {
        let began = std::time::Instant::now();
        loop {
            let call = json!({"job": job["job"], "wait_ms": 20_000});
            let said = self.client.call("ssh_job_status", call).await.unwrap();
            let status = said["structuredContent"].clone();
            if status["state"] != "running" && status["state"] != "queued" {
                return status;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{said}");
        }
    }
}

#[tokio::test]
async fn files_are_whole_or_as_they_were_where_the_disk_of_a_host_is_full() {
    if !has("sshd") || !is_root() {
        return;
    }
    let full = Full::new().await;
    full.script(&format!("printf 'port = 80\\n' >{}", full.home("app.conf")))
        .await;
    fs::write(full.target.folder.join("drop/new"), vec![b'x'; 5_000]).unwrap();
    full.fill().await;
    let long = "8080".repeat(2_000);
    let edits = json!([{"old_text": "80", "new_text": long}]);
    let put = |name: &str| json!({"path": full.home(name), "local": "drop/new", "overwrite": true});
    let path = full.home("app.conf");
    for (tool, arguments) in [
        ("ssh_edit_file", json!({"path": path, "edits": edits})),
        ("ssh_put", put("app.conf")),
        ("ssh_put", put("new")),
    ] {
        let said = full.call(tool, arguments).await;
        assert!(
            said["isError"] == true && said.to_string().contains("its disk or the user's quota"),
            "{tool}: {said}"
        );
    }
    let text = full.script(&format!("cat {}", full.home("app.conf"))).await;
    assert_eq!(text, "port = 80\n");
    let files = full.files().await;
    assert!(!files.contains(" new\n"), "{files}");
    full.script(&format!("rm {}", full.home("fill"))).await;
    for name in ["app.conf", "new"] {
        let said = full.call("ssh_put", put(name)).await;
        assert_ne!(said["isError"], true, "{said}");
    }
    let files = full.files().await;
    assert!(
        files.contains("5000 app.conf\n")
            && files.contains("5000 new\n")
            && !files.contains("durward"),
        "{files}"
    );
}

#[tokio::test]
async fn a_job_does_not_begin_on_a_full_disk_and_its_end_is_told_where_the_disk_is_full_by_then() {
    if !has("sshd") || !is_root() {
        return;
    }
    let full = Full::new().await;
    full.fill().await;
    let ran = full.target.open_file("ran");
    let line = full
        .target
        .script("job", &format!("echo ran >{}", ran.display()));
    let said = full.call("ssh_job_start", json!({"command": line})).await;
    let status = full.ended(&said["structuredContent"]).await;
    let error = status["error"].to_string();
    assert!(
        error.contains("job_not_started") && error.contains("No space left"),
        "{status}"
    );
    assert_eq!(fs::read_to_string(&ran).unwrap(), "", "it did not run");
    full.script(&format!("rm {}", full.home("fill"))).await;
    // One that fills the disk itself, and one that ends with a code.
    let line = full
        .target
        .script("filling", "head -c 3000000 /dev/zero; exit 7");
    let said = full.call("ssh_job_start", json!({"command": line})).await;
    let status = full.ended(&said["structuredContent"]).await;
    assert_eq!(
        (&status["exit_code"], &status["truncated"]),
        (&json!(7), &json!(true)),
        "{status}"
    );
    let said = full
        .call("ssh_job_start", json!({"command": "echo well"}))
        .await;
    let status = full.ended(&said["structuredContent"]).await;
    assert_eq!(
        (
            &status["exit_code"],
            &status["truncated"],
            &status["stdout_bytes"]
        ),
        (&json!(0), &json!(false), &json!(5)),
        "{status}"
    );
}
