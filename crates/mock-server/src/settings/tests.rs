use super::*;

fn url(query: &str) -> Result<Settings, SettingsError> {
    Settings::from_url(&format!("mock://?{query}"))
}

fn refusal(query: &str) -> String {
    url(query).unwrap_err().to_string()
}

#[test]
fn a_bare_url_gives_the_defaults_of_the_table() {
    let settings = Settings::from_url("mock://").unwrap();
    assert_eq!(settings, Settings::default());
    assert_eq!(Settings::from_url("mock://?").unwrap(), settings);
    let pairs = Settings::names().iter().filter_map(|name| Some((name.name, name.default?)));
    assert_eq!(Settings::from_pairs(pairs).unwrap(), settings);
}

#[test]
fn times_have_units_and_bare_numbers_are_milliseconds() {
    for (text, ns) in
        [("20ms", 20e6), ("1.5s", 1.5e9), ("300us", 3e5), ("7", 7e6), ("0", 0.0), ("0.25", 2.5e5)]
    {
        assert_eq!(url(&format!("ttft={text}")).unwrap().ttft, Distribution::Fixed(ns), "{text}");
    }
}

#[test]
fn distributions_of_times_and_counts() {
    assert_eq!(url("itl=uniform:1ms:2s").unwrap().itl, Distribution::Uniform(1e6, 2e9));
    assert_eq!(url("itl=normal:5:1").unwrap().itl, Distribution::Normal(5e6, 1e6));
    assert_eq!(url("ttft=lognormal:20ms:0.5").unwrap().ttft, Distribution::LogNormal(20e6, 0.5));
    assert_eq!(url("ttft=exp:300us").unwrap().ttft, Distribution::Exponential(3e5));
    assert_eq!(url("tokens=uniform:10:20").unwrap().tokens, Distribution::Uniform(10.0, 20.0));
    assert_eq!(url("tokens=7").unwrap().tokens, Distribution::Fixed(7.0));
}

#[test]
fn every_name_of_the_table_is_taken() {
    let settings =
        url("ttft=1&itl=2&tokens=3&reasoning=40&cached-tokens=5&spec-decode=true&usage=off&embedding-dim=7\
         &models=a:b&plan=ok*2:one&stall=1s&idle-timeout=2s&threads=3&seed=9")
        .unwrap();
    assert_eq!(settings.reasoning, 40);
    assert_eq!(settings.cached_tokens, Some(5));
    assert!(settings.spec_decode);
    assert_eq!(settings.usage, UsageMode::Off);
    assert_eq!(settings.embedding_dim, 7);
    assert_eq!(settings.models, ["a", "b"]);
    assert_eq!(settings.stall_ns, 1_000_000_000);
    assert_eq!(settings.idle_timeout_ns, Some(2_000_000_000));
    assert_eq!((settings.threads, settings.seed), (3, 9));
    let flags = [("log", "a.jsonl"), ("tls-cert", "c.pem"), ("tls-key", "k.pem")];
    let settings = Settings::from_pairs(flags).unwrap();
    assert_eq!(settings.log, Some("a.jsonl".into()));
    assert!(settings.tls.is_some());
}

#[test]
fn values_are_percent_decoded() {
    assert_eq!(url("models=org%2Fname:b%20c").unwrap().models, ["org/name", "b c"]);
    assert!(refusal("models=a%2").contains("`models`"));
    assert!(refusal("models=a%ff").contains("percent escapes"));
}

#[test]
fn names_of_models_may_have_colons_where_commas_part_them() {
    for (text, names) in [
        ("llama3:8b,phi3:mini", &["llama3:8b", "phi3:mini"][..]),
        ("llama3:8b,", &["llama3:8b"]),
        ("a,b:c,", &["a", "b:c"]),
        ("llama3%3A8b%2C", &["llama3:8b"]),
        ("llama3:8b", &["llama3", "8b"]),
        ("a", &["a"]),
    ] {
        assert_eq!(url(&format!("models={text}")).unwrap().models, names, "{text}");
    }
}

