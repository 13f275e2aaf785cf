//! The monitoring kit in `contrib/`, beside the metrics that `firstbyte doctor --listen` serves.
use super::doctor::Exporter;
use super::{firstbyte, skipped_without};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use yaml_rust2::{Yaml, YamlLoader};

/// Labels that Prometheus adds to every series.
const ADDED: [&str; 2] = ["instance", "job"];

fn contrib(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../contrib").join(file)
}

fn yaml(file: &str) -> Yaml {
    let text = fs::read_to_string(contrib(file)).unwrap();
    let mut documents = YamlLoader::load_from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
    assert_eq!(documents.len(), 1, "{file}");
    documents.remove(0)
}

/// Returns every string below `key`.
fn strings<'a>(yaml: &'a Yaml, key: &str, found: &mut Vec<&'a str>) {
    match yaml {
        Yaml::Hash(map) => {
            for (name, value) in map {
                match value.as_str() {
                    Some(text) if name.as_str() == Some(key) => found.push(text),
                    _ => strings(value, key, found),
                }
            }
        }
        Yaml::Array(items) => items.iter().for_each(|item| strings(item, key, found)),
        _ => {}
    }
}

/// Metrics with their labels. The doctor runs in a namespace with a fault, so that a rule fires.
fn scraped() -> Option<BTreeMap<String, BTreeSet<String>>> {
    let text = testnet::in_namespace(|| {
        let reply = Exporter::start_with_a_fault().get("/metrics");
        reply.split_once("\r\n\r\n").unwrap().1.to_owned()
    })?;
    let mut metrics: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, rest) = line.split_at(line.find(['{', ' ']).unwrap());
        let labels = rest.split('"').step_by(2).filter_map(|part| part.trim_matches(['{', ',', '=']).into());
        let labels = labels.filter(|label: &&str| label.chars().all(|c| c.is_ascii_lowercase()));
        let known = metrics.entry(name.to_owned()).or_default();
        known.extend(labels.filter(|label| !label.is_empty()).map(str::to_owned));
    }
    Some(metrics)
}

/// Checks that a query names only metrics and labels that are scraped.
fn check_query(query: &str, metrics: &BTreeMap<String, BTreeSet<String>>) {
    let mut used = 0;
    for (start, _) in query.match_indices("firstbyte_") {
        let rest = &query[start..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let labels = metrics.get(&rest[..end]).unwrap_or_else(|| panic!("`{query}`: no such metric"));
        used += 1;
        let Some(selector) = rest[end..].strip_prefix('{') else { continue };
        let selector = &selector[..selector.find('}').unwrap()];
        for matcher in selector.split(", ") {
            let label = matcher.split(['=', '!', '~']).next().unwrap();
            assert!(labels.contains(label) || ADDED.contains(&label), "`{query}`: no label `{label}`");
        }
    }
    assert!(used > 0 || query.contains("up{job=\"firstbyte-doctor\"}"), "`{query}` asks for nothing of ours");
}

#[test]
fn alerts_and_dashboard_ask_for_metrics_that_the_doctor_serves() {
    let Some(metrics) = scraped() else { return };
    let finding = ["rule", "scope", "severity"].map(str::to_owned);
    assert_eq!(metrics["firstbyte_doctor_finding"], BTreeSet::from(finding), "{metrics:?}");
    let (rules, mut queries) = (yaml("prometheus/firstbyte-alerts.yml"), Vec::new());
    strings(&rules, "expr", &mut queries);
    assert!(queries.len() >= 7, "{queries:?}");
    let dashboard = dashboard();
    let drawn = expressions(&dashboard);
    assert!(drawn.len() >= 10, "{drawn:?}");
    for query in queries.into_iter().chain(drawn.iter().map(String::as_str)) {
        check_query(query, &metrics);
    }
    for metric in metrics.keys() {
        assert!(drawn.iter().any(|query| query.contains(metric)), "the dashboard does not show {metric}");
    }
}

fn dashboard() -> Value {
    serde_json::from_str(&fs::read_to_string(contrib("grafana/firstbyte-doctor.json")).unwrap()).unwrap()
}

/// Returns the queries of panels and variables.
fn expressions(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let panels = panels.map(|panel| panel["targets"][0]["expr"].as_str().unwrap().to_owned());
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter();
    panels
        .chain(variables.filter_map(|variable| variable["definition"].as_str().map(str::to_owned)))
        .collect()
}

#[test]
fn the_dashboard_is_whole() {
    let dashboard = dashboard();
    let mut places = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().unwrap());
        assert!(x + w <= 24 && panel["description"].as_str().is_some_and(|text| !text.is_empty()));
        for place in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(places.insert(place), "`{}` lies over another panel", panel["title"]);
        }
    }
    let names: BTreeSet<&str> = dashboard["templating"]["list"]
        .as_array()
        .unwrap()
        .iter()
        .map(|variable| variable["name"].as_str().unwrap())
        .collect();
    for query in expressions(&dashboard) {
        for variable in query.split('$').skip(1) {
            let end = variable.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap();
            assert!(names.contains(&variable[..end]), "`{query}`: no such variable");
        }
    }
}

