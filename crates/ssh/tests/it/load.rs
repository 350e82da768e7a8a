//! Many commands at once: channels are learnt, shared and waited for.

use serde_json::{Value, json};
use ssh::hosts::Hosts;

use crate::stopping::runs;
use crate::target::{Client, Target, has, is_root};

async fn at_once(client: &Client, session: &str, count: usize) {
    let calls: Vec<_> = (0..count / 5)
        .map(|number| async move {
            let commands: Vec<String> =
                (0..5).map(|part| format!("echo {number}.{part}")).collect();
            let said = client
                .call(
                    "ssh_batch_commands",
                    json!({"session_id": session, "commands": commands}),
                )
                .await
                .unwrap();
            let data = &said["structuredContent"];
            assert_eq!(
                (&data["executed"], &data["total"], &data["all_success"]),
                (&json!(5), &json!(5), &json!(1)),
                "{said}"
            );
            for (part, result) in data["results"].as_array().unwrap().iter().enumerate() {
                assert_eq!(result["output"], format!("{number}.{part}\n"), "{said}");
            }
        })
        .collect();
    let mut waiting: Vec<_> = calls.into_iter().map(Box::pin).collect();
    std::future::poll_fn(|context| {
        waiting.retain_mut(|call| std::future::Future::poll(call.as_mut(), context).is_pending());
        if waiting.is_empty() {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
}

async fn stats(client: &Client) -> Value {
    let said = client.call("ssh_pool_stats", json!({})).await.unwrap();
    said["structuredContent"]["stats"].clone()
}

/// The one pool.
fn pool(stats: &Value) -> &Value {
    stats["pools"].as_object().unwrap().values().next().unwrap()
}

#[tokio::test]
async fn a_hundred_commands_at_once_all_run_where_the_server_takes_ten_or_two_on_a_connection() {
    if !has("sshd") {
        return;
    }
    for (sessions, connections) in [(10, 10), (2, 4)] {
        let target = Target::new(&format!("MaxSessions {sessions}\n"));
        let hosts = target.hosts(&format!("limits: {{ connections_max: {connections} }}\n"));
        let client = Client::new(hosts, None);
        let session = client.connect("web").await;
        at_once(&client, &session, 100).await;
        let stats = stats(&client).await;
        let pool = pool(&stats);
        assert!(pool["total"].as_u64() <= Some(connections), "{stats}");
        assert!(stats["global"]["hits"].as_u64() > Some(0), "{stats}");
        if sessions == 2 {
            assert_eq!(pool["channels_max"], 2, "{stats}");
        }
    }
}

#[tokio::test]
async fn more_than_may_wait_are_refused_and_none_waits_longer_than_it_may() {
    if !has("sshd") {
        return;
    }
    let target = Target::new("MaxSessions 1\n");
    let hosts: Hosts =
        target.hosts("limits: { connections_max: 1, queue_max: 2, queue_wait_ms_max: 300 }\n");
    let client = Client::new(hosts, None);
    let session = client.connect("web").await;
    // Of a length of its own, so that it is seen when it runs.
    let busy = client.run(&session, "sleep 3.14159");
    let others = async {
        while !runs("3.14159") {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        let (a, b, c) = tokio::join!(
            client.run(&session, "true"),
            client.run(&session, "true"),
            client.run(&session, "true")
        );
        [a, b, c].map(|said| {
            said.unwrap()["content"][0]["text"]
                .as_str()
                .unwrap()
                .to_owned()
        })
    };
    let (busy, others) = tokio::join!(busy, others);
    assert_eq!(busy.unwrap()["structuredContent"]["exit_code"], 0);
    let full = others
        .iter()
        .filter(|text| text.contains("2 calls wait for web already"))
        .count();
    let late = others
        .iter()
        .filter(|text| text.contains("no channel to web was free"))
        .count();
    assert_eq!((full, late), (1, 2), "{others:?}");
}

#[tokio::test]
async fn the_first_calls_of_a_restricted_shell_wait_for_the_one_that_asks_and_not_it_for_them() {
    if !has("sshd") || !is_root() || !has("bash") {
        return;
    }
    // It has no `exec`: it is asked once more, on another channel.
    let target = Target::with_home("rbash", (".bashrc", ""), None);
    for limits in [
        "{ connections_max: 1, channels_max: 2, queue_wait_ms_max: 2000 }",
        "{ connections_max: 1, channels_max: 1, queue_wait_ms_max: 2000 }",
    ] {
        let web = format!(
            "  web: {{ address: 127.0.0.1, port: PORT, credential: me }}\nlimits: {limits}\n"
        );
        let client = Client::new(target.hosts_as(&web), None);
        let session = client.connect("web").await;
        let run = || client.run(&session, "uname -s");
        let (a, b, c, d) = tokio::join!(run(), run(), run(), run());
        for said in [a, b, c, d] {
            let said = said.unwrap();
            assert_eq!(said["structuredContent"]["stdout"], "Linux\n", "{said}");
        }
    }
}
