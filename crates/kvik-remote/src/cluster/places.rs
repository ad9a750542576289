//! Which data node has which block, and which ones failed. No lock: a forked child goes on with what its parent knew.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use url::Url;

/// What was learnt of the data nodes of a file.
#[derive(Debug)]
pub(super) struct Places {
    /// 0 until it is known.
    block_size: AtomicU64,
    /// The URL of the bytes, by the number of their block; its range is that of whoever asked first.
    of_blocks: ArcSwap<BTreeMap<u64, Arc<Url>>>,
    /// Host and port of those that failed, the last one first.
    failed: ArcSwap<Vec<String>>,
}

impl Places {
    pub(super) fn new() -> Places {
        Places {
            block_size: AtomicU64::new(0),
            of_blocks: ArcSwap::default(),
            failed: ArcSwap::default(),
        }
    }

    /// Takes the size of the file's blocks.
    pub(super) fn learn(&self, block_size: Option<u64>) {
        if let Some(size) = block_size {
            self.block_size.store(size, Ordering::Relaxed);
        }
    }

    /// Where the block with the beginning of `range` is, as a URL for all of the range. A data node brings what lies in
    /// other blocks, too.
    pub(super) fn of(&self, range: &Range<u64>) -> Option<Url> {
        let found = self.of_blocks.load().get(&self.block(range.start)).cloned();
        found.map(|url| with_range(&url, range))
    }

    /// Remembers that `place` has brought `range`, unless its URL says it in a way that cannot be said of another range.
    pub(super) fn remember(&self, range: &Range<u64>, place: Url) {
        if !says(&place, range) {
            return;
        }
        let (block, place) = (self.block(range.start), Arc::new(place));
        self.of_blocks.rcu(|known| {
            let mut known = BTreeMap::clone(known);
            if known.len() >= MOST_BLOCKS {
                // Each of them is found out again by one request.
                known.clear();
            }
            known.insert(block, Arc::clone(&place));
            known
        });
    }

    /// Does not go to the node of `place` for `range` any more; if another one is remembered by now, that stays.
    pub(super) fn forget(&self, range: &Range<u64>, place: &Url) {
        let (block, node) = (self.block(range.start), name(place));
        self.of_blocks.rcu(|known| {
            let mut known = BTreeMap::clone(known);
            if known.get(&block).is_some_and(|known| name(known) == node) {
                known.remove(&block);
            }
            known
        });
    }

    /// The name node is asked for others than the node of `place` from now on.
    pub(super) fn avoid(&self, place: &Url) {
        let node = name(place);
        self.failed.rcu(|failed| {
            let others = failed.iter().filter(|other| **other != node).cloned();
            let mut all = vec![node.clone()];
            all.extend(others.take(MOST_FAILED - 1));
            all
        });
    }

    pub(super) fn avoids(&self, place: &Url) -> bool {
        self.failed.load().contains(&name(place))
    }

    /// Those to avoid, as the name node is told them: by host and port as its own client does, and by host, since the port
    /// that it looks for is none that a redirect shows.
    pub(super) fn avoided(&self) -> Option<String> {
        let failed = self.failed.load();
        let both = failed.iter().flat_map(|node| {
            let host = node.rsplit_once(':').map_or("", |(host, _)| host);
            [node.as_str(), host]
        });
        let names: Vec<&str> = both.collect();
        (!names.is_empty()).then(|| names.join(","))
    }

    /// Avoids none any more; `false` if none was avoided.
    pub(super) fn forgive(&self) -> bool {
        let before = self.failed.swap(Arc::default());
        !before.is_empty()
    }

    fn block(&self, offset: u64) -> u64 {
        offset
            .checked_div(self.block_size.load(Ordering::Relaxed))
            .unwrap_or_default()
    }
}

