//! An object of S3 as it is asked for: with which keys, for which region, addressed how. What a refusal teaches of these
//! changes the next request.

mod regions;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwapOption;
use http::HeaderMap;
use http::header::LOCATION;
use kvik_core::{Error, ErrorKind, Op, Result};

use self::regions::Bucket;
use crate::cause::Cause;
use crate::credentials::{Credentials, Keys};
use crate::endpoint::{Addressing, Ask, Endpoint, Moment, Request, Reuse, S3Endpoint};
use crate::failure::Failure;
use crate::latest::{Found, Latest};
use crate::location::Location;

/// Whose keys are used, if any.
#[derive(Debug)]
pub(crate) enum Account {
    /// Nobody's.
    Nobody,
    /// Those of this source, and none where it has none.
    IfAny(Arc<dyn Credentials>),
    /// Those of this source, or nothing is asked.
    Always(Arc<dyn Credentials>),
}

/// An object of S3, and what was learnt of its server.
pub(crate) struct Store {
    first: Reuse<S3Endpoint>,
    /// The same addressed the other way.
    other: Option<Reuse<S3Endpoint>>,
    addressed: AtomicU8,
    bucket: Bucket,
    account: Account,
    keys: ArcSwapOption<Keys>,
    finding: Latest<Result<()>>,
    region: ArcSwapOption<Arc<str>>,
    /// Whether a server has taken a request.
    was_good: AtomicBool,
}

/// What one question has tried so far beyond its first request; each once at the most.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    region: bool,
    renewed: bool,
    /// What the last request was made with: other questions learn, too, while it is on its way.
    keys_used: Option<Arc<Keys>>,
    region_used: String,
    was_first_way: bool,
    /// Why the first way to address it was given up.
    otherwise: Option<Failure>,
}

impl Tried {
    /// The failure to tell: what the first way met, if the other one fared no better.
    pub(crate) fn or(self, failure: Failure) -> Failure {
        self.otherwise.unwrap_or(failure)
    }
}

impl Store {
    /// The object that `endpoint` asks for.
    pub(crate) fn new(endpoint: S3Endpoint, account: Account) -> Store {
        let bucket = Bucket {
            server: endpoint.server(),
            name: endpoint.bucket().to_owned(),
        };
        let region = regions::recall(&bucket).map(Arc::new);
        Store {
            other: endpoint.addressed_otherwise().map(Reuse::new),
            first: Reuse::new(endpoint),
            addressed: AtomicU8::new(UNKNOWN),
            bucket,
            account,
            keys: ArcSwapOption::empty(),
            finding: Latest::new(),
            region: ArcSwapOption::new(region),
            was_good: AtomicBool::new(false),
        }
    }

    /// Looks for the keys.
    ///
    /// # Errors
    /// Those of the source; `Config` if it has none, and none will not do.
    pub(crate) async fn prepare(&self) -> Result<()> {
        let (source, needed) = match &self.account {
            Account::Nobody => return Ok(()),
            Account::IfAny(source) => (source, false),
            Account::Always(source) => (source, true),
        };
        let found = source.find().await?;
        if found.is_none() && needed {
            let why = format!("there are no keys of S3: looked for in {source}");
            return Err(Error::new(ErrorKind::Config, Op::Configure, why));
        }
        self.keys.store(found.map(Arc::new));
        Ok(())
    }

    /// Looks for other keys where those in use end soon. Keys that are not there stay not there: what was begun without a
    /// signature does not become somebody's.
    pub(crate) async fn keep_fresh(&self, now: SystemTime) -> Result<()> {
        let keys = self.keys.load_full();
        let ends = keys.as_ref().and_then(|keys| keys.expiry());
        match ends {
            Some(end) if end <= now + EARLY => match self.find_other_than(keys.as_ref()).await {
                // They are good for a moment still.
                Err(_) if end > now => Ok(()),
                found => found,
            },
            _ => Ok(()),
        }
    }

