//! Paths to entities: every formula is bound once per object that uses it.

use std::collections::HashMap;
use std::sync::Arc;

use super::formulas::{FormulaCache, PkmlFormula, PkmlFormulaKind};
use super::tree::{EntityKind, EntityTree};
use crate::error::LoadError;
use crate::formula::FormulaBody;
use crate::model::{AliasReference, BoundFormula, FormulaKind, PointTable};

/// The index of a tree: children by name, entities by id, full paths.
pub(super) struct TreeIndex<'a> {
    tree: &'a EntityTree,
    /// The path of the container in which the root was before it became one; mostly empty.
    root_path: &'a str,
    children: HashMap<(usize, &'a str), usize>,
    pub(super) by_id: HashMap<&'a str, usize>,
}

impl<'a> TreeIndex<'a> {
    pub(super) fn new(tree: &'a EntityTree, cache: &'a FormulaCache) -> Self {
        let mut children = HashMap::with_capacity(tree.entities.len());
        let mut by_id = HashMap::with_capacity(tree.entities.len());
        for (i, entity) in tree.entities.iter().enumerate().skip(1) {
            // Of two children with one name, the first with a value is meant.
            let slot = children
                .entry((entity.parent, entity.name.as_str()))
                .or_insert(i);
            let valueless = |i: &usize| {
                tree.entities
                    .get(*i)
                    .is_some_and(|e| e.kind == EntityKind::Node)
            };
            if valueless(slot) {
                *slot = i;
            }
            by_id.insert(entity.id.as_str(), i);
        }
        Self {
            tree,
            root_path: tree.root_path.as_deref().map_or("", |p| cache.string(p)),
            children,
            by_id,
        }
    }

    fn parent(&self, entity: usize) -> Option<usize> {
        (entity != 0)
            .then(|| self.tree.entities.get(entity).map(|e| e.parent))
            .flatten()
    }

    pub(super) fn child(&self, entity: usize, name: &str) -> Option<usize> {
        self.children.get(&(entity, name)).copied()
    }

    /// Path of an entity without the simulation's name.
    pub(super) fn path(&self, entity: usize) -> String {
        let mut names = Vec::new();
        let mut at = entity;
        while let Some(parent) = self.parent(at) {
            names.push(self.tree.entities.get(at).map_or("", |e| e.name.as_str()));
            at = parent;
        }
        names.reverse();
        names.join("|")
    }

    /// Returns what `path` leads to from `from`, as `wanted` accepts it.
    ///
    /// The order is that of the suite: a path that leads somewhere from the referring entity is relative to it. From
    /// any other path the root's own parent path is dropped; what is left then begins with the name of the referring
    /// entity or of the root and is resolved from there, or is relative after all.
    pub(super) fn resolve<T>(
        &self,
        from: usize,
        path: &str,
        mut wanted: impl FnMut(usize) -> Option<T>,
    ) -> Option<T> {
        let path: Vec<&str> = path.split('|').collect();
        if let Some(found) = self.follow(from, &path).and_then(&mut wanted) {
            return Some(found);
        }
        let above: Vec<&str> = match self.root_path {
            "" => Vec::new(),
            above => above.split('|').collect(),
        };
        let path = path.strip_prefix(above.as_slice()).unwrap_or(&path);
        let (first, rest) = path.split_first()?;
        let is_named = |entity: usize| {
            let entity = self.tree.entities.get(entity);
            entity.is_some_and(|e| e.name == *first)
        };
        let found = if is_named(from) {
            self.follow(from, rest)
        } else if is_named(0) {
            self.follow(0, rest)
        } else {
            self.follow(from, path)
        };
        found.and_then(wanted)
    }

    fn follow(&self, from: usize, elements: &[&str]) -> Option<usize> {
        elements.iter().try_fold(from, |at, element| {
            if *element == ".." {
                self.parent(at)
            } else {
                self.child(at, element)
            }
        })
    }
}

/// Parsed bodies and tables, one per formula id.
#[derive(Default)]
pub(super) struct FormulaBodies {
    explicit: HashMap<String, Arc<FormulaBody>>,
    tables: HashMap<String, Arc<PointTable>>,
}

/// What binding needs.
pub(super) struct PkmlBinder<'a> {
    pub(super) index: TreeIndex<'a>,
    pub(super) cache: &'a FormulaCache,
    bodies: FormulaBodies,
}

impl<'a> PkmlBinder<'a> {
    pub(super) fn new(tree: &'a EntityTree, cache: &'a FormulaCache) -> Self {
        Self {
            index: TreeIndex::new(tree, cache),
            cache,
            bodies: FormulaBodies::default(),
        }
    }

