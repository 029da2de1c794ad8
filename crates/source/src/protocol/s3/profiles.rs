//! What `~/.aws` says of a profile: the keys that decide where requests go and who sends them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::settings::Settings;

/// The profiles of the shared files, each with its keys.
#[derive(Debug, Default)]
pub(crate) struct Profiles {
    profiles: BTreeMap<String, BTreeMap<String, String>>,
    /// The one that is used.
    pub(crate) chosen: String,
}

impl Profiles {
    /// Reads both shared files; one that is not there has no profiles.
    pub(crate) fn of(settings: &Settings) -> Profiles {
        let chosen = settings.variable("AWS_PROFILE").or_else(|| settings.variable("AWS_DEFAULT_PROFILE"));
        let mut all = Profiles { profiles: BTreeMap::new(), chosen: chosen.unwrap_or("default").to_owned() };
        let text = |variable: &str, name: &str| {
            let home = || Some(PathBuf::from(settings.variable("HOME")?).join(".aws").join(name));
            let path = match settings.variable(variable) {
                Some(path) => match path.strip_prefix("~/") {
                    Some(rest) => PathBuf::from(settings.variable("HOME")?).join(rest),
                    None => PathBuf::from(path),
                },
                None => home()?,
            };
            std::fs::read_to_string(path).ok()
        };
        if let Some(text) = text("AWS_CONFIG_FILE", "config") {
            all.add(&text, |section| {
                if section == "default" {
                    return Some(section.to_owned());
                }
                section.strip_prefix("profile").map(|name| name.trim().to_owned())
            });
        }
        if let Some(text) = text("AWS_SHARED_CREDENTIALS_FILE", "credentials") {
            all.add(&text, |section| Some(section.to_owned()));
        }
        all
    }

    fn add(&mut self, text: &str, profile_of: impl Fn(&str) -> Option<String>) {
        let mut profile = None;
        for line in text.lines() {
            if line.starts_with([' ', '\t', '#', ';']) {
                // A comment, or a key within a key.
                continue;
            }
            let line = line.trim();
            if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
                profile = profile_of(section.trim());
            } else if let (Some(profile), Some((key, value))) = (&profile, line.split_once('=')) {
                let keys = self.profiles.entry(profile.clone()).or_default();
                let value = value.split(" #").next().unwrap_or_default().trim();
                if !value.is_empty() {
                    keys.insert(key.trim().to_owned(), value.to_owned());
                }
            }
        }
    }

    /// A key of a profile.
    pub(crate) fn get(&self, profile: &str, key: &str) -> Option<&str> {
        self.profiles.get(profile)?.get(key).map(String::as_str)
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
    }
}
