//! Sweeps: a scenario file run repeatedly, with other parameter values and other seeds.

use super::file::Expect;
use super::formula::Formula;
use super::limits::Limits;
use super::outcome::{Figures, finding};
use super::units::{in_unit_of, unit};
use super::{Experiment, explained, measure, path, question};
use core::str::FromStr;
use toml::{Table, Value};

/// A parameter and its values. Written `path.loss=0%,1%,2%`, or `run.NAME.path.loss=…` for one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The key in the file.
    pub key: String,
    /// The values, as they would be written there.
    pub values: Vec<String>,
}

impl FromStr for Axis {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Axis, &'static str> {
        const FORM: &str = "write KEY=VALUE,VALUE,… as in path.loss=0%,1%,2%";
        let (key, values) = text.split_once('=').ok_or(FORM)?;
        let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
        if key.trim().is_empty() || values.iter().any(String::is_empty) {
            return Err(FORM);
        }
        Ok(Axis { key: key.trim().to_owned(), values })
    }
}

/// A measure and the unit in which it is shown.
#[derive(Clone, Debug)]
struct Wanted {
    name: String,
    formula: Formula,
    /// A quantity in that unit; `None` if the unit has no name.
    like: Option<String>,
    /// The file's expectation; `None` for measures of the caller.
    expect: Option<Expect>,
}

/// A planned sweep.
#[derive(Clone, Debug)]
pub struct Sweep {
    question: String,
    axes: Vec<Axis>,
    /// Every combination of values, as a scenario.
    points: Vec<(Vec<String>, Experiment)>,
    seeds: Vec<u64>,
    wanted: Vec<Wanted>,
}

/// The results of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Index of the point.
    pub(super) point: usize,
    /// Seed of the run.
    pub(super) seed: u64,
    /// Value of each measure; `None` where there was nothing to measure.
    pub(super) values: Vec<Option<f64>>,
}

impl Sweep {
    /// Plans every combination of the values, each with `seeds` seeds from `seed` on, or from the
    /// file's seed. The measures are those of the file's checks, or `measures` if there are any.
    /// The limits apply to each run.
    ///
    /// # Errors
    /// A mistake in the file, a key, a value or a measure.
    pub fn new(
        text: &str,
        axes: Vec<Axis>,
        repeats: u64,
        seed: Option<u64>,
        measures: &[String],
        limits: Limits,
    ) -> Result<Sweep, String> {
        let base = Experiment::parse(text)?;
        let seed = seed.unwrap_or(base.file.seed);
        check_axes(&axes)?;
        let mut points = vec![Vec::new()];
        for axis in &axes {
            let longer = |point: &Vec<String>| {
                axis.values
                    .iter()
                    .map(|value| [&point[..], core::slice::from_ref(value)].concat())
                    .collect::<Vec<_>>()
            };
            points = points.iter().flat_map(longer).collect();
        }
        let wanted = wanted(&base, measures)?;
        let experiment = |values: Vec<String>| {
            let experiment = at(text, &axes, &values)?;
            Ok((values, experiment.with_limits(limits)))
        };
        let points: Vec<_> = points.into_iter().map(experiment).collect::<Result<_, String>>()?;
        check_points(&points, &wanted)?;
        Ok(Sweep {
            question: base.question().to_owned(),
            points,
            seeds: (seed..seed.saturating_add(repeats.max(1))).collect(),
            axes,
            wanted,
        })
    }

    /// Returns the number of runs.
    pub fn plays(&self) -> usize {
        self.points.len() * self.seeds.len()
    }

    /// Executes the n-th run, counted from 0.
    ///
    /// # Errors
    /// A host refuses a setting.
    pub fn play(&self, n: usize) -> Result<Sample, String> {
        let (point, seed) = (n / self.seeds.len(), self.seeds[n % self.seeds.len()]);
        let (values, experiment) = &self.points[point];
        let told = |error: String| format!("{}: {error}", self.words(values));
        let played = experiment.clone().with_seed(seed).play_all().map_err(told)?;
        let figures = Figures::new(&played);
        let values = self.wanted.iter().map(|wanted| figures.value(&wanted.formula).ok()).collect();
        Ok(Sample { point, seed, values })
    }

