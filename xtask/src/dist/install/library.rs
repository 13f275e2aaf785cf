//! C programs against the installed library, and a program under the preload library.

use super::super::{output, write};
use super::expect;
use super::root::Root;
use crate::{packages, skipped};
use std::path::Path;
use std::process::Command;

/// Starts a stack that reaches only itself, and sends five bytes through it.
const PROGRAM: &str = r#"
#include <arpa/inet.h>
#include <firstbyte.h>
#include <stdio.h>
#include <string.h>

static int failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, fb_error());
    return 1;
}

int main(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(7)};
    char text[5] = "";
    int listener, client, server;

    inet_pton(AF_INET, "10.0.0.1", &address.sin_addr);
    if (fb_start("device loopback; address 10.0.0.1/24") != 0)
        return failed("fb_start");
    listener = fb_socket(AF_INET, SOCK_STREAM, 0);
    client = fb_socket(AF_INET, SOCK_STREAM, 0);
    if (fb_bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || fb_listen(listener, 1) != 0)
        return failed("fb_listen");
    if (fb_connect(client, (struct sockaddr *)&address, sizeof address) != 0)
        return failed("fb_connect");
    server = fb_accept(listener, NULL, NULL);
    if (fb_send(client, "hello", 5, 0) != 5 || fb_recv(server, text, 5, MSG_WAITALL) != 5)
        return failed("fb_send");
    printf("%s %.5s\n", fb_version(), text);
    return fb_stop(1000);
}
"#;

/// A server and a client of Python, both over the stack.
const SOCKETS: &str = r#"
import socket
listener = socket.create_server(("10.0.0.1", 7))
client = socket.create_connection(("10.0.0.1", 7))
server, _ = listener.accept()
client.sendall(b"hello")
print(server.recv(5).decode())
"#;

/// Compiles and runs a program with pkg-config's flags, for the shared and the static library.
pub(super) fn link(root: &Root) -> Result<(), String> {
    let libraries = root.libraries()?;
    if let Some(missing) = ["cc", "pkg-config", "readelf"].into_iter().find(|name| !packages::installed(name))
    {
        skipped::say(&format!("a C program against the installed library: {missing} is missing"));
        return preload(&libraries);
    }
    let source = root.path("tmp/hello.c");
    write(&source, PROGRAM, 0o644)?;
    let said = format!("{} hello\n", super::VERSION);
    for (options, linked) in [(&[][..], "shared"), (&["--static"][..], "static")] {
        let program = root.path("tmp").join(linked);
        let mut flags = flags(root, &libraries, options)?;
        if linked == "static" {
            let archive = libraries.join("libfirstbyte.a").display().to_string();
            flags.iter_mut().filter(|flag| *flag == "-lfirstbyte").for_each(|flag| flag.clone_from(&archive));
        }
        let mut cc = Command::new("cc");
        cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror"]).arg(&source).arg("-o").arg(&program).args(flags);
        output(&mut cc)?;
        let needed = output(Command::new("readelf").arg("-d").arg(&program))?;
        let needs = needed.contains("Shared library: [libfirstbyte.so.0]");
        expect(needs == (linked == "shared"), &format!("what the {linked} program needs"), &needed)?;
        let ran = output(Command::new(&program).env("LD_LIBRARY_PATH", &libraries))?;
        expect(ran == said, &format!("the {linked} program"), &ran)?;
    }
    let dynamic = output(Command::new("readelf").arg("-d").arg(libraries.join("libfirstbyte.so")))?;
    expect(dynamic.contains("Library soname: [libfirstbyte.so.0]"), "the SONAME", &dynamic)?;
    std::fs::remove_dir_all(root.path("tmp")).map_err(|error| format!("cannot remove tmp: {error}"))?;
    println!("libfirstbyte: linked by pkg-config, shared and static; SONAME libfirstbyte.so.0");
    preload(&libraries)
}

fn flags(root: &Root, libraries: &Path, options: &[&str]) -> Result<Vec<String>, String> {
    let mut asked = Command::new("pkg-config");
    asked.env("PKG_CONFIG_SYSROOT_DIR", root.path("")).env("PKG_CONFIG_LIBDIR", libraries.join("pkgconfig"));
    let version = output(
        Command::new("pkg-config")
            .env("PKG_CONFIG_LIBDIR", libraries.join("pkgconfig"))
            .args(["--modversion", "firstbyte"]),
    )?;
    expect(version.trim() == super::VERSION, "pkg-config --modversion firstbyte", &version)?;
    let flags = output(asked.args(options).args(["--cflags", "--libs", "firstbyte"]))?;
    Ok(flags.split_whitespace().map(str::to_owned).collect())
}

fn preload(libraries: &Path) -> Result<(), String> {
    if !packages::installed("python3") {
        skipped::say("an unmodified program over the installed preload library: python3 is missing");
        return Ok(());
    }
    let mut python = Command::new("python3");
    python.args(["-c", SOCKETS]).env("FIRSTBYTE", "device loopback; address 10.0.0.1/24");
    let said = output(python.env("LD_PRELOAD", libraries.join("libfirstbyte_preload.so")))?;
    expect(said == "hello\n", "python3 over libfirstbyte_preload.so", &said)?;
    println!("libfirstbyte_preload: python3 runs over it");
    Ok(())
}
