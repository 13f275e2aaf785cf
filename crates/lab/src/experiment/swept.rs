//! Results of a sweep: the distribution of each measure at each point, as tables, graphs and rows.

#[cfg(feature = "parquet")]
mod columns;

use super::sweep::{Sample, Sweep};
use super::units::split;
use crate::report::{Align, Page, Recording, Report, Table};
use ::picture::{Graph, Series, Style, Tone};
use serde_json::json;
use std::io::{self, Write};

/// Maximum curves in a graph.
const CURVES_MAX: usize = 7;

/// The samples of a sweep or of a part of it.
#[derive(Debug)]
pub struct Swept<'a> {
    sweep: &'a Sweep,
    samples: Vec<Sample>,
}

/// Sorted values of one measure at one point.
struct Spread(Vec<f64>);

impl Spread {
    fn at(&self, share: f64) -> Option<f64> {
        let rank = (share * self.0.len() as f64).ceil().max(1.0) as usize - 1;
        self.0.get(rank).copied()
    }

    fn mean(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.iter().sum::<f64>() / self.0.len() as f64)
    }
}

impl<'a> Swept<'a> {
    /// Creates the results. Samples must be in the order of the runs.
    pub fn new(sweep: &'a Sweep, samples: Vec<Sample>) -> Swept<'a> {
        Swept { sweep, samples }
    }

    fn spread(&self, point: usize, measure: usize) -> Spread {
        let of_point = self.samples.iter().filter(|sample| sample.point == point);
        let mut values: Vec<f64> = of_point.filter_map(|sample| sample.values[measure]).collect();
        values.sort_by(f64::total_cmp);
        Spread(values)
    }

    fn repeats(&self) -> bool {
        self.sweep.seeds().len() > 1
    }

    /// Writes a row per run: parameters, seed, and the measures in seconds, bytes, bytes per second
    /// or plain numbers. All parts of a sweep have the same columns.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn write_csv(&self, out: impl Write) -> io::Result<()> {
        let mut out = csv::Writer::from_writer(out);
        out.write_record(self.sweep.keys().chain(["seed"]).chain(self.sweep.measures()))?;
        let points: Vec<&[String]> = self.sweep.points().collect();
        for sample in &self.samples {
            let values =
                sample.values.iter().map(|value| value.map_or(String::new(), |value| value.to_string()));
            let row = points[sample.point].iter().cloned().chain([sample.seed.to_string()]).chain(values);
            out.write_record(row)?;
        }
        out.flush()
    }

    fn table(&self, measure: usize) -> Table {
        let figures: &[&str] =
            if self.repeats() { &["runs", "mean", "min", "median", "95 %", "max"] } else { &["here"] };
        let keys = self.sweep.keys().map(|key| (key, Align::Left));
        let judged = self.sweep.is_as_expected(measure, 0.0).map(|_| ("as expected", Align::Right));
        let mut table =
            Table::new(keys.chain(figures.iter().map(|name| (*name, Align::Right))).chain(judged));
        for (point, values) in self.sweep.points().enumerate() {
            let spread = self.spread(point, measure);
            let shown =
                |value: Option<f64>| value.map_or("-".to_owned(), |value| self.sweep.shown(measure, value));
            let figures = match self.repeats() {
                true => {
                    let shares = [0.0, 0.5, 0.95, 1.0].map(|share| shown(spread.at(share)));
                    [vec![spread.0.len().to_string(), shown(spread.mean())], shares.to_vec()].concat()
                }
                false => vec![shown(spread.at(0.5))],
            };
            let judged = judged.map(|_| self.as_expected(&spread, measure));
            table.row(values.iter().cloned().chain(figures).chain(judged));
        }
        table
    }

    /// Formats how many runs passed the file's check, of all.
    fn as_expected(&self, spread: &Spread, measure: usize) -> String {
        let holds = |value: &&f64| self.sweep.is_as_expected(measure, **value) == Some(true);
        format!("{} of {}", spread.0.iter().filter(holds).count(), self.samples.len())
    }

