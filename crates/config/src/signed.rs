//! URLs that carry their own permission: which parameters sign them, what is left without those, when they end.

use base64::Engine as _;
use url::Url;

use crate::REDACTED;

/// The value of a parameter, by its name in lower case.
type Get<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A way to sign URLs.
struct Family {
    /// Present in every URL that is signed this way.
    marker: &'static str,
    /// Everything else that belongs to the signature.
    others: &'static [&'static str],
    /// Reads the end out of the parameters.
    expiry: fn(Get<'_>) -> Option<u64>,
}

const FAMILIES: [Family; 6] = [
    Family {
        marker: "x-amz-signature",
        others: &[
            "x-amz-credential",
            "x-amz-security-token",
            "x-amz-algorithm",
            "x-amz-date",
            "x-amz-expires",
            "x-amz-signedheaders",
        ],
        expiry: |get| dated(get, "x-amz-date", "x-amz-expires"),
    },
    Family {
        marker: "awsaccesskeyid",
        others: &["signature", "x-amz-security-token", "expires"],
        expiry: |get| unix(get, "expires"),
    },
    Family {
        marker: "x-goog-signature",
        others: &[
            "x-goog-credential",
            "x-goog-algorithm",
            "x-goog-date",
            "x-goog-expires",
            "x-goog-signedheaders",
        ],
        expiry: |get| dated(get, "x-goog-date", "x-goog-expires"),
    },
    Family {
        marker: "googleaccessid",
        others: &["signature", "expires"],
        expiry: |get| unix(get, "expires"),
    },
    Family {
        marker: "sig",
        others: &[
            "sv", "ss", "srt", "sr", "st", "se", "sp", "spr", "sip", "si", "skoid", "sktid", "skt", "ske",
            "sks", "skv", "saoid", "suoid", "scid", "sdd", "ses",
        ],
        expiry: |get| {
            let end = |name: &str| get(name).and_then(|text| iso(&text));
            match (end("se"), end("ske")) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            }
        },
    },
    Family {
        marker: "key-pair-id",
        others: &["signature", "policy", "expires", "hash-algorithm"],
        expiry: |get| unix(get, "expires").or_else(|| policy_end(&get("policy")?)),
    },
];

/// The signature of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// When it ends, seconds since 1970, where that can be read.
    pub expires: Option<u64>,
}

/// The signature of a URL; `None` when it has none. A parameter that is only a secret (`token=…`) is no signature.
pub fn signature(url: &Url) -> Option<Signature> {
    let pairs = pairs(url);
    let families: Vec<&Family> = FAMILIES.iter().filter(|family| has(&pairs, family.marker)).collect();
    if families.is_empty() {
        return None;
    }
    let get = |name: &str| -> Option<String> {
        pairs.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone())
    };
    Some(Signature { expires: families.iter().filter_map(|family| (family.expiry)(&get)).min() })
}

/// Whether a value in the query is hidden: the URL was printed once and cannot be opened.
pub fn was_printed(url: &Url) -> bool {
    url.query_pairs().any(|(_, value)| value == REDACTED)
}

/// What a URL names, whoever signed it and when: without the parameters of its signature, all others in their order.
pub fn identity(url: &Url) -> String {
    let pairs = pairs(url);
    let signing = |name: &str| {
        FAMILIES.iter().any(|family| {
            has(&pairs, family.marker) && (family.marker == name || family.others.contains(&name))
        })
    };
    let kept: Vec<&str> = url
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty() && !signing(&name_of(pair)))
        .collect();
    let mut bare = url.clone();
    bare.set_fragment(None);
    let kept = kept.join("&");
    bare.set_query((!kept.is_empty()).then_some(kept.as_str()));
    bare.into()
}

fn name_of(pair: &str) -> String {
    url::form_urlencoded::parse(pair.as_bytes())
        .next()
        .map(|(name, _)| name.to_ascii_lowercase())
        .unwrap_or_default()
}

fn pairs(url: &Url) -> Vec<(String, String)> {
    url.query_pairs().map(|(name, value)| (name.to_ascii_lowercase(), value.into_owned())).collect()
}

fn has(pairs: &[(String, String)], name: &str) -> bool {
    pairs.iter().any(|(found, _)| found == name)
}

fn unix(get: Get<'_>, name: &str) -> Option<u64> {
    get(name)?.trim().parse().ok()
}

/// `YYYYMMDDThhmmssZ` and a number of seconds.
fn dated(get: Get<'_>, date: &str, seconds: &str) -> Option<u64> {
    let date = get(date)?;
    let digits: String = date.chars().filter(char::is_ascii_digit).collect();
    if date.len() != 16 || digits.len() != 14 {
        return None;
    }
    let start = moment(&digits)?;
    start.checked_add(get(seconds)?.trim().parse::<u64>().ok()?)
}

