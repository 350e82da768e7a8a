//! Quantities: variables, parameters and observers.

/// Kind of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuantityKind {
    /// A molecule amount, concentration or other variable; a state if it has a rate or an event assigns it.
    Variable,
    /// A parameter; a state if it has a rate.
    Parameter,
    /// Computed for output only.
    Observer,
}

/// Source of the value (of a variable: the start value).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueSource {
    /// A number, in base units.
    Constant(f64),
    /// The formula at this position.
    Formula(usize),
}

/// One term of a rate: `factor` times the value of the formula.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RhsTerm {
    /// Position of the formula.
    pub formula: usize,
    /// Stoichiometric factor with its sign.
    pub factor: f64,
}

/// A quantity and all that the file says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantity {
    /// The stable key of the file.
    pub entity_id: String,
    /// Full path; without the simulation's name in pkml files, as in the file for SimModel xml.
    pub path: String,
    /// Last element of the path.
    pub name: String,
    /// Kind of the quantity.
    pub kind: QuantityKind,
    /// Value, or start value of a variable or state.
    pub source: ValueSource,
    /// Terms of the rate dy/dt; empty for everything that has none.
    pub rhs: Vec<RhsTerm>,
    /// The solver works on value / scale.
    pub scale: f64,
    /// Whether a negative value is no error.
    pub negative_allowed: bool,
    /// Whether it is an output by default.
    pub persistable: bool,
    /// Whether the file allows it to be varied.
    pub can_be_varied: bool,
    /// Lower bound in base units.
    pub min: Option<f64>,
    /// Upper bound in base units.
    pub max: Option<f64>,
    /// Dimension name, as far as the file gives one.
    pub dimension: Option<String>,
    /// Base unit of the stored values, as far as known.
    pub unit: String,
    /// Unit in which the file's program shows it.
    pub display_unit: Option<String>,
}

impl Quantity {
    /// Returns a quantity of this kind, path and value, with everything else at its default.
    #[must_use]
    pub fn new(kind: QuantityKind, path: String, name: String, source: ValueSource) -> Self {
        Self {
            entity_id: String::new(),
            path,
            name,
            kind,
            source,
            rhs: Vec::new(),
            scale: 1.0,
            negative_allowed: true,
            persistable: false,
            can_be_varied: true,
            min: None,
            max: None,
            dimension: None,
            unit: String::new(),
            display_unit: None,
        }
    }
}