    /// Draws the measure over the first parameter, if that is a number with the same unit
    /// everywhere. Each combination of the other parameters is a curve.
    fn over_first(&self, measure: usize, name: &str) -> Option<Graph> {
        let key = self.sweep.keys().next()?;
        let (unit, one) = self.sweep.unit(measure);
        let mut axis: Option<&str> = None;
        let mut curves: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
        for (point, values) in self.sweep.points().enumerate() {
            let (x, unit) = split(&values[0])?;
            if *axis.get_or_insert(unit) != unit {
                return None;
            }
            let Some(y) = self.spread(point, measure).at(0.5).filter(|y| y.is_finite()) else { continue };
            let label = if values.len() > 1 { values[1..].join(", ") } else { "median".to_owned() };
            match curves.iter_mut().find(|(known, _)| *known == label) {
                Some((_, points)) => points.push((x, y / one)),
                None => curves.push((label, vec![(x, y / one)])),
            }
        }
        let unit_of_x =
            axis.filter(|unit| !unit.is_empty()).map_or(String::new(), |unit| format!(", {unit}"));
        let mut graph = Graph::new(name, "median", unit).over(format!("{key}{unit_of_x}"));
        if curves.len() > CURVES_MAX {
            graph = graph.with_note(format!("the first {CURVES_MAX} of {} curves", curves.len()));
        }
        for (n, (label, mut points)) in curves.into_iter().enumerate().take(CURVES_MAX) {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            graph = graph.with(Series::new(label, Style::Line, Tone::nth(n), points));
        }
        Some(graph)
    }

    /// Draws the cumulative distribution over the runs.
    fn distribution(&self, measure: usize, name: &str) -> Graph {
        let (unit, one) = self.sweep.unit(measure);
        let mut graph = Graph::new(format!("Distribution: {name}"), "runs at or below", "%")
            .over(format!("{name}, {unit}"));
        if self.sweep.points().len() > CURVES_MAX {
            graph = graph
                .with_note(format!("the first {CURVES_MAX} of {} combinations", self.sweep.points().len()));
        }
        for (point, values) in self.sweep.points().enumerate().take(CURVES_MAX) {
            let Spread(sorted) = self.spread(point, measure);
            let count = sorted.len() as f64;
            let rise = |(n, value): (usize, &f64)| (*value / one, 100.0 * (n + 1) as f64 / count);
            let label = if values.is_empty() { "all".to_owned() } else { values.join(", ") };
            let start = sorted.iter().find(|value| value.is_finite()).map(|first| (*first / one, 0.0));
            let rises = sorted.iter().enumerate().filter(|(_, value)| value.is_finite()).map(rise);
            let points = start.into_iter().chain(rises).collect();
            graph = graph.with(Series::new(label, Style::Step, Tone::nth(point), points));
        }
        graph
    }
}

