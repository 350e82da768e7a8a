//! A server's entry in a client's configuration: what it starts or reaches, and the same through this program.

use std::ffi::OsString;
use std::path::Path;

use gate::admit::is_secret;
use net::outbound::http::Target;
use serde_json::{Map, Value, json};

use super::client::{Client, Spelling};

/// The variable in which a wrapped entry keeps the bearer token of its server.
const BEARER: &str = "DURWARD_SERVER_TOKEN";

/// What an entry starts or reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Server {
    /// A program with its arguments.
    Command(Vec<String>),
    /// A server over Streamable HTTP.
    Url(String),
}

/// An entry, as far as it is understood; the reason where it is not.
pub fn server(client: Client, entry: &Value) -> Result<Server, String> {
    let spelling = client.spelling();
    if let Some(kind) = entry.get("type").and_then(Value::as_str)
        && [
            "sse",
            "ws",
            "builtin",
            "platform",
            "frontend",
            "inline_python",
        ]
        .contains(&kind)
    {
        return Err(format!(
            "its type is {kind}; durward wraps servers over stdio and Streamable HTTP"
        ));
    }
    if let Some(url) = url_key(spelling, entry) {
        let url = entry.get(url).and_then(Value::as_str).unwrap_or_default();
        return Ok(Server::Url(url.to_owned()));
    }
    let command = match (entry.get(spelling.command), spelling.arguments) {
        (None, _) => return Err("it has no command and no URL".into()),
        (Some(program), Some(arguments)) => program
            .as_str()
            .zip(words(entry.get(arguments).unwrap_or(&json!([]))))
            .map(|(program, words)| [vec![program.to_owned()], words].concat()),
        (Some(all), None) => words(all),
    };
    match command {
        Some(command) if command.first().is_some_and(|program| !program.is_empty()) => {
            Ok(Server::Command(command))
        }
        _ => Err("its command is not text, or its arguments are not a list of texts".into()),
    }
}

fn words(list: &Value) -> Option<Vec<String>> {
    let items = list.as_array()?.iter();
    items.map(|item| item.as_str().map(str::to_owned)).collect()
}

fn url_key(spelling: Spelling, entry: &Value) -> Option<&'static str> {
    let is_there = |key: &&&str| entry.get(**key).is_some_and(Value::is_string);
    spelling.urls.iter().find(is_there).copied()
}

/// An API key, and the variable that holds it.
#[derive(Debug)]
pub struct Key {
    pub variable: String,
    pub text: String,
}

/// What every new entry of a client has.
fn begun(client: Client, name: &str) -> Map<String, Value> {
    let mut entry = Map::new();
    if client == Client::Goose {
        entry.insert("enabled".into(), json!(true));
        entry.insert("name".into(), json!(name));
        entry.insert("timeout".into(), json!(300));
    }
    entry
}

/// The new entry of a server over Streamable HTTP.
pub fn at_url(client: Client, name: &str, url: &str, key: Option<&Key>) -> Value {
    let mut entry = begun(client, name);
    let spelling = client.spelling();
    if let Some((_, http)) = spelling.types {
        entry.insert("type".into(), json!(http));
    }
    let url_key = spelling.urls.first().copied().unwrap_or("url");
    entry.insert(url_key.into(), json!(url));
    match key {
        Some(key) if client == Client::Codex => {
            entry.insert("bearer_token_env_var".into(), json!(key.variable));
        }
        Some(key) => {
            let header = json!({ "Authorization": format!("Bearer {}", key.text) });
            entry.insert(spelling.headers.into(), header);
        }
        None => {}
    }
    Value::Object(entry)
}

/// The new entry of a server over stdio.
pub fn new(
    client: Client,
    name: &str,
    command: Vec<String>,
    variables: Map<String, Value>,
) -> Value {
    let mut entry = begun(client, name);
    if client == Client::Zed {
        entry.insert("source".into(), json!("custom"));
    }
    let spelling = client.spelling();
    if let Some((stdio, _)) = spelling.types {
        entry.insert("type".into(), json!(stdio));
    }
    set_command(&mut entry, spelling, command);
    if !variables.is_empty() {
        entry.insert(spelling.environment.into(), Value::Object(variables));
    }
    Value::Object(entry)
}

fn set_command(entry: &mut Map<String, Value>, spelling: Spelling, command: Vec<String>) {
    match spelling.arguments {
        None => {
            entry.insert(spelling.command.into(), json!(command));
        }
        Some(arguments) => {
            let mut words = command.into_iter();
            entry.insert(spelling.command.into(), json!(words.next()));
            entry.insert(arguments.into(), words.map(Value::String).collect());
        }
    }
}