    pub(super) fn raw(&self, id: &str, user: usize) -> Result<&'a PkmlFormula, LoadError> {
        let found = self.cache.formulas.get(id);
        found.ok_or_else(|| LoadError::UnknownId {
            id: id.to_owned(),
            used_by: self.index.path(user),
        })
    }

    /// Returns the formula `id` as the entity `user` uses it; `quantity` turns an entity into a quantity's position.
    pub(super) fn bind(
        &mut self,
        id: &str,
        user: usize,
        quantity: &mut impl FnMut(usize) -> Option<usize>,
    ) -> Result<BoundFormula, LoadError> {
        let raw = self.raw(id, user)?;
        let kind = match &raw.kind {
            PkmlFormulaKind::Constant(value) => {
                let body = Arc::new(FormulaBody::number(value.unwrap_or(f64::NAN)));
                FormulaKind::Explicit {
                    body,
                    arguments: Vec::new(),
                }
            }
            PkmlFormulaKind::Explicit(text) => {
                let arguments = raw
                    .paths
                    .iter()
                    .map(|p| self.reference(p, user, quantity))
                    .collect::<Result<_, _>>()?;
                FormulaKind::Explicit {
                    body: self.body(id, text, raw)?,
                    arguments,
                }
            }
            PkmlFormulaKind::Table { points, slope_mode } => {
                FormulaKind::Table(self.table(id, points, *slope_mode, raw)?)
            }
            PkmlFormulaKind::Offset { table, offset } => FormulaKind::TableWithOffset {
                table: self.table_owner(raw, table, user, quantity)?,
                offset: self.resolve_alias(raw, offset, user, quantity)?,
            },
            PkmlFormulaKind::Argument { table, argument } => FormulaKind::TableWithArgument {
                table: self.table_owner(raw, table, user, quantity)?,
                argument: self.resolve_alias(raw, argument, user, quantity)?,
            },
            PkmlFormulaKind::Normal
            | PkmlFormulaKind::LogNormal
            | PkmlFormulaKind::Uniform
            | PkmlFormulaKind::Discrete => {
                let message = format!(
                    "'{}' uses a distribution formula but is not a distributed parameter",
                    self.index.path(user)
                );
                return Err(LoadError::Invalid {
                    line: raw.line,
                    message,
                });
            }
            PkmlFormulaKind::Unsupported(kind) => {
                let message = format!(
                    "'{}' uses a {kind}, which a model cannot hold",
                    self.index.path(user)
                );
                return Err(LoadError::Invalid {
                    line: raw.line,
                    message,
                });
            }
        };
        Ok(BoundFormula {
            name: raw.name.clone(),
            kind,
        })
    }

    fn table(
        &mut self,
        id: &str,
        points: &[(f64, f64, bool)],
        slope_mode: bool,
        raw: &PkmlFormula,
    ) -> Result<Arc<PointTable>, LoadError> {
        if let Some(table) = self.bodies.tables.get(id) {
            return Ok(Arc::clone(table));
        }
        let invalid = |e| LoadError::Invalid {
            line: raw.line,
            message: format!("table '{}': {e}", raw.name),
        };
        let table = Arc::new(PointTable::new(points, slope_mode).map_err(invalid)?);
        self.bodies.tables.insert(id.to_owned(), Arc::clone(&table));
        Ok(table)
    }

    /// Returns the target of an alias of the formula.
    fn resolve_alias(
        &self,
        raw: &PkmlFormula,
        alias: &str,
        user: usize,
        quantity: &mut impl FnMut(usize) -> Option<usize>,
    ) -> Result<AliasReference, LoadError> {
        match raw
            .paths
            .iter()
            .find(|p| self.cache.string(&p.alias) == alias)
        {
            Some(path) => self.reference(path, user, quantity),
            None => {
                let message = format!("formula '{}' has no path named '{alias}'", raw.name);
                Err(LoadError::Invalid {
                    line: raw.line,
                    message,
                })
            }
        }
    }

    /// Returns the quantity with the table.
    fn table_owner(
        &self,
        raw: &PkmlFormula,
        alias: &str,
        user: usize,
        quantity: &mut impl FnMut(usize) -> Option<usize>,
    ) -> Result<usize, LoadError> {
        match self.resolve_alias(raw, alias, user, quantity)? {
            AliasReference::Quantity(table) => Ok(table),
            AliasReference::Time => {
                let message = format!("the table of '{}' is the time", raw.name);
                Err(LoadError::Invalid {
                    line: raw.line,
                    message,
                })
            }
        }
    }

    fn alias(&self, path: &'a super::formulas::RawPath) -> &'a str {
        self.cache.string(&path.alias)
    }

    fn reference(
        &self,
        path: &super::formulas::RawPath,
        user: usize,
        quantity: &mut impl FnMut(usize) -> Option<usize>,
    ) -> Result<AliasReference, LoadError> {
        if path.time {
            return Ok(AliasReference::Time);
        }
        let text = self.cache.string(&path.path);
        let found = self.index.resolve(user, text, quantity);
        found
            .map(AliasReference::Quantity)
            .ok_or_else(|| LoadError::UnresolvedPath {
                path: text.to_owned(),
                used_by: self.index.path(user),
            })
    }

    /// Returns the parsed text of a formula.
    fn body(
        &mut self,
        id: &str,
        text: &str,
        raw: &'a PkmlFormula,
    ) -> Result<Arc<FormulaBody>, LoadError> {
        if let Some(body) = self.bodies.explicit.get(id) {
            return Ok(Arc::clone(body));
        }
        let names = raw.paths.iter().map(|p| self.alias(p).to_owned()).collect();
        let (clean, names) = crate::read::aliases::without_spaces(text, names);
        let parsed = FormulaBody::with_aliases(&clean, names);
        let parsed = parsed.map_err(|source| LoadError::Formula {
            owner: raw.name.clone(),
            text: text.to_owned(),
            source,
        })?;
        let body = Arc::new(parsed);
        let explicit = &mut self.bodies.explicit;
        explicit.insert(id.to_owned(), Arc::clone(&body));
        Ok(body)
    }
}