impl Report for Swept<'_> {
    fn render(&self, page: &mut Page) {
        page.heading(self.sweep.question());
        let (played, all, seeds) = (self.samples.len(), self.sweep.plays(), self.sweep.seeds());
        let part = if played < all { format!(" of {all}") } else { String::new() };
        let seeds = match seeds {
            [only] => format!("seed {only}"),
            [first, .., last] => format!("each of the seeds {first} to {last}"),
            [] => String::new(),
        };
        let combinations = match self.sweep.points().len() {
            1 => "one combination".to_owned(),
            count => format!("{count} combinations"),
        };
        page.paragraph(&format!("{played}{part} runs: {combinations} of values, with {seeds}."));
        for (measure, name) in self.sweep.measures().enumerate() {
            page.heading(name);
            page.table(&self.table(measure));
        }
    }

    fn json(&self) -> serde_json::Value {
        let points: Vec<&[String]> = self.sweep.points().collect();
        let samples = self.samples.iter().map(|sample| {
            let parameters: serde_json::Map<String, serde_json::Value> = self
                .sweep
                .keys()
                .zip(points[sample.point])
                .map(|(key, value)| (key.to_owned(), json!(value)))
                .collect();
            let values: serde_json::Map<String, serde_json::Value> = self
                .sweep
                .measures()
                .zip(&sample.values)
                .map(|(name, value)| (name.to_owned(), json!(value)))
                .collect();
            json!({ "parameters": parameters, "seed": sample.seed, "values": values })
        });
        json!({ "question": self.sweep.question(), "samples": samples.collect::<Vec<_>>() })
    }

    fn recordings(&self) -> Vec<Recording<'_>> {
        Vec::new()
    }

    fn graphs(&self) -> Vec<Graph> {
        let mut graphs = Vec::new();
        for (measure, name) in self.sweep.measures().enumerate() {
            graphs.extend(self.over_first(measure, name));
            if self.repeats() {
                graphs.push(self.distribution(measure, name));
            }
        }
        graphs.retain(|graph| !graph.is_empty());
        graphs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Limits;
    use crate::report::PageStyle;

    const FILE: &str = "# What does loss do to the time?
chapter = \"x\"
lesson = \"y\"
[path]
rtt = \"20ms\"
[client]
steps = [\"connect\", \"write 100\", \"read 100kB\", \"close\"]
[server]
steps = [\"read 100\", \"write 100kB\", \"read to end\", \"close\"]
[[expect]]
what = \"time\"
that = \"time()\"
at_least = \"1 ms\"
";

    /// Runs a sweep of four runs and passes its results on.
    pub(super) fn swept_over_loss(look: impl FnOnce(&Swept<'_>)) {
        let sweep =
            Sweep::new(FILE, vec!["path.loss=0%,5%".parse().unwrap()], 2, Some(1), &[], Limits::default())
                .unwrap();
        let samples = (0..4).map(|n| sweep.play(n).unwrap()).collect();
        look(&Swept::new(&sweep, samples));
    }

    /// The file's own values, for which it has expectations.
    #[test]
    fn repeats_of_a_file_say_how_often_it_is_as_expected() {
        let table = |file: &str, axes: &[&str]| {
            let axes = axes.iter().map(|axis| axis.parse().unwrap()).collect();
            let sweep = Sweep::new(file, axes, 3, Some(1), &[], Limits::default()).unwrap();
            let samples = (0..sweep.plays()).map(|n| sweep.play(n).unwrap()).collect();
            let mut page = Page::new(PageStyle::default());
            Swept::new(&sweep, samples).render(&mut page);
            page.into_text()
        };
        let never = FILE.replace("1 ms", "1 s");
        assert!(table(FILE, &[]).contains("3 of 3"), "{}", table(FILE, &[]));
        assert!(table(&never, &[]).contains("0 of 3"), "{}", table(&never, &[]));
        assert!(!table(FILE, &["path.rtt=10ms"]).contains("as expected"));
    }

    /// A division by zero has no place on an axis, and beyond seven curves colors would repeat.
    #[test]
    fn what_cannot_be_drawn_is_left_out_of_graphs() {
        let graphs = |axes: &[&str], measure: &str| {
            let axes = axes.iter().map(|axis| axis.parse().unwrap()).collect();
            let sweep = Sweep::new(FILE, axes, 1, Some(1), &[measure.to_owned()], Limits::default()).unwrap();
            let samples = (0..sweep.plays()).map(|n| sweep.play(n).unwrap()).collect();
            Swept::new(&sweep, samples).graphs()
        };
        assert!(graphs(&["path.rtt=10ms,20ms"], "1 / drops()").is_empty());
        let many = graphs(
            &["path.rtt=10ms,20ms", "client.sndbuf=11kB,12kB,13kB,14kB,15kB,16kB,17kB,18kB,19kB"],
            "time()",
        );
        assert_eq!((many[0].series.len(), many[0].note.as_str()), (7, "the first 7 of 9 curves"));
    }

    #[test]
    fn repeats_have_a_distribution_and_shards_the_same_columns() {
        let sweep =
            Sweep::new(FILE, vec!["path.loss=0%,5%".parse().unwrap()], 5, Some(1), &[], Limits::default())
                .unwrap();
        let play = |plays: &[usize]| plays.iter().map(|n| sweep.play(*n).unwrap()).collect::<Vec<_>>();
        let whole = Swept::new(&sweep, play(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]));
        let mut page = Page::new(PageStyle::default());
        whole.render(&mut page);
        let text = page.into_text();
        assert!(text.contains("10 runs: 2 combinations of values, with each of the seeds 1 to 5."), "{text}");
        assert_eq!(whole.graphs().len(), 2);
        let csv = |swept: &Swept<'_>| {
            let mut bytes = Vec::new();
            swept.write_csv(&mut bytes).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        let rows = csv(&whole);
        assert!(rows.starts_with("path.loss,seed,time\n0%,1,"), "{rows}");
        let (even, odd) = (play(&[0, 2, 4, 6, 8]), play(&[1, 3, 5, 7, 9]));
        let parts = csv(&Swept::new(&sweep, even)) + &csv(&Swept::new(&sweep, odd));
        assert!(rows.lines().all(|row| parts.contains(row)), "parts make the whole");
        let spread = whole.spread(1, 0);
        assert!(spread.at(0.0) < spread.at(1.0), "seeds differ where packets are lost at random");
        assert_eq!(whole.spread(0, 0).at(0.0), whole.spread(0, 0).at(1.0));
    }
}