/// What stands in front of a server's own command: this program, and `run` with its flags.
pub struct Front {
    /// This program.
    pub program: String,
    /// The flags that every entry has.
    pub flags: Vec<String>,
    /// Variables that every server is given beside those of its entry.
    pub variables: Vec<String>,
}

impl Front {
    /// The same with further variables.
    pub fn with_variables(&self, variables: Vec<String>) -> Self {
        Self {
            program: self.program.clone(),
            flags: self.flags.clone(),
            variables: [variables, self.variables.clone()].concat(),
        }
    }

    /// The beginning of the command of a server that has this name in rules.
    pub fn line(&self, name: &str) -> Vec<String> {
        let mut line = vec![
            self.program.clone(),
            "run".into(),
            "--name".into(),
            name.into(),
        ];
        line.extend(self.flags.iter().cloned());
        line
    }

    /// The beginning of the command of what `durward.yaml` names.
    pub fn configured(&self) -> Vec<String> {
        let mut line = vec![self.program.clone(), "run".into()];
        line.extend(self.flags.iter().cloned());
        line
    }
}

/// The entry through this program.
///
/// # Errors
/// Why this entry cannot be wrapped.
pub fn wrapped(client: Client, name: &str, entry: &Value, front: &Front) -> Result<Value, String> {
    let spelling = client.spelling();
    let server = server(client, entry)?;
    let mut members = entry.as_object().cloned().unwrap_or_default();
    let mut line = front.line(&plain_name(name));
    match server {
        Server::Command(command) => {
            for variable in variables(client, entry).chain(front.variables.iter().cloned()) {
                line.extend(["--env".to_owned(), variable]);
            }
            line.push("--".to_owned());
            line.extend(command);
        }
        Server::Url(url) => {
            Target::parse(&url, false).map_err(|fault| format!("its URL {fault}"))?;
            token(client, &mut members)?
                .into_iter()
                .for_each(|variable| {
                    line.extend(["--api-key-env".to_owned(), variable]);
                });
            line.extend(["--url".to_owned(), url]);
            for key in spelling.urls {
                members.remove(*key);
            }
            if let Some((stdio, _)) = spelling.types {
                members.insert("type".into(), json!(stdio));
            }
        }
    }
    set_command(&mut members, spelling, line);
    Ok(Value::Object(members))
}

/// The command line of a program, and the variables that are set for it.
pub type CommandLine = (Vec<String>, Vec<(OsString, OsString)>);

/// Returns what starts the server of an entry through this program.
///
/// # Errors
/// Why this entry cannot be wrapped.
pub fn command_line(
    client: Client,
    name: &str,
    entry: &Value,
    front: &Front,
) -> Result<CommandLine, String> {
    let wrapped = wrapped(client, name, entry, front)?;
    let Server::Command(line) = server(client, &wrapped)? else {
        return Err("it has no command".into());
    };
    let variables = wrapped.get(client.spelling().environment);
    let variables = variables.and_then(Value::as_object).into_iter().flatten();
    let variables = variables.filter_map(|(name, value)| {
        let text = value.as_str()?;
        Some((OsString::from(name), OsString::from(text)))
    });
    Ok((line, variables.collect()))
}

/// The variables that a server is given by its entry.
fn variables(client: Client, entry: &Value) -> impl Iterator<Item = String> {
    let named = entry.get(client.spelling().environment);
    let named = named
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::keys);
    // Codex and Goose also pass variables on that are not in the file.
    let passed = ["env_vars", "env_keys"]
        .into_iter()
        .filter_map(|key| entry.get(key)?.as_array())
        .flatten()
        .filter_map(Value::as_str);
    let all: Vec<String> = named.cloned().chain(passed.map(str::to_owned)).collect();
    all.into_iter()
}

/// Returns the secrets that an entry holds by their names: values of variables, headers, flags, and parts of URLs. Those that
/// have the looks of one are found in the text itself ([`gate::inspect::secrets`]).
pub fn secrets(client: Client, entry: &Value) -> Vec<String> {
    let spelling = client.spelling();
    let members = |key: &str| entry.get(key).and_then(Value::as_object);
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let variables = members(spelling.environment).into_iter().flatten();
    let variables = variables.filter(|(name, _)| is_secret(name));
    let headers = members(spelling.headers).into_iter().flatten();
    let headers = headers.filter_map(|(_, value)| text(value));
    let mut found: Vec<String> = variables.filter_map(|(_, value)| text(value)).collect();
    found.extend(headers.map(|value| without_scheme(&value).to_owned()));
    if let Ok(server) = server(client, entry) {
        match server {
            Server::Command(words) => found.extend(secret_words(&words)),
            Server::Url(url) => found.extend(secret_parts(&url)),
        }
    }
    found.retain(|text| !text.is_empty());
    // A secret that begins like another one must not leave its end.
    found.sort_by_key(|text| std::cmp::Reverse(text.len()));
    found.dedup();
    found
}

