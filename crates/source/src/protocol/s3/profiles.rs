//! What `~/.aws` says of a profile: the keys that decide where requests go and who sends them.
//!
//! Three kinds of sections are read: profiles, the single sign-ons that profiles share (`[sso-session NAME]`), and the
//! addresses of services (`[services NAME]`, with a key below each service: `s3 =` and `  endpoint_url = …`).

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::settings::Settings;

/// Keys with their values; those below another key are named `key.below`.
type Keys = BTreeMap<String, String>;

/// The sections of the shared files, each with its keys. `Debug` shows no key: some are secret.
pub(crate) struct Profiles {
    sections: BTreeMap<(Kind, String), Keys>,
    /// The profile that is used.
    pub(crate) chosen: String,
    /// The environment names it.
    pub(crate) is_named: bool,
    /// What of the files could not be read, the first of each: never what stands there.
    pub(crate) faults: Vec<String>,
}

impl fmt::Debug for Profiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profiles").field("chosen", &self.chosen).finish_non_exhaustive()
    }
}

/// What a section is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Profile,
    SingleSignOn,
    Services,
}

impl Profiles {
    /// Reads both shared files; one that is not there has no profiles.
    pub(crate) fn of(settings: &Settings) -> Profiles {
        let chosen = settings.variable("AWS_PROFILE").or_else(|| settings.variable("AWS_DEFAULT_PROFILE"));
        let mut all = Profiles {
            sections: BTreeMap::new(),
            chosen: chosen.unwrap_or("default").to_owned(),
            is_named: chosen.is_some(),
            faults: Vec::new(),
        };
        let text = |variable: &str, name: &str| {
            let home = || Some(PathBuf::from(settings.variable("HOME")?).join(".aws").join(name));
            let path = match settings.variable(variable) {
                Some(path) => match path.strip_prefix("~/") {
                    Some(rest) => PathBuf::from(settings.variable("HOME")?).join(rest),
                    None => PathBuf::from(path),
                },
                None => home()?,
            };
            match std::fs::read_to_string(&path) {
                Ok(text) => Some((path, Ok(text))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => Some((path, Err(error))),
            }
        };
        if let Some((path, text)) = text("AWS_CONFIG_FILE", "config") {
            all.add(&path, text, |section| {
                if section == "default" {
                    return Some((Kind::Profile, section.to_owned()));
                }
                let (kind, name) = section.split_once(char::is_whitespace)?;
                let kind = match kind {
                    "profile" => Kind::Profile,
                    "sso-session" => Kind::SingleSignOn,
                    "services" => Kind::Services,
                    _ => return None,
                };
                Some((kind, name.trim().to_owned()))
            });
        }
        if let Some((path, text)) = text("AWS_SHARED_CREDENTIALS_FILE", "credentials") {
            all.add(&path, text, |section| Some((Kind::Profile, section.to_owned())));
        }
        all
    }

    /// Adds the sections of a file. What is malformed in it is passed over, and the first such line noted.
    fn add(
        &mut self,
        path: &Path,
        text: io::Result<String>,
        section_of: impl Fn(&str) -> Option<(Kind, String)>,
    ) {
        let text = match text {
            Ok(text) => text,
            Err(error) => {
                self.faults.push(format!("{} cannot be read: {error}", path.display()));
                return;
            }
        };
        let mut section = None;
        let mut above = String::new();
        let mut is_first_section = true;
        let mut malformed = None;
        for (number, line) in (1..).zip(text.lines()) {
            let is_below = line.starts_with([' ', '\t']);
            let line = line.trim();
            if line.starts_with(['#', ';']) {
                continue;
            }
            let fault = match line {
                "" => None,
                _ if line.starts_with('[') && !line.contains(']') => Some("a section without its ]"),
                _ if line.starts_with('[') => None,
                _ if is_first_section => Some("a line above the first [section]"),
                _ if !is_below && !line.contains('=') => Some("a line without a ="),
                _ => None,
            };
            is_first_section &= !line.starts_with('[');
            malformed = malformed.or_else(|| fault.map(|fault| (number, fault)));
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
                section = section_of(name.trim());
                above.clear();
            } else if let (Some(section), Some((key, value))) = (&section, line.split_once('=')) {
                let value = value.split(" #").next().unwrap_or_default().trim();
                let key = key.trim();
                let key = if is_below { format!("{above}.{key}") } else { key.to_owned() };
                if !is_below {
                    above.clone_from(&key);
                }
                if !value.is_empty() {
                    self.sections.entry(section.clone()).or_default().insert(key, value.to_owned());
                }
            }
        }
        self.faults
            .extend(malformed.map(|(number, fault)| format!("{}:{number} has {fault}", path.display())));
    }

    fn key(&self, kind: Kind, name: &str, key: &str) -> Option<&str> {
        self.sections.get(&(kind, name.to_owned()))?.get(key).map(String::as_str)
    }

    /// Whether a profile is in the files.
    pub(crate) fn knows(&self, profile: &str) -> bool {
        self.sections.contains_key(&(Kind::Profile, profile.to_owned()))
    }

    /// A key of a profile.
    pub(crate) fn get(&self, profile: &str, key: &str) -> Option<&str> {
        self.key(Kind::Profile, profile, key)
    }

    /// A key of a single sign-on that profiles share.
    pub(crate) fn single_sign_on(&self, name: &str, key: &str) -> Option<&str> {
        self.key(Kind::SingleSignOn, name, key)
    }

