//! Chromium, controlled through its debugging pipe: JSON messages, each terminated by a zero byte.
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A browser with one open page, closed when dropped.
pub(super) struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    profile: PathBuf,
    session: Option<String>,
    calls: u64,
}

impl Browser {
    /// Opens a page, and waits until its scripts have run.
    pub(super) fn open(page: &Path) -> Browser {
        let profile = page.with_extension("keys.profile");
        // It reads from descriptor 3 and writes to 4.
        let mut shell = testnet::command("sh");
        shell.args([
            "-c",
            "exec chromium --headless --no-sandbox --disable-gpu --user-data-dir=\"$0\" --remote-debugging-pipe 3<&0 4>&1 >/dev/null 2>&1",
        ]);
        let mut child =
            shell.arg(&profile).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut browser = Browser { child, to, from, profile, session: None, calls: 0 };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", attach);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        browser.call("Page.navigate", json!({ "url": format!("file://{}", page.display()) }));
        let loaded = "new Promise(loaded => { const look = () => location.protocol == 'file:' && document.readyState == 'complete' ? \
                      loaded(1) : setTimeout(look, 20); look() })";
        browser.value(loaded);
        browser
    }

    /// Returns the value of an expression on the page.
    pub(super) fn value(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "awaitPromise": true });
        let told = self.call("Runtime.evaluate", asked);
        assert!(told.get("exceptionDetails").is_none(), "{told}");
        told["result"]["value"].clone()
    }

    /// Presses Tab, like a keyboard user.
    pub(super) fn press_tab(&mut self) {
        for kind in ["rawKeyDown", "keyUp"] {
            let key = json!({ "type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9 });
            self.call("Input.dispatchKeyEvent", key);
        }
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = session.clone().into();
        }
        write!(self.to, "{message}\0").unwrap();
        loop {
            let mut line = Vec::new();
            self.from.read_until(0, &mut line).unwrap();
            let text = line.strip_suffix(&[0]).expect("the browser lives");
            let mut told: Value = serde_json::from_slice(text).unwrap();
            // Other messages are events.
            if told["id"] == self.calls {
                assert!(told.get("error").is_none(), "{method}: {told}");
                return told["result"].take();
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}