/// `YYYY-MM-DD`, with `Thh:mmZ` or `Thh:mm:ss[.f]Z` behind it.
fn iso(text: &str) -> Option<u64> {
    let text = text.trim().trim_end_matches('Z');
    let (date, time) = text.split_once('T').unwrap_or((text, "00:00:00"));
    let time = time.split('.').next()?;
    let mut digits: String = date.chars().chain(time.chars()).filter(char::is_ascii_digit).collect();
    if digits.len() == 12 {
        digits.push_str("00");
    }
    moment(&digits)
}

/// `YYYYMMDDhhmmss` in UTC as seconds since 1970; `None` when it is no such moment, or one before.
pub fn moment(digits: &str) -> Option<u64> {
    if digits.len() != 14 || !digits.is_ascii() {
        return None;
    }
    let part = |from: usize, to: usize| digits[from..to].parse::<i64>().ok();
    let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    let (hour, minute, second) = (part(8, 10)?, part(10, 12)?, part(12, 14)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Days since 1970 of a civil date: years from March, eras of 400 years.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    u64::try_from(days * 86_400 + hour * 3_600 + minute * 60 + second).ok()
}

/// `DateLessThan` of a `CloudFront` policy.
fn policy_end(policy: &str) -> Option<u64> {
    let text: String = policy
        .chars()
        .map(|c| match c {
            '-' => '+',
            '_' => '=',
            '~' => '/',
            other => other,
        })
        .collect();
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).ok()?;
    let policy: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
    policy.pointer("/Statement/0/Condition/DateLessThan/AWS:EpochTime")?.as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(query: &str) -> Url {
        Url::parse(&format!("https://h/a/x.jsonl?{query}")).unwrap()
    }

    const SIGV4: &str = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AK%2F20261129%2Fus&X-Amz-Date=20261129T233000Z\
                         &X-Amz-Expires=3600&X-Amz-SignedHeaders=host&part=2&x-amz-signature=ab12";

    #[test]
    fn each_family_ends_when_its_parameters_say() {
        // 2026-11-29T23:30:00Z is 1795995000.
        for (query, expires) in [
            (SIGV4, Some(1_795_998_600)),
            ("AWSAccessKeyId=a&Signature=b&Expires=1795995000", Some(1_795_995_000)),
            ("X-Goog-Signature=a&X-Goog-Date=20261129T233000Z&X-Goog-Expires=1", Some(1_795_995_001)),
            ("GoogleAccessId=a&Signature=b&Expires=7", Some(7)),
            ("sv=1&sig=x&se=2026-11-29T23%3A30%3A00Z", Some(1_795_995_000)),
            ("sig=x&se=2026-11-29T23:30Z&ske=2026-11-29", Some(1_795_910_400)),
            ("Key-Pair-Id=K&Signature=s&Expires=9", Some(9)),
            (
                "Key-Pair-Id=K&Signature=s&Policy=eyJTdGF0ZW1lbnQiOlt7IkNvbmRpdGlvbiI6eyJEYXRlTGVzc1RoYW4iOnsiQVdTOkVwb2NoVGltZSI6NDJ9fX1dfQ__",
                Some(42),
            ),
            ("X-Amz-Signature=a&X-Amz-Date=20261129T233000Z&X-Amz-Expires=-5", None),
            ("X-Amz-Signature=a&X-Amz-Date=20261129T233000Z&X-Amz-Expires=18446744073709551615", None),
            ("X-Amz-Signature=a&X-Amz-Date=ü0261129T233000&X-Amz-Expires=5", None),
            ("sig=x&se=never", None),
        ] {
            assert_eq!(signature(&url(query)).unwrap().expires, expires, "{query}");
        }
        assert_eq!(signature(&url("token=x&Expires=5")), None);
        assert_eq!(signature(&Url::parse("https://h/x").unwrap()), None);
    }

    #[test]
    fn the_identity_is_what_every_signature_of_one_url_shares() {
        assert_eq!(identity(&url(SIGV4)), "https://h/a/x.jsonl?part=2");
        assert_eq!(identity(&url("b=1&a=2")), "https://h/a/x.jsonl?b=1&a=2");
        assert_eq!(identity(&url("Expires=5&a=1")), "https://h/a/x.jsonl?Expires=5&a=1");
        assert_eq!(identity(&url("AWSAccessKeyId=a&Signature=b&Expires=5")), "https://h/a/x.jsonl");
        assert_eq!(identity(&url("token=abc")), "https://h/a/x.jsonl?token=abc");
        assert_eq!(
            identity(&url("X-Amz-Signature=%3Credacted%3E&X-Amz-Date=x")),
            identity(&url("X-Amz-Signature=1"))
        );
    }

    #[test]
    fn a_url_that_was_printed_is_recognised() {
        for query in ["X-Amz-Signature=<redacted>", "part=1&token=%3Credacted%3E"] {
            assert!(was_printed(&url(query)), "{query}");
        }
        assert!(!was_printed(&url(SIGV4)));
    }
}
