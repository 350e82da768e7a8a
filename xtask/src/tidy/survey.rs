//! One pass over a Rust file that notes what the rules ask about.
//!
//! Code that is compiled only for tests is passed over, except by rules that bind everywhere.

use proc_macro2::{TokenStream, TokenTree};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, Expr, ImplItem, Item, Lit, Meta, Signature, Token, TraitItem};

use super::modules::links::{self, FileLinks};

/// Survey of one file. Lines count from 1.
#[derive(Debug, Default)]
pub(super) struct FileSurvey {
    pub(super) functions: Vec<FunctionBody>,
    /// Calls that panic, by line, as they are written.
    pub(super) panics: Vec<(usize, String)>,
    /// `#[allow(…)]`.
    pub(super) allows: Vec<usize>,
    /// `#[expect(…)]` without a reason.
    pub(super) bare_expects: Vec<usize>,
    /// The word `unsafe`, in test code too.
    pub(super) unsafes: Vec<usize>,
    /// Modules in files of their own that are compiled only for tests.
    pub(super) test_modules: Vec<String>,
    /// What binds it to other files, test code included.
    pub(super) links: FileLinks,
}

/// One function with a body.
#[derive(Debug)]
pub(super) struct FunctionBody {
    /// Its path inside the file: `Type::name`.
    pub(super) name: String,
    pub(super) line: usize,
    /// From the line of its signature to the line of its closing brace.
    pub(super) lines: usize,
}

/// Why a file could not be parsed.
#[derive(Debug)]
pub(super) struct ParseFailure {
    pub(super) line: usize,
    pub(super) why: String,
}

/// Reads one file.
pub(super) fn read(text: &str) -> Result<FileSurvey, ParseFailure> {
    let unparsed = |error: syn::Error| ParseFailure {
        line: error.span().start().line,
        why: error.to_string(),
    };
    let tokens: TokenStream = text
        .parse()
        .map_err(|error: proc_macro2::LexError| unparsed(error.into()))?;
    let file = syn::parse_file(text).map_err(unparsed)?;
    let mut surveyor = SurveyVisitor::default();
    surveyor.find_unsafe(tokens);
    surveyor.visit_file(&file);
    surveyor.survey.links = links::read(&file);
    Ok(surveyor.survey)
}

#[derive(Default)]
struct SurveyVisitor {
    survey: FileSurvey,
    scope: Vec<String>,
}

/// Macros that end in a panic when they are reached.
const PANICS: [&str; 4] = ["panic", "todo", "unimplemented", "unreachable"];
/// Methods that panic on the other variant.
const UNWRAPS: [&str; 2] = ["unwrap", "unwrap_err"];
/// The same, with a message.
const EXPECTS: [&str; 2] = ["expect", "expect_err"];

impl SurveyVisitor {
    fn panic(&mut self, line: usize, what: impl Into<String>) {
        self.survey.panics.push((line, what.into()));
    }

    fn function(&mut self, sig: &Signature, block: &Block) {
        let line = sig.span().start().line;
        let end = block.brace_token.span.close().end().line;
        let mut name = self.scope.clone();
        name.push(sig.ident.to_string());
        self.survey.functions.push(FunctionBody {
            name: name.join("::"),
            line,
            lines: end + 1 - line,
        });
    }

    fn within(&mut self, name: String, visit: impl FnOnce(&mut Self)) {
        self.scope.push(name);
        visit(self);
        self.scope.pop();
    }

    fn find_unsafe(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.find_unsafe(group.stream()),
                TokenTree::Ident(ident) if ident == "unsafe" => {
                    self.survey.unsafes.push(ident.span().start().line);
                }
                _ => {}
            }
        }
    }

    /// Looks into the arguments of a macro, which are tokens to the parser.
    fn find_panics(&mut self, tokens: TokenStream) {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        for (index, tree) in trees.iter().enumerate() {
            let ident = match tree {
                TokenTree::Group(group) => {
                    self.find_panics(group.stream());
                    continue;
                }
                TokenTree::Ident(ident) => ident.to_string(),
                _ => continue,
            };
            let line = tree.span().start().line;
            let punct = |at: Option<&TokenTree>, wanted: char| matches!(at, Some(TokenTree::Punct(p)) if p.as_char() == wanted);
            let after = trees.get(index + 1);
            let arguments = match after {
                Some(TokenTree::Group(group)) => Some(group.stream()),
                _ => None,
            };
            if PANICS.contains(&ident.as_str()) && punct(after, '!') {
                self.panic(line, format!("{ident}!"));
            }
            let method = index
                .checked_sub(1)
                .is_some_and(|before| punct(trees.get(before), '.'));
            if let (true, Some(arguments)) = (method, arguments) {
                let literal = matches!(
                    arguments.clone().into_iter().next(),
                    Some(TokenTree::Literal(_))
                );
                if UNWRAPS.contains(&ident.as_str()) && arguments.is_empty() {
                    self.panic(line, format!(".{ident}()"));
                } else if EXPECTS.contains(&ident.as_str()) && literal {
                    self.panic(line, format!(".{ident}(…)"));
                }
            }
        }
    }
}

