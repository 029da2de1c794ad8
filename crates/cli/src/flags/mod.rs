//! Every flag of `aiperf profile`, as data: one row per flag, one file per group.
//!
//! The rows carry the reference's names, aliases, groups, defaults and choices; a snapshot test holds them to it.
//! What a flag means is decided in [`crate::settle`]; whether it is there yet is its [`Status`].

mod accuracy;
mod audio_input;
mod cache_bust;
mod client;
mod conversation_input;
mod endpoint;
mod fixed_schedule;
mod goodput;
mod gpu_telemetry;
mod http_trace;
mod image_input;
mod input;
mod input_sequence_length;
mod load_generator;
mod multi_run;
mod network_latency;
mod output;
mod output_sequence_length;
mod prefix_prompt;
mod prompt;
mod rankings;
mod request_cancellation;
mod scenario;
mod server_metrics;
mod service;
mod synthesis;
mod tokenizer;
mod ui;
mod user_centric_rate;
mod video_input;
mod warmup;
mod workers;
mod zmq_communication;

/// A heading of the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Endpoint.
    Endpoint,
    /// Input.
    Input,
    /// Fixed Schedule.
    FixedSchedule,
    /// Goodput.
    Goodput,
    /// Output.
    Output,
    /// HTTP Trace.
    HttpTrace,
    /// Tokenizer.
    Tokenizer,
    /// Load Generator.
    LoadGenerator,
    /// Scenario.
    Scenario,
    /// Warmup.
    Warmup,
    /// User-Centric Rate.
    UserCentricRate,
    /// Request Cancellation.
    RequestCancellation,
    /// Conversation Input.
    ConversationInput,
    /// Input Sequence Length (ISL).
    InputSequenceLength,
    /// Output Sequence Length (OSL).
    OutputSequenceLength,
    /// Prompt.
    Prompt,
    /// Prefix Prompt.
    PrefixPrompt,
    /// Cache Bust.
    CacheBust,
    /// Rankings.
    Rankings,
    /// Synthesis.
    Synthesis,
    /// Audio Input.
    AudioInput,
    /// Image Input.
    ImageInput,
    /// Video Input.
    VideoInput,
    /// Service.
    Service,
    /// Server Metrics.
    ServerMetrics,
    /// Network Latency.
    NetworkLatency,
    /// GPU Telemetry.
    GpuTelemetry,
    /// UI.
    Ui,
    /// Workers.
    Workers,
    /// ZMQ Communication.
    ZmqCommunication,
    /// Accuracy.
    Accuracy,
    /// Multi-Run.
    MultiRun,
    /// Flags of our own.
    Client,
}

impl Group {
    /// The heading, as the reference spells it.
    pub const fn title(self) -> &'static str {
        match self {
            Group::Endpoint => "Endpoint",
            Group::Input => "Input",
            Group::FixedSchedule => "Fixed Schedule",
            Group::Goodput => "Goodput",
            Group::Output => "Output",
            Group::HttpTrace => "HTTP Trace",
            Group::Tokenizer => "Tokenizer",
            Group::LoadGenerator => "Load Generator",
            Group::Scenario => "Scenario",
            Group::Warmup => "Warmup",
            Group::UserCentricRate => "User-Centric Rate",
            Group::RequestCancellation => "Request Cancellation",
            Group::ConversationInput => "Conversation Input",
            Group::InputSequenceLength => "Input Sequence Length (ISL)",
            Group::OutputSequenceLength => "Output Sequence Length (OSL)",
            Group::Prompt => "Prompt",
            Group::PrefixPrompt => "Prefix Prompt",
            Group::CacheBust => "Cache Bust",
            Group::Rankings => "Rankings",
            Group::Synthesis => "Synthesis",
            Group::AudioInput => "Audio Input",
            Group::ImageInput => "Image Input",
            Group::VideoInput => "Video Input",
            Group::Service => "Service",
            Group::ServerMetrics => "Server Metrics",
            Group::NetworkLatency => "Network Latency",
            Group::GpuTelemetry => "GPU Telemetry",
            Group::Ui => "UI",
            Group::Workers => "Workers",
            Group::ZmqCommunication => "ZMQ Communication",
            Group::Accuracy => "Accuracy",
            Group::MultiRun => "Multi-Run",
            Group::Client => "Client",
        }
    }
}

