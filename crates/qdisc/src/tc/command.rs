//! Which words a command is made of.
use super::Device;
use super::error::{TcError, usage};
use super::kinds;
use super::modify::{Flags, Request};
use super::show::Detail;
use super::stab;
use super::units;
use super::words::Words;
use crate::{Dropped, Handle, Nanos, Packet};
use alloc::string::String;
use alloc::vec::Vec;

impl<P: Packet> Device<P> {
    /// Runs a `tc` command. Returns its output, which for `add` and similar commands is empty or a
    /// warning.
    ///
    /// Supports `qdisc` and `class` with `add`, `change`, `replace`, `link`, `delete` and `show`,
    /// and `filter add` with `fw`. The leading `tc` and `dev NAME` are optional. `-s` and `-d` may
    /// come first.
    ///
    /// # Errors
    /// Returns the error message of tc or the kernel.
    pub fn tc(
        &mut self,
        now: Nanos,
        command: &str,
        dropped: &mut Vec<Dropped<P>>,
    ) -> Result<String, TcError> {
        let list: Vec<&str> = command.split_whitespace().collect();
        let mut words = Words::new(&list);
        words.maybe(|word| (word == "tc").then_some(()));
        let detail = Detail { ..detail(&mut words) };
        let object = words.next().ok_or_else(|| {
            usage("Usage: [tc] [-s] [-d] qdisc|class|filter add|change|replace|delete|show …")
        })?;
        let verb = words.next().unwrap_or("show");
        let (object, usage_of) = match object {
            "qdisc" | "q" | "qd" => (Object::Qdisc, "qdisc"),
            "class" | "c" | "cl" => (Object::Class, "class"),
            "filter" | "f" => (Object::Filter, "filter"),
            _ => return Err(usage(format!("Object \"{object}\" is unknown, try \"tc help\"."))),
        };
        let flags = match verb {
            "add" | "a" => Flags::ADD,
            "change" | "chg" => Flags::CHANGE,
            "replace" => Flags::REPLACE,
            "link" => Flags::LINK,
            "delete" | "del" => Flags::DELETE,
            "show" | "list" | "ls" | "sh" => return self.show(now, object, words, detail),
            _ => {
                return Err(usage(format!("Command \"{verb}\" is unknown, try \"tc {usage_of} help\".")));
            }
        };
        match object {
            Object::Qdisc => {
                let request = self.qdisc_request(flags, words)?;
                self.modify(now, &request, dropped).map(|()| String::new())
            }
            Object::Class => {
                let request = self.class_request(flags, words)?;
                self.modify_class(now, &request, dropped)
            }
            Object::Filter => self.add_filter(flags, words).map(|()| String::new()),
        }
    }

    fn check_device(&self, name: &str) -> Result<(), TcError> {
        if name == self.name { Ok(()) } else { Err(usage(format!("Cannot find device \"{name}\""))) }
    }

    fn show(
        &self,
        now: Nanos,
        object: Object,
        mut words: Words<'_>,
        detail: Detail,
    ) -> Result<String, TcError> {
        while let Some(word) = words.next() {
            match word {
                "dev" => self.check_device(words.value()?)?,
                _ => {
                    let object = if object == Object::Class { "class" } else { "qdisc" };
                    return Err(usage(format!("What is \"{word}\"? Try \"tc {object} help\".")));
                }
            }
        }
        Ok(match object {
            Object::Qdisc => self.show_qdiscs(now, detail),
            Object::Class => self.show_classes(detail),
            Object::Filter => self.show_filters(),
        })
    }

