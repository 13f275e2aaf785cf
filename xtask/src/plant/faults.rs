//! The list of faults: a text that a person reads, and what it means.

/// Where it lies in the workspace.
pub(super) const LIST: &str = "crates/simulation/faults.txt";

/// A change of the source that makes the engine wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) name: String,
    /// The rule that it breaks.
    why: String,
    /// Only stacks without fast paths do otherwise: worlds are compared.
    pub(super) compared: bool,
    /// Several where another part of the engine would make good what one of them breaks.
    pub(super) changes: Vec<Change>,
}

/// Lines of one file that others take the place of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// In the workspace.
    pub(super) file: String,
    taken: Vec<String>,
    put: Vec<String>,
}

impl Change {
    /// The source with the fault in it.
    ///
    /// # Errors
    /// What is to be taken away is not there exactly once.
    pub(super) fn break_text(&self, text: &str) -> Result<String, String> {
        let [taken, put] = [&self.taken, &self.put].map(|lines| lines.join("\n") + "\n");
        match text.matches(&taken).count() {
            1 => Ok(text.replacen(&taken, &put, 1)),
            count => Err(format!("{} has these lines {count} times, not once:\n{taken}", self.file)),
        }
    }
}

/// Reads the list.
///
/// # Errors
/// The first line that is wrong, or the first fault that lacks something.
pub(super) fn parse(text: &str) -> Result<Vec<Fault>, String> {
    let mut faults: Vec<Fault> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix("fault ") {
            faults.push(Fault { name: name.to_owned(), ..Fault::default() });
            continue;
        }
        let Some(fault) = faults.last_mut() else { return Err(wrong(number, "no `fault` before it")) };
        if line == "compared" {
            fault.compared = true;
            continue;
        }
        if let Some(why) = line.strip_prefix("why ") {
            why.clone_into(&mut fault.why);
            continue;
        }
        if let Some(file) = line.strip_prefix("file ") {
            fault.changes.push(Change { file: file.to_owned(), ..Change::default() });
            continue;
        }
        let kind = line.split_at_checked(1).filter(|(sign, _)| matches!(*sign, "-" | "+"));
        let Some((sign, text)) = kind else { return Err(wrong(number, "neither fault, why, file, - nor +")) };
        let Some(change) = fault.changes.last_mut() else { return Err(wrong(number, "no `file` before it")) };
        let lines = if sign == "-" { &mut change.taken } else { &mut change.put };
        lines.push(text.to_owned());
    }
    let lacks = |fault: &&Fault| {
        let empty = |change: &Change| change.taken.is_empty();
        fault.why.is_empty() || fault.changes.is_empty() || fault.changes.iter().any(empty)
    };
    match faults.iter().find(lacks) {
        Some(fault) => Err(format!("{LIST}: `{}` lacks why, file, or what is taken away", fault.name)),
        None => Ok(faults),
    }
}

fn wrong(number: usize, what: &str) -> String {
    format!("{LIST}:{}: {what}", number + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::path::Path;

    /// The list must stay true as the code moves.
    #[test]
    fn every_fault_of_the_list_can_be_planted() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let faults =
            parse(&std::fs::read_to_string(root.join(LIST)).expect("the list")).expect("it is right");
        let names: HashSet<_> = faults.iter().map(|fault| &fault.name).collect();
        assert!(names.len() == faults.len() && faults.len() >= 20, "{} faults", faults.len());
        for (fault, change) in
            faults.iter().flat_map(|fault| fault.changes.iter().map(move |change| (fault, change)))
        {
            let text = std::fs::read_to_string(root.join(&change.file)).expect(&change.file);
            let broken =
                change.break_text(&text).unwrap_or_else(|problem| panic!("{}: {problem}", fault.name));
            assert_ne!(broken, text, "{}", fault.name);
        }
    }

    #[test]
    fn what_is_taken_away_must_be_there_once() {
        let list = "fault f\nwhy w\nfile x\n-a\n-b\n+c\n";
        let change = &parse(list).expect("a list")[0].changes[0];
        assert_eq!(change.break_text("1\na\nb\n2\n"), Ok("1\nc\n2\n".to_owned()));
        assert!(change.break_text("a\nb\na\nb\n").is_err_and(|problem| problem.contains("2 times")));
        assert!(change.break_text("a\n").is_err());
    }

    #[test]
    fn a_list_that_is_wrong_says_where() {
        assert!(parse("-a\n").is_err_and(|problem| problem.contains(":1:")));
        assert!(parse("fault f\nwhat is this\n").is_err_and(|problem| problem.contains(":2:")));
        assert!(parse("fault f\nwhy w\n").is_err_and(|problem| problem.contains("lacks")));
    }
}