/// Bounds of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Lowest value.
    pub min: f64,
    /// Whether the lowest value itself is refused.
    pub above: bool,
    /// Highest value.
    pub max: f64,
    /// The rule, in words that follow "expected".
    pub rule: &'static str,
}

const AT_LEAST_0: Bounds =
    Bounds { min: 0.0, above: false, max: f64::MAX, rule: "a finite number, 0 or more" };
/// The most that is counted in 32 bits.
const MOST_SESSIONS: u64 = 4_294_967_295;
/// No model takes more; a prompt beyond this is a slip that would fill the memory.
const TOKENS: Bounds = Bounds { min: 0.0, above: false, max: 2e7, rule: "a number of tokens, 0 to 20000000" };
/// More turns or passages than that in one conversation are a slip that would fill the memory, too.
const TURNS: Bounds = Bounds { min: 1.0, above: false, max: 1e5, rule: "a number of turns, 1 to 100000" };
const SPREAD: Bounds = Bounds { min: 0.0, above: false, max: 1e5, rule: "a number, 0 to 100000" };
const PASSAGES: Bounds =
    Bounds { min: 0.0, above: false, max: 1e5, rule: "a number of passages, 0 to 100000" };
/// No image is wider or higher.
const PIXELS: Bounds =
    Bounds { min: 0.0, above: false, max: 16_384.0, rule: "a number of pixels, 0 to 16384" };
/// No clip is longer on average.
const SOUND: Bounds = Bounds { min: 0.0, above: false, max: 3600.0, rule: "seconds, 0 to 3600" };
/// A week, ms: nobody waits longer between two turns, or for a round trip.
const PAUSE: Bounds = Bounds { min: 0.0, above: false, max: 6.048e8, rule: "milliseconds, 0 to 604800000" };
/// A rate or a number of sessions that takes more than a week to grow is hardly above nothing at the start.
const RAMP: Bounds =
    Bounds { min: 0.0, above: true, max: 604_800.0, rule: "seconds above 0 and up to 604800, a week" };
/// More than any client sends; beyond it arrivals would pile up faster than they are looked at.
const RATE: Bounds = Bounds { min: 0.0, above: true, max: 1e6, rule: "a number above 0 and up to 1000000" };
/// Shapes beyond these have no arrivals for a long time, and then all of them.
const SHAPE: Bounds = Bounds { min: 1e-3, above: false, max: 1e6, rule: "a number from 0.001 to 1000000" };
const ABOVE_0: Bounds = Bounds { min: 0.0, above: true, max: f64::MAX, rule: "a finite number above 0" };
const SHARE: Bounds = Bounds { min: 0.0, above: false, max: 1.0, rule: "a share from 0 to 1" };
const PART: Bounds = Bounds { min: 0.0, above: true, max: 1.0, rule: "a share above 0 and up to 1" };
const PERCENT: Bounds =
    Bounds { min: 0.0, above: true, max: 100.0, rule: "a percentage above 0 and up to 100" };

/// What the values of a flag look like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Given or not; `--flag=false` is "not".
    Switch,
    /// One text.
    Text,
    /// Texts: the flag may be repeated, and may take several values at once.
    Texts,
    /// One path.
    Path,
    /// One of the choices.
    Choice,
    /// A whole number; `1e3` is one too.
    Count {
        /// Lowest value.
        min: u64,
    },
    /// A number.
    Number(Bounds),
    /// A time in seconds.
    Seconds(Bounds),
    /// A time in seconds, 0 or more, or `inf`.
    SecondsOrForever,
}

