//! Finds files of a crate that import one another in a circle: none of them can be moved alone.
//!
//! Imports between a module and its own submodules are not a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The path of a module: its names from the root of the crate on.
type Module = Vec<String>;

/// The modules from which each module imports.
pub(crate) struct Imports(BTreeMap<Module, BTreeSet<Module>>);

impl Imports {
    /// Reads the imports of one crate: the files below its `src`, each with its text.
    pub(crate) fn new(files: &[(&Path, &str)]) -> Imports {
        let modules: BTreeMap<Module, &str> =
            files.iter().map(|(path, text)| (module_of(path), *text)).collect();
        let imported = |module: &Module, text: &str| {
            let paths = code_of(text).flat_map(|line| paths_in(module, line)).collect::<Vec<_>>();
            let used = paths.iter().filter_map(|path| file_of(path, &modules));
            used.filter(|used| !used.starts_with(module) && !module.starts_with(used)).collect()
        };
        Imports(modules.iter().map(|(module, text)| (module.clone(), imported(module, text))).collect())
    }

    /// Returns each circle as its modules in order.
    pub(crate) fn circles(&self) -> Vec<Vec<String>> {
        let reached: BTreeMap<&Module, BTreeSet<&Module>> =
            self.0.keys().map(|module| (module, self.reached_from(module))).collect();
        let mut circles = BTreeSet::new();
        for (module, reaches) in &reached {
            let back = |other: &&&Module| reached.get(**other).is_some_and(|theirs| theirs.contains(module));
            let circle: BTreeSet<&Module> = reaches.iter().filter(back).copied().collect();
            if !circle.is_empty() {
                circles.insert(circle);
            }
        }
        circles.into_iter().map(|circle| circle.iter().map(|module| module.join("/")).collect()).collect()
    }

    fn reached_from(&self, module: &Module) -> BTreeSet<&Module> {
        let mut reached = BTreeSet::new();
        let mut next: Vec<&Module> = self.0.get(module).into_iter().flatten().collect();
        while let Some(module) = next.pop() {
            if reached.insert(module) {
                next.extend(self.0.get(module).into_iter().flatten());
            }
        }
        reached
    }
}

/// Returns the module of a file: `tcp/input/ack.rs` is `tcp::input::ack`, `lib.rs` the root.
fn module_of(path: &Path) -> Module {
    let path = path.with_extension("");
    let names = path.iter().map(|name| name.to_string_lossy().into_owned());
    names.filter(|name| !["lib", "main", "mod"].contains(&name.as_str())).collect()
}

/// Returns the statements outside tests. A `use` over several lines is one statement.
fn code_of(text: &str) -> impl Iterator<Item = &str> {
    before_tests(text).split_inclusive(';')
}

/// Returns a file without the tests at its end. Fields and functions for tests among the code
/// stay.
pub(crate) fn before_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default()
}

/// Returns every path in a statement that begins with `crate` or `super`, from the crate root.
fn paths_in(module: &Module, statement: &str) -> Vec<Module> {
    let code: String = statement.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let mut paths = Vec::new();
    for (start, word) in ["crate::", "super::"].iter().flat_map(|word| code.match_indices(word)) {
        let before = code.get(..start).and_then(|before| before.chars().next_back());
        if before.is_some_and(|last| last.is_alphanumeric() || last == '_' || last == ':') {
            continue;
        }
        let (mut from, mut rest) = (Module::new(), code.get(start + word.len()..).unwrap_or_default());
        if word == "super::" {
            from = module.clone();
            from.pop();
            while let Some(further) = rest.strip_prefix("super::") {
                from.pop();
                rest = further;
            }
        }
        follow(&from, rest, &mut paths);
    }
    paths
}

/// Adds the paths of a `use` tree to `paths`: `a::{b, c::d}` has two.
fn follow(from: &Module, tree: &str, paths: &mut Vec<Module>) {
    let mut path = from.clone();
    let mut rest = tree.trim_start();
    loop {
        if let Some(branches) = rest.strip_prefix('{') {
            for branch in branches_of(branches) {
                follow(&path, branch, paths);
            }
            return;
        }
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        if !name.is_empty() {
            path.push(name.to_owned());
        }
        match after.strip_prefix("::") {
            Some(further) if !name.is_empty() => rest = further.trim_start(),
            _ => break,
        }
    }
    paths.push(path);
}

/// Splits at commas, up to the closing brace.
fn branches_of(text: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut branches) = (0, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            ',' | '}' if depth == 0 => {
                branches.extend(text.get(begin..at));
                begin = at + 1;
                if c == '}' {
                    break;
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    branches
}

/// Returns the module that defines the item of a path: the longest prefix that is a module.
fn file_of(path: &Module, modules: &BTreeMap<Module, &str>) -> Option<Module> {
    (1..=path.len())
        .rev()
        .filter_map(|len| path.get(..len))
        .find_map(|beginning| modules.contains_key(beginning).then(|| beginning.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let files: Vec<_> = files.iter().map(|(path, text)| (Path::new(*path), *text)).collect();
        Imports::new(&files).circles()
    }

    #[test]
    fn files_that_import_one_another_are_a_circle() {
        let found = circles(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::{self, C};"),
            ("b.rs", "fn f() -> super::a::D { todo }"),
        ]);
        assert_eq!(found, [["a", "b"]]);
    }

    #[test]
    fn a_circle_goes_through_folders_and_several_files() {
        let found = circles(&[
            ("a/x.rs", "use crate::{b::y::Z, Other};"),
            ("b/y.rs", "use super::super::c::W;"),
            ("c.rs", "use crate::a::{\n    x::X,\n};"),
            ("d.rs", "use crate::c::W;"),
        ]);
        assert_eq!(found, [["a/x", "b/y", "c"]]);
    }

    #[test]
    fn a_module_and_its_own_parts_are_none_nor_are_comments_and_tests() {
        let found = circles(&[
            ("a.rs", "mod x;\nuse x::X;"),
            ("a/x.rs", "use super::A;\n// use crate::b::B;"),
            ("b.rs", "use crate::a::x::X;"),
            ("a/y.rs", "#[cfg(test)]\nmod tests { use crate::b::B; }"),
        ]);
        assert_eq!(found, [[""; 0]; 0]);
    }
}