    /// Returns the file's question.
    pub fn question(&self) -> &str {
        &self.question
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.axes.iter().map(|axis| axis.key.as_str())
    }

    pub(super) fn points(&self) -> impl ExactSizeIterator<Item = &[String]> {
        self.points.iter().map(|(values, _)| values.as_slice())
    }

    pub(super) fn seeds(&self) -> &[u64] {
        &self.seeds
    }

    /// Returns the names of the measures.
    pub(super) fn measures(&self) -> impl ExactSizeIterator<Item = &str> {
        self.wanted.iter().map(|wanted| wanted.name.as_str())
    }

    /// Returns whether a value of the n-th measure passes the file's check. `None` if parameters
    /// differ from the file's, for which nothing is expected.
    pub(super) fn is_as_expected(&self, measure: usize, value: f64) -> Option<bool> {
        let expect = self.wanted[measure].expect.as_ref().filter(|_| self.axes.is_empty());
        expect.map(|expect| finding(expect, value).holds)
    }

    /// Formats a value of the n-th measure.
    pub(super) fn shown(&self, measure: usize, value: f64) -> String {
        match &self.wanted[measure].like {
            None => format!("{value:.6}").trim_end_matches('0').trim_end_matches('.').to_owned(),
            Some(like) => in_unit_of(value, like),
        }
    }

    /// Returns the unit in which the n-th measure is drawn, and its size.
    pub(super) fn unit(&self, measure: usize) -> (&str, f64) {
        match self.wanted[measure].like.as_deref().map(unit) {
            None => ("in units of s and B", 1.0),
            Some(("", factor)) => ("plain number", factor),
            Some(named) => named,
        }
    }

    /// Formats the values of a point with their keys.
    pub(super) fn words(&self, values: &[String]) -> String {
        let pairs = self.keys().zip(values).map(|(key, value)| format!("{key} = {value}"));
        pairs.collect::<Vec<_>>().join(", ")
    }
}

fn wanted(base: &Experiment, measures: &[String]) -> Result<Vec<Wanted>, String> {
    if measures.is_empty() {
        let expects = base.file.expect.iter().map(|expect| Wanted {
            name: expect.what.clone(),
            formula: expect.that.clone(),
            like: [&expect.is, &expect.at_least, &expect.at_most].into_iter().flatten().next().cloned(),
            expect: Some(expect.clone()),
        });
        return Ok(expects.collect());
    }
    if let Some((_, text)) = measures.iter().enumerate().find(|(at, text)| measures[..*at].contains(text)) {
        return Err(format!("duplicate measure \"{text}\""));
    }
    let read = |text: &String| {
        let wrong = |error: String| format!("measure \"{text}\": {error}");
        let formula: Formula = text.parse().map_err(wrong)?;
        base.check_formula(&formula).map_err(wrong)?;
        let like = formula.unit(&measure::unit_of).map(|unit| format!("1 {unit}"));
        Ok(Wanted { name: text.clone(), formula, like, expect: None })
    };
    measures.iter().map(read).collect()
}

/// Checks that all measures apply at one point at least. The error names what the first point
/// lacks.
fn check_points(points: &[(Vec<String>, Experiment)], wanted: &[Wanted]) -> Result<(), String> {
    let formulas: Vec<&Formula> = wanted.iter().map(|wanted| &wanted.formula).collect();
    let mut checks = points.iter().map(|(_, experiment)| experiment.check_hosts_for(&formulas));
    match checks.next() {
        Some(Err(lacking)) if !checks.any(|check| check.is_ok()) => Err(lacking),
        _ => Ok(()),
    }
}

/// Returns the scenario with these values.
fn at(text: &str, axes: &[Axis], values: &[String]) -> Result<Experiment, String> {
    let mut table: Table = toml::from_str(text).map_err(|error| error.to_string())?;
    for (axis, value) in axes.iter().zip(values) {
        put(&mut table, &axis.key, value)?;
    }
    let experiment = table
        .try_into()
        .map_err(|error| explained(&error))
        .and_then(|file| Experiment::of(question(text)?, file, None));
    experiment.map_err(|error| {
        let pairs = axes.iter().zip(values).map(|(axis, value)| format!("{} = {value}", axis.key));
        format!("with {}: {error}", pairs.collect::<Vec<_>>().join(", "))
    })
}

