//! An engine to be driven phase by phase.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use aiperf_config::{EndpointConfig, EndpointKind, IpVersion, Target};
use aiperf_endpoint::{Format, ReadPlan, Reader, Reading};
use aiperf_load::schedule::Plan;
use aiperf_load::transport::{AffinityHeaders, HeadTemplate, Origin, Resolver, SocketOptions};
use aiperf_load::{
    Control, Engine, Exchange, ExchangeSink, PacerPlace, PhaseOutcome, PhaseRun, Received, Settings, Source,
    SystemCpu,
};
use aiperf_types::PhaseKind;
use url::Url;

use super::DEADLINE;

/// An engine before it starts.
pub(crate) struct Setup {
    pub(crate) settings: Settings,
    pub(crate) workers: usize,
    pub(crate) place: PacerPlace,
    /// The pacer stays awake for the last microseconds before a send.
    pub(crate) spin: bool,
}

/// The endpoint of all tests.
pub(crate) fn endpoint() -> EndpointConfig {
    EndpointConfig::new(EndpointKind::Chat, Target::Mock("mock://".into()))
}

/// One worker with its pacer, towards `addr`.
pub(crate) fn setup(addr: SocketAddr) -> Setup {
    Setup::new(&format!("http://{addr}"), &endpoint())
}

impl Setup {
    pub(crate) fn new(url: &str, endpoint: &EndpointConfig) -> Setup {
        let origin = Origin::new(&Url::parse(url).unwrap(), endpoint.kind.path()).unwrap();
        let version = if origin.host.contains(':') { IpVersion::V6 } else { IpVersion::V4 };
        let resolver = Resolver::new(&origin, version).unwrap();
        let affinity = AffinityHeaders::default();
        let head = HeadTemplate::new(&origin.host_header, &origin.path, "0.1.0", endpoint, affinity);
        let settings = Settings {
            resolver,
            sockets: SocketOptions::default(),
            tls: None,
            proxy: None,
            head,
            format: Arc::new(Format::new(endpoint, "m")),
            read_plan: ReadPlan::new(endpoint.kind, endpoint.streaming),
            request_timeout: None,
            keep_alive: Duration::from_mins(5),
            connection_limit: None,
            want_facts: true,
            want_headers: false,
            want_body: true,
            want_texts: true,
            want_template_input: false,
            origin,
        };
        Setup { settings, workers: 1, place: PacerPlace::Worker, spin: false }
    }

    pub(crate) fn layout(self, (workers, place): (usize, PacerPlace)) -> Setup {
        Setup { workers, place, ..self }
    }

    pub(crate) fn timeout(mut self, limit: Duration) -> Setup {
        self.settings.request_timeout = Some(limit);
        self
    }

    pub(crate) fn start(self) -> Rig {
        self.start_holding(|_| ())
    }

    /// The same with an `accept` that may hold the network thread up.
    pub(crate) fn start_holding(self, accept: impl Fn(&Exchange) + Send + Sync + 'static) -> Rig {
        let (sink, exchanges) = channel();
        let sink: Arc<dyn ExchangeSink> = Arc::new(Collector(sink, Box::new(accept)));
        let control = Arc::new(Control::new());
        let engine =
            Engine::start(self.settings, self.workers, self.place, self.spin, &sink, Arc::clone(&control))
                .unwrap();
        Rig { engine: Some(engine), running: None, exchanges, control }
    }
}

struct Collector(Sender<Exchange>, Box<dyn Fn(&Exchange) + Send + Sync>);

impl ExchangeSink for Collector {
    fn accept(&self, exchange: Exchange) {
        self.1(&exchange);
        // A test that is over takes no more of them.
        let _ = self.0.send(exchange);
    }
}

/// A phase of `plan` with what `source` has.
pub(crate) fn phase(plan: Plan, source: Source) -> PhaseRun {
    PhaseRun {
        kind: PhaseKind::Profiling,
        index: 0,
        duration: plan.stop.duration,
        plan,
        source,
        grace: Some(DEADLINE),
        cancel_drain: Duration::from_secs(3),
        cancel_delay: Duration::ZERO,
        fixed_schedule: false,
        cpu: Arc::new(SystemCpu),
    }
}

/// A started engine.
pub(crate) struct Rig {
    engine: Option<Engine>,
    running: Option<Receiver<(Engine, std::io::Result<PhaseOutcome>)>>,
    pub(crate) exchanges: Receiver<Exchange>,
    pub(crate) control: Arc<Control>,
}

impl Rig {
    /// Starts a phase and goes on.
    pub(crate) fn begin(&mut self, run: PhaseRun) {
        let mut engine = self.engine.take().unwrap();
        let (done, running) = channel();
        std::thread::spawn(move || {
            let outcome = engine.run_phase(run);
            let _ = done.send((engine, outcome));
        });
        self.running = Some(running);
    }

    /// Waits for the end of the phase; its exchanges that were not taken yet, by number.
    pub(crate) fn finish(&mut self) -> (PhaseOutcome, Vec<Exchange>) {
        let running = self.running.take().unwrap();
        let (engine, outcome) = running.recv_timeout(2 * DEADLINE).expect("the phase ends");
        self.engine = Some(engine);
        let mut exchanges: Vec<_> = self.exchanges.try_iter().collect();
        exchanges.sort_by_key(|exchange| exchange.identity.number);
        (outcome.unwrap(), exchanges)
    }

    /// Ends the engine.
    pub(crate) fn stop(mut self) {
        self.engine.take().unwrap().stop();
    }

    /// Runs a phase to its end.
    pub(crate) fn run(&mut self, run: PhaseRun) -> (PhaseOutcome, Vec<Exchange>) {
        self.begin(run);
        self.finish()
    }

    /// The next exchange that is over.
    pub(crate) fn next(&self) -> Exchange {
        self.exchanges.recv_timeout(DEADLINE).expect("an exchange ends")
    }
}

/// What the answer of `exchange` says, read as a record thread does.
pub(crate) fn reading(exchange: Exchange, streaming: bool) -> Reading {
    let plan = ReadPlan::new(EndpointKind::Chat, streaming);
    match exchange.received {
        Received::Nothing => Reading::default(),
        Received::Read(reading) => *reading,
        Received::Bytes(mut bytes) => {
            let mut reader = bytes.reader.take().unwrap_or_else(|| Reader::new(&plan, &bytes.content_type));
            bytes.each_read(|bytes, at| reader.push(bytes, at));
            reader.finish(exchange.end)
        }
    }
}