    /// The request for `ask`, as far as is known by now.
    pub(crate) fn request(&self, ask: &Ask, now: SystemTime, tried: &mut Tried) -> Result<Request> {
        let (keys, region) = (self.keys.load_full(), self.region.load_full());
        let learnt = region.as_ref().map(|region| &***region);
        let moment = Moment {
            keys: keys.as_deref(),
            region: learnt,
            ..Moment::at(now)
        };
        let endpoint = self.endpoint(tried);
        tried.was_first_way = std::ptr::eq(endpoint, &self.first);
        let request = endpoint.request(ask, &moment);
        tried.region_used = endpoint.inner().region_in_use(learnt).to_owned();
        tried.keys_used = keys;
        request
    }

    /// Whether the refusal taught something by which the next request may succeed.
    pub(crate) async fn learns(&self, answer: &Refused<'_>, tried: &mut Tried) -> bool {
        if !tried.region
            && let Some(region) = answer.region()
            && region != tried.region_used
        {
            tried.region = true;
            let region: Arc<str> = region.into();
            regions::remember(&self.bucket, &region);
            self.region.store(Some(Arc::new(region)));
            return true;
        }
        if !tried.renewed && self.is_signed() && answer.is_about_keys() {
            tried.renewed = true;
            // Where the source fails now, the refusal is what counts.
            let _ = self.find_other_than(tried.keys_used.as_ref()).await;
            let has_others = self.keys.load().as_deref() != tried.keys_used.as_deref();
            if has_others || self.was_good.load(Ordering::Relaxed) {
                self.renew();
                return true;
            }
        }
        if answer.cause.passes() {
            self.renew();
        }
        false
    }

    /// Whether a refusal may be for the way in which the object was addressed, and there is another that was not tried.
    pub(crate) fn may_be_elsewhere(&self, answer: &Refused<'_>, tried: &Tried) -> bool {
        let may_be_other = self.addressed.load(Ordering::Relaxed) != FIRST;
        let code = answer.cause.code.as_deref().unwrap_or_default();
        self.other.is_some()
            && may_be_other
            && tried.was_first_way
            && tried.otherwise.is_none()
            && !answer.headers.contains_key(LOCATION)
            && matches!(answer.status, 300..=308 | 400 | 403..=405 | 421)
            // Only who knows bucket and key says these.
            && !UNDERSTOOD.contains(&code)
    }

    /// A server took a request.
    pub(crate) fn accepts(&self, tried: &Tried) {
        let way = match tried.otherwise {
            Some(_) => OTHER,
            None => FIRST,
        };
        let before = Ordering::Relaxed;
        // The first answer decides.
        let _ = self
            .addressed
            .compare_exchange(UNKNOWN, way, before, before);
        self.was_good.store(true, before);
    }

