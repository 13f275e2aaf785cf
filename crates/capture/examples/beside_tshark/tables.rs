//! Sums by project and by cause, as Markdown tables.

use crate::compare::{Cause, Comparison};
use std::collections::BTreeMap;
use std::fmt;

#[derive(Default)]
pub(crate) struct Tables {
    projects: BTreeMap<String, Sums>,
    causes: BTreeMap<Cause, Count>,
}

/// One row of the first table.
#[derive(Clone, Copy, Default)]
struct Sums {
    files: u64,
    with_tcp: u64,
    packets: u64,
    connections: u64,
    /// Retransmissions: tshark's, ours.
    retransmissions: [u64; 2],
    agree: u64,
    stated: u64,
    unexplained: u64,
}

/// One row of the second table.
#[derive(Default)]
struct Count {
    files: u64,
    times: u64,
}

impl Sums {
    fn add(&mut self, other: Sums) {
        self.files += other.files;
        self.with_tcp += other.with_tcp;
        self.packets += other.packets;
        self.connections += other.connections;
        self.retransmissions = [0, 1].map(|who| self.retransmissions[who] + other.retransmissions[who]);
        self.agree += other.agree;
        self.stated += other.stated;
        self.unexplained += other.unexplained;
    }

    fn row(&self, name: &str) -> String {
        let [theirs, ours] = self.retransmissions;
        format!(
            "| {name} | {} | {} | {} | {} | {ours} | {theirs} | {} | {} | {} |",
            self.files,
            self.with_tcp,
            self.packets,
            self.connections,
            self.agree,
            self.stated,
            self.unexplained
        )
    }
}

impl Tables {
    pub(crate) fn add(&mut self, project: &str, comparison: &Comparison) {
        let has_tcp = comparison.has_tcp();
        let is_unexplained = comparison.causes.contains_key(&Cause::Unexplained);
        let agrees = comparison.causes.is_empty();
        let [_, packets] = comparison.packets;
        let [_, connections] = comparison.connections;
        self.projects.entry(project.to_owned()).or_default().add(Sums {
            files: 1,
            with_tcp: has_tcp.into(),
            packets,
            connections,
            retransmissions: comparison.retransmissions,
            agree: (has_tcp && agrees).into(),
            stated: (!agrees && !is_unexplained).into(),
            unexplained: is_unexplained.into(),
        });
        for (cause, times) in &comparison.causes {
            let count = self.causes.entry(*cause).or_default();
            count.files += 1;
            count.times += times;
        }
    }
}

impl fmt::Display for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| project | files | with TCP | packets | connections | retransmissions | by tshark | agree | reason stated | unexplained |"
        )?;
        writeln!(f, "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")?;
        let mut all = Sums::default();
        for (name, sums) in &self.projects {
            all.add(*sums);
            writeln!(f, "{}", sums.row(name))?;
        }
        writeln!(f, "{}\n", all.row("all"))?;
        writeln!(f, "| reason for a difference | files | times |\n|---|--:|--:|")?;
        for (cause, count) in &self.causes {
            writeln!(f, "| {} | {} | {} |", cause.text(), count.files, count.times)?;
        }
        let explained = all.agree + all.stated;
        let share = explained as f64 * 100.0 / all.with_tcp.max(1) as f64;
        writeln!(
            f,
            "\n{explained} of {} files with TCP ({share:.2} %) agree or differ for a stated reason.",
            all.with_tcp
        )
    }
}
