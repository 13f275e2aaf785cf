//! One exchange between two applications: a request, a reply, the server closes, the client closes when it has read to the end.

use super::*;

pub(super) const REQUEST: &[u8] = b"GET / please, with 27 bytes";
pub(super) const REPLY: &[u8] = b"HTTP/1.0 200 OK, and in all forty-three byt";

/// Both ends' applications.
pub(super) struct Exchange {
    pub(super) start: Instant,
    pub(super) id: ConnId,
    listener: ListenerId,
    request: &'static [u8],
    reply: &'static [u8],
    /// Still to be written once the connection is established, as by an application that calls `connect` and then `write`.
    later: &'static [u8],
    /// Every call of an application is drained before the next, as system calls are.
    calls: bool,
    children: Vec<(ConnId, Vec<u8>, bool)>,
    /// Requests that arrived in full.
    pub(super) delivered: Vec<Vec<u8>>,
    pub(super) answer: Vec<u8>,
    /// The client has read to the end and closed.
    pub(super) complete: bool,
    pub(super) failed: Option<ReadError>,
    pub(super) first_byte: Option<Duration>,
    pub(super) outcome: Option<Outcome>,
}

impl Exchange {
    /// `connect` with first bytes ([`REQUEST`], if there are none), answered by [`REPLY`].
    pub(super) fn start(pair: &mut Pair, listener: ListenerId, options: ConnectOptions) -> Exchange {
        let id = pair.connect(options);
        let start = pair.now;
        pair.flush();
        Exchange {
            start,
            id,
            listener,
            request: REQUEST,
            reply: REPLY,
            later: b"",
            calls: false,
            children: Vec::new(),
            delivered: Vec::new(),
            answer: Vec::new(),
            complete: false,
            failed: None,
            first_byte: None,
            outcome: None,
        }
    }

    /// Each call is drained.
    pub(super) fn calls(mut self) -> Exchange {
        self.calls = true;
        self
    }

    /// The request is written when `connect` has succeeded.
    pub(super) fn request_later(mut self) -> Exchange {
        self.later = self.request;
        self
    }

    /// The first bytes were these.
    pub(super) fn request(mut self, request: &'static [u8]) -> Exchange {
        self.request = request;
        self
    }

    pub(super) fn reply(mut self, reply: &'static [u8]) -> Exchange {
        self.reply = reply;
        self
    }

    /// Runs for `ms`, the applications with it.
    pub(super) fn run(&mut self, pair: &mut Pair, ms: u64) {
        let end = pair.now + Duration::from_millis(ms);
        pair.flush();
        while pair.next().is_some_and(|at| at <= end) {
            pair.step();
            self.act(pair);
        }
        pair.now = end;
    }

    fn act(&mut self, pair: &mut Pair) {
        while let Some(child) = pair.accept(self.listener) {
            self.children.push((child, Vec::new(), false));
        }
        for at in 0..self.children.len() {
            self.serve(pair, at);
        }
        self.outcome = pair.stacks[CLIENT].outcome(self.id).or(self.outcome);
        if !self.later.is_empty()
            && pair.stacks[CLIENT].info(self.id).is_some_and(|info| info.state == State::Established)
        {
            pair.write(CLIENT, self.id, std::mem::take(&mut self.later));
            self.call(pair);
        }
        if !self.complete && self.failed.is_none() {
            self.receive(pair);
        }
        pair.flush();
    }

    fn call(&self, pair: &mut Pair) {
        if self.calls {
            pair.flush();
        }
    }

    fn serve(&mut self, pair: &mut Pair, at: usize) {
        let (child, request, done) = &mut self.children[at];
        let child = *child;
        if *done {
            return;
        }
        match pair.read(SERVER, child) {
            Ok(data) if !data.is_empty() => request.extend(data),
            Err(ReadError::Blocked) => return,
            Ok(_) | Err(_) => {
                *done = true;
                let now = pair.now;
                pair.stacks[SERVER].close(now, child);
                return;
            }
        }
        if request.len() >= self.request.len() {
            *done = true;
            self.delivered.push(request.clone());
            let mut reply = Bytes::from_static(self.reply);
            let now = pair.now;
            let written = pair.stacks[SERVER].write_bytes(now, child, &mut reply);
            assert_eq!(written, Ok(self.reply.len()));
            self.call(pair);
            let now = pair.now;
            pair.stacks[SERVER].close(now, child);
            self.call(pair);
        }
    }

    fn receive(&mut self, pair: &mut Pair) {
        loop {
            match pair.read(CLIENT, self.id) {
                Ok(data) if data.is_empty() => {
                    self.complete = true;
                    self.outcome = pair.stacks[CLIENT].outcome(self.id);
                    let now = pair.now;
                    pair.stacks[CLIENT].close(now, self.id);
                    return self.call(pair);
                }
                Ok(data) => {
                    self.first_byte.get_or_insert(pair.now.since(self.start));
                    self.answer.extend(data);
                }
                Err(ReadError::Blocked) => return,
                Err(error) => {
                    self.failed = Some(error);
                    let now = pair.now;
                    return pair.stacks[CLIENT].close(now, self.id);
                }
            }
        }
    }
}

/// Ours opening fast with the request.
pub(super) fn fast() -> ConnectOptions {
    auto(REQUEST)
}

/// Two stacks of these profiles, 20 ms apart, with a listener that serves Fast Open; arrivals are taken one by one.
pub(super) fn pair(client: Config, server: Config) -> (Pair, ListenerId) {
    let mut pair = Pair::new(client, server, 20);
    pair.one_by_one = true;
    let listener = pair.listen(16);
    (pair, listener)
}

/// Two stacks of these profiles whose client holds a cookie of the server.
pub(super) fn acquainted(client: Config, server: Config) -> (Pair, ListenerId) {
    let (mut pair, listener) = pair(client, server);
    pair.obtain_cookie(listener);
    (pair, listener)
}
