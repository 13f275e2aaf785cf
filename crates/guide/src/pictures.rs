//! Pictures of lab scenarios, as the list `pictures.toml` in their folder describes them.
//!
//! ```toml
//! [[picture]]
//! file = "window-scaling.svg"
//! scenario = "window-scaling"          # built in, or a file relative to the folder: "../mine.toml"
//! title = "Windows with and without scaling"
//! runs = ["with scaling"]              # all if left out
//! graphs = ["Congestion window"]       # titles as `--html` shows them; all if left out
//! ladder = false                       # without the packets
//! ```
//!
//! `diagram = true` draws the packets over time instead, run beside run.

mod diagram;

use lab::experiment::{Experiment, SHELF};
use lab::report::{Report, document};
use lab::scenario;
use picture::Document;
use serde::Deserialize;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Name of the list in the folder of the pictures.
const LIST: &str = "pictures.toml";

#[derive(Deserialize)]
struct List {
    picture: Vec<Picture>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Picture {
    file: String,
    scenario: String,
    title: Option<String>,
    runs: Option<Vec<String>>,
    graphs: Option<Vec<String>>,
    #[serde(default = "yes")]
    ladder: bool,
    #[serde(default)]
    diagram: bool,
}

fn yes() -> bool {
    true
}

/// Draws every picture of the list: the file's name and its content.
///
/// # Errors
/// If the list is wrong, or a scenario does not exist or has nothing to show. The message names it.
pub fn draw(folder: &Path) -> Result<Vec<(String, String)>, String> {
    let path = folder.join(LIST);
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let list: List = toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let drawn = list.picture.iter().map(|picture| {
        let svg = picture.draw(folder).map_err(|problem| format!("{}: {problem}", picture.file))?;
        Ok((picture.file.clone(), svg))
    });
    drawn.collect()
}

/// Draws every picture of the list into its folder; the number of pictures.
///
/// # Errors
/// As [`draw`], or if a file cannot be written.
pub fn write(folder: &Path) -> Result<usize, String> {
    let pictures = draw(folder)?;
    for (name, svg) in &pictures {
        fs::write(folder.join(name), svg).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(pictures.len())
}

impl Picture {
    fn draw(&self, folder: &Path) -> Result<String, String> {
        if self.diagram {
            return diagram::draw(&self.scenario, self.title.as_deref().unwrap_or_default());
        }
        let mut document = self.document(folder)?;
        document.question = self.title.clone().unwrap_or(document.question);
        if let Some(names) = &self.runs {
            check(names, document.runs.iter().map(|run| run.name.as_str()))?;
            document.runs.retain(|run| names.contains(&run.name));
        }
        if let Some(titles) = &self.graphs {
            let of_runs = document.runs.iter().flat_map(|run| &run.graphs);
            check(titles, of_runs.chain(&document.summary).map(|graph| graph.title.as_str()))?;
            document.summary.retain(|graph| titles.contains(&graph.title));
            document.runs.iter_mut().for_each(|run| run.graphs.retain(|graph| titles.contains(&graph.title)));
        }
        if !self.ladder {
            document.runs.iter_mut().for_each(|run| run.ladder = None);
        }
        Ok(document.to_svg())
    }

    fn document(&self, folder: &Path) -> Result<Document, String> {
        let name = self.scenario.as_str();
        if let Some(report) = coded(name) {
            let entry = scenario::CATALOGUE.iter().find(|entry| entry.name == name);
            return Ok(document(name, entry.map_or("", |entry| entry.question), &*report));
        }
        let text = match SHELF.iter().find(|shelved| shelved.name == name) {
            Some(shelved) => shelved.text.to_owned(),
            None => {
                let path = folder.join(name);
                fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?
            }
        };
        let experiment = Experiment::parse(&text)?;
        Ok(document(name, experiment.question(), &experiment.run()?))
    }
}

/// Fails for a name that does not exist, with those that do.
fn check<'a>(wanted: &[String], names: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    match wanted.iter().find(|name| !names.contains(&name.as_str())) {
        Some(name) => Err(format!("nothing is called `{name}`: expected one of {names:?}")),
        None => Ok(()),
    }
}

/// A scenario that is code, with its default parameters.
fn coded(name: &str) -> Option<Box<dyn Report>> {
    use scenario::*;
    Some(match name {
        "fast-open" => Box::new(fast_open::run(&Default::default())),
        "packets" => Box::new(packets::run(&Default::default())),
        "fallback" => Box::new(fallback::run(&Default::default())),
        "middlebox" => Box::new(middlebox::run(&Default::default())),
        "qlen" => Box::new(qlen::run(&Default::default())),
        "big-request" => Box::new(big_request::run(&Default::default())),
        "replay" => Box::new(replay::run(&Default::default())),
        "congestion" => Box::new(congestion::run(&Default::default())),
        "textbook" => Box::new(textbook::run(&Default::default())),
        _ => return None,
    })
}

/// Round trip of the diagrams: Europe to South America.
const LONG_PATH: Duration = Duration::from_millis(170);