    /// The address of a service, as the chosen profile's services name it.
    fn service(&self, service: &str) -> Option<&str> {
        self.key(Kind::Services, self.own("services")?, &format!("{service}.endpoint_url"))
    }

    /// Where a service (`s3`, `sts`) is in the place of that of AWS: by the environment, by the profile's services, by
    /// the profile itself. None of them counts where they are to be ignored.
    pub(crate) fn endpoint<'a>(&'a self, settings: &'a Settings, service: &str) -> Option<&'a str> {
        let ignored = settings
            .variable("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")
            .or_else(|| self.own("ignore_configured_endpoint_urls"))
            .is_some_and(|text| text.eq_ignore_ascii_case("true"));
        if ignored {
            return None;
        }
        settings
            .variable(&format!("AWS_ENDPOINT_URL_{}", service.to_ascii_uppercase()))
            .or_else(|| settings.variable("AWS_ENDPOINT_URL"))
            .or_else(|| self.service(service))
            .or_else(|| self.own("endpoint_url"))
            .map(|text| text.trim_end_matches('/'))
    }

    /// A key of the profile that is used.
    pub(crate) fn own(&self, key: &str) -> Option<&str> {
        self.get(&self.chosen, key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_files_are_read_and_their_sections_are_named_differently() {
        let home = tempfile::tempdir().unwrap();
        let aws = home.path().join(".aws");
        std::fs::create_dir(&aws).unwrap();
        let config = "# c\n[default]\nregion = eu-west-1\n[profile  team]\nregion=eu-north-1 # there\ns3 =\n  \
                      region = nested\nrole_arn = r\n[sso-session x]\nregion = no\n";
        std::fs::write(aws.join("config"), config).unwrap();
        std::fs::write(aws.join("credentials"), "[team]\naws_access_key_id = a\n").unwrap();
        let of = |profile: Option<&str>| {
            let mut variables = BTreeMap::from([("HOME".to_owned(), home.path().display().to_string())]);
            variables.extend(profile.map(|profile| ("AWS_PROFILE".to_owned(), profile.to_owned())));
            Profiles::of(&Settings::of(&variables).unwrap())
        };
        assert_eq!(of(None).own("region"), Some("eu-west-1"));
        let team = of(Some("team"));
        assert_eq!((team.own("region"), team.own("role_arn")), (Some("eu-north-1"), Some("r")));
        assert_eq!(team.own("aws_access_key_id"), Some("a"));
        assert_eq!((team.own("s3"), team.get("x", "region")), (None, None));
        assert_eq!((team.own("s3.region"), team.single_sign_on("x", "region")), (Some("nested"), Some("no")));
    }

    #[test]
    fn the_first_line_that_is_malformed_is_told_and_not_what_stands_there() {
        let home = tempfile::tempdir().unwrap();
        let config = home.path().join("config");
        let faults = || {
            let path = |path: &Path| path.display().to_string();
            let variables = BTreeMap::from([
                ("AWS_CONFIG_FILE".to_owned(), path(&config)),
                ("AWS_SHARED_CREDENTIALS_FILE".to_owned(), path(&home.path().join("none"))),
            ]);
            Profiles::of(&Settings::of(&variables).unwrap()).faults
        };
        assert_eq!(faults(), [""; 0]);
        for (text, told) in [
            ("# c\n\n[default]\nregion = x\ns3 =\n  endpoint_url = y\n  more\n[other]\n", None),
            ("[default\nregion = canary\n", Some("1 has a section without its ]")),
            ("region = canary\n[default]\n", Some("1 has a line above the first [section]")),
            ("[default]\nregion canary\ncanary\n", Some("2 has a line without a =")),
        ] {
            std::fs::write(&config, text).unwrap();
            let told: Vec<String> = told.iter().map(|told| format!("{}:{told}", config.display())).collect();
            assert_eq!(faults(), told, "{text}");
        }
        std::fs::write(&config, b"\xff").unwrap();
        let told = faults();
        assert!(
            told.len() == 1 && told[0].starts_with(&format!("{} cannot be read: ", config.display())),
            "{told:?}"
        );
    }

    #[test]
    fn addresses_of_services_come_in_the_order_of_the_aws_tools() {
        let home = tempfile::tempdir().unwrap();
        let config = home.path().join("config");
        let text = "[default]\nservices = mine\nendpoint_url = http://profile\n[services mine]\n# c\ns3 =\n  # c\n  \
                    endpoint_url = http://services/\n  other = 1\ndynamodb =\n  endpoint_url = http://no\n";
        std::fs::write(&config, text).unwrap();
        let endpoint = |variables: &[(&str, &str)], service: &str| {
            let mut all = BTreeMap::from([("AWS_CONFIG_FILE".to_owned(), config.display().to_string())]);
            all.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
            let settings = Settings::of(&all).unwrap();
            Profiles::of(&settings).endpoint(&settings, service).map(str::to_owned)
        };
        assert_eq!(endpoint(&[], "s3").as_deref(), Some("http://services"));
        assert_eq!(endpoint(&[], "sts").as_deref(), Some("http://profile"));
        let general = ("AWS_ENDPOINT_URL", "http://general");
        assert_eq!(endpoint(&[general], "s3").as_deref(), Some("http://general"));
        let own = ("AWS_ENDPOINT_URL_S3", "http://own");
        assert_eq!(endpoint(&[general, own], "s3").as_deref(), Some("http://own"));
        let ignored = ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "True");
        assert_eq!(endpoint(&[general, own, ignored], "s3"), None);
        assert_eq!(endpoint(&[ignored], "sts"), None);
    }
}