/// The secrets among the words of a command: behind a flag, a name with `=`, or the name of a header.
fn secret_words(words: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    let mut flag: Option<&str> = None;
    for word in words {
        let name = word.trim_start_matches('-');
        let is_flag = name.len() < word.len();
        let pair = name.split_once('=').or_else(|| name.split_once(": "));
        match pair {
            Some((name, value)) if is_secret(name) => {
                found.push(without_scheme(value).to_owned());
            }
            _ if !is_flag && flag.is_some_and(is_secret) => {
                found.push(without_scheme(word).to_owned());
            }
            _ => found.extend(secret_parts(word)),
        }
        flag = is_flag.then_some(name);
    }
    found
}

/// The secrets in the query of a URL.
fn secret_parts(url: &str) -> Vec<String> {
    let parts = url.split(['?', '#', '&', ';']).skip(1);
    let pairs = parts.filter_map(|part| part.split_once('='));
    pairs
        .filter(|(name, _)| is_secret(name))
        .map(|(_, value)| value.to_owned())
        .collect()
}

/// A credential without the word that says of which scheme it is.
fn without_scheme(value: &str) -> &str {
    let schemes = ["Bearer ", "bearer ", "Basic ", "basic ", "token "];
    let value = value.trim_start();
    let rest = schemes.iter().find_map(|scheme| value.strip_prefix(scheme));
    rest.unwrap_or(value).trim_start()
}

/// Returns why a client may have to log in to the server of an entry; `None` where it has a token, or needs none.
pub fn may_need_login(client: Client, entry: &Value) -> Option<&'static str> {
    let Ok(Server::Url(url)) = server(client, entry) else {
        return None;
    };
    let has_credential = [client.spelling().headers, "bearer_token_env_var"]
        .iter()
        .any(|key| entry.get(*key).is_some());
    let is_remote = url
        .get(..8)
        .is_some_and(|start| start.eq_ignore_ascii_case("https://"));
    (is_remote && !has_credential && secret_parts(&url).is_empty()).then_some(
        "it has no token, so the client may log in to it itself (OAuth), which Durward cannot do for it",
    )
}

/// The member by which VS Code names a file of further variables.
const VARIABLES_FILE: &str = "envFile";

/// The variables of the file that an entry names, besides its own.
pub enum FileVariables {
    /// It names none.
    None,
    /// Their names, as they were read.
    Read(Vec<String>),
    /// The file cannot be read from here: its path as the entry has it.
    Unread(String),
}

/// Reads the names of the variables of the file that an entry names. `workspace` is what `${workspaceFolder}` stands for.
pub fn file_variables(entry: &Value, workspace: Option<&Path>) -> FileVariables {
    let Some(named) = entry.get(VARIABLES_FILE).and_then(Value::as_str) else {
        return FileVariables::None;
    };
    let unread = || FileVariables::Unread(named.to_owned());
    let path = match workspace {
        Some(folder) => named.replace("${workspaceFolder}", &folder.display().to_string()),
        None => named.to_owned(),
    };
    if path.contains("${") || !Path::new(&path).is_absolute() {
        return unread();
    }
    let Ok(Some(text)) = super::read(Path::new(&path)) else {
        return unread();
    };
    let name = |line: &str| {
        let line = line.trim_start();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, _) = line.split_once('=')?;
        let name = name.trim();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        (!name.is_empty() && name.chars().all(is_name)).then(|| name.to_owned())
    };
    FileVariables::Read(text.lines().filter_map(name).collect())
}