/// A feature that is not there yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Later {
    /// More endpoint types, several models or servers, other connection strategies.
    MoreEndpoints,
    /// Readiness probes and server hooks.
    ServerHooks,
    /// The replay of agentic traces.
    AgenticReplay,
    /// Configuration files.
    ConfigFiles,
    /// Goodput and time slices.
    Goodput,
    /// Plots.
    Plots,
    /// The export of answers.
    OutputsJson,
    /// Experiment trackers.
    Trackers,
    /// Further load modes.
    LoadModes,
    /// Scenarios.
    Scenarios,
    /// The live API.
    LiveApi,
    /// The live view.
    LiveView,
    /// Server metrics and GPU telemetry.
    Telemetry,
    /// The measurement of network latency.
    NetworkProbe,
    /// Accuracy benchmarks.
    Accuracy,
    /// Repeated runs.
    MultiRun,
    /// Parameter sweeps.
    Sweeps,
    /// Adaptive search.
    Search,
}

impl Later {
    /// The feature, in words that follow "comes with".
    pub const fn phrase(self) -> &'static str {
        match self {
            Later::MoreEndpoints => {
                "more endpoint types, several models or servers, other connection strategies"
            }
            Later::ServerHooks => "readiness probes and server hooks",
            Later::AgenticReplay => "the replay of agentic traces",
            Later::ConfigFiles => "configuration files",
            Later::Goodput => "goodput and time slices",
            Later::Plots => "plots",
            Later::OutputsJson => "the export of answers",
            Later::Trackers => "experiment trackers",
            Later::LoadModes => "further load modes",
            Later::Scenarios => "scenarios",
            Later::LiveApi => "the live API",
            Later::LiveView => "the live view",
            Later::Telemetry => "server metrics and GPU telemetry",
            Later::NetworkProbe => "the measurement of network latency",
            Later::Accuracy => "accuracy benchmarks",
            Later::MultiRun => "repeated runs",
            Later::Sweeps => "parameter sweeps",
            Later::Search => "adaptive search",
        }
    }
}

/// Whether a flag acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It acts.
    Supported,
    /// The reference has it, we do not yet.
    NotYet(Later),
    /// It has no meaning in this program, for this reason.
    NoMeaning(&'static str),
    /// It acts, and the reference does not have it.
    Ours,
}

/// One flag.
#[derive(Debug)]
pub struct Flag {
    /// The name that help and messages use.
    pub shown: &'static str,
    /// All names, in the reference's order.
    pub names: &'static [&'static str],
    /// Its heading.
    pub group: Group,
    /// What its values look like.
    pub kind: Kind,
    /// The largest of its values, where they are whole numbers.
    pub most: u64,
    /// Whether its value is no number and may all the same begin like one below 0.
    pub begins_like_number: bool,
    /// Placeholder of the value in the help; empty for a switch.
    pub value: &'static str,
    /// The default, as the reference spells it.
    pub default: Option<&'static str>,
    /// The default in effect, where that spelling would mislead.
    pub shown_default: Option<&'static str>,
    /// The values the reference's help lists.
    pub choices: &'static [&'static str],
    /// The values there are, where the reference's help lists none.
    pub one_of: &'static [&'static str],
    /// Values that are not there yet, and what they come with.
    pub later: Option<(Later, &'static [&'static str])>,
    /// Whether it acts.
    pub status: Status,
    /// What it does.
    pub help: &'static str,
}

