//! What is read from a call's path arguments, as the journal tells it: without what stands under
//! content keys, which is content.

use std::borrow::Cow;

use super::{Fact, Facts};
use crate::paths::canonical::extension;
use crate::paths::{PathArgument, Role, scheme_of};

impl Facts {
    /// Where the path arguments lead.
    pub(crate) fn places(&self) -> impl Iterator<Item = &str> {
        let arguments = self.paths.known().into_iter().flatten();
        arguments
            .filter(|argument| !argument.content)
            .flat_map(|argument| argument.meaning.places.iter().map(String::as_str))
    }

    /// The first path: named `path` and the like, else a source, else a destination, else by its looks.
    pub(crate) fn primary_path(&self) -> Option<&str> {
        [Role::Path, Role::Source, Role::Destination, Role::Shape]
            .into_iter()
            .find_map(|role| self.path_of(role))
    }

    /// The first path of this part.
    pub(crate) fn path_of(&self, role: Role) -> Option<&str> {
        let paths = self.paths.known()?;
        let argument = paths.iter().find(|a| a.role == role && !a.content)?;
        argument.meaning.places.first().map(String::as_str)
    }

    /// The extension of the first path, with its dot.
    pub(super) fn extension(&self) -> Option<Cow<'_, str>> {
        extension(self.primary_path()?)
    }

    /// The scheme of the resource's URI.
    pub(crate) fn uri_scheme(&self) -> Option<String> {
        scheme_of(self.uri.known()?)
    }

    /// A fact that is read from the paths: unknown where they are.
    pub(super) fn of_paths<T>(&self, value: Option<T>) -> Fact<T> {
        match &self.paths {
            Fact::Unknown => Fact::Unknown,
            Fact::Known(_) | Fact::Absent => value.into(),
        }
    }

    /// States further paths of a call beside those that are stated; its known paths stay known.
    pub fn add_paths(&mut self, further: impl IntoIterator<Item = PathArgument>) {
        match &mut self.paths {
            Fact::Known(known) => known.extend(further),
            Fact::Unknown => {}
            Fact::Absent => {
                let further: Vec<_> = further.into_iter().collect();
                if !further.is_empty() {
                    self.paths = Fact::Known(further);
                }
            }
        }
    }
}
