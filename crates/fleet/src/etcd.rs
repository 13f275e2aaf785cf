//! Calls of etcd's JSON gateway (`/v3/…`, etcd 3.4 and later) as values: path and body of the
//! request, and parsing of the answer.
//!
//! The gateway uses protobuf's JSON: bytes in base64, 64-bit numbers as strings, and fields with
//! zero omitted.
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// One call: POST this body to this path.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The path, below the endpoint.
    pub path: &'static str,
    /// The body.
    pub body: Value,
}

/// A key, its value, and its revisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Revision of the store at which the key was created.
    pub created: i64,
    /// Revision of the store at which the value was written.
    pub changed: i64,
    /// Lease of the key; 0 for none.
    pub lease: i64,
}

/// A condition of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// The key does not exist.
    Absent(String),
    /// The key exists.
    Present(String),
    /// The key was created at this revision, and not since.
    Created(String, i64),
    /// The value was written at this revision, and not since.
    Unchanged(String, i64),
}

/// An operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Writes a value with a lease that ends the key; 0 for none.
    Put(String, String, i64),
    /// Deletes a key.
    Delete(String),
}

/// Reads everything whose key begins with `prefix`, as one snapshot.
#[must_use]
pub fn range(prefix: &str) -> Call {
    Call { path: "/v3/kv/range", body: json!({ "key": encoded(prefix), "range_end": after(prefix) }) }
}

/// Applies all changes if all guards hold, otherwise none.
#[must_use]
pub fn transaction(guards: &[Guard], changes: &[Change]) -> Call {
    let compare: Vec<Value> = guards.iter().map(compare).collect();
    let success: Vec<Value> = changes
        .iter()
        .map(|change| match change {
            Change::Put(key, value, lease) => json!({
                "request_put": { "key": encoded(key), "value": encoded(value), "lease": lease.to_string() }
            }),
            Change::Delete(key) => json!({ "request_delete_range": { "key": encoded(key) } }),
        })
        .collect();
    Call { path: "/v3/kv/txn", body: json!({ "compare": compare, "success": success }) }
}

/// Grants a lease that ends `seconds` after its last keep-alive.
#[must_use]
pub fn grant(seconds: u64) -> Call {
    Call { path: "/v3/lease/grant", body: json!({ "TTL": seconds.to_string(), "ID": "0" }) }
}

/// Keeps a lease alive.
#[must_use]
pub fn keep_alive(lease: i64) -> Call {
    Call { path: "/v3/lease/keepalive", body: json!({ "ID": lease.to_string() }) }
}

/// Ends a lease, and deletes its keys.
#[must_use]
pub fn revoke(lease: i64) -> Call {
    Call { path: "/v3/lease/revoke", body: json!({ "ID": lease.to_string() }) }
}

/// Logs in; [`token`] returns the token for later calls.
#[must_use]
pub fn authenticate(user: &str, password: &str) -> Call {
    Call { path: "/v3/auth/authenticate", body: json!({ "name": user, "password": password }) }
}

/// Parses the result of [`range`].
///
/// # Errors
/// The answer is invalid.
pub fn entries(answer: &Value) -> Result<Vec<Entry>, String> {
    let Some(found) = answer.get("kvs") else {
        return answer.get("header").map(|_| Vec::new()).ok_or_else(no_answer);
    };
    found.as_array().ok_or_else(no_answer)?.iter().map(entry).collect()
}

/// Returns whether the guards of a [`transaction`] held.
///
/// # Errors
/// The answer is invalid.
pub fn succeeded(answer: &Value) -> Result<bool, String> {
    answer.get("header").ok_or_else(no_answer)?;
    Ok(answer.get("succeeded").and_then(Value::as_bool).unwrap_or(false))
}

/// Returns the lease granted by [`grant`].
///
/// # Errors
/// The answer is invalid.
pub fn granted(answer: &Value) -> Result<i64, String> {
    match number(answer, "ID")? {
        0 => Err(no_answer()),
        lease => Ok(lease),
    }
}

/// Returns whether the lease of [`keep_alive`] is alive.
///
/// # Errors
/// The answer is invalid.
pub fn is_alive(answer: &Value) -> Result<bool, String> {
    Ok(number(answer.get("result").ok_or_else(no_answer)?, "TTL")? > 0)
}

/// Returns the value of the header `Authorization`, after [`authenticate`].
///
/// # Errors
/// The answer is invalid.
pub fn token(answer: &Value) -> Result<String, String> {
    Ok(answer.get("token").and_then(Value::as_str).ok_or_else(no_answer)?.to_owned())
}

