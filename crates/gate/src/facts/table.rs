//! The table of facts: one row for each. Records, expressions, explanations, replay and the reference
//! page read it.

/// What a fact's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One text.
    Text,
    /// A list of texts.
    Texts,
    /// A whole number, not negative.
    Number,
}

/// What may become of a fact's value in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Names and places: written as they are.
    Plain,
    /// Comparable and not readable: written as a keyed digest.
    Digest,
    /// Not written.
    Never,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct FactDef {
    /// The fact.
    pub id: FactId,
    /// Its name in expressions and in the journal.
    pub name: &'static str,
    /// Another name that it has there. Where there is one, the journal uses it.
    pub also: Option<&'static str>,
    /// What its value is.
    pub kind: Kind,
    /// What may become of it in the journal.
    pub class: Class,
    /// What it is, for the reference page.
    pub about: &'static str,
}

impl FactDef {
    /// Whether this is one of its names.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.also == Some(name)
    }

    /// The name in the journal.
    #[must_use]
    pub fn on_disk(&self) -> &'static str {
        self.also.unwrap_or(self.name)
    }
}

macro_rules! also {
    () => {
        None
    };
    ($also:literal) => {
        Some($also)
    };
}

/// `Id "name" ("other name"): Kind, Class, "what it is";`
macro_rules! facts {
    ($($id:ident $name:literal $(($also:literal))?: $kind:ident, $class:ident, $about:literal;)*) => {
        /// A fact, as a row of [`FACTS`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum FactId {
            $(#[doc = $about] $id,)*
        }

        /// Every fact that can be known of a call.
        pub const FACTS: &[&FactDef] = &[$(FactId::$id.row(),)*];

        impl FactId {
            /// Its row.
            #[must_use]
            pub const fn row(self) -> &'static FactDef {
                match self {
                    $(Self::$id => &FactDef {
                        id: Self::$id,
                        name: $name,
                        also: also!($($also)?),
                        kind: Kind::$kind,
                        class: Class::$class,
                        about: $about,
                    },)*
                }
            }
        }
    };
}