/// Host and port; the scheme's own port where the URL has none.
pub(super) fn address(url: &Url) -> (String, u16) {
    let host = url.host_str().unwrap_or_default().to_owned();
    (host, url.port_or_known_default().unwrap_or_default())
}

/// As name nodes are told it.
pub(super) fn name(url: &Url) -> String {
    let (host, port) = address(url);
    format!("{host}:{port}")
}

/// Whether the URL names offset and length as WebHDFS does. Gateways may hide them in a parameter of their own.
fn says(url: &Url, range: &Range<u64>) -> bool {
    let value = |name: &str| {
        let mut pairs = url.query_pairs();
        let found = pairs.find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.and_then(|(_, value)| value.parse::<u64>().ok())
    };
    value("offset") == Some(range.start) && value("length") == Some(range.end - range.start)
}

/// The same with another range.
fn with_range(url: &Url, range: &Range<u64>) -> Url {
    let parts = url.query().unwrap_or_default().split('&');
    let changed = parts.map(|part| match part.split_once('=') {
        Some((name, _)) if name.eq_ignore_ascii_case("offset") => {
            format!("{name}={}", range.start)
        }
        Some((name, _)) if name.eq_ignore_ascii_case("length") => {
            format!("{name}={}", range.end - range.start)
        }
        _ => part.to_owned(),
    });
    let query = changed.collect::<Vec<_>>().join("&");
    let mut url = url.clone();
    url.set_query(Some(&query));
    url
}

// A file of 128 GiB with blocks of 128 MiB has as many.
const MOST_BLOCKS: usize = 1024;
// A URL has room for them.
const MOST_FAILED: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn a_place_is_remembered_for_its_block_and_asked_for_any_range() {
        let places = Places::new();
        places.learn(Some(100));
        let of = |range: Range<u64>| places.of(&range).map(String::from);
        places.remember(
            &(110..150),
            url("http://dn:1/a?op=OPEN&delegation=t%2F&offset=110&length=40&x"),
        );
        for (range, query) in [
            (100..101, "offset=100&length=1"),
            // It has the next block, or gets it.
            (199..300, "offset=199&length=101"),
        ] {
            let expected = format!("http://dn:1/a?op=OPEN&delegation=t%2F&{query}&x");
            assert_eq!(of(range), Some(expected));
        }
        assert_eq!((of(0..100), of(200..201)), (None, None));
        let other = url("http://other:1/a?offset=110&length=40");
        places.forget(&(199..200), &other);
        assert!(of(110..150).is_some());
        // Whatever range it was asked for.
        places.forget(&(199..200), &url("http://dn:1/b"));
        assert_eq!(of(110..150), None);
    }

    #[test]
    fn a_url_that_hides_its_range_is_good_for_that_range_only() {
        let places = Places::new();
        for hidden in [
            "http://gateway/a?_=AAAACAAAABAAAAD",
            "http://gateway/a?op=OPEN&offset=0",
            "http://gateway/a?op=OPEN&offset=1&length=40",
            "http://gateway/a",
        ] {
            places.remember(&(0..40), url(hidden));
            assert_eq!(places.of(&(0..40)), None, "{hidden}");
        }
    }

    #[test]
    fn those_that_failed_are_told_until_they_are_forgiven() {
        let places = Places::new();
        assert_eq!((places.avoided(), places.forgive()), (None, false));
        for text in ["http://dn1:9864/a", "http://[::1]/b", "http://dn1:9864/c"] {
            places.avoid(&url(text));
            assert!(places.avoids(&url(text)));
        }
        let told = "dn1:9864,dn1,[::1]:80,[::1]";
        assert_eq!(places.avoided().as_deref(), Some(told));
        assert!(places.forgive());
        assert_eq!(places.avoided(), None);
        for number in 0..100 {
            places.avoid(&url(&format!("http://dn{number}/")));
        }
        let many = places.avoided().unwrap();
        assert!(many.starts_with("dn99:80,dn99,") && many.matches(',').count() == 31);
    }
}
