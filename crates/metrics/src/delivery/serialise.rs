//! The object `load_delivery`, key by key; what is unknown is left out.

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{ClientFacts, ConcurrencyFacts, DeliveryFacts, LoadDelivery, LoadMode, Spread};
use crate::summary::Latencies;

impl Serialize for LoadDelivery {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let facts = &self.facts;
        let closed_loop = facts.mode == LoadMode::Concurrency;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("verdict", &self.verdict)?;
        map.serialize_entry("reasons", &self.reasons)?;
        map.serialize_entry("mode", &facts.mode)?;
        known(&mut map, "intended_rate", facts.intended_rate.filter(|_| !closed_loop))?;
        known(&mut map, "delivered_rate", facts.delivered_rate)?;
        map.serialize_entry("planned_count", &facts.planned_count)?;
        map.serialize_entry("sent_count", &facts.sent_count)?;
        map.serialize_entry("skipped_count", &facts.skipped_count)?;
        map.serialize_entry("unsent_count", &facts.unsent_count)?;
        known(&mut map, "lateness", facts.lateness)?;
        known(&mut map, "cap_wait", facts.cap_wait)?;
        known(&mut map, "slip", facts.slip)?;
        known(&mut map, "initial_fill_ms", facts.initial_fill_ns.map(|ns| ns as f64 / 1e6))?;
        known(&mut map, "concurrency", facts.concurrency)?;
        let sec = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e9);
        known(&mut map, "catch_up_sec", sec(facts.catch_up_ns))?;
        known(&mut map, "ramp_sec", sec(facts.ramp_ns))?;
        known(&mut map, "drain_sec", sec(facts.drain_ns))?;
        map.serialize_entry("late_prompt_count", &facts.late_prompt_count)?;
        known(&mut map, "service", some(&facts.service))?;
        known(&mut map, "from_intended", some(&facts.from_intended))?;
        map.serialize_entry("client", &Client(facts))?;
        map.end()
    }
}

impl Serialize for Spread {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(7))?;
        map.serialize_entry("unit", "ms")?;
        for (name, ns) in
            [("avg", self.avg), ("p50", self.p50), ("p90", self.p90), ("p99", self.p99), ("max", self.max)]
        {
            map.serialize_entry(name, &(ns / 1e6))?;
        }
        map.serialize_entry("count", &self.count)?;
        map.end()
    }
}

impl Serialize for ConcurrencyFacts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("limit", &self.limit)?;
        map.serialize_entry("max_in_flight", &self.max_in_flight)?;
        known(&mut map, "lost_share", self.lost_share)?;
        map.end()
    }
}

impl Serialize for Latencies {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        known(&mut map, "time_to_first_token", self.time_to_first_token)?;
        known(&mut map, "request_latency", self.request_latency)?;
        map.end()
    }
}

/// The client's part, which needs the number of requests.
struct Client<'a>(&'a DeliveryFacts);

impl Serialize for Client<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let client: &ClientFacts = &self.0.client;
        let sent = self.0.sent_count;
        let mut map = serializer.serialize_map(None)?;
        known(&mut map, "cores", client.cores)?;
        known(&mut map, "workers", client.workers)?;
        known(&mut map, "cpu_sec", client.cpu_sec)?;
        known(&mut map, "mock_cpu_sec", Some(client.mock_cpu_sec).filter(|sec| *sec > 0.0))?;
        known(&mut map, "pacer_spin_sec", Some(client.pacer_spin_sec).filter(|sec| *sec > 0.0))?;
        known(&mut map, "cpu_us_per_request", client.cpu_us_per_request(sent))?;
        known(&mut map, "busiest_worker_cpu_pct", client.busiest_worker_cpu_pct)?;
        known(&mut map, "peak_rss_bytes", client.peak_rss_bytes)?;
        known(&mut map, "loop_delay", client.loop_delay)?;
        map.serialize_entry("delayed_request_count", &client.delayed_request_count)?;
        map.serialize_entry("spilled_record_count", &client.spilled_record_count)?;
        map.serialize_entry("negative_difference_count", &client.negative_difference_count)?;
        map.serialize_entry("resource_error_count", &client.resource_error_count)?;
        map.end()
    }
}

fn known<M: SerializeMap>(map: &mut M, key: &str, value: Option<impl Serialize>) -> Result<(), M::Error> {
    match value {
        Some(value) => map.serialize_entry(key, &value),
        None => Ok(()),
    }
}

fn some(latencies: &Latencies) -> Option<&Latencies> {
    (latencies.request_latency.is_some() || latencies.time_to_first_token.is_some()).then_some(latencies)
}