#[test]
fn each_alert_is_tested_with_its_fault_and_on_healthy_hosts() {
    let (rules, tests) =
        (yaml("prometheus/firstbyte-alerts.yml"), yaml("prometheus/firstbyte-alerts.test.yml"));
    let mut alerts = Vec::new();
    strings(&rules, "alert", &mut alerts);
    let cases = || {
        let tests = tests["tests"].as_vec().unwrap().iter();
        tests.flat_map(|test| {
            let of_test = test["alert_rule_test"].as_vec().unwrap().iter();
            of_test.map(move |case| (test["name"].as_str().unwrap(), case))
        })
    };
    for alert in alerts {
        let mut of_alert = cases().filter(|(_, case)| case["alertname"].as_str() == Some(alert));
        assert!(
            of_alert.any(|(_, case)| !case["exp_alerts"].is_badvalue()),
            "{alert}: nothing makes it fire"
        );
        let mut healthy = cases().filter(|(test, _)| *test == "healthy hosts");
        assert!(
            healthy.any(
                |(_, case)| case["alertname"].as_str() == Some(alert) && case["exp_alerts"].is_badvalue()
            ),
            "{alert}: not tested on healthy hosts"
        );
    }
}

fn promtool(arguments: &[&str]) {
    let output =
        Command::new("promtool").args(arguments).current_dir(contrib("prometheus")).output().unwrap();
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(output.status.success(), "promtool {arguments:?}: {said}");
}

#[test]
fn promtool_accepts_rules_tests_configuration_and_queries() {
    if skipped_without("promtool") {
        return;
    }
    promtool(&["check", "rules", "firstbyte-alerts.yml"]);
    promtool(&["test", "rules", "firstbyte-alerts.test.yml"]);
    promtool(&["check", "config", "prometheus.yml"]);
    // Debian's Prometheus lacks Kubernetes discovery: another discovery stands in for it.
    let folder = tempfile::tempdir().unwrap();
    let job = fs::read_to_string(contrib("prometheus/kubernetes-job.yml")).unwrap();
    let job =
        job.replace("kubernetes_sd_configs:\n    - role: pod", "static_configs:\n    - targets: [a:9477]");
    let config = folder.path().join("prometheus.yml");
    fs::write(&config, format!("scrape_configs:\n{job}")).unwrap();
    promtool(&["check", "config", config.to_str().unwrap()]);
    // The queries of the dashboard as rules, which promtool can parse.
    let mut rules = "groups:\n- name: dashboard\n  rules:\n".to_owned();
    for (nth, query) in expressions(&dashboard()).iter().enumerate() {
        if !query.starts_with("label_values(") {
            let query = query.replace("$instance", ".*").replace("$rule", ".*");
            rules += &format!("  - record: panel:{nth}\n    expr: '{query}'\n");
        }
    }
    let file = folder.path().join("dashboard.yml");
    fs::write(&file, rules).unwrap();
    promtool(&["check", "rules", file.to_str().unwrap()]);
}

#[test]
fn the_pods_have_least_privilege_and_run_the_command() {
    for (file, kind) in
        [("kubernetes/daemonset.yaml", "DaemonSet"), ("kubernetes/sidecar.yaml", "Deployment")]
    {
        let manifest = yaml(file);
        assert_eq!(manifest["kind"].as_str(), Some(kind));
        assert_eq!(manifest["apiVersion"].as_str(), Some("apps/v1"));
        let (name, selected) = ("app.kubernetes.io/name", &manifest["spec"]["selector"]["matchLabels"]);
        let template = &manifest["spec"]["template"];
        assert!(selected[name].as_str().is_some());
        assert_eq!(template["metadata"]["labels"][name], selected[name], "{file}");
        let pod = &template["spec"];
        for shared in ["hostPID", "hostIPC", "volumes", "serviceAccountName"] {
            assert!(pod[shared].is_badvalue(), "{file}: {shared}");
        }
        assert_eq!(pod["automountServiceAccountToken"].as_bool(), Some(false), "{file}");
        assert_eq!(pod["hostNetwork"].as_bool() == Some(true), kind == "DaemonSet", "{file}");
        let mut containers = pod["containers"].as_vec().unwrap().iter();
        let container = containers.find(|one| one["name"].as_str() == Some("firstbyte-doctor")).unwrap();
        let rights = &container["securityContext"];
        assert_eq!(rights["privileged"].as_bool(), Some(false), "{file}");
        assert_eq!(rights["allowPrivilegeEscalation"].as_bool(), Some(false), "{file}");
        assert_eq!(rights["readOnlyRootFilesystem"].as_bool(), Some(true), "{file}");
        assert_eq!(rights["capabilities"]["drop"][0].as_str(), Some("ALL"), "{file}");
        assert!(rights["capabilities"]["add"].is_badvalue(), "{file}");
        let user = if kind == "DaemonSet" { &pod["securityContext"] } else { rights };
        assert_eq!(user["runAsNonRoot"].as_bool(), Some(true), "{file}");
        assert_eq!(user["seccompProfile"]["type"].as_str(), Some("RuntimeDefault"), "{file}");
        let limits = &container["resources"]["limits"];
        assert!(limits["memory"].as_str().is_some() && limits["cpu"].is_badvalue(), "{file}");
        let port = &container["ports"][0];
        assert_eq!(port["name"].as_str(), Some("firstbyte"), "{file}: the scrape job selects it");
        let arguments = container["args"].as_vec().unwrap().iter().map(|word| word.as_str().unwrap());
        let arguments: Vec<&str> = arguments.collect();
        let listens = format!(":{}", port["containerPort"].as_i64().unwrap());
        assert!(arguments[2].ends_with(&listens), "{file}: {arguments:?}");
        accepts(&arguments);
    }
}

/// Starts the command with these arguments, at a free port, until it serves.
fn accepts(arguments: &[&str]) {
    let arguments = arguments.iter().map(|word| if word.contains(":9477") { "127.0.0.1:0" } else { word });
    let mut child = firstbyte().args(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(line.starts_with("metrics at http://127.0.0.1:"), "{line}");
}
