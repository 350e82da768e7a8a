//! Where a command runs and which variables it gets, beside its words.

use gate::facts::Operation;

use super::{CommandFault, Operand, Part, Uses, words};

/// Most variables of a command.
pub const VARIABLES_MAX: usize = 32;
/// Longest value of a variable, in characters.
pub const VALUE_CHARS_MAX: usize = 4_096;

/// Enters a directory and runs the rest; `$0` is the directory. Where its links were followed before, another
/// directory that has taken its place since is not entered.
const ENTER: &str = "cd -P -- \"$0\" && exec \"$@\"";
const ENTER_CHECKED: &str = "cd -P -- \"$0\" || exit 126; [ \"$(pwd -P)\" = \"$0\" ] || \
{ echo \"$0 was replaced while it was entered\" >&2; exit 126; }; exec \"$@\"";

/// Variables by which another program runs than the one that was judged, or runs something else first.
const OF_PROGRAMS: [&str; 15] = [
    "PATH",
    "IFS",
    "ENV",
    "BASH_ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "PS4",
    "PROMPT_COMMAND",
    "ZDOTDIR",
    "GCONV_PATH",
    "LD_*",
    "DYLD_*",
    "BASH_FUNC_*",
    "DURWARD_*",
    "LC_DURWARD_*",
];

/// Where a command runs and which variables it gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Context {
    /// The directory, as a whole path; without one it is the login's.
    pub cwd: Option<String>,
    /// Variables by name, each once.
    pub env: Vec<(String, String)>,
    /// The directory is the place that its path leads to, and no other is entered.
    pub is_checked: bool,
    /// Where the login begins, as far as that is known.
    pub home: Option<String>,
}

impl Context {
    /// Reads what a call says.
    ///
    /// # Errors
    /// [`CommandFault`] for a directory that is no whole path, or a name or value that no variable may have.
    pub fn of(
        cwd: Option<&str>,
        env: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, CommandFault> {
        if let Some(cwd) = cwd {
            words::check_characters(cwd)?;
            if !cwd.starts_with('/') {
                let wrong = format!("\"{cwd}\" is not a whole path, beginning with /");
                return Err(CommandFault::new(wrong));
            }
        }
        let env: Vec<(String, String)> = env.into_iter().collect();
        if env.len() > VARIABLES_MAX {
            let wrong = format!("there are more than {VARIABLES_MAX} variables");
            return Err(CommandFault::new(wrong));
        }
        for (name, value) in &env {
            check_name(name)?;
            words::check_characters(value)?;
            if value.chars().count() > VALUE_CHARS_MAX {
                let wrong = format!("{name} is longer than {VALUE_CHARS_MAX} characters");
                return Err(CommandFault::new(wrong));
            }
        }
        Ok(Self {
            cwd: cwd.map(str::to_owned),
            env,
            is_checked: false,
            home: None,
        })
    }

    /// The path that a word means: a relative one lies below the directory, which is the login's where none is given.
    #[must_use]
    pub fn place(&self, text: &str) -> String {
        match self.cwd.as_ref().or(self.home.as_ref()) {
            Some(cwd) if !text.starts_with('/') => {
                format!("{}/{text}", cwd.trim_end_matches('/'))
            }
            _ => text.to_owned(),
        }
    }

    /// Paths that a command with these uses may open beside its operands that are paths: the directory, values of
    /// variables that look like paths, operands that are paths for some builds of a program, and, where nobody knows
    /// the program, every word that may name a file there.
    #[must_use]
    pub fn beside(&self, uses: &Uses<'_>) -> Vec<String> {
        let mut paths: Vec<String> = self.cwd.iter().cloned().collect();
        for (_, value) in &self.env {
            let parts = value.split(':').filter(|part| looks_like_path(part));
            paths.extend(parts.map(|part| self.place(part)));
        }
        let perhaps = uses.operands.iter().filter(|of| of.part == Part::Perhaps);
        for operand in perhaps {
            paths.push(self.place(operand.text));
            // A program that nobody knows may take it for a place in somebody's home.
            if uses.operation == Operation::Unknown
                && let Some(below) = operand.text.strip_prefix('~')
            {
                let own = self.home.as_ref();
                let own = own.filter(|_| below.is_empty() || below.starts_with('/'));
                paths.push(
                    own.map_or_else(|| operand.text.to_owned(), |home| format!("{home}{below}")),
                );
            }
        }
        let is_known = uses.operation != Operation::Unknown;
        if self.cwd.is_some() && !is_known {
            let may_name = |operand: &&Operand<'_>| {
                operand.part == Part::Other && !operand.text.is_empty() && operand.text != "-"
            };
            let words = uses.operands.iter().filter(may_name);
            paths.extend(words.map(|operand| self.place(operand.text)));
        }
        paths
    }

