//! Flags of the group "ZMQ Communication".

use super::{Flag, Group, Kind};

pub(super) const FLAGS: &[Flag] = &[
    Flag::new("--zmq-host", &["--zmq-host"], Group::ZmqCommunication, Kind::Text)
        .value("VALUE")
        .default("127.0.0.1")
        .no_meaning("the client is one process: there is no message broker between its parts")
        .help("Host of the message broker"),
    Flag::new("--zmq-ipc-path", &["--zmq-ipc-path"], Group::ZmqCommunication, Kind::Path)
        .value("VALUE")
        .no_meaning("the client is one process: there is no message broker between its parts")
        .help("Folder of its sockets"),
    Flag::new("--zmq-dual-bind", &["--zmq-dual-bind"], Group::ZmqCommunication, Kind::Switch)
        .default("False")
        .no_meaning("the client is one process: there is no message broker between its parts")
        .help("Bind it twice"),
];
