//! The operations of the formula language, by name and number of operands.

/// One operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are the functions of the language")]
pub enum UnaryOperation {
    Acos,
    Asin,
    Atan,
    Cos,
    Cosh,
    Exp,
    Ln,
    Log10,
    Not,
    Sin,
    Sinh,
    Sqrt,
    Tan,
    Tanh,
}

/// Two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are the operators of the language")]
pub enum BinaryOperation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    And,
    Or,
    Min,
    Max,
}

impl UnaryOperation {
    /// Returns the function of this name, any case. `LOG` is the natural logarithm.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let mut upper = [0; WORD_BYTES_MAX];
        Some(match uppercase(name, &mut upper)? {
            "ACOS" => Self::Acos,
            "ASIN" => Self::Asin,
            "ATAN" => Self::Atan,
            "COS" => Self::Cos,
            "COSH" => Self::Cosh,
            "EXP" => Self::Exp,
            "LN" | "LOG" => Self::Ln,
            "LOG10" => Self::Log10,
            "NOT" => Self::Not,
            "SIN" => Self::Sin,
            "SINH" => Self::Sinh,
            "SQRT" => Self::Sqrt,
            "TAN" => Self::Tan,
            "TANH" => Self::Tanh,
            _ => return None,
        })
    }

    /// Returns the name as written in formulas.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Acos => "ACOS",
            Self::Asin => "ASIN",
            Self::Atan => "ATAN",
            Self::Cos => "COS",
            Self::Cosh => "COSH",
            Self::Exp => "EXP",
            Self::Ln => "LN",
            Self::Log10 => "LOG10",
            Self::Not => "NOT",
            Self::Sin => "SIN",
            Self::Sinh => "SINH",
            Self::Sqrt => "SQRT",
            Self::Tan => "TAN",
            Self::Tanh => "TANH",
        }
    }
}

impl BinaryOperation {
    /// Returns whether it compares two numbers.
    #[must_use]
    pub fn is_comparison(self) -> bool {
        matches!(
            self,
            Self::Less
                | Self::LessOrEqual
                | Self::Greater
                | Self::GreaterOrEqual
                | Self::Equal
                | Self::NotEqual
        )
    }

    /// Returns the two-operand function of this name, any case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let mut upper = [0; WORD_BYTES_MAX];
        Some(match uppercase(name, &mut upper)? {
            "MIN" => Self::Min,
            "MAX" => Self::Max,
            "EQ" => Self::Equal,
            "NEQ" => Self::NotEqual,
            "GT" => Self::Greater,
            "GEQ" => Self::GreaterOrEqual,
            "LT" => Self::Less,
            "LEQ" => Self::LessOrEqual,
            "POW" => Self::Power,
            "AND" => Self::And,
            "OR" => Self::Or,
            _ => return None,
        })
    }

    /// Returns the sign between the operands, or nothing for `MIN` and `MAX`.
    #[must_use]
    pub fn sign(self) -> Option<&'static str> {
        Some(match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Power => "^",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::And => " AND ",
            Self::Or => " OR ",
            Self::Min | Self::Max => return None,
        })
    }
}

/// Length of the longest function's name.
const WORD_BYTES_MAX: usize = 5;

/// Returns the word in capitals; nothing if it is longer than every function's name.
fn uppercase<'a>(name: &str, room: &'a mut [u8; WORD_BYTES_MAX]) -> Option<&'a str> {
    let room = room.get_mut(..name.len())?;
    room.copy_from_slice(name.as_bytes());
    room.make_ascii_uppercase();
    std::str::from_utf8(room).ok()
}