/// Checks the names of the axes.
fn check_axes(axes: &[Axis]) -> Result<(), String> {
    for (at, axis) in axes.iter().enumerate() {
        let key = &axis.key;
        if key == "seed" {
            return Err("`seed`: every combination runs with every seed; use --seed N and --repeat N".into());
        }
        if let Some(other) = axes[..at].iter().find(|other| other.key == *key) {
            let values = [&other.values[..], &axis.values].concat().join(",");
            return Err(format!("`{key}` is varied twice; write its values together, {key}={values}"));
        }
    }
    Ok(())
}

fn put(table: &mut Table, key: &str, value: &str) -> Result<(), String> {
    if let Some(rest) = key.strip_prefix("run.") {
        let runs = table.get_mut("run").and_then(Value::as_array_mut).map_or(&mut [][..], Vec::as_mut_slice);
        let name_of = |run: &Value| run.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let names: Vec<String> = runs.iter().map(name_of).collect();
        for run in runs {
            if let (Some(rest), Value::Table(run)) = (rest.strip_prefix(&format!("{}.", name_of(run))), run) {
                return put(run, rest, value);
            }
        }
        return Err(format!("`{key}`: write run.NAME.KEY, where NAME is one of: {}", names.join(", ")));
    }
    // A run with its own value would ignore the axis.
    if let Some(Value::Array(runs)) = table.get("run")
        && !runs.is_empty()
        && runs.iter().all(|run| get(run, key).is_some())
    {
        return Err(format!("`{key}`: every run has its own value; vary run.NAME.{key}"));
    }
    let mut names = names(key);
    let Some(last) = names.pop() else { return Err(format!("unknown key `{key}`")) };
    let mut inner = table;
    for name in names {
        let entry = inner.entry(name.to_owned()).or_insert_with(|| Value::Table(Table::new()));
        inner = entry.as_table_mut().ok_or_else(|| format!("`{key}`: `{name}` has no parts"))?;
    }
    inner.insert(last.to_owned(), path::literal(value));
    Ok(())
}

fn get<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    names(key).into_iter().try_fold(value, |value, name| value.get(name))
}

