//! [`RemoteOptions::diagnose`]: what stands between us and an object.

use std::time::{Duration, Instant, SystemTime};

use http::header::AUTHORIZATION;
use kvik_config::Config;
use kvik_core::{Error, ErrorKind, Op};

use super::RemoteOptions;
use super::open::WHOLE;
use crate::diagnosis::{Diagnosis, Stage, Step, Way, complete, understand, walk};
use crate::location::{Found, Kind, Location};
use crate::transport::runtime;

/// Finding out what is wrong.
impl RemoteOptions {
    /// Walks the way to the object at `url` one step at a time: what the URL means, who asks, the name of the server, a
    /// connection, TLS, a first request with its redirects, the clocks, ranges, what tells versions apart; at last it
    /// opens the object. Each step says what was found, and what to do where something is wrong.
    ///
    /// It asks a few times for a few bytes, and takes no longer than [`timeout`](RemoteOptions::timeout), a minute unless
    /// said otherwise. It never fails: whatever goes wrong is a step.
    ///
    /// # Example: the first thing that is wrong
    /// ```no_run
    /// let diagnosis = kvik_remote::RemoteOptions::new().diagnose("https://example.org/weights.bin");
    /// if let Some((step, _)) = diagnosis.failure() {
    ///     println!("{}: {}; {}", step.stage, step.what, step.advice.as_deref().unwrap_or_default());
    /// }
    /// ```
    #[must_use]
    pub fn diagnose(&self, url: &str) -> Diagnosis {
        let kinds = self.kinds.as_deref().unwrap_or(&Kind::ALL);
        match Location::parse_among(url, kinds) {
            Ok(location) => Diagnosis {
                url: location.to_string(),
                steps: self.examine(&location),
            },
            Err(error) => Diagnosis {
                // What is no URL may be anything.
                url: "the URL".to_owned(),
                steps: complete(vec![Step::of_error(Stage::Url, &error)], true),
            },
        }
    }

    fn examine(&self, location: &Location) -> Vec<Step> {
        let limit = self.timeout.unwrap_or(LONGEST);
        let end = Instant::now() + limit;
        let mut steps = vec![understand(location, SystemTime::now())];
        let way = match self.way(location, end, limit) {
            Ok(way) => way,
            Err(error) => {
                steps.push(Step::of_error(Stage::Settings, &error));
                let is_plain = matches!(location.found(), Found::Web(url) | Found::File(url) if !url.is_secure());
                return complete(steps, !is_plain);
            }
        };
        steps.push(Step::ok(
            Stage::Settings,
            "settings and options can be used",
        ));
        let has_tls = way.is_secure();
        let walked =
            runtime().and_then(|runtime| runtime.wait_for(async move { walk(&way).await }));
        match walked {
            Ok(walked) => steps.extend(walked),
            Err(error) => steps.push(Step::of_error(Stage::Credentials, &error)),
        }
        if steps.iter().all(|step| !step.has_failed()) {
            steps.push(self.try_to_open(location, end));
        }
        complete(steps, has_tls)
    }

    fn way(&self, location: &Location, end: Instant, limit: Duration) -> Result<Way, Error> {
        if let Some(error) = &self.wrong {
            return Err(error.clone());
        }
        let config = self.config.clone().unwrap_or_else(Config::current);
        let (endpoint, region) = match location.kind() {
            Kind::S3 | Kind::S3Public => self.said_of_store()?,
            _ => (None, None),
        };
        Ok(Way {
            origin: self.origin(location, &config)?,
            location: location.clone(),
            authorized: self.bearer.is_some() || self.headers.contains_key(AUTHORIZATION),
            endpoint,
            region,
            whole: self.whole_limit.map_or(WHOLE, |size| size.bytes()),
            end,
            limit,
        })
    }

    /// Opens the object as any caller would.
    fn try_to_open(&self, location: &Location, end: Instant) -> Step {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let why = "no time is left for it";
            return Step::of_error(Stage::Open, &Error::new(ErrorKind::TimedOut, Op::Open, why));
        }
        match self.clone().timeout(left).open_location(location) {
            Ok(object) => Step::ok(
                Stage::Open,
                format!("it opens, with {} bytes", object.len()),
            )
            .fact("kind", object.kind().to_string())
            .fact("bytes", object.len().to_string()),
            Err(error) => Step::of_error(Stage::Open, &error),
        }
    }
}

// Each step has a limit of its own as well.
const LONGEST: Duration = Duration::from_secs(60);
