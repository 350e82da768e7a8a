//! Declarations and names of one file: its modules, its imports, the paths in its code.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprLit, File, Item, ItemMod, Lit, Meta, UseTree};

use super::super::survey::{attributes, is_test_only};

/// Everything of one file that binds it to other files.
#[derive(Debug, Default)]
pub(in crate::tidy) struct FileLinks {
    /// Modules in files of their own.
    pub(super) modules: Vec<DeclaredModule>,
    /// Modules written inside this file, each as its path from the file's own module.
    pub(super) inline: Vec<Scope>,
    /// Imports, renamed or not, and those of everything.
    pub(super) imports: Vec<ImportedName>,
    /// Paths of two names and more, as they are written.
    pub(super) paths: Vec<WrittenPath>,
    /// Items defined here.
    pub(super) items: Vec<(Scope, String)>,
}

/// Names of the inline modules around a place, outermost first.
pub(super) type Scope = Vec<String>;

/// `mod name;`
#[derive(Debug)]
pub(super) struct DeclaredModule {
    pub(super) scope: Scope,
    pub(super) name: String,
    /// The file that `#[path = "…"]` names.
    pub(super) file: Option<String>,
    pub(super) test: bool,
}

/// One name that `use` brings into a module.
#[derive(Debug)]
pub(super) struct ImportedName {
    pub(super) scope: Scope,
    /// Its name here; `None` for a glob import.
    pub(super) name: Option<String>,
    pub(super) target: Vec<String>,
}

/// A path as it is written.
#[derive(Debug)]
pub(super) struct WrittenPath {
    pub(super) scope: Scope,
    pub(super) names: Vec<String>,
    pub(super) line: usize,
}

/// Reads what a parsed file declares and names.
pub(in crate::tidy) fn read(file: &File) -> FileLinks {
    let mut reader = LinkReader::default();
    reader.visit_file(file);
    reader.links
}

#[derive(Default)]
struct LinkReader {
    links: FileLinks,
    scope: Scope,
    /// Inside code that is compiled only for tests.
    test: bool,
}

impl LinkReader {
    fn module(&mut self, module: &ItemMod) {
        let name = plain(&module.ident);
        if module.content.is_none() {
            self.links.modules.push(DeclaredModule {
                scope: self.scope.clone(),
                name,
                file: module.attrs.iter().find_map(path_attribute),
                test: self.test,
            });
            return;
        }
        self.scope.push(name);
        self.links.inline.push(self.scope.clone());
        visit::visit_item_mod(self, module);
        self.scope.pop();
    }

    fn usage(&mut self, tree: &UseTree, before: &[String], line: usize) {
        let with = |ident: &syn::Ident| {
            let mut names = before.to_vec();
            names.push(plain(ident));
            names
        };
        match tree {
            UseTree::Path(path) => self.usage(&path.tree, &with(&path.ident), line),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.usage(tree, before, line);
                }
            }
            UseTree::Name(name) if name.ident == "self" => {
                self.import(before.last().cloned(), before.to_vec(), line);
            }
            UseTree::Name(name) => self.import(Some(plain(&name.ident)), with(&name.ident), line),
            UseTree::Rename(rename) if rename.ident == "self" => {
                self.import(Some(plain(&rename.rename)), before.to_vec(), line);
            }
            UseTree::Rename(rename) => {
                self.import(Some(plain(&rename.rename)), with(&rename.ident), line);
            }
            UseTree::Glob(_) => self.import(None, before.to_vec(), line),
        }
    }

    fn import(&mut self, name: Option<String>, target: Vec<String>, line: usize) {
        self.path(target.clone(), line);
        self.links.imports.push(ImportedName {
            scope: self.scope.clone(),
            name,
            target,
        });
    }

    fn path(&mut self, names: Vec<String>, line: usize) {
        if !self.test {
            self.links.paths.push(WrittenPath {
                scope: self.scope.clone(),
                names,
                line,
            });
        }
    }

    /// Paths in the arguments of a macro, which are tokens to the parser.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut names: Vec<String> = Vec::new();
        let (mut colons, mut line) = (0, 0);
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons < 2 {
                        self.end_statement(&mut names, line);
                        line = ident.span().start().line;
                    }
                    names.push(plain(&ident));
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' && !names.is_empty() => {
                    colons += 1;
                }
                other => {
                    self.end_statement(&mut names, line);
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        self.end_statement(&mut names, line);
    }

    fn end_statement(&mut self, names: &mut Vec<String>, line: usize) {
        if names.len() > 1 {
            self.path(std::mem::take(names), line);
        }
        names.clear();
    }
}

