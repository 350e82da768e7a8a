//! The shipped rules: an ordinary policy, made of one table of forms.
//!
//! Nothing here is special to the gate: `durward ssh rules` prints the policy, and whoever wants other rules
//! changes that file. Commands that look are allowed, one rule for each program; secrets and what lies
//! outside of a few roots are refused whatever reads them; a service is started or stopped by a person's
//! yes.

mod forms;
mod places;

use gate::facts::{Direction, Fact, Facts, ResourceType};
use serde_json::{Value, json};

use crate::command::{Command, CommandFault, Context};
use forms::FORMS;

/// The tools that run one command.
const RUN: [&str; 7] = [
    "ssh_run_command",
    "ssh_run",
    "ssh_job_start",
    "ssh_fan_out",
    "ssh_hostname",
    "ssh_cat_file",
    "ssh_network_qdisc",
];
/// The tools that may run several.
const SEVERAL: [&str; 6] = [
    "ssh_batch_commands",
    "ssh_network_interfaces",
    "ssh_network_routes",
    "ssh_network_firewall",
    "ssh_network_connectivity",
    "ssh_network_compare",
];
/// The tools that read files and directories over SFTP.
const READ: [&str; 2] = ["ssh_get", "ssh_list_dir"];
/// The tools that run none.
const NONE: [&str; 12] = [
    "ssh_read_output",
    "ssh_connect",
    "ssh_disconnect",
    "ssh_list_sessions",
    "ssh_pool_stats",
    "ssh_job_status",
    "ssh_job_output",
    "ssh_job_cancel",
    "ssh_forward_list",
    "ssh_forward_close",
    "ssh_terminal_read",
    "ssh_terminal_close",
];

/// What a command does that a form allows: a form is one thing, what is known of the program is the other.
const LOOKS: &str = "operation == 'read'";

/// Holds for variables that may do more than change how a program's output looks.
const SETS_MORE: &str = "env_names != null && env_names.exists(name, !(name in ['LANG', 'LANGUAGE', 'TZ', 'TERM', 'COLUMNS', 'LINES', 'NO_COLOR'] || name.startsWith('LC_')))";

/// The shipped policy, as JSON.
#[must_use]
pub fn policy() -> String {
    let mut rules = Vec::from(refused());
    for group in FORMS {
        let id = format!("ssh-allow-{}", group.id);
        let mut asked = vec![("tool_name", json!(RUN)), ("argv", json!(group.forms))];
        let when = group
            .when
            .map_or(LOOKS.to_owned(), |when| format!("{LOOKS} && {when}"));
        asked.push(("when", json!(when)));
        rules.push(rule(&id, group.about, "allow", &asked));
    }
    let several: Vec<&str> = FORMS
        .iter()
        .filter(|group| group.when.is_none())
        .flat_map(|group| group.forms)
        .copied()
        .collect();
    rules.push(rule(
        "ssh-allow-several",
        "several commands, each of which is allowed alone",
        "allow",
        &[
            ("tool_name", json!(SEVERAL)),
            ("argv", json!(several)),
            ("when", json!(LOOKS)),
        ],
    ));
    rules.extend(of_files());
    rules.push(rule(
        "ssh-allow-sessions",
        "sessions, jobs that were let begin, and what is known of connections",
        "allow",
        &[("tool_name", json!(NONE))],
    ));
    rules.extend(of_services());
    rules.extend(of_terminals());
    let policy = json!({"version": "1", "default_action": "deny", "rules": rules});
    format!("{policy:#}\n")
}

/// The forms in which the shipped rules allow the program of a line.
#[must_use]
pub fn forms_of(line: &str) -> Vec<&'static str> {
    let Ok(command) = Command::read(line) else {
        return Vec::new();
    };
    let is_of = |form: &&str| {
        let name = form.split(' ').next().unwrap_or_default();
        name.split('|').any(|name| name == command.program())
    };
    let forms = FORMS.iter().flat_map(|group| group.forms.iter().copied());
    forms.filter(is_of).collect()
}

