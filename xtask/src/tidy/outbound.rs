//! The gate is the only door: a face may name the outbound types of `net` only in a module called `upstream`.
//!
//! Held together with the types (no send without a permit), this keeps every way out in one reviewable place.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Item, UseTree, Visibility};

use super::tree::{RustFile, SourceTree};
use crate::finding::Finding;

/// Faces and tool servers. `lab`, `mocks` and the binary are not bound by this rule.
const BOUND: [&str; 7] = [
    "mcp",
    "models",
    "agents",
    "ssh",
    "toolkit",
    "simulation",
    "console",
];

const REMEDY: &str = "move it to `upstream.rs` or below `upstream/`, where a permit is spent";

/// `net::outbound` outside `upstream` modules, ways to hide it, and ways to hand it on.
pub(super) fn check(tree: &SourceTree) -> Vec<Finding> {
    tree.shipped()
        .filter(|file| is_bound(file.path))
        .flat_map(|file| check_file(&file))
        .collect()
}

fn check_file(file: &RustFile<'_>) -> Vec<Finding> {
    let Ok(parsed) = syn::parse_file(file.text) else {
        return Vec::new();
    };
    let mut watch = OutboundVisitor {
        upstream: is_upstream(file.path),
        path: file.path,
        findings: Vec::new(),
    };
    if !watch.upstream
        && let Ok(tokens) = file.text.parse()
    {
        watch.tokens(tokens);
    }
    watch.visit_file(&parsed);
    watch.findings.sort();
    watch.findings.dedup();
    watch.findings
}

fn is_bound(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.next() == Some("crates")
        && parts.next().is_some_and(|name| BOUND.contains(&name))
        && parts.next() == Some("src")
}

fn is_upstream(path: &str) -> bool {
    path.split('/')
        .skip(3)
        .any(|part| part == "upstream" || part == "upstream.rs")
}

struct OutboundVisitor<'a> {
    upstream: bool,
    path: &'a str,
    findings: Vec<Finding>,
}

impl OutboundVisitor<'_> {
    fn add_finding(&mut self, line: usize, wrong: &str) {
        self.findings
            .push(Finding::new(self.path, line, wrong, REMEDY));
    }

    /// `net :: outbound` written out, in macros too.
    fn tokens(&mut self, tokens: TokenStream) {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        for tree in &trees {
            if let TokenTree::Group(group) = tree {
                self.tokens(group.stream());
            }
        }
        for window in trees.windows(4) {
            if let [
                TokenTree::Ident(net),
                TokenTree::Punct(a),
                TokenTree::Punct(b),
                TokenTree::Ident(outbound),
            ] = window
                && net == "net"
                && (a.as_char(), b.as_char()) == (':', ':')
                && outbound == "outbound"
            {
                self.add_finding(
                    outbound.span().start().line,
                    "`net::outbound` outside an `upstream` module",
                );
            }
        }
    }

    /// Checks the names of one `use`, with the path so far.
    fn usage(&mut self, tree: &UseTree, prefix: &[String], public: bool) {
        let line = |ident: &syn::Ident| ident.span().start().line;
        match tree {
            UseTree::Path(path) => {
                let prefix = [prefix, &[path.ident.to_string()]].concat();
                self.usage(&path.tree, &prefix, public);
            }
            UseTree::Group(group) => group
                .items
                .iter()
                .for_each(|item| self.usage(item, prefix, public)),
            UseTree::Name(name) => {
                self.check_path(&name.ident, prefix, public, false, line(&name.ident))
            }
            UseTree::Rename(name) => {
                self.check_path(&name.ident, prefix, public, true, line(&name.ident))
            }
            UseTree::Glob(glob) => {
                let at = glob
                    .star_token
                    .spans
                    .first()
                    .map_or(1, |span| span.start().line);
                if is_outbound(prefix) {
                    self.outbound(at, public);
                } else if prefix.last().is_some_and(|last| last == "net") && !self.upstream {
                    self.add_finding(at, "`net::*` would bring `outbound` with it");
                }
            }
        }
    }

    fn check_path(
        &mut self,
        ident: &syn::Ident,
        prefix: &[String],
        public: bool,
        renamed: bool,
        line: usize,
    ) {
        let mut full = prefix.to_vec();
        if ident != "self" {
            full.push(ident.to_string());
        }
        if is_outbound(&full) {
            self.outbound(line, public);
        } else if renamed && full == ["net"] && !self.upstream {
            self.add_finding(line, "`net` under another name hides what is used of it");
        }
    }

    fn outbound(&mut self, line: usize, public: bool) {
        if !self.upstream {
            self.add_finding(line, "`net::outbound` outside an `upstream` module");
        } else if public {
            self.add_finding(line, "`net::outbound` is handed on by a public `use`");
        }
    }
}

