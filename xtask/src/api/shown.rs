//! A public interface as text: declarations without bodies and private parts, ordered by name.

use super::modules::{Module, Modules, Named};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use syn::{Attribute, Fields, ImplItem, Item, TraitItem, Type, Visibility};

/// Returns the interface of a crate.
pub(super) fn text(modules: &Modules) -> String {
    let mut text = String::new();
    let mut types = BTreeSet::new();
    show_module(modules, &Vec::new(), &mut text, &mut types);
    let impls = modules.items().filter_map(|item| implemented(item, &types));
    let mut impls: Vec<String> = impls.collect();
    impls.sort();
    text.push_str("\n// implementations\n");
    text.extend(impls);
    text.push_str("\n// what macros are given\n");
    for item in modules.items() {
        if let Item::Macro(given) = item
            && given.ident.is_none()
        {
            show_macro(given, &mut text);
        }
    }
    text
}

fn show_module(modules: &Modules, module: &Module, text: &mut String, types: &mut BTreeSet<String>) {
    let exports = modules.exports(module);
    for (name, named) in &exports {
        match named {
            Named::Item(item) => {
                types.insert(name.clone());
                text.push_str(&declaration(item));
            }
            Named::Foreign(path) => {
                let _ = writeln!(text, "pub use {path} as {name};");
            }
            Named::Module(_) => {}
        }
    }
    for (name, named) in &exports {
        if let Named::Module(inner) = named {
            let _ =
                writeln!(text, "\n// mod {}", [&module[..], core::slice::from_ref(name)].concat().join("::"));
            show_module(modules, inner, text, types);
        }
    }
}

fn declaration(item: &Item) -> String {
    let mut item = item.clone();
    match &mut item {
        Item::Const(item) => keep(&mut item.attrs),
        Item::Enum(item) => {
            keep(&mut item.attrs);
            for variant in &mut item.variants {
                keep(&mut variant.attrs);
                variant.fields.iter_mut().for_each(|field| keep(&mut field.attrs));
            }
        }
        Item::Fn(item) => {
            keep(&mut item.attrs);
            item.block.stmts.clear();
        }
        Item::Static(item) => keep(&mut item.attrs),
        Item::Struct(item) => {
            keep(&mut item.attrs);
            keep_public(&mut item.fields);
        }
        Item::Trait(item) => {
            keep(&mut item.attrs);
            item.items.iter_mut().for_each(keep_declaration);
        }
        Item::Type(item) => keep(&mut item.attrs),
        _ => {}
    }
    printed(item)
}

fn keep_declaration(item: &mut TraitItem) {
    match item {
        TraitItem::Fn(item) => {
            keep(&mut item.attrs);
            if let Some(block) = &mut item.default {
                block.stmts.clear();
            }
        }
        TraitItem::Const(item) => keep(&mut item.attrs),
        TraitItem::Type(item) => keep(&mut item.attrs),
        _ => {}
    }
}