impl<'ast> Visit<'ast> for LinkReader {
    fn visit_item(&mut self, item: &'ast Item) {
        let outer = self.test;
        self.test |= attributes(item).iter().any(is_test_only);
        if let Some(name) = defined(item) {
            self.links.items.push((self.scope.clone(), name));
        }
        match item {
            Item::Mod(module) => self.module(module),
            Item::Use(usage) => {
                let line = usage.use_token.span.start().line;
                self.usage(&usage.tree, &[], line);
            }
            other => visit::visit_item(self, other),
        }
        self.test = outer;
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1
            && let Some(first) = path.segments.first()
        {
            let names = path.segments.iter().map(|s| plain(&s.ident)).collect();
            self.path(names, first.ident.span().start().line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        visit::visit_macro(self, mac);
        self.tokens(mac.tokens.clone());
    }
}

/// Returns the name of what an item defines, if it has one.
fn defined(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(i) => &i.ident,
        Item::Enum(i) => &i.ident,
        Item::Fn(i) => &i.sig.ident,
        Item::Macro(i) => i.ident.as_ref()?,
        Item::Static(i) => &i.ident,
        Item::Struct(i) => &i.ident,
        Item::Trait(i) => &i.ident,
        Item::TraitAlias(i) => &i.ident,
        Item::Type(i) => &i.ident,
        Item::Union(i) => &i.ident,
        _ => return None,
    };
    Some(plain(ident))
}

/// `r#type` is called `type`, and so is its file.
fn plain(ident: &syn::Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").map_or(text.clone(), str::to_owned)
}

fn path_attribute(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else {
        return None;
    };
    match &pair.value {
        Expr::Lit(ExprLit {
            lit: Lit::Str(file),
            ..
        }) if pair.path.is_ident("path") => Some(file.value()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(text: &str) -> FileLinks {
        read(&syn::parse_file(text).unwrap())
    }

    fn paths(text: &str) -> Vec<String> {
        let links = links(text);
        links.paths.iter().map(|p| p.names.join("::")).collect()
    }

    #[test]
    fn modules_in_files_are_told_from_those_inside() {
        let links = links(
            "mod a;\n#[path = \"x/y.rs\"] mod b;\n#[cfg(test)] mod c;\nmod d { mod e; mod f {} }\nmod r#type;",
        );
        let found: Vec<_> = links
            .modules
            .iter()
            .map(|m| {
                let scope = m.scope.join("::");
                (scope, m.name.as_str(), m.file.as_deref(), m.test)
            })
            .collect();
        let at = |scope: &str, name, file, test| (scope.to_owned(), name, file, test);
        assert_eq!(
            found,
            [
                at("", "a", None, false),
                at("", "b", Some("x/y.rs"), false),
                at("", "c", None, true),
                at("d", "e", None, false),
                at("", "type", None, false),
            ]
        );
        assert_eq!(links.inline, [vec!["d"], vec!["d", "f"]]);
    }

    #[test]
    fn imports_know_their_names() {
        let links = links("use a::{b, c as d, e::{self, f::*}, g as _};\nuse h;");
        let found: Vec<_> = links
            .imports
            .iter()
            .map(|i| (i.name.as_deref(), i.target.join("::")))
            .collect();
        let to = |name, target: &str| (name, target.to_owned());
        assert_eq!(
            found,
            [
                to(Some("b"), "a::b"),
                to(Some("d"), "a::c"),
                to(Some("e"), "a::e"),
                to(None, "a::e::f"),
                to(Some("_"), "a::g"),
                to(Some("h"), "h"),
            ]
        );
    }

    #[test]
    fn paths_are_found_in_types_expressions_patterns_and_macros() {
        for text in [
            "fn f(x: crate::a::B) {}",
            "fn f() { crate::a::B(); }",
            "fn f() { if let crate::a::B(_) = x {} }",
            "fn f() { m!(crate::a::B, { 1 }); }",
            "fn f() { m!(x => { y(crate::a::B) }); }",
            "impl crate::a::B for C {}",
            "#[derive(Debug)]\nstruct S(Vec<crate::a::B>);",
        ] {
            assert!(
                paths(text).contains(&"crate::a::B".to_owned()),
                "{text}: {:?}",
                paths(text)
            );
        }
    }

    #[test]
    fn test_code_names_nothing() {
        assert_eq!(
            paths("#[cfg(test)]\nmod tests { use crate::a::B; fn f() { m!(c::D); } }"),
            [""; 0]
        );
        assert_eq!(paths("#[test]\nfn f() { crate::a::b(); }"), [""; 0]);
    }
}