fn compare(guard: &Guard) -> Value {
    let (key, target, result, field, revision) = match guard {
        Guard::Absent(key) => (key, "CREATE", "EQUAL", "create_revision", 0),
        Guard::Present(key) => (key, "CREATE", "GREATER", "create_revision", 0),
        Guard::Created(key, at) => (key, "CREATE", "EQUAL", "create_revision", *at),
        Guard::Unchanged(key, at) => (key, "MOD", "EQUAL", "mod_revision", *at),
    };
    let mut object = Map::from_iter([(field.to_owned(), revision.to_string().into())]);
    object.insert("key".to_owned(), encoded(key).into());
    object.insert("target".to_owned(), target.into());
    object.insert("result".to_owned(), result.into());
    object.into()
}

fn entry(value: &Value) -> Result<Entry, String> {
    let text = |name: &str| match value.get(name) {
        Some(text) => decoded(text.as_str().ok_or_else(no_answer)?),
        None => Ok(String::new()),
    };
    Ok(Entry {
        key: text("key")?,
        value: text("value")?,
        created: number(value, "create_revision")?,
        changed: number(value, "mod_revision")?,
        lease: number(value, "lease")?,
    })
}

/// Reads a number; a missing field is zero.
fn number(value: &Value, name: &str) -> Result<i64, String> {
    match value.get(name) {
        None => Ok(0),
        Some(Value::String(text)) => text.parse().map_err(|_| no_answer()),
        Some(number) => number.as_i64().ok_or_else(no_answer),
    }
}

fn encoded(text: &str) -> String {
    STANDARD.encode(text)
}

fn decoded(text: &str) -> Result<String, String> {
    let bytes = STANDARD.decode(text).map_err(|_| no_answer())?;
    String::from_utf8(bytes).map_err(|_| no_answer())
}

/// Returns the first key after those with the prefix: its last byte plus one (prefixes are ASCII).
fn after(prefix: &str) -> String {
    let mut bytes = prefix.as_bytes().to_vec();
    if let Some(last) = bytes.last_mut() {
        *last = last.saturating_add(1);
    }
    STANDARD.encode(bytes)
}

fn no_answer() -> String {
    "this is not an answer of etcd 3.4 or later".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_the_gateways_form() {
        let Call { path, body } = range("/a/");
        assert_eq!((path, body), ("/v3/kv/range", json!({ "key": "L2Ev", "range_end": "L2Ew" })));
        let guards = [Guard::Absent("a".into()), Guard::Unchanged("a".into(), 7)];
        let call =
            transaction(&guards, &[Change::Put("a".into(), "b".into(), 5), Change::Delete("a".into())]);
        assert_eq!(
            call.body,
            json!({
                "compare": [
                    { "key": "YQ==", "target": "CREATE", "result": "EQUAL", "create_revision": "0" },
                    { "key": "YQ==", "target": "MOD", "result": "EQUAL", "mod_revision": "7" },
                ],
                "success": [
                    { "request_put": { "key": "YQ==", "value": "Yg==", "lease": "5" } },
                    { "request_delete_range": { "key": "YQ==" } },
                ],
            })
        );
    }

    #[test]
    fn answers_are_read_and_what_is_none_is_refused() {
        let answer = json!({
            "header": { "revision": "9" },
            "kvs": [{ "key": "YQ==", "value": "Yg==", "create_revision": "2", "mod_revision": "7", "version": "3" }],
            "count": "1",
        });
        let expected = Entry { key: "a".into(), value: "b".into(), created: 2, changed: 7, lease: 0 };
        assert_eq!(entries(&answer), Ok(vec![expected]));
        assert_eq!(entries(&json!({ "header": {} })), Ok(Vec::new()));
        assert_eq!(succeeded(&json!({ "header": {}, "succeeded": true })), Ok(true));
        assert_eq!(succeeded(&json!({ "header": {} })), Ok(false));
        assert_eq!(granted(&json!({ "ID": "77", "TTL": "5" })), Ok(77));
        assert_eq!(is_alive(&json!({ "result": { "ID": "77", "TTL": "5" } })), Ok(true));
        assert_eq!(is_alive(&json!({ "result": { "ID": "77" } })), Ok(false));
        assert_eq!(token(&json!({ "token": "t" })), Ok("t".to_owned()));
        for wrong in
            [json!(null), json!({}), json!([]), json!({ "kvs": 3 }), json!({ "kvs": [{ "key": "%" }] })]
        {
            assert!(entries(&wrong).is_err(), "{wrong}");
            assert!(succeeded(&wrong).is_err() && granted(&wrong).is_err() && is_alive(&wrong).is_err());
        }
    }
}