/// Splits a key; the name of a setting contains dots itself.
fn names(key: &str) -> Vec<&str> {
    match key.split_once(".set.") {
        Some((end, setting)) => vec![end, "set", setting],
        None => key.split('.').collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# How long?
chapter = \"x\"
lesson = \"y\"
[path]
rtt = \"100ms\"
[client]
steps = [\"connect\", \"write 100\", \"read 500\", \"close\"]
[server]
steps = [\"read 100\", \"write 500\", \"read to end\", \"close\"]
[[expect]]
what = \"time\"
that = \"time()\"
is = \"200 ms\"
";

    fn sweep(axes: &[&str], measures: &[&str]) -> Result<Sweep, String> {
        let axes = axes.iter().map(|axis| axis.parse().unwrap()).collect();
        let measures: Vec<String> = measures.iter().map(|text| (*text).to_owned()).collect();
        Sweep::new(FILE, axes, 2, Some(7), &measures, Limits::default())
    }

    #[test]
    fn every_combination_is_played_with_every_seed() {
        let sweep = sweep(&["path.rtt=20ms,50ms", "server.set.net.ipv4.tcp_sack=0,1"], &[]).unwrap();
        assert_eq!((sweep.plays(), sweep.points().len()), (8, 4));
        let samples: Vec<Sample> = (0..8).map(|n| sweep.play(n).unwrap()).collect();
        assert_eq!((samples[7].point, samples[7].seed), (3, 8));
        let times: Vec<Option<f64>> = samples.iter().map(|sample| sample.values[0]).collect();
        assert_eq!((times[0], times[7]), (Some(0.04), Some(0.1)));
        assert_eq!(sweep.shown(0, 0.04), "40 ms");
    }

    #[test]
    fn what_is_measured_has_its_unit() {
        let sweep = sweep(&["path.rtt=20ms"], &["wait(95)", "goodput()", "time() / time()"]).unwrap();
        let shown: Vec<String> = (0..3).map(|measure| sweep.shown(measure, 0.0399)).collect();
        assert_eq!(shown, ["39.9 ms", "0.00 MB/s", "0.04"]);
        assert_eq!((sweep.unit(0), sweep.unit(2)), (("ms", 0.001), ("plain number", 1.0)));
    }

    #[test]
    fn mistakes_are_told() {
        for (axes, measures, told) in [
            (["path.rt=20ms"], [].as_slice(), "did you mean `rtt`"),
            (["path.rtt=20 apples"], &[], "write e.g. 35ms"),
            (["run.a.path.rtt=20ms"], &[], "run.NAME.KEY"),
            (["path.rtt=20"], &[], "write e.g. 35ms"),
            (["path.queue=some"], &[], "expected a whole number"),
            (["path.rtt=20ms"], &["tme()"], "did you mean `time`"),
            (["path.rtt=20ms"], &["wait()"], "needs PERCENTILE after the run"),
            (["path.rtt=20ms"], &["count(client)"], "count(RUN, client|server, COUNTER)"),
            (["path.rtt=20ms"], &["count(server, TcpPasiveOpens)"], "did you mean `TcpPassiveOpens`"),
            (["path.rtt=20ms"], &["device(server, tx_packets)"], "has no `device`"),
            (["path.bond=balance-rr"], &["link(3)"], "the bond has 2"),
            (["path.rtt=20ms"], &["time()", "time()"], "duplicate measure"),
        ] {
            let error = sweep(&axes, measures).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
        assert!("path.rtt".parse::<Axis>().is_err() && "path.rtt=1,,2".parse::<Axis>().is_err());
    }

    #[test]
    fn what_is_looked_at_needs_to_be_there_at_one_point_only() {
        let sweep = Sweep::new(
            &FILE.replacen("rtt", "bond = \"balance-rr\"\nrtt", 1),
            vec!["path.links=2,3".parse().unwrap()],
            1,
            None,
            &["link(3)".to_owned()],
            Limits::default(),
        );
        let sweep = sweep.unwrap();
        let values: Vec<bool> = (0..2).map(|n| sweep.play(n).unwrap().values[0].is_some()).collect();
        assert_eq!(values, [false, true]);
    }

    #[test]
    fn a_value_that_every_run_has_itself_is_not_varied_in_vain() {
        let text = FILE
            .replace("[[expect]]", "[[run]]\nname = \"a\"\npath.rtt = \"5ms\"\n[[expect]]")
            .replace("time()", "time(a)");
        let vary = |key: &str| {
            Sweep::new(
                &text,
                vec![Axis { key: key.into(), values: vec!["1ms".into()] }],
                1,
                Some(1),
                &[],
                Limits::default(),
            )
        };
        assert!(vary("path.rtt").unwrap_err().contains("run.NAME.path.rtt"));
        assert_eq!(vary("run.a.path.rtt").unwrap().play(0).unwrap().values, [Some(0.002)]);
    }

    #[test]
    fn a_seed_of_the_file_is_the_first() {
        let text = FILE.replacen("chapter", "seed = 5\nchapter", 1);
        let seeds =
            |seed| Sweep::new(&text, Vec::new(), 2, seed, &[], Limits::default()).unwrap().seeds().to_vec();
        assert_eq!((seeds(None), seeds(Some(9))), (vec![5, 6], vec![9, 10]));
    }

    #[test]
    fn axes_that_would_say_nothing_are_refused() {
        let refused = |axes: &[&str]| {
            let axes = axes.iter().map(|axis| axis.parse().unwrap()).collect();
            Sweep::new(FILE, axes, 1, None, &[], Limits::default()).map(drop).unwrap_err()
        };
        assert!(refused(&["seed=1,2"]).contains("--repeat"));
        let twice = refused(&["path.loss=1%", "path.rtt=1ms", "path.loss=2%"]);
        assert!(twice.ends_with("path.loss=1%,2%"), "{twice}");
    }
}
