//! The functions of snippets by their names. What they give is in `evaluate`.

/// What snippets can call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Abs,
    Float,
    Int,
    Len,
    Max,
    Min,
    Print,
    Round,
}

const FUNCTIONS: [(&str, Function); 8] = [
    ("abs", Function::Abs),
    ("float", Function::Float),
    ("int", Function::Int),
    ("len", Function::Len),
    ("max", Function::Max),
    ("min", Function::Min),
    ("print", Function::Print),
    ("round", Function::Round),
];

impl Function {
    /// The function of that name, which takes so many values.
    pub(super) fn named(name: &str, values: usize) -> Result<Function, String> {
        let known = FUNCTIONS.iter().find(|(known, _)| *known == name);
        let (_, function) = known.ok_or_else(|| {
            let all = FUNCTIONS.map(|(name, _)| name).join(", ");
            format!("`{name}` is no function that snippets know: {all}")
        })?;
        match (function, values) {
            (Function::Print, _) | (Function::Max | Function::Min, 1..) | (_, 1) => Ok(*function),
            (Function::Max | Function::Min, _) => Err(format!("{name} needs a number")),
            _ => Err(format!("{name} takes one value, and {values} are given")),
        }
    }
}
