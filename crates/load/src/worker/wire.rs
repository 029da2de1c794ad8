//! The part of a turn that is on the wire: a connection, the request, the answer.

use std::time::Duration;

use aiperf_clock::{Mono, now};
use aiperf_endpoint::Rendered;
use aiperf_types::{HttpTrace, RequestError};
use tokio::time::timeout;

use super::Worker;
use super::gather::Gather;
use crate::settings::Settings;
use crate::transport::connection::Connection;
use crate::transport::errors;
use crate::transport::exchange::{ExchangeError, receive, send};
use crate::transport::proxy::tunnel;
use crate::wake::within;

/// How long an answer may take that was on its way when the request could not be written on.
const LAST_WORDS: Duration = Duration::from_millis(5);

/// How the wire part of a turn ended.
pub(super) struct Ending {
    pub(super) failure: Option<RequestError>,
    pub(super) cancelled_at: Option<Mono>,
}

impl Ending {
    fn failed(error: RequestError) -> Ending {
        Ending { failure: Some(error), cancelled_at: None }
    }

    /// The time of a request is over, `trace` being how far it came.
    pub(super) fn timed_out(
        limit: Duration,
        settings: &Settings,
        trace: &HttpTrace,
        may_be_cancelled: bool,
    ) -> Ending {
        let limit = limit.as_secs_f64();
        let connected = trace.connect.is_some();
        Ending::failed(if trace.send_start.is_none() && settings.tls.is_some() && connected {
            errors::tls_timeout(&settings.origin.authority(), limit)
        } else if trace.send_end.is_none() && may_be_cancelled {
            errors::send_timeout(limit)
        } else {
            errors::timeout(limit)
        })
    }
}

/// Gets a connection, sends, receives, and gives the connection back if it is still good.
pub(super) async fn exchange(
    worker: &Worker,
    head: &[u8],
    request: &Rendered,
    cancel: Option<Duration>,
    trace: &mut HttpTrace,
    gather: &mut Gather<'_>,
) -> Ending {
    let settings = &worker.settings;
    let _permit = match &worker.places {
        Some(places) => {
            let from = now();
            // The semaphore is never closed.
            let permit = places.acquire().await.ok();
            trace.pool_wait = Some((from, now()));
            permit
        }
        None => None,
    };
    let mut connection = loop {
        let free = worker.pool.borrow_mut().take(now());
        let mut connection = match free {
            Some(connection) => connection,
            None => match dial(worker, trace).await {
                Ok(connection) => connection,
                Err(error) => return Ending::failed(error),
            },
        };
        trace.reused = connection.used;
        if let Some(facts) = &mut trace.facts {
            facts.local = connection.local;
            facts.remote = connection.remote;
        }
        match send(&mut connection, head, &request.body, trace).await {
            Ok(()) => break connection,
            // Not one byte was taken by a connection that had been idle: the peer had closed it, and another
            // one is no retry.
            Err(ExchangeError::Write(_, 0)) if connection.used => {}
            Err(error) => {
                if matches!(error, ExchangeError::Write(..)) {
                    // A server that refuses a request before its end may have said why: a failed status wins.
                    let answer =
                        receive(&mut connection, &worker.scratch, settings.want_facts, trace, gather);
                    let _ = timeout(LAST_WORDS, answer).await;
                }
                return wire_failure(worker, error);
            }
        }
    };
    let received = {
        let reading = receive(&mut connection, &worker.scratch, settings.want_facts, trace, gather);
        match cancel {
            None => Some(reading.await),
            Some(delay) if delay.is_zero() => None,
            Some(delay) => within(delay, reading).await,
        }
    };
    let Some(received) = received else {
        // Not given back: leaving this scope closes it.
        let failure = errors::cancelled(cancel.unwrap_or_default().as_secs_f64());
        return Ending { failure: Some(failure), cancelled_at: Some(now()) };
    };
    match received {
        Ok(true) => {
            worker.pool.borrow_mut().give(connection, now());
            Ending { failure: None, cancelled_at: None }
        }
        Ok(false) => Ending { failure: None, cancelled_at: None },
        Err(error) => wire_failure(worker, error),
    }
}

fn wire_failure(worker: &Worker, error: ExchangeError) -> Ending {
    Ending::failed(match error {
        ExchangeError::Write(error, _) | ExchangeError::Read(error) => {
            note_limits(worker, &error);
            errors::socket(&error)
        }
        ExchangeError::Closed { started: false } => errors::disconnected(),
        ExchangeError::Closed { started: true } => errors::truncated(),
        ExchangeError::Parse(error) => errors::payload(error.to_string()),
    })
}

fn note_limits(worker: &Worker, error: &std::io::Error) {
    if errors::is_resource_error(error) {
        worker.tally.borrow_mut().resource_errors += 1;
    }
}

async fn dial(worker: &Worker, trace: &mut HttpTrace) -> Result<Connection, RequestError> {
    let settings = &worker.settings;
    let authority = settings.origin.authority();
    // What is connected to: the proxy where there is one.
    let peer = match &settings.proxy {
        Some(proxy) => format!("proxy {} ({})", proxy.authority, proxy.variable),
        None => format!("host {authority}"),
    };
    let connecting = worker.control.underway.connecting();
    let (addresses, looked_up) =
        settings.resolver.addresses().await.map_err(|error| errors::dns(&peer, &error))?;
    trace.dns = looked_up;
    let from = now();
    let mut stream = settings.sockets.connect(&addresses).await.map_err(|error| {
        note_limits(worker, &error);
        errors::connect(&peer, &error)
    })?;
    let Some(tls) = &settings.tls else {
        trace.connect = Some((from, now()));
        return Ok(Connection::plain(stream));
    };
    if let Some(proxy) = &settings.proxy {
        let through = tunnel(&mut stream, &authority, proxy.credential.as_ref()).await;
        through.map_err(|error| errors::connect(&peer, &error))?;
    }
    let connected = now();
    // Goes on until it is secured, which may never be.
    trace.connect = Some((from, connected));
    drop(connecting);
    let _securing = worker.control.underway.securing();
    let connection = Connection::tls(stream, &tls.connector, tls.name.clone())
        .await
        .map_err(|error| errors::tls(&authority, &error))?;
    let secured = now();
    trace.connect = Some((from, secured));
    trace.tls = Some((connected, secured));
    Ok(connection)
}