impl<'ast> Visit<'ast> for SurveyVisitor {
    fn visit_item(&mut self, item: &'ast Item) {
        if attributes(item).iter().any(is_test_only) {
            if let Item::Mod(module) = item
                && module.content.is_none()
            {
                self.survey.test_modules.push(module.ident.to_string());
            }
            return;
        }
        match item {
            Item::Fn(f) => {
                self.function(&f.sig, &f.block);
                self.within(f.sig.ident.to_string(), |s| visit::visit_item(s, item));
            }
            Item::Mod(m) => self.within(m.ident.to_string(), |s| visit::visit_item(s, item)),
            Item::Trait(t) => self.within(t.ident.to_string(), |s| visit::visit_item(s, item)),
            Item::Impl(i) => self.within(type_name(&i.self_ty), |s| visit::visit_item(s, item)),
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if let ImplItem::Fn(f) = item {
            if f.attrs.iter().any(is_test_only) {
                return;
            }
            self.function(&f.sig, &f.block);
        }
        visit::visit_impl_item(self, item);
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        if let TraitItem::Fn(f) = item
            && let Some(block) = &f.default
        {
            self.function(&f.sig, block);
        }
        visit::visit_trait_item(self, item);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let line = attribute.pound_token.span.start().line;
        let Meta::List(list) = &attribute.meta else {
            return;
        };
        let arguments = list.tokens.clone();
        let name = attribute.path();
        if name.is_ident("allow")
            || name.is_ident("cfg_attr") && has_ident(arguments.clone(), "allow")
        {
            self.survey.allows.push(line);
        } else if name.is_ident("expect") && !has_ident(arguments, "reason") {
            self.survey.bare_expects.push(line);
        }
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        if let Some(last) = mac.path.segments.last() {
            let name = last.ident.to_string();
            if PANICS.contains(&name.as_str()) {
                self.panic(last.ident.span().start().line, format!("{name}!"));
            }
        }
        self.find_panics(mac.tokens.clone());
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let name = call.method.to_string();
        let line = call.method.span().start().line;
        if UNWRAPS.contains(&name.as_str()) && call.args.is_empty() {
            self.panic(line, format!(".{name}()"));
        } else if EXPECTS.contains(&name.as_str()) && is_message(&call.args) {
            self.panic(line, format!(".{name}(…)"));
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_try(&mut self, tried: &'ast syn::ExprTry) {
        match &*tried.expr {
            // A call followed by `?` returns a result of its own: a parser's `expect("word")?`.
            Expr::MethodCall(call) if call.method == "expect" => {
                self.visit_expr(&call.receiver);
                call.args
                    .iter()
                    .for_each(|argument| self.visit_expr(argument));
            }
            _ => visit::visit_expr_try(self, tried),
        }
    }

    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        let mut names = path
            .path
            .segments
            .iter()
            .rev()
            .map(|segment| segment.ident.to_string());
        if let (Some(method), Some(owner)) = (names.next(), names.next())
            && matches!(owner.as_str(), "Option" | "Result")
            && (UNWRAPS.contains(&method.as_str()) || EXPECTS.contains(&method.as_str()))
        {
            self.panic(path.span().start().line, format!("{owner}::{method}"));
        }
        visit::visit_expr_path(self, path);
    }
}

/// Returns whether the one argument looks like a message: a parser's own `expect(b':')` is no panic.
fn is_message(arguments: &Punctuated<Expr, Token![,]>) -> bool {
    let mut arguments = arguments.iter();
    let (Some(only), None) = (arguments.next(), arguments.next()) else {
        return false;
    };
    let inner = match only {
        Expr::Reference(reference) => &*reference.expr,
        other => other,
    };
    match inner {
        Expr::Lit(literal) => matches!(literal.lit, Lit::Str(_)),
        Expr::Macro(mac) => mac
            .mac
            .path
            .segments
            .last()
            .is_some_and(|s| s.ident == "format" || s.ident == "concat"),
        _ => false,
    }
}

fn has_ident(tokens: TokenStream, wanted: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => has_ident(group.stream(), wanted),
        TokenTree::Ident(ident) => ident == wanted,
        _ => false,
    })
}

/// `#[test]`, `#[cfg(test)]` and `#[cfg(all(…, test, …))]`; not `any(test, …)`, which is compiled without tests too.
pub(super) fn is_test_only(attribute: &Attribute) -> bool {
    match &attribute.meta {
        Meta::Path(path) => path
            .segments
            .last()
            .is_some_and(|segment| segment.ident == "test"),
        Meta::List(list) if list.path.is_ident("cfg") => list
            .parse_args::<Meta>()
            .is_ok_and(|meta| demands_test(&meta)),
        Meta::List(list) => list
            .path
            .segments
            .last()
            .is_some_and(|segment| segment.ident == "test"),
        Meta::NameValue(_) => false,
    }
}

fn demands_test(meta: &Meta) -> bool {
    match meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => list
            .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
            .is_ok_and(|all| all.iter().any(demands_test)),
        _ => false,
    }
}

fn type_name(of: &syn::Type) -> String {
    match of {
        syn::Type::Path(path) => path.path.segments.last().map(|s| s.ident.to_string()),
        syn::Type::Reference(reference) => Some(type_name(&reference.elem)),
        _ => None,
    }
    .unwrap_or_else(|| "_".to_owned())
}

pub(super) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(i) => &i.attrs,
        Item::Enum(i) => &i.attrs,
        Item::ExternCrate(i) => &i.attrs,
        Item::Fn(i) => &i.attrs,
        Item::ForeignMod(i) => &i.attrs,
        Item::Impl(i) => &i.attrs,
        Item::Macro(i) => &i.attrs,
        Item::Mod(i) => &i.attrs,
        Item::Static(i) => &i.attrs,
        Item::Struct(i) => &i.attrs,
        Item::Trait(i) => &i.attrs,
        Item::TraitAlias(i) => &i.attrs,
        Item::Type(i) => &i.attrs,
        Item::Union(i) => &i.attrs,
        Item::Use(i) => &i.attrs,
        _ => &[],
    }
}