impl Flag {
    const fn new(shown: &'static str, names: &'static [&'static str], group: Group, kind: Kind) -> Flag {
        Flag {
            shown,
            names,
            group,
            kind,
            most: u64::MAX,
            begins_like_number: false,
            value: "",
            default: None,
            shown_default: None,
            choices: &[],
            one_of: &[],
            later: None,
            status: Status::Supported,
            help: "",
        }
    }

    const fn value(mut self, value: &'static str) -> Flag {
        self.value = value;
        self
    }

    const fn most(mut self, most: u64) -> Flag {
        self.most = most;
        self
    }

    const fn begins_like_number(mut self) -> Flag {
        self.begins_like_number = true;
        self
    }

    const fn default(mut self, default: &'static str) -> Flag {
        self.default = Some(default);
        self
    }

    const fn shown_default(mut self, default: &'static str) -> Flag {
        self.shown_default = Some(default);
        self
    }

    const fn choices(mut self, choices: &'static [&'static str]) -> Flag {
        self.choices = choices;
        self
    }

    const fn one_of(mut self, values: &'static [&'static str]) -> Flag {
        self.one_of = values;
        self
    }

    const fn later(mut self, feature: Later, values: &'static [&'static str]) -> Flag {
        self.later = Some((feature, values));
        self
    }

    const fn not_yet(mut self, feature: Later) -> Flag {
        self.status = Status::NotYet(feature);
        self
    }

    const fn no_meaning(mut self, reason: &'static str) -> Flag {
        self.status = Status::NoMeaning(reason);
        self
    }

    const fn ours(mut self) -> Flag {
        self.status = Status::Ours;
        self
    }

    const fn help(mut self, help: &'static str) -> Flag {
        self.help = help;
        self
    }

    /// Whether the flag acts.
    pub fn acts(&self) -> bool {
        matches!(self.status, Status::Supported | Status::Ours)
    }

    /// The values that can be given now.
    pub fn values(&self) -> impl Iterator<Item = &'static str> {
        let later = self.later.map_or(&[] as &[&str], |(_, values)| values);
        self.choices.iter().chain(self.one_of).copied().filter(move |value| !later.contains(value))
    }

    /// The long names without their dashes, the shown one first.
    pub fn longs(&self) -> impl Iterator<Item = &'static str> {
        let shown = self.shown;
        std::iter::once(shown)
            .chain(self.names.iter().copied().filter(move |name| *name != shown))
            .filter_map(|name| name.strip_prefix("--"))
    }

    /// The one-letter name.
    pub fn short(&self) -> Option<char> {
        self.names.iter().find_map(|name| match name.as_bytes() {
            [b'-', letter] if *letter != b'-' => Some(char::from(*letter)),
            _ => None,
        })
    }
}

/// Arrival patterns.
const ARRIVAL_PATTERNS: &[&str] = &["concurrency-burst", "constant", "gamma", "poisson"];

const TABLES: &[&[Flag]] = &[
    endpoint::FLAGS,
    input::FLAGS,
    fixed_schedule::FLAGS,
    goodput::FLAGS,
    output::FLAGS,
    http_trace::FLAGS,
    tokenizer::FLAGS,
    load_generator::FLAGS,
    scenario::FLAGS,
    warmup::FLAGS,
    user_centric_rate::FLAGS,
    request_cancellation::FLAGS,
    conversation_input::FLAGS,
    input_sequence_length::FLAGS,
    output_sequence_length::FLAGS,
    prompt::FLAGS,
    prefix_prompt::FLAGS,
    cache_bust::FLAGS,
    rankings::FLAGS,
    synthesis::FLAGS,
    audio_input::FLAGS,
    image_input::FLAGS,
    video_input::FLAGS,
    service::FLAGS,
    server_metrics::FLAGS,
    network_latency::FLAGS,
    gpu_telemetry::FLAGS,
    ui::FLAGS,
    workers::FLAGS,
    zmq_communication::FLAGS,
    accuracy::FLAGS,
    multi_run::FLAGS,
    client::FLAGS,
];

/// Every flag, in the order of the help.
pub fn all() -> impl Iterator<Item = &'static Flag> {
    TABLES.iter().copied().flatten()
}

/// The flag with this name.
pub fn find(name: &str) -> Option<&'static Flag> {
    all().find(|flag| flag.names.contains(&name))
}