    fn qdisc_request<'a>(&self, flags: Flags, mut words: Words<'a>) -> Result<Request<'a>, TcError> {
        let mut request = Request::new(flags);
        while let Some(word) = words.next() {
            match word {
                "dev" => self.check_device(words.value()?)?,
                // tc names the word instead of the value.
                "handle" if request.handle.is_some() => return Err(duplicate("handle", "handle")),
                "handle" => {
                    let value = words.value()?;
                    request.handle = Some(qdisc_handle(value)?);
                }
                "root" | "parent" if request.parent.is_some() => {
                    return Err(match word {
                        "root" => usage("Error: \"root\" is duplicate parent ID"),
                        _ => duplicate("parent", words.value()?),
                    });
                }
                "root" => request.parent = Some(Handle::ROOT),
                "parent" => {
                    let value = words.value()?;
                    request.parent = Some(class_id(value).ok_or_else(|| wrong(value, "invalid parent ID"))?);
                }
                "stab" => request.stab = Some(stab::parse(&mut words)?),
                kind => {
                    request.kind = Some(kind);
                    request.options = words.clone().rest();
                    kinds::check(kind, words)?;
                    break;
                }
            }
        }
        Ok(request)
    }

    fn class_request<'a>(&self, flags: Flags, mut words: Words<'a>) -> Result<Request<'a>, TcError> {
        let mut request = Request::new(flags);
        while let Some(word) = words.next() {
            match word {
                "dev" => self.check_device(words.value()?)?,
                "classid" => {
                    let value = words.value()?;
                    if request.handle.is_some() {
                        return Err(duplicate("classid", value));
                    }
                    request.handle = Some(class_id(value).ok_or_else(|| wrong(value, "invalid class ID"))?);
                }
                "root" if request.parent.is_some() => {
                    return Err(usage("Error: \"root\" is duplicate parent ID."));
                }
                "root" => request.parent = Some(Handle::ROOT),
                "parent" => {
                    let value = words.value()?;
                    if request.parent.is_some() {
                        return Err(duplicate("parent", value));
                    }
                    request.parent = Some(class_id(value).ok_or_else(|| wrong(value, "invalid parent ID"))?);
                }
                kind => {
                    request.kind = Some(kind);
                    request.options = words.clone().rest();
                    kinds::check_class(kind, words)?;
                    break;
                }
            }
        }
        Ok(request)
    }

    /// `filter add parent 1: handle 6 fw flowid 1:10` (or `classid`); `protocol` and `prio` are read past.
    fn add_filter(&mut self, flags: Flags, mut words: Words<'_>) -> Result<(), TcError> {
        if flags != Flags::ADD && flags != Flags::REPLACE {
            return Err(usage("filters can be added and replaced here, and go with their discipline"));
        }
        let (mut parent, mut mark, mut class) = (Handle::NONE, None, None);
        while let Some(word) = words.next() {
            match word {
                "dev" => self.check_device(words.value()?)?,
                "parent" => {
                    let value = words.value()?;
                    parent = class_id(value).ok_or_else(|| wrong(value, "Invalid parent ID"))?;
                }
                "protocol" | "prio" | "pref" => drop(words.value()?),
                "root" => parent = Handle::NONE,
                "handle" => mark = Some(words.number::<u32>("handle")?),
                "fw" => {}
                "classid" | "flowid" => class = Some(words.read(word, class_id)?),
                _ => return Err(usage(format!("Unknown filter \"{word}\": only fw is known here"))),
            }
        }
        let (Some(mark), Some(class)) = (mark, class) else {
            return Err(usage("A fw filter needs \"handle MARK\" and \"flowid CLASS\""));
        };
        self.attach_filter(parent, mark, class)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Object {
    Qdisc,
    Class,
    Filter,
}

fn detail(words: &mut Words<'_>) -> Detail {
    let mut detail = Detail::default();
    loop {
        match words.peek() {
            Some("-s" | "-stats" | "-statistics") => detail.stats = true,
            Some("-d" | "-details") => detail.details = true,
            _ => return detail,
        }
        words.next();
    }
}

fn wrong(value: &str, why: &str) -> TcError {
    usage(format!("Error: argument \"{value}\" is wrong: {why}"))
}

fn duplicate(name: &str, value: &str) -> TcError {
    usage(format!("Error: duplicate \"{name}\": \"{value}\" is the second value."))
}

/// `1:` or `1`, hexadecimal; a minor number is read and ignored, as tc does.
fn qdisc_handle(word: &str) -> Result<Handle, TcError> {
    if word == "none" {
        return Ok(Handle::NONE);
    }
    let (major, minor) = word.split_once(':').unwrap_or((word, ""));
    let known = minor.is_empty() || minor.chars().all(|c| c.is_ascii_hexdigit());
    match u16::from_str_radix(major, 16) {
        Ok(major) if known => Ok(Handle::new(major, 0)),
        _ => Err(wrong(word, "invalid qdisc ID")),
    }
}

/// `1:10`, `1:`, `:10`, `root` or `none`, hexadecimal.
fn class_id(word: &str) -> Option<Handle> {
    match word {
        "root" => return Some(Handle::ROOT),
        "none" => return Some(Handle::NONE),
        _ => {}
    }
    let part = |text: &str| if text.is_empty() { Some(0) } else { u16::from_str_radix(text, 16).ok() };
    match word.split_once(':') {
        Some((major, minor)) => Some(Handle::new(part(major)?, part(minor)?)),
        None => units::number::<u32>(&format!("0x{word}")).map(Handle::from),
    }
}
