//! Pages of `firstbyte lab --html`, opened in a browser.
mod browser;

use crate::{run, skipped_without, stdout};
use browser::Browser;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns the document after the page's script has run, and the messages of the console.
fn opened(page: &Path, width: u32) -> (String, String) {
    let mut chromium = testnet::command("chromium");
    chromium.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--dump-dom",
        "--virtual-time-budget=2000",
    ]);
    chromium.args(["--enable-logging=stderr", &format!("--window-size={width},1200")]);
    // Several may run at once: each has its own profile.
    let profile = page.with_extension("profile");
    let output = chromium
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let _ = std::fs::remove_dir_all(profile);
    let console: Vec<String> = String::from_utf8_lossy(&output.stderr)
        .lines()
        .filter(|line| line.contains("CONSOLE"))
        .map(str::to_owned)
        .collect();
    (stdout(&output).to_owned(), console.join("\n"))
}

/// Returns the unreadable parts of a page at this width, by `readable.js`. Chromium's windows
/// cannot be as narrow as a phone, but a frame can.
fn unreadable(page: &Path, width: u32) -> String {
    let [inner, outer] = ["inner", "outer"].map(|name| page.with_extension(format!("{name}.html")));
    let script = format!("<script>{}</script>", include_str!("readable.js"));
    std::fs::write(&inner, std::fs::read_to_string(page).unwrap() + &script).unwrap();
    let frame = format!(
        "<body><iframe style='width:{width}px;height:1200px;border:0' src='file://{}'></iframe><pre></pre>\
         <script>onmessage = event => document.querySelector('pre').textContent = event.data</script>",
        inner.display()
    );
    std::fs::write(&outer, frame).unwrap();
    let (document, _) = opened(&outer, width + 100);
    std::fs::remove_file(inner).unwrap();
    std::fs::remove_file(outer).unwrap();
    let told = document.split("<pre>").nth(1).and_then(|rest| rest.split("</pre>").next());
    told.expect("the frame's script has told").to_owned()
}

fn page_of(scenario: &str) -> PathBuf {
    static PAGES: AtomicU32 = AtomicU32::new(0);
    let number = PAGES.fetch_add(1, Ordering::Relaxed);
    let page =
        std::env::temp_dir().join(format!("firstbyte-lab-{scenario}-{}-{number}.html", std::process::id()));
    let output = run(&["lab", scenario, "--html", page.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    page
}

#[test]
fn pages_open_without_an_error_and_every_figure_has_axes_units_and_a_legend() {
    if skipped_without("chromium") {
        return;
    }
    for scenario in ["fast-open", "congestion", "bufferbloat", "crowd"] {
        let page = page_of(scenario);
        for width in [400, 1600] {
            let (document, console) = opened(&page, width);
            assert_eq!(console, "", "{scenario} at {width}");
            assert!(
                document.contains("class=\"controls\" aria-label=\"Time\">"),
                "the script has shown the slider"
            );
            let figures: Vec<&str> = document.split("<figure class=\"graph\">").skip(1).collect();
            assert!(figures.len() >= 4, "{scenario}: {}", figures.len());
            for figure in figures {
                let figure = figure.split("</figure>").next().unwrap();
                assert!(
                    figure.contains(">time, ms<") || figure.contains(">time, s<"),
                    "{scenario}: {figure:.300}"
                );
                for part in ["class=\"tick\"", "class=\"legend\"", "class=\"swatch\"", "tabindex=\"0\""] {
                    assert!(figure.contains(part), "{scenario}: {part} is missing: {figure:.300}");
                }
            }
            assert!(document.contains("class=\"rung "), "{scenario} has a ladder");
        }
        std::fs::remove_file(page).unwrap();
    }
}

#[test]
fn all_of_a_page_can_be_read_on_a_telephone() {
    if skipped_without("chromium") {
        return;
    }
    for scenario in ["fallback", "textbook", "bufferbloat"] {
        let page = page_of(scenario);
        for width in [400, 1600] {
            assert_eq!(unreadable(&page, width), "[]", "{scenario} at {width}");
        }
        std::fs::remove_file(page).unwrap();
    }
}

#[test]
fn the_page_of_a_sweep_opens_without_an_error_too() {
    if skipped_without("chromium") {
        return;
    }
    let page = std::env::temp_dir().join(format!("firstbyte-lab-sweep-{}.html", std::process::id()));
    let vary = ["--vary", "path.loss=0%,2%", "--repeat", "3"];
    let output = run(&[&["lab", "sweep", "tail-loss", "--html", page.to_str().unwrap()][..], &vary].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    for width in [400, 1600] {
        let (document, console) = opened(&page, width);
        assert_eq!(console, "", "at {width}");
        assert!(document.matches("<figure class=\"graph\">").count() > 0, "it draws");
        assert!(
            document.contains("class=\"tick\"") && document.contains("class=\"swatch\""),
            "{document:.300}"
        );
    }
    std::fs::remove_file(page).unwrap();
}

/// Finds the usable elements of a page by the rules of HTML, independent of the page's own code.
const WATCH_FOCUS: &str = "(() => { \
    const usable = [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex]')].filter(one => \
        one.tabIndex >= 0 && !one.disabled && one.checkVisibility({visibilityProperty: true}) && one.getClientRects().length); \
    window.left = new Set(usable); addEventListener('focusin', event => left.delete(event.target)); return usable.length })()";

#[test]
fn the_tab_key_reaches_everything_that_can_be_used() {
    if skipped_without("chromium") {
        return;
    }
    for scenario in ["fast-open", "crowd", "tail-loss"] {
        let page = page_of(scenario);
        let mut browser = Browser::open(&page);
        let usable = browser.value(WATCH_FOCUS).as_u64().unwrap();
        assert!(usable > 20, "{scenario}: a slider, graphs, rungs: {usable}");
        (0..usable).for_each(|_| browser.press_tab());
        let left = browser.value("[...left].map(one => one.outerHTML.slice(0, 100)).join('; ')");
        assert_eq!(left, "", "{scenario}: of {usable}");
        std::fs::remove_file(page).unwrap();
    }
}
