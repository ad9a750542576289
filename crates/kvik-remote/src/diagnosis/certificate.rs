//! What a certificate says of itself, for people to read: whom it names, who signed it, until when it holds. Nothing here
//! decides on trust. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::SystemTime;

use super::calendar;
use crate::redact;

/// A certificate as it was shown by a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Certificate {
    pub(super) subject: String,
    pub(super) issuer: String,
    /// The names and addresses that it is for.
    pub(super) names: Vec<String>,
    pub(super) begins: Option<SystemTime>,
    pub(super) ends: Option<SystemTime>,
}

impl Certificate {
    /// Reads one in DER; `None` for what is none.
    pub(super) fn read(der: &[u8]) -> Option<Certificate> {
        let mut whole = Der(Der(der).expect(SEQUENCE)?);
        let mut parts = Der(whole.expect(SEQUENCE)?);
        // The version is left out by the first one.
        parts.skip(VERSION);
        parts.expect(INTEGER)?;
        parts.expect(SEQUENCE)?;
        let issuer = name(parts.expect(SEQUENCE)?);
        let mut validity = Der(parts.expect(SEQUENCE)?);
        let (begins, ends) = (validity.next()?, validity.next()?);
        let subject = name(parts.expect(SEQUENCE)?);
        parts.expect(SEQUENCE)?;
        let mut names = Vec::new();
        while let Some((tag, content)) = parts.next() {
            if tag == EXTENSIONS {
                names = alternatives(content).unwrap_or_default();
            }
        }
        Some(Certificate {
            subject,
            issuer,
            names,
            begins: time(begins),
            ends: time(ends),
        })
    }

    /// The names, not more than people read.
    pub(super) fn named(&self) -> String {
        let some = self.names.iter().take(MOST_NAMES).cloned();
        let list = some.collect::<Vec<_>>().join(", ");
        match self.names.len().saturating_sub(MOST_NAMES) {
            0 => list,
            more => format!("{list} and {more} more"),
        }
    }
}

/// Elements one after the other, each with its tag and its length.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (len, rest) = match first {
            0..=127 => (usize::from(first), rest),
            // So many bytes of length; no certificate needs more.
            129..=131 => {
                let (len, rest) = rest.split_at_checked(usize::from(first - 128))?;
                let len = len
                    .iter()
                    .fold(0, |len, byte| len << 8 | usize::from(*byte));
                (len, rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(len)?;
        self.0 = rest;
        Some((tag, content))
    }

    fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next()
            .filter(|(found, _)| *found == tag)
            .map(|(_, content)| content)
    }

    /// Goes past the next element if it has this tag.
    fn skip(&mut self, tag: u8) {
        if self.0.first() == Some(&tag) {
            self.next();
        }
    }
}

/// `CN=..., O=...`, as far as it has these.
fn name(content: &[u8]) -> String {
    let mut found = Vec::new();
    let mut sets = Der(content);
    while let Some((_, set)) = sets.next() {
        let Some(pair) = Der(set).expect(SEQUENCE) else {
            continue;
        };
        let mut pair = Der(pair);
        let (Some(attribute), Some((_, value))) = (pair.expect(OBJECT), pair.next()) else {
            continue;
        };
        let known = ATTRIBUTES.iter().find(|(id, _)| *id == attribute);
        if let Some((_, word)) = known {
            found.push(format!("{word}={}", text(value)));
        }
    }
    match found.is_empty() {
        true => "nobody by name".to_owned(),
        false => found.join(", "),
    }
}

/// The names among the extensions.
fn alternatives(content: &[u8]) -> Option<Vec<String>> {
    let mut extensions = Der(Der(content).expect(SEQUENCE)?);
    while let Some((_, extension)) = extensions.next() {
        let mut extension = Der(extension);
        if extension.expect(OBJECT)? != ALTERNATIVES {
            continue;
        }
        extension.skip(BOOLEAN);
        let mut list = Der(Der(extension.expect(OCTETS)?).expect(SEQUENCE)?);
        let mut names = Vec::new();
        while let Some((tag, value)) = list.next() {
            match tag {
                DNS_NAME => names.push(text(value)),
                ADDRESS => names.extend(address(value)),
                _ => {}
            }
        }
        return Some(names);
    }
    None
}