impl<'ast> Visit<'ast> for OutboundVisitor<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Use(of) => {
                let public = !matches!(of.vis, Visibility::Inherited);
                self.usage(&of.tree, &[], public);
            }
            Item::ExternCrate(of) if of.ident == "net" && of.rename.is_some() && !self.upstream => {
                self.add_finding(
                    of.ident.span().start().line,
                    "`net` under another name hides what is used of it",
                );
            }
            Item::Type(of) if self.upstream && !matches!(of.vis, Visibility::Inherited) => {
                if let syn::Type::Path(path) = &*of.ty
                    && is_outbound(
                        &path
                            .path
                            .segments
                            .iter()
                            .map(|s| s.ident.to_string())
                            .collect::<Vec<_>>(),
                    )
                {
                    self.add_finding(
                        of.ident.span().start().line,
                        "`net::outbound` is handed on by a public alias",
                    );
                }
            }
            _ => {}
        }
        visit::visit_item(self, item);
    }
}

fn is_outbound(path: &[String]) -> bool {
    path.windows(2)
        .any(|pair| matches!(pair, [net, outbound] if net == "net" && outbound == "outbound"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings_of(path: &str, text: &str) -> Vec<String> {
        check(&SourceTree::of(&[(path, text)]))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    const WAYS: [&str; 10] = [
        "use net::outbound::Pipe;",
        "use net::{outbound, Frame};",
        "use net::{outbound::{self, Pipe}, Frame};",
        "use net::outbound as away;",
        "use ::net::outbound::*;",
        "fn f(p: net::outbound::Pipe) {}",
        "fn f() { net::outbound::open(); }",
        "fn f() { select! { p = net::outbound::open() => p } }",
        "type P = net::outbound::Pipe;",
        "impl net::outbound::Send for S {}",
    ];

    #[test]
    fn naming_it_is_found_in_every_face_and_tool_server() {
        for name in BOUND {
            for way in WAYS {
                let found = findings_of(
                    &format!("crates/{name}/src/session.rs"),
                    &format!("//! S.\n\n{way}\n"),
                );
                assert_eq!(found.len(), 1, "{name}: {way}: {found:?}");
                assert!(
                    found[0].starts_with(&format!("crates/{name}/src/session.rs:3: ")),
                    "{found:?}"
                );
            }
        }
    }

    #[test]
    fn upstream_modules_may_name_it() {
        for path in [
            "upstream.rs",
            "upstream/mod.rs",
            "upstream/stdio.rs",
            "federation/upstream.rs",
        ] {
            for way in WAYS {
                assert_eq!(
                    findings_of(&format!("crates/mcp/src/{path}"), way),
                    [""; 0],
                    "{path}: {way}"
                );
            }
        }
        assert_eq!(findings_of("crates/mcp/src/upstreams.rs", WAYS[0]).len(), 1);
    }

    #[test]
    fn upstream_modules_may_not_hand_it_on() {
        for way in [
            "pub use net::outbound::Pipe;",
            "pub(crate) use net::outbound;",
            "pub use net::outbound::*;",
            "pub(super) type P = net::outbound::Pipe;",
        ] {
            assert_eq!(
                findings_of("crates/mcp/src/upstream.rs", way).len(),
                1,
                "{way}"
            );
        }
    }

    #[test]
    fn ways_to_hide_it_are_found() {
        for way in ["use net::*;", "use net as n;", "extern crate net as n;"] {
            assert_eq!(
                findings_of("crates/mcp/src/session.rs", way).len(),
                1,
                "{way}"
            );
        }
    }

    #[test]
    fn the_rest_is_free() {
        for path in [
            "tools/lab/src/a.rs",
            "tools/mocks/src/a.rs",
            "crates/durward/src/a.rs",
            "crates/mcp/tests/a.rs",
        ] {
            assert_eq!(findings_of(path, WAYS[0]), [""; 0], "{path}");
        }
        for text in [
            "use net::stdio::Frame;",
            "use crate::outbound::Queue;",
            "let_it!(outbound);",
            "use net::{self};",
        ] {
            assert_eq!(
                findings_of("crates/mcp/src/session.rs", text),
                [""; 0],
                "{text}"
            );
        }
    }
}
