//! Where a bucket is: the endpoint, the region, and the two ways to write an object's address.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

use super::profiles::Profiles;
use crate::error::Problem;
use crate::settings::{Settings, shown_address};

/// Everything but what a signature leaves as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// As `PLAIN`, with the slashes of a key.
const KEY: &AsciiSet = &PLAIN.remove(b'/');

/// Where requests go.
#[derive(Debug)]
pub(crate) struct Place {
    /// In the place of AWS.
    endpoint: Option<Url>,
    /// Of the first request; a bucket may turn out to be elsewhere.
    pub(crate) region: String,
}

impl Place {
    /// As the environment and the profile say.
    pub(crate) fn of(settings: &Settings, profiles: &Profiles) -> Result<Place, Problem> {
        let endpoint = profiles
            .endpoint(settings, "s3")
            .map(|text| {
                let url = Url::parse(text).ok();
                let usable = |url: &Url| {
                    matches!(url.scheme(), "http" | "https")
                        && url.has_host()
                        && url.query().is_none()
                        && url.fragment().is_none()
                        && url.username().is_empty()
                        && url.password().is_none()
                };
                url.filter(usable).ok_or_else(|| Problem::Setting {
                    name: "AWS_ENDPOINT_URL_S3",
                    value: shown_address(text),
                    rule: "it (or AWS_ENDPOINT_URL, or the profile's endpoint_url) must be an http or https URL \
                           without a query and credentials",
                })
            })
            .transpose()?;
        let region = settings
            .variable("AWS_REGION")
            .or_else(|| settings.variable("AWS_DEFAULT_REGION"))
            .or_else(|| profiles.own("region"))
            .unwrap_or("us-east-1");
        if !is_region(region) {
            return Err(Problem::Setting {
                name: "AWS_REGION",
                value: region.to_owned(),
                rule: "a region is lowercase letters, digits and '-'",
            });
        }
        Ok(Place { endpoint, region: region.to_owned() })
    }

    /// What stands in the place of AWS.
    pub(crate) fn endpoint(&self) -> Option<&Url> {
        self.endpoint.as_ref()
    }

    /// The address of a bucket, or of an object in it.
    pub(crate) fn url(
        &self,
        region: &str,
        bucket: &str,
        key: Option<&str>,
        query: &[(&str, &str)],
    ) -> Result<Url, Problem> {
        let key = utf8_percent_encode(key.unwrap_or_default(), KEY);
        let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        let mut text = match &self.endpoint {
            Some(endpoint) => format!("{}/{bucket}/{key}", endpoint.as_str().trim_end_matches('/')),
            None if bucket.contains('.') => format!("https://s3.{region}.{domain}/{bucket}/{key}"),
            None => format!("https://{bucket}.s3.{region}.{domain}/{key}"),
        };
        for (index, (name, value)) in query.iter().enumerate() {
            text.push(if index == 0 { '?' } else { '&' });
            text.push_str(name);
            text.push('=');
            text.extend(utf8_percent_encode(value, PLAIN));
        }
        Url::parse(&text).map_err(|error| Problem::Unexpected {
            what: format!("nothing: the address of {bucket} cannot be made: {error}"),
            fix: "Check the bucket and the region".into(),
        })
    }
}

/// Whether a text may become part of a host name.
pub(crate) fn is_region(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=64).contains(&text.len())
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// A text as a value of a query.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn place(variables: &[(&str, &str)]) -> Result<Place, Problem> {
        let variables: BTreeMap<String, String> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let settings = Settings::of(&variables).unwrap();
        Place::of(&settings, &Profiles::of(&settings))
    }

    fn url(place: &Place, bucket: &str, key: &str) -> String {
        place.url(&place.region, bucket, Some(key), &[]).unwrap().to_string()
    }

    #[test]
    fn a_bucket_is_a_host_name_unless_it_has_dots_or_the_endpoint_is_another() {
        let aws = place(&[]).unwrap();
        assert_eq!(url(&aws, "abc", "a b/c+d"), "https://abc.s3.us-east-1.amazonaws.com/a%20b/c%2Bd");
        assert_eq!(url(&aws, "a.b.c", "k"), "https://s3.us-east-1.amazonaws.com/a.b.c/k");
        let china = place(&[("AWS_REGION", "cn-north-1")]).unwrap();
        assert_eq!(url(&china, "abc", "k"), "https://abc.s3.cn-north-1.amazonaws.com.cn/k");
        let own =
            place(&[("AWS_ENDPOINT_URL", "http://no"), ("AWS_ENDPOINT_URL_S3", "http://h:9000/x/")]).unwrap();
        assert_eq!(url(&own, "abc", "k"), "http://h:9000/x/abc/k");
        let query = own.url("r", "abc", None, &[("list-type", "2"), ("prefix", "a b&c/")]).unwrap();
        assert_eq!(query.as_str(), "http://h:9000/x/abc/?list-type=2&prefix=a%20b%26c%2F");
    }

    #[test]
    fn unusable_settings_are_named() {
        let error = place(&[("AWS_ENDPOINT_URL_S3", "h:9000")]).unwrap_err().to_string();
        assert!(error.contains("AWS_ENDPOINT_URL_S3"), "{error}");
        let error = place(&[("AWS_ENDPOINT_URL_S3", "http://u:canary@h")]).unwrap_err().to_string();
        assert!(!error.contains("canary"), "{error}");
        let error = place(&[("AWS_REGION", "evil.example/")]).unwrap_err().to_string();
        assert!(error.contains("AWS_REGION"), "{error}");
    }
}