fn address(bytes: &[u8]) -> Option<String> {
    let address: IpAddr = match bytes.len() {
        4 => Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into(),
        16 => Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into(),
        _ => return None,
    };
    Some(address.to_string())
}

fn time((tag, content): (u8, &[u8])) -> Option<SystemTime> {
    let text = std::str::from_utf8(content).ok()?;
    match tag {
        // Two digits of the year: those from 50 on are of the last century.
        UTC_TIME => {
            let century = if text.get(..2)? < "50" { "20" } else { "19" };
            calendar::time(&format!("{century}{text}"))
        }
        GENERALIZED_TIME => calendar::time(text),
        _ => None,
    }
}

fn text(bytes: &[u8]) -> String {
    redact::foreign(&String::from_utf8_lossy(bytes), &[], 80)
}

const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const OBJECT: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const DNS_NAME: u8 = 0x82;
const ADDRESS: u8 = 0x87;
// 2.5.4.3, 2.5.4.10 and 2.5.4.11; 2.5.29.17.
const ATTRIBUTES: [(&[u8], &str); 3] = [
    (&[0x55, 0x04, 0x03], "CN"),
    (&[0x55, 0x04, 0x0a], "O"),
    (&[0x55, 0x04, 0x0b], "OU"),
];
const MOST_NAMES: usize = 8;
const ALTERNATIVES: &[u8] = &[0x55, 0x1d, 0x11];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn element(tag: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![tag, 0x82];
        bytes.extend((content.len() as u16).to_be_bytes());
        bytes.extend(content);
        bytes
    }

    fn named(value: &str) -> Vec<u8> {
        let pair = [
            element(OBJECT, ATTRIBUTES[0].0),
            element(0x0c, value.as_bytes()),
        ]
        .concat();
        element(SEQUENCE, &element(0x31, &element(SEQUENCE, &pair)))
    }

    fn certificate() -> Vec<u8> {
        let validity = [
            element(UTC_TIME, b"990102030405Z"),
            element(GENERALIZED_TIME, b"20510102030405Z"),
        ];
        let names = [
            element(DNS_NAME, b"data.example.org"),
            element(ADDRESS, &[127, 0, 0, 1]),
        ];
        let extension = [
            element(OBJECT, ALTERNATIVES),
            element(BOOLEAN, &[0xff]),
            element(OCTETS, &element(SEQUENCE, &names.concat())),
        ];
        let extensions = element(SEQUENCE, &element(SEQUENCE, &extension.concat()));
        let parts = [
            element(VERSION, &element(INTEGER, &[2])),
            element(INTEGER, &[7]),
            element(SEQUENCE, &[]),
            named("the\nsigner"),
            element(SEQUENCE, &validity.concat()),
            named("the server"),
            element(SEQUENCE, &[]),
            element(EXTENSIONS, &extensions),
        ];
        element(SEQUENCE, &element(SEQUENCE, &parts.concat()))
    }

    #[test]
    fn a_certificate_says_whom_it_names_who_signed_it_and_when_it_holds() {
        let read = Certificate::read(&certificate()).expect("it is one");
        assert_eq!(
            (read.subject.as_str(), read.issuer.as_str()),
            ("CN=the server", "CN=the signer")
        );
        assert_eq!(read.names, ["data.example.org", "127.0.0.1"]);
        let times = [read.begins, read.ends].map(|time| calendar::shown(time.expect("a time")));
        assert_eq!(
            times,
            [
                "Sat, 02 Jan 1999 03:04:05 GMT",
                "Mon, 02 Jan 2051 03:04:05 GMT"
            ]
        );
        let whole = certificate();
        assert_eq!(Certificate::read(&whole[..whole.len() - 1]), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(at in 0..200_usize, byte: u8, noise: Vec<u8>) {
            let mut bytes = certificate();
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = Certificate::read(&bytes);
            let _ = Certificate::read(&noise);
        }
    }
}
