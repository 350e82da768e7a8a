//! `durward init` as a newcomer calls it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use crate::support::program::lab_binary;
use crate::support::world::{World, binary};
use gate::policy::starter::STARTER_POLICY;

/// Exit code, standard output, standard error.
fn durward(world: &World, args: &[&str]) -> (i32, String, String) {
    let output = world.durward(args);
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

/// A world in which nobody has made the configuration's folder yet.
fn fresh() -> World {
    let world = World::new(None);
    fs::remove_dir_all(world.config()).unwrap();
    world
}

#[test]
fn a_newcomer_gets_files_that_work() {
    let world = fresh();
    let mock = [lab_binary(), "mock", "echo"];
    let (code, out, err) = durward(
        &world,
        &[&["init", "--yes", "--name", "e", "--"], &mock[..]].concat(),
    );
    assert_eq!(code, 0, "{err}");
    let mode = |name: &str| {
        fs::metadata(world.config().join(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(
        (mode("."), mode("durward.yaml"), mode("policy.json")),
        (0o700, 0o600, 0o600)
    );
    assert_eq!(
        fs::read_to_string(world.config().join("policy.json")).unwrap(),
        STARTER_POLICY
    );
    assert!(
        out.contains("\nnext:\n  durward check --start\n  durward install CLIENT --write e\n"),
        "{out}"
    );
    let (code, out, err) = durward(&world, &["check", "--strict"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("servers  1"), "{out}");
    let (code, _, err) = durward(&world, &["run", "e"]);
    assert_eq!(code, 0, "{err}");
    fs::create_dir_all(world.home().join(".cursor")).unwrap();
    // What is said to be next is done by these very words.
    for words in [
        &["check", "--start"][..],
        &["install", "cursor", "--write", "e"],
    ] {
        let (code, _, err) = durward(&world, words);
        assert_eq!(code, 0, "{words:?}: {err}");
    }
    let entry = fs::read_to_string(world.home().join(".cursor/mcp.json")).unwrap();
    assert!(
        entry.contains("\"run\"") && !entry.contains("mock"),
        "{entry}"
    );
}

#[test]
fn clients_that_are_there_are_named() {
    let world = fresh();
    let cursor = world.home().join(".cursor");
    fs::create_dir_all(&cursor).unwrap();
    fs::write(cursor.join("mcp.json"), "{}").unwrap();
    let (code, out, err) = durward(&world, &["init", "--yes", "--", "my-server", "two words"]);
    assert_eq!(code, 0, "{err}");
    assert!(
        out.contains("  durward install cursor --write my-server\n"),
        "{out}"
    );
    assert!(!out.contains("vscode"), "{out}");
    assert_eq!(fs::read_to_string(cursor.join("mcp.json")).unwrap(), "{}");
}

#[test]
fn nothing_is_replaced_without_force_and_a_copy() {
    let world = fresh();
    let (file, policy) = (
        world.config().join("durward.yaml"),
        world.config().join("policy.json"),
    );
    for there in [&file, &policy] {
        fs::create_dir_all(world.config()).unwrap();
        fs::write(there, "mine").unwrap();
        let (code, _, err) = durward(&world, &["init", "--yes"]);
        assert_eq!(code, 16);
        assert!(
            err.contains(&format!(
                "{} exists already; nothing was written",
                there.display()
            )),
            "{err}"
        );
        assert_eq!(fs::read_to_string(there).unwrap(), "mine");
        assert_eq!(fs::read_dir(world.config()).unwrap().count(), 1);
        fs::remove_dir_all(world.config()).unwrap();
    }
    fs::create_dir_all(world.config()).unwrap();
    fs::write(&file, "mine").unwrap();
    let (code, out, err) = durward(&world, &["init", "--yes", "--force"]);
    assert_eq!(code, 0, "{err}");
    let copy = out
        .lines()
        .find_map(|line| line.strip_suffix(": backup of the file as it was"))
        .unwrap();
    assert_eq!(fs::read_to_string(copy).unwrap(), "mine");
    assert_eq!(durward(&world, &["check"]).0, 0);
}

#[test]
fn without_a_terminal_it_says_which_flags() {
    let world = fresh();
    let (code, _, err) = durward(&world, &["init"]);
    assert_eq!(code, 16);
    assert!(
        err.contains("so nothing can be asked\n  hint: give --yes"),
        "{err}"
    );
    assert!(!world.config().exists());
}

#[test]
fn what_cannot_be_written_leaves_nothing() {
    let world = fresh();
    for (args, says) in [
        (
            &["init", "--yes", "--name", "a"][..],
            "--name is given without a server",
        ),
        (
            &["init", "--yes", "--url", "ftp://x"],
            "servers.x.url is neither http nor https",
        ),
        (
            &["init", "--yes", "--no-config"],
            "--no-config leaves nothing to write",
        ),
        (
            &["init", "--yes", "--config", "/proc/none/d.yaml"],
            "cannot create /proc/none",
        ),
    ] {
        let (code, _, err) = durward(&world, args);
        assert_eq!(code, 16, "{args:?}: {err}");
        assert!(err.contains(says), "{err}");
        assert!(!world.config().exists(), "{args:?}");
    }
    let (code, _, _) = durward(&world, &["init", "--yes", "--name", "a__b", "--", "x"]);
    assert_eq!(code, 2);
}

#[test]
fn another_place_is_written_and_named() {
    let world = fresh();
    let (code, out, err) = durward(
        &world,
        &[
            "init",
            "--yes",
            "--config",
            "here/d.yaml",
            "--url",
            "https://docs.example/mcp",
        ],
    );
    assert_eq!(code, 0, "{err}");
    assert!(
        out.contains("durward install --config /")
            && out.contains("here/d.yaml CLIENT --write docs.example\n"),
        "{out}"
    );
    let (code, out, err) = durward(&world, &["check", "--config", "here/d.yaml"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("https://docs.example/mcp"), "{out}");
    assert!(!world.config().exists());
}

#[test]
fn at_a_terminal_it_asks_again_and_an_end_leaves_nothing() {
    let world = fresh();
    let ask = |answers: &str| {
        let command = format!(
            "printf '%s' '{answers}' | script -qec '{} init' /dev/null",
            binary()
        );
        let output = Command::new("sh")
            .args(["-c", &command])
            .envs(world.environment())
            .current_dir(&world.tmp)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    if Command::new("script").arg("--version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "script is missing");
        eprintln!("skipped: there is no program script to make a terminal");
        return;
    }
    // The end of the input in the middle of the questions; \x04 is Ctrl-D.
    let said = ask("my-server\n\u{4}");
    assert!(said.contains("nothing was written"), "{said}");
    assert!(!world.config().exists());
    let said = ask("sh \"open\nmy-server --flag\na__b\nfiles\n");
    assert!(said.contains("a \" is not closed"), "{said}");
    assert!(said.contains("a server's name has"), "{said}");
    let text = fs::read_to_string(world.config().join("durward.yaml")).unwrap();
    assert!(
        text.contains("  \"files\":\n    command: \"my-server\"\n    args: [\"--flag\"]\n"),
        "{text}"
    );
}

#[test]
fn a_newcomer_may_declare_what_the_tools_do() {
    let world = fresh();
    let mock = [lab_binary(), "mock", "files"];
    let words = ["init", "--yes", "--accept-classes", "--name", "e", "--"];
    let (code, _, err) = durward(&world, &[&words[..], &mock[..]].concat());
    assert_eq!(code, 0, "{err}");
    let text = fs::read_to_string(world.config().join("durward.yaml")).unwrap();
    assert!(text.contains("read_file: read"), "{text}{err}");
    assert!(text.contains("write_file: write"), "{text}{err}");
    let (code, _, err) = durward(&world, &["check", "--strict"]);
    assert_eq!(code, 0, "{err}");
    // A server that does not start leaves the files as they are, with a reason.
    let world = fresh();
    let (code, _, err) = durward(&world, &[&words[..], &["/bin/false"]].concat());
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("no class of a tool was declared"), "{err}");
}
