//! The pictures of the guide are those that `cargo xtask pictures` draws.

use std::fs;
use std::path::Path;

#[test]
fn pictures_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/pictures");
    let drawn = guide::pictures::draw(&folder).unwrap_or_else(|problem| panic!("{problem}"));
    let differs =
        |(name, svg): &&(String, String)| fs::read_to_string(folder.join(name)).ok().as_ref() != Some(svg);
    let old: Vec<&str> = drawn.iter().filter(differs).map(|(name, _)| name.as_str()).collect();
    assert!(old.is_empty(), "out of date: {}; run `cargo xtask pictures`", old.join(", "));
    for entry in fs::read_dir(&folder).expect("the folder") {
        let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
        let is_drawn = !name.ends_with(".svg") || drawn.iter().any(|(file, _)| *file == name);
        assert!(is_drawn, "{name}: pictures.toml does not draw it");
    }
}
