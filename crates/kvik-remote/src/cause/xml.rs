//! The error document of S3.

use quick_xml::Reader;
use quick_xml::events::Event;

use super::Said;

/// The values that stand right below the document's element. Whatever else a server puts there, the request that it repeats
/// and the string that was to be signed for instance, is not looked at. A document that breaks off counts as far as it goes.
pub(super) fn read(body: &[u8]) -> Option<Said> {
    let body = String::from_utf8_lossy(body);
    let mut reader = Reader::from_str(&body);
    let mut said = Said::default();
    let mut depth = 0_usize;
    let mut name = String::new();
    let mut text = String::new();
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Start(start) => {
                depth += 1;
                let found = start.local_name();
                if depth == 1 && found.as_ref() != "Error" {
                    return None;
                }
                if depth == 2 {
                    name = found.as_ref().to_owned();
                    text.clear();
                }
            }
            Event::End(_) => {
                if depth == 2 {
                    keep(&mut said, &name, &text);
                }
                depth = depth.saturating_sub(1);
            }
            Event::Eof => break,
            Event::Text(part) if depth == 2 => text.push_str(&part),
            Event::CData(part) if depth == 2 => text.push_str(&part),
            Event::GeneralRef(entity) if depth == 2 => text.push(character(&entity.into_inner())),
            _ => {}
        }
    }
    Some(said)
}

fn keep(said: &mut Said, name: &str, text: &str) {
    let place = match name {
        "Code" => &mut said.code,
        "Message" => &mut said.message,
        "RequestId" => &mut said.request_id,
        "Region" => &mut said.region,
        _ => return,
    };
    place.get_or_insert_with(|| text.to_owned());
}

/// What an entity stands for; no document type is read, so there are no others.
fn character(entity: &str) -> char {
    let numbered = |number: &str| match number.strip_prefix('x') {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => number.parse().ok(),
    };
    match entity {
        "lt" => '<',
        "gt" => '>',
        "amp" => '&',
        "apos" => '\'',
        "quot" => '"',
        _ => entity
            .strip_prefix('#')
            .and_then(numbered)
            .and_then(char::from_u32)
            .unwrap_or(char::REPLACEMENT_CHARACTER),
    }
}