#[test]
fn what_a_mock_url_may_not_have_is_named() {
    for (text, named) in [
        ("mock:", "`//` is missing"),
        ("mock:?ttft=1", "`//` is missing"),
        ("mock://localhost", "no host"),
        ("mock://localhost:80?ttft=1", "no port"),
        ("mock://:80", "`:80`"),
        ("mock:///v1", "`/v1`"),
        ("mock://user:pw@host", "no user info"),
        ("mock://?ttft=1#x", "`#x`"),
        ("http://host", "not a mock:// URL"),
    ] {
        let refused = Settings::from_url(text).unwrap_err().to_string();
        assert!(refused.contains(named), "{text}: {refused}");
        assert!(!refused.contains("pw"), "{refused}");
    }
}

#[test]
fn names_are_refused_by_name() {
    assert!(refusal("tfft=1").contains("`tfft`"));
    assert!(refusal("tfft=1").contains("idle-timeout"));
    // What such a URL does not take is not offered.
    assert!(!refusal("tfft=1").contains("tls-cert") && !refusal("tfft=1").contains(", log"));
    let of_command = Settings::from_pairs([("tfft", "1")]).unwrap_err().to_string();
    assert!(of_command.contains("log, tls-cert, tls-key"), "{of_command}");
    assert!(refusal("ttft=1&itl=2&ttft=3").contains("`ttft` is given more than once"));
    assert!(refusal("ttft").contains("`ttft`"));
    assert!(refusal("ttft=1&&itl=2").contains("NAME=VALUE"));
    assert!(refusal("=1").contains("`=1`"));
    for name in ["log", "tls-cert", "tls-key"] {
        assert!(refusal(&format!("{name}=x")).contains("`aiperf mock-server`"));
    }
    let half = Settings::from_pairs([("tls-key", "k.pem")]).unwrap_err().to_string();
    assert!(half.contains("`tls-key`") && half.contains("`tls-cert`"));
}

/// A value of the right form that is refused for its size is refused with the limit.
#[test]
fn a_limit_that_a_value_is_beyond_is_named() {
    for (text, limit) in [
        ("plan=ok*99999999999:http500", "1 to 1000000000"),
        ("plan=ok*0", "1 to 1000000000"),
        ("ttft=uniform:5:1", "A not above B"),
        ("ttft=31000000s", "30 days at most"),
        ("itl=lognormal:5:11", "SIGMA 10 at most"),
        ("stall=31000000s", "30 days at most"),
        ("tokens=99999999999999", "1 to 1000000000000"),
        ("tokens=uniform:5:1", "A not above B"),
        ("cached-tokens=99999999999999", "0 to 1000000000000"),
        ("seed=18446744073709551616", "18446744073709551615"),
    ] {
        let said = refusal(text);
        assert!(said.contains(limit), "{text}: {said}");
    }
}

#[test]
fn values_are_refused_with_the_allowed_form() {
    for (name, values, form) in [
        (
            "ttft",
            &["", "-1", "5 ms", "1h", "1e3", "inf", "nan", "uniform:5:1", "normal:5", "exp:", "foo:1"][..],
            "`1.5s`",
        ),
        ("itl", &["lognormal:5:11", "uniform:1:2:3"], "`uniform:A:B`"),
        ("tokens", &["0", "1.5", "5ms", "-3", ""], "whole number"),
        ("reasoning", &["101", "-1", "x", "+5"], "0 to 100"),
        ("cached-tokens", &["", "1.0"], "whole number"),
        ("spec-decode", &["1", "yes", "TRUE", ""], "`true` or `false`"),
        ("usage", &["EXACT", "", "none"], "`estimate`"),
        ("embedding-dim", &["0", "x"], "1048576"),
        ("models", &["", "a::b", ",", "a,,b", ",a", "a,,"], "joined by `:`"),
        ("plan", &["", "ok:nope", "ok*0"], "midstream_error"),
        ("stall", &["uniform:1:2", "x"], "`1.5s`"),
        ("idle-timeout", &["off"], "`1.5s`"),
        ("threads", &["0", "257"], "1 to 256"),
        ("seed", &["-1", "18446744073709551616"], "whole number"),
    ] {
        for value in values {
            let text = refusal(&format!("{name}={value}"));
            assert!(text.contains(&format!("`{name}`")) && text.contains(form), "{name}={value}: {text}");
            assert!(!text.ends_with('.'));
        }
    }
}
