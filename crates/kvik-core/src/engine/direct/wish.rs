//! What the settings say about direct I/O in one direction. Pure.

use kvik_config::{Config, DirectIo, Key, Origin};

use super::Edges;
use crate::error::Result;

/// What is wished for in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Everything goes through the page cache.
    Never,
    /// Nobody said anything: whichever is faster.
    May,
    /// Where the file has it; else through the page cache.
    Prefer,
    /// Past the page cache or an error.
    Must,
}

impl Wish {
    /// For reads.
    pub(crate) fn to_read(config: &Config) -> Result<Wish> {
        let hint = hint(config, Key::AutoDirectIoRead, config.auto_direct_io_read()?);
        Ok(Wish::of(config.direct_read()?, hint))
    }

    /// For writes.
    pub(crate) fn to_write(config: &Config) -> Result<Wish> {
        let hint = hint(
            config,
            Key::AutoDirectIoWrite,
            config.auto_direct_io_write()?,
        );
        Ok(Wish::of(config.direct_write()?, hint))
    }

    /// Our setting, and under `auto` what somebody said by KvikIO's.
    fn of(setting: DirectIo, hint: Option<bool>) -> Wish {
        match (setting, hint) {
            (DirectIo::Never, _) | (DirectIo::Auto, Some(false)) => Wish::Never,
            (DirectIo::Auto, None) => Wish::May,
            (DirectIo::Auto, Some(true)) => Wish::Prefer,
            (DirectIo::Always, _) => Wish::Must,
        }
    }
}

impl Edges {
    /// KvikIO's permission to read too much, which holds here unless somebody takes it back.
    pub(crate) fn of(config: &Config) -> Result<Edges> {
        let key = Key::AutoDirectIoReadOverread;
        let hint = hint(config, key, config.auto_direct_io_read_overread()?);
        Ok(match hint {
            Some(false) => Edges::Buffered,
            Some(true) | None => Edges::Overread,
        })
    }
}

/// What somebody said; a default is nobody's word.
fn hint(config: &Config, key: Key, value: bool) -> Option<bool> {
    (config.origin(key) != Origin::Default).then_some(value)
}

#[cfg(test)]
mod tests {
    use kvik_config::Layer;

    use super::*;

    #[track_caller]
    fn check(layer: Layer, read: Wish, write: Wish, edges: Edges) {
        let config = Config::resolve([layer]).unwrap();
        let found = (
            Wish::to_read(&config).unwrap(),
            Wish::to_write(&config).unwrap(),
            Edges::of(&config).unwrap(),
        );
        assert_eq!(found, (read, write, edges));
    }

    #[test]
    fn our_setting_decides_and_under_auto_kvikios_if_somebody_said_it() {
        use Edges::{Buffered, Overread};
        use Wish::{May, Must, Never, Prefer};
        check(Layer::new(), May, May, Overread);
        let kvikio = Layer::new()
            .auto_direct_io_read(true)
            .auto_direct_io_write(false)
            .auto_direct_io_read_overread(false);
        check(kvikio.clone(), Prefer, Never, Buffered);
        let ours = |word| {
            kvikio
                .clone()
                .direct_read(word)
                .direct_write(word)
                .auto_direct_io_read_overread(true)
        };
        check(ours(DirectIo::Auto), Prefer, Never, Overread);
        check(ours(DirectIo::Always), Must, Must, Overread);
        check(ours(DirectIo::Never), Never, Never, Overread);
    }
}