    /// The words that stand before a command's own, so that it runs there with these variables.
    #[must_use]
    pub fn before(&self) -> Vec<String> {
        let mut words = Vec::new();
        if let Some(cwd) = &self.cwd {
            let script = if self.is_checked {
                ENTER_CHECKED
            } else {
                ENTER
            };
            words.extend(["sh", "-c", script, cwd].map(str::to_owned));
        }
        if !self.env.is_empty() {
            words.push("env".to_owned());
            let pairs = self.env.iter();
            words.extend(pairs.map(|(name, value)| format!("{name}={value}")));
        }
        words
    }
}

fn looks_like_path(text: &str) -> bool {
    text.contains('/') || text.starts_with('~')
}

/// Whether a name is one that a variable may have, and decides nothing about which program runs.
///
/// # Errors
/// [`CommandFault`] that says why not.
pub fn check_name(name: &str) -> Result<(), CommandFault> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(fits)
    {
        let wrong = format!("\"{name}\" is not a variable name: letters, digits and _ only");
        return Err(CommandFault::new(wrong));
    }
    if OF_PROGRAMS.iter().any(|pattern| is_of(pattern, name)) {
        let wrong = format!("{name} would change which program runs, and is never set");
        return Err(CommandFault::new(wrong));
    }
    Ok(())
}

/// Whether a name is of a pattern: a name, or its beginning and `*`.
#[must_use]
pub fn is_of(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Command;
    use super::*;

    fn of(cwd: Option<&str>, env: &[(&str, &str)]) -> Result<Context, CommandFault> {
        let env = env.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
        Context::of(cwd, env)
    }

    #[test]
    fn relative_words_lie_below_the_directory() {
        let context = of(Some("/srv/app/"), &[]).unwrap();
        assert_eq!(context.place("a/b"), "/srv/app/a/b");
        assert_eq!(context.place("~/x"), "/srv/app/~/x");
        assert_eq!(context.place("/etc/x"), "/etc/x");
        assert_eq!(Context::default().place("a"), "a");
    }

    #[test]
    fn what_may_be_opened_beside_the_operands_is_told() {
        let env = [("TZ", ":/etc/zone"), ("LANG", "C"), ("X", "a:~/b:/c")];
        let context = of(Some("/srv"), &env).unwrap();
        let known = Command::read("grep x y").unwrap();
        assert_eq!(
            context.beside(&known.uses()),
            ["/srv", "/etc/zone", "/srv/~/b", "/c"]
        );
        let unknown = Command::read("tool -v shadow --in=key -").unwrap();
        let paths = of(Some("/etc"), &[]).unwrap().beside(&unknown.uses());
        assert_eq!(paths, ["/etc", "/etc/shadow", "/etc/key"]);
        assert!(Context::default().beside(&unknown.uses()).is_empty());
    }

    #[test]
    fn what_decides_which_program_runs_is_never_set() {
        for name in [
            "PATH",
            "LD_PRELOAD",
            "BASH_ENV",
            "IFS",
            "DURWARD_RUN",
            "LC_DURWARD_RUN",
            "BASH_FUNC_ls",
        ] {
            let fault = of(None, &[(name, "x")]).unwrap_err();
            assert!(fault.wrong.contains("never set"), "{name}: {fault}");
        }
        for name in ["", "1A", "A-B", "A=B", "Ä", "A B"] {
            let fault = of(None, &[(name, "x")]).unwrap_err();
            assert!(fault.wrong.contains("is not a"), "{name}: {fault}");
        }
        assert!(of(None, &[("A", "x\ny")]).is_err());
        assert!(of(Some("srv"), &[]).is_err());
        assert!(of(Some("/srv\n"), &[]).is_err());
    }

    #[test]
    fn the_words_before_a_command_say_both() {
        let mut context = of(Some("/srv"), &[("A", "b c")]).unwrap();
        let words = context.before();
        assert_eq!(words[..2], ["sh", "-c"]);
        assert_eq!(words[3..], ["/srv", "env", "A=b c"]);
        context.is_checked = true;
        assert!(context.before()[2].contains("pwd -P"));
        assert!(Context::default().before().is_empty());
    }
}