/// Moves the bearer token of an entry into a variable; gives its name where there is one.
fn token(client: Client, members: &mut Map<String, Value>) -> Result<Option<String>, String> {
    let spelling = client.spelling();
    if let Some(other) = ["env_http_headers", "oauth", "auth"]
        .iter()
        .find(|key| members.contains_key(**key))
    {
        return Err(format!(
            "it has \"{other}\", which `durward run --url` cannot send; put the server into durward.yaml instead"
        ));
    }
    if let Some(Value::String(variable)) = members.remove("bearer_token_env_var") {
        // Codex passes this variable on where it is told to.
        let passed = members.entry("env_vars").or_insert_with(|| json!([]));
        if let Some(passed) = passed.as_array_mut() {
            passed.push(json!(variable));
        }
        return Ok(Some(variable));
    }
    let Some(headers) = members
        .get(spelling.headers)
        .and_then(Value::as_object)
        .cloned()
    else {
        return Ok(None);
    };
    let mut bearer = None;
    for (name, value) in &headers {
        let token = value.as_str().and_then(|text| text.strip_prefix("Bearer "));
        match token.filter(|_| name.eq_ignore_ascii_case("authorization")) {
            Some(token) => bearer = Some(token.to_owned()),
            None => {
                return Err(format!(
                    "it sends the header \"{}\", and `durward run --url` sends only bearer tokens; put the server into durward.yaml instead",
                    name.escape_debug()
                ));
            }
        }
    }
    members.remove(spelling.headers);
    let Some(bearer) = bearer else {
        return Ok(None);
    };
    let variables = members
        .entry(spelling.environment)
        .or_insert_with(|| json!({}));
    if let Some(variables) = variables.as_object_mut() {
        variables.insert(BEARER.into(), json!(bearer));
    }
    Ok(Some(BEARER.to_owned()))
}

/// The words behind `durward run` where an entry runs this program.
pub fn run_words(client: Client, entry: &Value, own: &Path) -> Option<Vec<String>> {
    let Ok(Server::Command(command)) = server(client, entry) else {
        return None;
    };
    let (program, words) = command.split_first()?;
    let program = Path::new(program);
    let is_own = program == own || program.file_name().is_some_and(|name| name == "durward");
    let (first, rest) = words.split_first()?;
    (is_own && first == "run").then(|| rest.to_vec())
}

/// What an entry through this program was without it; none where that cannot be told, such as for a
/// server that `durward.yaml` names. `before` is the entry as a backup has it.
pub fn unwrapped(
    client: Client,
    entry: &Value,
    words: &[String],
    before: Option<&Value>,
) -> Option<Value> {
    let spelling = client.spelling();
    let mut members = entry.as_object()?.clone();
    if let Some(at) = words.iter().position(|word| word == "--") {
        let command = words.get(at + 1..)?.to_vec();
        let is_bare = command.len() == 1;
        if command.is_empty() {
            return None;
        }
        set_command(&mut members, spelling, command);
        if let (true, Some(arguments), Some(before)) = (is_bare, spelling.arguments, before)
            && before.get(arguments).is_none()
        {
            members.remove(arguments);
        }
        return Some(Value::Object(members));
    }
    let url = after(words, "--url")?;
    if let Some(before) = before
        && server(client, before) == Ok(Server::Url(url.to_owned()))
    {
        return Some(before.clone());
    }
    for key in [Some(spelling.command), spelling.arguments]
        .into_iter()
        .flatten()
    {
        members.remove(key);
    }
    if let Some((_, http)) = spelling.types {
        members.insert("type".into(), json!(http));
    }
    members.insert((*spelling.urls.first()?).into(), json!(url));
    if let Some(variable) = after(words, "--api-key-env") {
        give_back(&mut members, spelling, variable);
    }
    Some(Value::Object(members))
}

/// Puts the token of a variable back into the headers.
fn give_back(members: &mut Map<String, Value>, spelling: Spelling, variable: &str) {
    let variables = members
        .get_mut(spelling.environment)
        .and_then(Value::as_object_mut);
    let token = variables.and_then(|variables| {
        let token = variables.remove(variable);
        token.map(|token| (token, variables.is_empty()))
    });
    match token {
        Some((token, is_last)) => {
            if is_last {
                members.remove(spelling.environment);
            }
            let token = token.as_str().unwrap_or_default();
            let header = json!({ "Authorization": format!("Bearer {token}") });
            members.insert(spelling.headers.into(), header);
        }
        None => {
            members.insert("bearer_token_env_var".into(), json!(variable));
        }
    }
}

fn after<'w>(words: &'w [String], flag: &str) -> Option<&'w str> {
    let at = words.iter().position(|word| word == flag)?;
    words.get(at + 1).map(String::as_str)
}

/// A client's name for a server as rules and the journal can have it.
pub fn plain_name(name: &str) -> String {
    if let Ok(name) = crate::names::server_name(name) {
        return name;
    }
    match crate::names::plain(name) {
        plain if crate::names::server_name(&plain).is_ok() => plain,
        plain => format!("server-{plain}").chars().take(64).collect(),
    }
}

#[cfg(test)]
mod tests;