/// Programs on terminals: what is typed may do anything that they can do; and port forwards.
fn of_terminals() -> [Value; 3] {
    let looks: Vec<&str> = FORMS
        .iter()
        .filter(|group| group.when.is_none())
        .flat_map(|group| group.forms)
        .copied()
        .collect();
    let open = [
        ("tool_name", json!("ssh_terminal_open")),
        ("when", json!(LOOKS)),
        ("argv", json!(looks)),
    ];
    [
        rule(
            "ssh-ask-terminal",
            "a program that only looks runs on a terminal by a person's yes",
            "hitl",
            &open,
        ),
        rule(
            "ssh-ask-typing",
            "what is typed into a terminal is seen by a person first",
            "hitl",
            &[("tool_name", json!("ssh_terminal_send"))],
        ),
        rule(
            "ssh-ask-forward",
            "a port forward is opened by a person's yes",
            "hitl",
            &[("tool_name", json!("ssh_forward_open"))],
        ),
    ]
}

/// Services, by their own user's rights and by sudo.
fn of_services() -> [Value; 2] {
    let asked = |id: &str, description: &str, before: &str| {
        let form = format!("{before}systemctl start|stop|restart|reload|try-restart NAME");
        let conditions = [("tool_name", json!(RUN)), ("argv", json!([form]))];
        rule(id, description, "hitl", &conditions)
    };
    [
        asked(
            "ssh-ask-services",
            "a service is started, stopped or restarted by a person's yes",
            "",
        ),
        asked(
            "ssh-ask-sudo",
            "the same as root, by sudo and a person's yes",
            "sudo ",
        ),
    ]
}

/// What no other rule lets pass.
fn refused() -> [Value; 5] {
    [
        rule(
            "ssh-ask-variables",
            "variables other than those of language, time zone and colour are set by a person's yes",
            "hitl",
            &[("when", json!(SETS_MORE))],
        ),
        rule(
            "ssh-deny-secrets",
            "keys, passwords and what processes keep to themselves",
            "deny",
            &[("path_pattern", json!(places::secrets()))],
        ),
        rule(
            "ssh-deny-other-roots",
            "files outside of /etc, /var/log, /home, /tmp, /opt, /usr/share, /proc, /sys and where links in /etc lead",
            "deny",
            &[("when", json!(places::outside()))],
        ),
        rule(
            "ssh-deny-environments",
            "ps tells the environments of processes",
            "deny",
            &[
                ("program", json!("ps")),
                ("when", json!("argv.exists(word, word.contains('env'))")),
            ],
        ),
        rule(
            "ssh-deny-lsof-plus",
            "lsof has options with a plus sign, and takes one for an option behind -i and -g too",
            "deny",
            &[
                ("program", json!("lsof")),
                (
                    "when",
                    json!(
                        "argv.exists(word, word.startsWith('+') || word.startsWith('-') && word.contains('+'))"
                    ),
                ),
            ],
        ),
    ]
}

/// Files over SFTP; the rules on places hold for them too.
fn of_files() -> [Value; 2] {
    [
        rule(
            "ssh-allow-files",
            "files are fetched and directories listed, where no rule refuses the path",
            "allow",
            &[("tool_name", json!(READ))],
        ),
        rule(
            "ssh-ask-put",
            "a file is written or changed by a person's yes",
            "hitl",
            &[("tool_name", json!(["ssh_put", "ssh_edit_file"]))],
        ),
    ]
}

fn rule(id: &str, description: &str, effect: &str, conditions: &[(&str, Value)]) -> Value {
    let mut asked: serde_json::Map<String, Value> = conditions
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    if !asked.contains_key("tool_name") {
        asked.insert("tool_name".to_owned(), json!("ssh_*"));
    }
    json!({"id": id, "description": description, "effect": effect, "conditions": asked})
}

/// What is known of a call of `ssh_run_command` with this line, before anything else is.
///
/// # Errors
/// [`CommandFault`] where the line is no command.
pub fn facts(line: &str, host: Option<&str>) -> Result<Facts, CommandFault> {
    let command = Command::read(line)?;
    let mut facts = Facts {
        direction: Direction::ToServer,
        method: "tools/call".into(),
        tool_name: Fact::Known("ssh_run_command".into()),
        backend_id: "ssh".into(),
        resource_type: Some(ResourceType::Tool),
        ..Facts::default()
    };
    let host = host.map_or(Fact::Unknown, |host| Fact::Known(host.into()));
    let _ = facts.set(gate::facts::FactId::Host, host);
    crate::server::state(&[command], &Context::default(), &mut facts);
    Ok(facts)
}

#[cfg(test)]
mod tests;
