//! Tokens to a [`FormulaBody`]: conditional, OR, AND, NOT, comparison, sum, product, power, from loosest to tightest.

use std::collections::HashMap;

use super::body::to_u32;
use super::lexer::{self, CleanText, OperatorSign, Token, TokenKind};
use super::{BinaryOperation, Expr, FormulaBody, FormulaError, UnaryOperation};

pub(super) fn parse(text: &str, aliases: Vec<String>) -> Result<FormulaBody, FormulaError> {
    if text.len() > FormulaBody::TEXT_BYTES_MAX {
        return Err(FormulaError::TooLarge {
            what: "bytes of formula text",
            limit: FormulaBody::TEXT_BYTES_MAX,
        });
    }
    if let Some(alias) = aliases.iter().find(|alias| is_reserved(alias)) {
        return Err(FormulaError::ReservedAlias {
            name: alias.clone(),
        });
    }
    let clean = CleanText::new(text);
    let nodes = nodes(&clean.text, &aliases).map_err(|e| e.at_column(|at| clean.column(at)))?;
    Ok(FormulaBody::new(nodes, aliases))
}

/// Returns the nodes of a cleaned text; the columns of errors are bytes of that text.
fn nodes(text: &str, aliases: &[String]) -> Result<Vec<Expr>, FormulaError> {
    let known = AliasTable::new(aliases);
    let tokens = lexer::tokens(text, |word| known.position(word).is_some());
    let mut parser = FormulaParser {
        nodes: Vec::with_capacity(tokens.len()),
        tokens,
        at: 0,
        depth: 0,
        aliases: known,
    };
    parser.conditional()?;
    match parser.peek().kind {
        TokenKind::End => Ok(parser.nodes),
        _ => Err(parser.unexpected()),
    }
}

/// Up to this many aliases are looked through one by one.
const LISTED_MAX: usize = 8;

/// Aliases by name; of equal ones the first.
struct AliasTable<'a> {
    list: &'a [String],
    by_name: HashMap<&'a str, usize>,
}

impl<'a> AliasTable<'a> {
    fn new(list: &'a [String]) -> Self {
        let many = list.len() > LISTED_MAX;
        let named = list.iter().enumerate().rev().filter(|_| many);
        Self {
            list,
            by_name: named.map(|(i, name)| (name.as_str(), i)).collect(),
        }
    }

    fn position(&self, name: &str) -> Option<usize> {
        if self.list.len() > LISTED_MAX {
            self.by_name.get(name).copied()
        } else {
            self.list.iter().position(|alias| alias == name)
        }
    }
}

struct FormulaParser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    depth: usize,
    aliases: AliasTable<'a>,
    nodes: Vec<Expr>,
}

type Node = Result<u32, FormulaError>;

const END: Token<'static> = Token {
    kind: TokenKind::End,
    at: usize::MAX,
};