    /// What a text must not show.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let keys = self.keys.load();
        let Some(keys) = keys.as_ref() else {
            return Vec::new();
        };
        let mut secrets = keys.secrets();
        // Servers know it, and whoever reads our texts need not.
        secrets.push(keys.id().to_owned());
        secrets
    }

    /// Who was refused, for the text of an error.
    pub(crate) fn who(&self) -> String {
        match (self.key_source(), &self.account) {
            (Some(source), _) => {
                let region = self.region_in_use();
                format!("signed with keys from {source} for the region {region}")
            }
            (None, Account::IfAny(source) | Account::Always(source)) => {
                format!("not signed, as there are no keys in {source}")
            }
            (None, Account::Nobody) => "not signed, as was asked for".to_owned(),
        }
    }

    /// Whether requests are signed.
    pub(crate) fn is_signed(&self) -> bool {
        self.keys.load().is_some()
    }

    /// The keys in use.
    pub(crate) fn keys(&self) -> Option<Arc<Keys>> {
        self.keys.load_full()
    }

    /// Where the keys in use came from.
    pub(crate) fn key_source(&self) -> Option<String> {
        let keys = self.keys.load();
        keys.as_ref().map(|keys| keys.origin().to_owned())
    }

    /// The region that requests are for.
    pub(crate) fn region_in_use(&self) -> String {
        let region = self.region.load();
        let learnt = region.as_ref().map(|region| &***region);
        let endpoint = self.endpoint(&Tried::default()).inner();
        endpoint.region_in_use(learnt).to_owned()
    }

    /// The URL that requests go to, without secrets.
    pub(crate) fn address(&self) -> String {
        let region = self.region.load();
        let learnt = region.as_ref().map(|region| &***region);
        self.endpoint(&Tried::default()).inner().address(learnt)
    }

    /// Where the bucket stands in that.
    pub(crate) fn addressing(&self) -> Addressing {
        self.endpoint(&Tried::default()).inner().addressing()
    }

    fn endpoint(&self, tried: &Tried) -> &Reuse<S3Endpoint> {
        let otherwise = match self.addressed.load(Ordering::Relaxed) {
            UNKNOWN => tried.otherwise.is_some(),
            way => way == OTHER,
        };
        match &self.other {
            Some(other) if otherwise => other,
            _ => &self.first,
        }
    }

    fn renew(&self) {
        self.first.renew();
        if let Some(other) = &self.other {
            other.renew();
        }
    }

    /// Takes the keys that the source has by now. Of many requests that have `used` the same, one asks it, and all that wait
    /// share the outcome.
    async fn find_other_than(&self, used: Option<&Arc<Keys>>) -> Result<()> {
        let (Account::IfAny(source) | Account::Always(source)) = &self.account else {
            return Ok(());
        };
        let mut turn = match self.finding.under_way().await {
            Found::Answer(outcome) => return outcome,
            Found::Turn(turn) => turn,
        };
        let now = self.keys.load_full();
        if now.as_ref().map(Arc::as_ptr) != used.map(Arc::as_ptr) {
            return Ok(());
        }
        let found = source.find().await;
        turn.answer(found.as_ref().map(|_| ()).map_err(Error::clone));
        if let Some(found) = found? {
            self.keys.store(Some(Arc::new(found)));
        }
        Ok(())
    }
}

impl Tried {
    /// Goes on by the other way, after this failure of the first.
    pub(crate) fn otherwise(&mut self, failure: Failure) {
        self.otherwise = Some(failure);
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({}, {})", self.address(), self.who())
    }
}

/// An answer that is none to the question.
#[derive(Debug)]
pub(crate) struct Refused<'a> {
    pub(crate) status: u16,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) cause: &'a Cause,
}

impl Refused<'_> {
    /// The region in which it says that the bucket is.
    fn region(&self) -> Option<String> {
        if !matches!(self.status, 301 | 302 | 307 | 308 | 400 | 403) {
            return None;
        }
        let pointed = || {
            let to = self.headers.get(LOCATION)?.to_str().ok()?;
            Some(Location::parse(to).ok()?.region()?.to_owned())
        };
        let said = self.cause.region.clone().filter(|said| !said.is_empty());
        said.or_else(pointed)
    }

    fn is_about_keys(&self) -> bool {
        let code = self.cause.code.as_deref().unwrap_or_default();
        matches!(self.status, 401 | 403) || ENDED.contains(&code)
    }
}

const UNKNOWN: u8 = 0;
const FIRST: u8 = 1;
const OTHER: u8 = 2;
// So much earlier than they end keys are looked for again: requests take their time, and clocks are wrong by some.
const EARLY: Duration = Duration::from_secs(60);
const UNDERSTOOD: [&str; 5] = [
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidToken",
    "NoSuchKey",
    "NoSuchVersion",
];
// Some stores answer these with 400.
const ENDED: [&str; 3] = ["ExpiredToken", "InvalidToken", "TokenRefreshRequired"];

#[cfg(test)]
mod tests;