/// Removes private fields. A field named `_` shows that there are some, because that changes how
/// the type can be used.
fn keep_public(fields: &mut Fields) {
    fields.iter_mut().for_each(|field| keep(&mut field.attrs));
    let is_public = |field: &syn::Field| matches!(field.vis, Visibility::Public(_));
    let hidden: Type = syn::parse_quote!(private);
    match fields {
        Fields::Named(named) => {
            let all = named.named.len();
            named.named = named.named.iter().filter(|field| is_public(field)).cloned().collect();
            if named.named.len() < all {
                named.named.push(syn::parse_quote!(_private: #hidden));
            }
        }
        Fields::Unnamed(unnamed) => {
            unnamed
                .unnamed
                .iter_mut()
                .filter(|field| !is_public(field))
                .for_each(|field| field.ty = hidden.clone());
        }
        Fields::Unit => {}
    }
}

/// Public methods of a type that is exported, or the head of a trait that it has.
fn implemented(item: &Item, types: &BTreeSet<String>) -> Option<String> {
    let Item::Impl(block) = item else { return None };
    let Type::Path(of) = &*block.self_ty else { return None };
    types.contains(&of.path.segments.last()?.ident.to_string()).then_some(())?;
    let mut block = block.clone();
    keep(&mut block.attrs);
    let of_trait = block.trait_.is_some();
    block.items.retain_mut(|item| match item {
        _ if of_trait => false,
        ImplItem::Fn(function) => {
            let is_shown = matches!(function.vis, Visibility::Public(_)) && !is_hidden(&function.attrs);
            keep(&mut function.attrs);
            function.block.stmts.clear();
            is_shown
        }
        ImplItem::Const(constant) => {
            keep(&mut constant.attrs);
            matches!(constant.vis, Visibility::Public(_))
        }
        _ => false,
    });
    (of_trait || !block.items.is_empty()).then(|| printed(Item::Impl(block)))
}

/// Returns whether an item is `#[doc(hidden)]`: it is for our own tests and tools.
fn is_hidden(attributes: &[Attribute]) -> bool {
    let hides =
        |attribute: &Attribute| attribute.parse_args::<syn::Ident>().is_ok_and(|word| word == "hidden");
    attributes.iter().any(|attribute| attribute.path().is_ident("doc") && hides(attribute))
}

/// Keeps the attributes that a caller can rely on. Documentation and lints are not among them.
fn keep(attributes: &mut Vec<Attribute>) {
    let kept = ["cfg", "derive", "non_exhaustive", "must_use", "deprecated", "repr"];
    attributes.retain(|attribute| kept.iter().any(|name| attribute.path().is_ident(name)));
}

fn printed(item: Item) -> String {
    prettyplease::unparse(&syn::File { shebang: None, attrs: Vec::new(), items: vec![item] })
}

/// A line for each row, without its documentation.
fn show_macro(given: &syn::ItemMacro, text: &mut String) {
    let name = given.mac.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
    let _ = writeln!(text, "{name}!");
    let mut row = String::new();
    for token in undocumented(given.mac.tokens.clone()) {
        row.push_str(&token.to_string());
        let ends = match &token {
            TokenTree::Punct(sign) => [',', ';'].contains(&sign.as_char()),
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
            _ => false,
        };
        if ends {
            let _ = writeln!(text, "    {row}");
            row.clear();
        } else {
            row.push(' ');
        }
    }
    if !row.trim().is_empty() {
        let _ = writeln!(text, "    {}", row.trim());
    }
}

/// Without comments of documentation, on any level.
fn undocumented(tokens: TokenStream) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    for token in tokens {
        let TokenTree::Group(group) = token else {
            kept.push(token);
            continue;
        };
        let is_comment = group.stream().into_iter().next().is_some_and(|first| first.to_string() == "doc");
        if is_comment && kept.last().is_some_and(|last| last.to_string() == "#") {
            kept.pop();
        } else {
            kept.push(Group::new(group.delimiter(), undocumented(group.stream())).into());
        }
    }
    kept.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(source: &str) -> String {
        text(&Modules::parse(source))
    }

    #[test]
    fn what_is_exported_is_shown_without_bodies_and_private_parts() {
        let text = shown(
            "mod a { pub struct Shape { pub side: u32, secret: u8 } pub(crate) struct Hidden; impl Shape { /// Text.
             pub fn area(&self) -> u32 { 4 } fn quietly(&self) {} } impl Clone for Shape { fn clone(&self) -> Shape { todo!() } } }
             pub use a::*; pub mod b { pub fn call(of: u8) {} } pub use other::Thing;",
        );
        assert!(text.contains("pub struct Shape {\n    pub side: u32,\n    _private: private,\n}"), "{text}");
        assert!(text.contains("impl Shape {\n    pub fn area(&self) -> u32 {}\n}"), "{text}");
        assert!(text.contains("impl Clone for Shape {}"), "{text}");
        assert!(text.contains("// mod b\npub fn call(of: u8) {}"), "{text}");
        assert!(text.contains("pub use other::Thing as Thing;"), "{text}");
        assert!(!text.contains("Hidden") && !text.contains("quietly"), "{text}");
    }

    #[test]
    fn tests_and_comments_change_nothing() {
        let with = "/// One.\npub fn one() { two() } #[cfg(test)] mod tests { pub fn three() {} }";
        assert_eq!(shown(with), shown("pub fn one() {}"));
    }

    #[test]
    fn a_function_may_have_the_name_of_its_module() {
        let text = shown("mod sum { mod inner {} pub fn sum(of: u8) {} } pub use sum::sum;");
        assert!(text.trim().starts_with("pub fn sum(of: u8) {}"), "{text}");
    }
}