impl<'a> FormulaParser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.at).copied().unwrap_or(END)
    }

    fn take(&mut self, sign: OperatorSign) -> bool {
        let here = self.peek().kind == TokenKind::Sign(sign);
        self.at += usize::from(here);
        here
    }

    fn expect(&mut self, sign: OperatorSign) -> Result<(), FormulaError> {
        if self.take(sign) {
            Ok(())
        } else {
            Err(self.unexpected())
        }
    }

    fn unexpected(&self) -> FormulaError {
        let token = self.peek();
        FormulaError::Unexpected {
            found: token.kind.describe(),
            column: token.at,
        }
    }

    fn push(&mut self, node: Expr) -> u32 {
        self.nodes.push(node);
        to_u32(self.nodes.len() - 1)
    }

    fn binary(&mut self, op: BinaryOperation, a: u32, b: u32) -> u32 {
        self.push(Expr::Binary(op, a, b))
    }

    /// Runs `inner` one level deeper, so that hostile nesting cannot exhaust the stack.
    fn nested(&mut self, inner: impl FnOnce(&mut Self) -> Node) -> Node {
        self.depth += 1;
        if self.depth > FormulaBody::DEPTH_MAX {
            return Err(FormulaError::TooLarge {
                what: "levels of nesting",
                limit: FormulaBody::DEPTH_MAX,
            });
        }
        let node = inner(self);
        self.depth -= 1;
        node
    }

    fn conditional(&mut self) -> Node {
        let condition = self.either()?;
        if !self.take(OperatorSign::Question) {
            return Ok(condition);
        }
        let then = self.nested(Self::conditional)?;
        self.expect(OperatorSign::Colon)?;
        let otherwise = self.nested(Self::conditional)?;
        Ok(self.push(Expr::Select(condition, then, otherwise)))
    }

    fn either(&mut self) -> Node {
        let mut left = self.both()?;
        while self.peek().kind == TokenKind::Or {
            self.at += 1;
            let right = self.both()?;
            left = self.binary(BinaryOperation::Or, left, right);
        }
        Ok(left)
    }

    fn both(&mut self) -> Node {
        let mut left = self.negation()?;
        while self.peek().kind == TokenKind::And {
            self.at += 1;
            let right = self.negation()?;
            left = self.binary(BinaryOperation::And, left, right);
        }
        Ok(left)
    }

    fn negation(&mut self) -> Node {
        if self.peek().kind == TokenKind::Not {
            self.at += 1;
            let operand = self.nested(Self::negation)?;
            return Ok(self.push(Expr::Unary(UnaryOperation::Not, operand)));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Node {
        let left = self.sum()?;
        let op = match self.peek().kind {
            TokenKind::Sign(OperatorSign::Less) => BinaryOperation::Less,
            TokenKind::Sign(OperatorSign::LessOrEqual) => BinaryOperation::LessOrEqual,
            TokenKind::Sign(OperatorSign::Greater) => BinaryOperation::Greater,
            TokenKind::Sign(OperatorSign::GreaterOrEqual) => BinaryOperation::GreaterOrEqual,
            TokenKind::Sign(OperatorSign::Equal) => BinaryOperation::Equal,
            TokenKind::Sign(OperatorSign::NotEqual) => BinaryOperation::NotEqual,
            _ => return Ok(left),
        };
        self.at += 1;
        let right = self.sum()?;
        Ok(self.binary(op, left, right))
    }

    /// A leading minus means zero minus the first product.
    fn sum(&mut self) -> Node {
        let mut left = if self.take(OperatorSign::Minus) {
            let zero = self.push(Expr::Number(0.0));
            let operand = self.product()?;
            self.binary(BinaryOperation::Subtract, zero, operand)
        } else {
            self.take(OperatorSign::Plus);
            self.product()?
        };
        loop {
            let op = if self.take(OperatorSign::Plus) {
                BinaryOperation::Add
            } else if self.take(OperatorSign::Minus) {
                BinaryOperation::Subtract
            } else {
                return Ok(left);
            };
            let right = self.product()?;
            left = self.binary(op, left, right);
        }
    }

    fn product(&mut self) -> Node {
        let mut left = self.power()?;
        loop {
            let op = if self.take(OperatorSign::Times) {
                BinaryOperation::Multiply
            } else if self.take(OperatorSign::Over) {
                BinaryOperation::Divide
            } else {
                return Ok(left);
            };
            let right = self.power()?;
            left = self.binary(op, left, right);
        }
    }

    /// Right-associative; a sign before an operand inside a product or exponent negates that operand.
    fn power(&mut self) -> Node {
        if self.take(OperatorSign::Minus) {
            let zero = self.push(Expr::Number(0.0));
            let operand = self.nested(Self::power)?;
            return Ok(self.binary(BinaryOperation::Subtract, zero, operand));
        }
        let base = self.operand()?;
        if !self.take(OperatorSign::Power) {
            return Ok(base);
        }
        let exponent = self.nested(Self::power)?;
        Ok(self.binary(BinaryOperation::Power, base, exponent))
    }

    fn operand(&mut self) -> Node {
        let Token { kind, at: column } = self.peek();
        match kind {
            TokenKind::Number(value) => {
                self.at += 1;
                Ok(self.push(Expr::Number(value)))
            }
            TokenKind::Sign(OperatorSign::Open) => {
                self.at += 1;
                let inner = self.nested(Self::conditional)?;
                self.expect(OperatorSign::Close)?;
                Ok(inner)
            }
            TokenKind::Name(name) => {
                self.at += 1;
                self.name(name, column)
            }
            TokenKind::And | TokenKind::Or => {
                self.at += 1;
                let op = if kind == TokenKind::And {
                    BinaryOperation::And
                } else {
                    BinaryOperation::Or
                };
                self.two(op, kind.describe(), column)
            }
            // NOT is a logical operator: it has no place inside arithmetic without brackets.
            TokenKind::Not | TokenKind::Sign(_) | TokenKind::End => Err(self.unexpected()),
        }
    }

    /// Functions by their bracket; no alias is named like one of them or like a constant.
    fn name(&mut self, name: &str, column: usize) -> Node {
        if let Some(i) = self.aliases.position(name) {
            return Ok(self.push(Expr::Argument(to_u32(i))));
        }
        if self.peek().kind == TokenKind::Sign(OperatorSign::Open) {
            return self.call(name, column);
        }
        match constant(name) {
            Some(value) => Ok(self.push(Expr::Number(value))),
            None => Err(FormulaError::UnknownName {
                name: name.to_owned(),
                column,
            }),
        }
    }

    fn call(&mut self, name: &str, column: usize) -> Node {
        if let Some(op) = UnaryOperation::from_name(name) {
            self.expect(OperatorSign::Open)?;
            let operand = self.nested(Self::conditional)?;
            if !self.take(OperatorSign::Close) {
                return Err(FormulaError::Operands {
                    name: name.to_owned(),
                    wanted: 1,
                    column,
                });
            }
            return Ok(self.push(Expr::Unary(op, operand)));
        }
        match BinaryOperation::from_name(name) {
            Some(op) => self.two(op, name.to_owned(), column),
            None if name.eq_ignore_ascii_case("RND") || name.eq_ignore_ascii_case("SRND") => {
                Err(FormulaError::Random { column })
            }
            None => Err(FormulaError::UnknownFunction {
                name: name.to_owned(),
                column,
            }),
        }
    }

    fn two(&mut self, op: BinaryOperation, name: String, column: usize) -> Node {
        self.expect(OperatorSign::Open)?;
        let a = self.nested(Self::conditional)?;
        if !self.take(OperatorSign::Semicolon) {
            return Err(FormulaError::Operands {
                name,
                wanted: 2,
                column,
            });
        }
        let b = self.nested(Self::conditional)?;
        if !self.take(OperatorSign::Close) {
            return Err(FormulaError::Operands {
                name,
                wanted: 2,
                column,
            });
        }
        Ok(self.binary(op, a, b))
    }
}

/// Returns whether a word of the language, in any case, has this name.
pub(super) fn is_reserved(name: &str) -> bool {
    const LONGEST: usize = "INFINITY".len();
    if name.len() > LONGEST {
        return false;
    }
    constant(name).is_some()
        || UnaryOperation::from_name(name).is_some()
        || BinaryOperation::from_name(name).is_some()
        || ["RND", "SRND"].iter().any(|f| name.eq_ignore_ascii_case(f))
}

/// Named constants, any case.
fn constant(name: &str) -> Option<f64> {
    let known = [
        ("PI", std::f64::consts::PI),
        ("E", std::f64::consts::E),
        ("NAN", f64::NAN),
        ("N.DEF.", f64::NAN),
        ("INF", f64::INFINITY),
        ("INFINITY", f64::INFINITY),
    ];
    let found = known
        .into_iter()
        .find(|(word, _)| name.eq_ignore_ascii_case(word));
    found.map(|(_, value)| value)
}