facts! {
    ToolName "tool_name": Text, Plain, "the tool's name; null where no tool is called";
    BackendId "backend_id": Text, Plain, "the server's name";
    Method "method" ("mcp_method"): Text, Plain, "the protocol's method";
    SubjectId "subject_id": Text, Plain, "who calls";
    SubjectGroups "subject_groups": Texts, Plain, "list of the groups that the caller belongs to; null where there are none";
    SubjectIssuer "subject_issuer": Text, Plain, "the issuer that the caller has signed in at; null for keys, accounts and the local user";
    Scopes "scopes": Texts, Plain, "list of the scopes of the caller's access token; null where there are none";
    Sid "sid": Text, Plain, "the id of the caller's session at the issuer, where the access token names one; else null";
    Agent "agent": Text, Plain, "name of the agent that calls on the caller's behalf; null if the caller's own client calls";
    ResourceType "resource_type": Text, Plain, "tool, resource, prompt, server or model; null where it is something else";
    Direction "direction": Text, Plain, "to_server, or to_client where a server asks its client";
    Operation "operation": Text, Plain, "the worst of what the call does: read, send, write, delete or execute; a verb in the tool's name counts against it; unknown where it may do anything";
    SideEffects "side_effects": Texts, Plain, "list of the tool's side effects; null where they are not known";
    ReadsOnly "reads_only": Text, Plain, "yes where the call is known to read files or the like and to do nothing else; else no";
    SimulationModel "simulation_model": Text, Plain, "the model file of a simulation that the call is about; null where it is about none";
    Simulation "simulation": Text, Plain, "the id of the simulation that the call is about; null where it is about none";
    Parameters "parameters": Texts, Plain, "list of the paths of the model parameters that the call names; null where it names none";
    CohortSize "cohort_size": Number, Plain, "how many individuals the call simulates; null where it simulates none";
    EstimatedCost "estimated_cost": Number, Plain, "for a simulation, states times individuals times simulated minutes, as a whole number; unknown where the simulation is not loaded yet; null where nothing is simulated";
    Paths "paths": Texts, Plain, "list of all places that the call's paths lead to; an allow rule sees none in contents";
    Path "path": Text, Plain, "the call's only path; unknown where there are several, or one that leads to several places: use paths";
    SourcePath "source_path": Text, Plain, "the only source, likewise";
    DestPath "dest_path": Text, Plain, "the only destination, likewise";
    Extension "extension": Text, Plain, "the extension of `path` with its dot, lower case";
    Scheme "scheme": Text, Plain, "the scheme of `uri`, else of the only path, lower case";
    Uri "uri": Text, Plain, "the resource's URI, or the address that a server asks its client to open";
    Urls "urls": Texts, Digest, "list of the call's URLs in canonical form, without user, password, query and fragment; of one that readers read differently every reading; null where there are none";
    UrlScheme "url_scheme": Texts, Plain, "list of the schemes of the call's URLs; null where there are none";
    UrlHost "url_host": Texts, Plain, "list of the hosts of the call's URLs: IPv4 addresses as four decimals, IPv6 addresses in brackets, names in lower case and ASCII; null where there are none";
    UrlPort "url_port": Texts, Plain, "list of the ports of the call's URLs, those of the schemes where none is written; null where there are none";
    UrlPath "url_path": Texts, Digest, "list of the paths of the call's URLs, as they are written, decoded and tidied; null where there are none";
    UrlAddressClass "url_address_class": Texts, Plain, "list of the classes of the addresses that the call's URLs lead to: loopback, private, link_local, metadata, public, name; null where there are none";
    UrlUserinfo "url_userinfo": Text, Plain, "yes where a URL of the call carries a user name or a password, else no; null where there are no URLs";
    Host "host": Text, Plain, "the machine that the call reaches, by its configured name; null where it reaches none";
    Program "program": Text, Plain, "the program that a command runs, as written";
    Argv "argv": Texts, Digest, "list of a command's words after the quotes are read, the program first";
    Operands "operands": Texts, Digest, "list of a command's words that are neither its program nor options";
    Cwd "cwd": Text, Plain, "the directory that a command runs in, where the call names one; else null";
    EnvNames "env_names": Texts, Plain, "list of the names of the variables that a call sets for its command; null where it sets none";
    Env "env": Texts, Digest, "the same with their values, as NAME=VALUE";
    Typed "typed": Text, Digest, "what a call types into a terminal, the Enter key as a carriage return; null where it types nothing";
    Forward "forward": Text, Plain, "local, remote or dynamic where the call opens a port forward over SSH; else null";
    ForwardListen "forward_listen": Text, Plain, "the address and port at which a port forward listens, as ADDRESS:PORT; null where there is none";
    ForwardTargets "forward_targets": Texts, Plain, "list of all that a port forward leads to, as HOST:PORT; null where there is none";
    Model "model": Texts, Plain, "list of the names of the model that is called: as the caller wrote it, as PROVIDER/MODEL, and the provider's own name for it; null where no model is called";
    Provider "provider": Text, Plain, "the model provider that the call goes to; null where no model is called";
    Stream "stream": Text, Plain, "yes where a model's reply is streamed, else no; null where no model is called";
    MaxTokens "max_tokens": Number, Plain, "the most tokens that a model may write, where the call says so, else null; unknown where it says so in no whole number";
    EstimatedPrice "estimated_price": Number, Plain, "the most that a call to a model can cost, in millionths of a dollar: `estimated_price > 1000000` is more than a dollar; null where the model has no price";
    ToolsOffered "tools_offered": Texts, Plain, "list of the names of the tools that a model is offered, of each every name that a provider may read, of one without a name or of the provider's own its type; null where there are none";
    SendsOutward "sends_outward": Text, Plain, "yes where the call may send something beyond this machine: its side effects say so, its definition (`openWorldHint`) or its URI; no where they say otherwise or it only reads; unknown where nothing is known";
    SessionLabels "session_labels": Texts, Plain, "list of the labels that earlier results have given the caller's session: untrusted, private, and untrusted+private where it has both; null where it has none";
    LabelledBy "labelled_by": Texts, Plain, "list of the calls that gave the session its labels, as `LABEL by TOOL on SERVER, op OP`; null where there are none";
    Inspected "inspected": Texts, Plain, "list of the `inspect:` rules that found something in the call, as RULE:COUNT; null where none did";
    HasImages "has_images": Text, Plain, "yes where a model is shown images, else no; null where no model is called";
}

impl FactId {
    /// The fact of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        FACTS
            .iter()
            .find(|row| row.is_called(name))
            .map(|row| row.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_is_found_by_its_names_and_no_name_stands_twice() {
        for (at, row) in FACTS.iter().enumerate() {
            assert_eq!(row.id.row().name, row.name);
            assert_eq!(FactId::named(row.name), Some(row.id));
            for name in [Some(row.name), row.also].into_iter().flatten() {
                assert_eq!(FactId::named(name), Some(row.id), "{name}");
                assert!(!FACTS.iter().skip(at + 1).any(|other| other.is_called(name)));
            }
        }
        assert_eq!(FactId::Method.row().on_disk(), "mcp_method");
        assert_eq!(FactId::named("nothing"), None);
    }
}
