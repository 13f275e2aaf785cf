//! The modules of a crate, and the names that each exports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use syn::{Attribute, Item, UseTree, Visibility};

/// The path of a module: its names from the root of the crate.
pub(super) type Module = Vec<String>;

/// The meaning of a name.
#[derive(Clone)]
pub(super) enum Named {
    Item(Box<Item>),
    Module(Module),
    /// The path of an item of another crate.
    Foreign(String),
}

/// All modules of a crate, except those of its tests.
pub(super) struct Modules(BTreeMap<Module, Vec<Item>>);

impl Modules {
    /// Reads the crate whose root is `lib.rs` of this folder.
    pub(super) fn read(folder: &Path) -> Result<Modules, String> {
        let mut modules = Modules(BTreeMap::new());
        modules.read_file(&folder.join("lib.rs"), folder, &Vec::new())?;
        Ok(modules)
    }

    #[cfg(test)]
    pub(super) fn parse(text: &str) -> Modules {
        let mut modules = Modules(BTreeMap::new());
        let file = syn::parse_file(text).expect("Rust");
        modules.add(file.items, Path::new(""), &Vec::new()).expect("no further file");
        modules
    }

    fn read_file(&mut self, file: &Path, folder: &Path, module: &Module) -> Result<(), String> {
        let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let parsed = syn::parse_file(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        self.add(parsed.items, folder, module)
    }

    /// Adds a module; `folder` has the files of its own modules.
    fn add(&mut self, items: Vec<Item>, folder: &Path, module: &Module) -> Result<(), String> {
        let items: Vec<Item> = items.into_iter().filter(|item| !is_of_tests(attributes(item))).collect();
        for item in &items {
            let Item::Mod(inner) = item else { continue };
            let name = inner.ident.to_string();
            let path = [&module[..], core::slice::from_ref(&name)].concat();
            let folder_inside = folder.join(&name);
            match &inner.content {
                Some((_, items)) => self.add(items.clone(), &folder_inside, &path)?,
                None => self.read_file(&folder.join(format!("{name}.rs")), &folder_inside, &path)?,
            }
        }
        self.0.insert(module.clone(), items);
        Ok(())
    }

    /// Returns every item, public or not.
    pub(super) fn items(&self) -> impl Iterator<Item = &Item> {
        self.0.values().flatten()
    }

    /// Returns the names that a module exports to other crates.
    pub(super) fn exports(&self, module: &Module) -> BTreeMap<String, Named> {
        let mut names = BTreeMap::new();
        self.add_exports(module, &mut BTreeSet::new(), &mut names);
        names
    }

    fn add_exports(&self, module: &Module, seen: &mut BTreeSet<Module>, names: &mut BTreeMap<String, Named>) {
        if !seen.insert(module.clone()) {
            return;
        }
        let items = self.0.get(module).into_iter().flatten();
        for item in items.filter(|item| matches!(visibility(item), Some(Visibility::Public(_)))) {
            let Item::Use(import) = item else {
                names.extend(name_of(item).map(|name| (name.clone(), of_item(module, item, name))));
                continue;
            };
            for (path, name) in leaves(&import.tree) {
                let foreign = || Named::Foreign(path.join("::"));
                let Some(name) = name else {
                    match self.module(module, &path) {
                        Some(whole) => self.add_exports(&whole, seen, names),
                        None => drop(names.insert(format!("{}::*", path.join("::")), foreign())),
                    }
                    continue;
                };
                let found = self.find(module, &path, &mut BTreeSet::new());
                names.insert(name, found.unwrap_or_else(foreign));
            }
        }
    }

    /// Returns the meaning of a path in a module. Modules may import from one another: `seen` stops
    /// the search from asking the same question twice.
    fn find(&self, from: &Module, path: &[String], seen: &mut BTreeSet<(Module, String)>) -> Option<Named> {
        let (last, before) = path.split_last()?;
        let of = if before.is_empty() { from.clone() } else { self.module(from, before)? };
        if !seen.insert((of.clone(), last.clone())) {
            return None;
        }
        let items = self.0.get(&of)?;
        let mut named = items.iter().filter(|item| name_of(item).as_ref() == Some(last));
        let is_module = |item: &&Item| matches!(item, Item::Mod(_));
        if let Some(item) = named.clone().find(|item| !is_module(item)) {
            return Some(of_item(&of, item, last.clone()));
        }
        let imports = items.iter().filter_map(|item| match item {
            Item::Use(import) => Some(leaves(&import.tree)),
            _ => None,
        });
        let imported = imports.flatten().find_map(|(path, name)| match name {
            Some(name) if name == *last && path.len() > 1 => self.find(&of, &path, seen),
            Some(_) => None,
            None => self.find(&of, &[&path[..], core::slice::from_ref(last)].concat(), seen),
        });
        // A module may share its name with something else, which is then what is meant.
        imported.or_else(|| named.find(is_module).map(|item| of_item(&of, item, last.clone())))
    }

    /// The module that a path leads to from another.
    fn module(&self, from: &Module, path: &[String]) -> Option<Module> {
        let mut at = from.clone();
        for (number, name) in path.iter().enumerate() {
            match name.as_str() {
                "crate" if number == 0 => at.clear(),
                "self" if number == 0 => {}
                "super" => drop(at.pop()?),
                _ => at.push(name.clone()),
            }
            self.0.contains_key(&at).then_some(())?;
        }
        // A path of another crate begins with no module of ours.
        (!path.is_empty()).then_some(at)
    }
}

/// Each path of a `use`, and the name it gets.
fn leaves(tree: &UseTree) -> Vec<(Vec<String>, Option<String>)> {
    let behind = |name: String, inner: Vec<(Vec<String>, Option<String>)>| {
        inner.into_iter().map(move |(path, given)| ([vec![name.clone()], path].concat(), given)).collect()
    };
    match tree {
        UseTree::Path(path) => behind(path.ident.to_string(), leaves(&path.tree)),
        UseTree::Name(name) if name.ident == "self" => vec![(Vec::new(), Some("self".to_owned()))],
        UseTree::Name(name) => vec![(vec![name.ident.to_string()], Some(name.ident.to_string()))],
        UseTree::Rename(name) => vec![(vec![name.ident.to_string()], Some(name.rename.to_string()))],
        UseTree::Glob(_) => vec![(Vec::new(), None)],
        UseTree::Group(group) => group.items.iter().flat_map(leaves).collect(),
    }
}

/// A module stands for what it has inside.
fn of_item(module: &Module, item: &Item, name: String) -> Named {
    match item {
        Item::Mod(_) => Named::Module([&module[..], &[name]].concat()),
        item => Named::Item(Box::new(item.clone())),
    }
}

fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Mod(item) => &item.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

fn visibility(item: &Item) -> Option<&Visibility> {
    Some(match item {
        Item::Const(item) => &item.vis,
        Item::Enum(item) => &item.vis,
        Item::Fn(item) => &item.vis,
        Item::Mod(item) => &item.vis,
        Item::Static(item) => &item.vis,
        Item::Struct(item) => &item.vis,
        Item::Trait(item) => &item.vis,
        Item::Type(item) => &item.vis,
        Item::Union(item) => &item.vis,
        Item::Use(item) => &item.vis,
        _ => return None,
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_of_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|cfg| cfg.is_ident("test"))
    })
}
