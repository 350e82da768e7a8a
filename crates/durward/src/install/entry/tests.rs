use super::*;

fn front() -> Front {
    Front {
        program: "/bin/durward".into(),
        flags: Vec::new(),
        variables: vec!["EXTRA".into()],
    }
}

/// Entries as each client spells them, and the words that stand behind `run` when they are wrapped.
fn entries() -> Vec<(Client, Value, &'static str)> {
    let files = "--name files --env K --env EXTRA -- npx -y x";
    vec![
        (
            Client::ClaudeDesktop,
            json!({"command": "npx", "args": ["-y", "x"], "env": {"K": "v"}}),
            files,
        ),
        (
            Client::Vscode,
            json!({"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"K": "v"}, "cwd": "/x"}),
            files,
        ),
        (
            Client::Codex,
            json!({"command": "npx", "args": ["-y", "x"], "env_vars": ["K"], "startup_timeout_sec": 3}),
            files,
        ),
        (
            Client::Goose,
            json!({"type": "stdio", "cmd": "npx", "args": ["-y", "x"], "envs": {"K": "v"}, "enabled": true}),
            files,
        ),
        (
            Client::Opencode,
            json!({"type": "local", "command": ["npx", "-y", "x"], "environment": {"K": "v"}}),
            files,
        ),
        (
            Client::Cursor,
            json!({"url": "https://mcp.example/mcp"}),
            "--name files --url https://mcp.example/mcp",
        ),
        (
            Client::Windsurf,
            json!({"serverUrl": "https://mcp.example/mcp", "headers": {"authorization": "Bearer abc"}}),
            "--name files --api-key-env DURWARD_SERVER_TOKEN --url https://mcp.example/mcp",
        ),
        (
            Client::Codex,
            json!({"url": "https://mcp.example/mcp", "bearer_token_env_var": "TOKEN"}),
            "--name files --api-key-env TOKEN --url https://mcp.example/mcp",
        ),
        (
            Client::ClaudeCode,
            json!({"type": "http", "url": "http://127.0.0.1:3000/mcp"}),
            "--name files --url http://127.0.0.1:3000/mcp",
        ),
    ]
}

#[test]
fn entries_are_wrapped_and_unwrapped() {
    for (client, entry, expect) in entries() {
        let is = wrapped(client, "files", &entry, &front()).unwrap();
        let words = run_words(client, &is, Path::new("/bin/durward")).unwrap();
        assert_eq!(words.join(" "), expect, "{is}");
        assert!(!is.to_string().contains("Bearer"), "{is}");
        assert_eq!(
            unwrapped(client, &is, &words, Some(&entry)),
            Some(entry.clone())
        );
        let alone = unwrapped(client, &is, &words, None).unwrap();
        assert_eq!(server(client, &alone), server(client, &entry), "{alone}");
    }
}

#[test]
fn what_cannot_be_wrapped_says_why() {
    for (entry, why) in [
        (
            json!({"type": "sse", "url": "https://x.example/sse"}),
            "type is sse",
        ),
        (json!({"disabled": true}), "no command and no URL"),
        (json!({"command": 7}), "not text"),
        (json!({"command": "x", "args": "y"}), "not a list of texts"),
        (json!({"command": ""}), "not text"),
        (json!({"url": "http://mcp.example/mcp"}), "http"),
        (json!({"url": "${input:url}"}), "URL"),
        (
            json!({"url": "https://x.example", "headers": {"X-Key": "a"}}),
            "the header \"X-Key\"",
        ),
        (
            json!({"url": "https://x.example", "oauth": {}}),
            "\"oauth\"",
        ),
    ] {
        let said = wrapped(Client::ClaudeCode, "s", &entry, &front()).unwrap_err();
        assert!(said.contains(why), "{entry}: {said}");
    }
}

#[test]
fn names_become_names_of_rules() {
    for (name, expect) in [
        ("files", "files"),
        ("My Server/2", "My-Server-2"),
        ("a__b", "a--b"),
        ("list_tools", "list-tools"),
        ("capabilities", "server-capabilities"),
        ("", "server-"),
    ] {
        assert_eq!(plain_name(name), expect);
    }
}
