//! The plugin at work: it knows what to sample, and whom to tell.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::interfaces::Interfaces;
use crate::nvtx::{Deaf, Group, Tool};
use crate::options::Options;
use crate::sampler::Sampler;

/// Why there is nothing to sample, or nobody to tell.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The folder of the interfaces cannot be read.
    #[error("cannot list the network interfaces in {}: {source}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No interface but the loopback is up, and none was asked for by name.
    #[error(
        "no network interface is up, apart from the loopback; --device samples one all the same"
    )]
    NothingUp,
    /// The name of no interface matches as a whole.
    #[error(
        "no network interface has a name of which the whole matches '{device}' ('eth.*' is all that begin with eth, 'eth' is \
         none of them); there are: {}", there.join(", ")
    )]
    NoSuchInterface {
        /// What was asked for.
        device: String,
        /// The names that there are.
        there: Vec<String>,
    },
    /// There is a tool, and it would record nothing.
    #[error("the tool {}, which NVTX_INJECTION64_PATH names, {why}", path.display())]
    Tool {
        /// Its library.
        path: PathBuf,
        /// What is wrong.
        why: Deaf,
    },
}

/// The plugin at work.
#[derive(Debug)]
pub struct Plugin {
    names: Vec<String>,
    sampler: Sampler,
    listener: Option<Listener>,
}

#[derive(Debug)]
struct Listener {
    tool: Tool,
    each: Vec<Group>,
    total: Group,
}

impl Plugin {
    /// Begins to follow interfaces of `folder`, which is `/sys/class/net` or looks like it, and attaches the library `tool`. A
    /// process attaches one tool in its life. Moments, `now` being the first, are counted from wherever the caller likes.
    ///
    /// # Errors
    ///
    /// There is nothing to sample, or the tool does not take it.
    pub fn start(
        options: &Options,
        folder: &Path,
        tool: Option<&Path>,
        now: Duration,
    ) -> Result<Plugin, Failure> {
        let interfaces = Interfaces::new(folder);
        let names = interfaces.choose(options.device.as_ref())?;
        let listener = match tool {
            None => None,
            Some(path) => Some(Listener::new(path, &names)?),
        };
        Ok(Plugin {
            sampler: Sampler::new(interfaces, &names, now),
            names,
            listener,
        })
    }

    /// Tells the rates since the last sample, or since the start.
    pub fn sample(&mut self, now: Duration) {
        let sample = self.sampler.sample(now);
        let Some(listener) = &self.listener else {
            return;
        };
        for (group, rates) in listener.each.iter().zip(sample.each) {
            listener.tool.tell(*group, rates);
        }
        listener.tool.tell(listener.total, sample.total);
    }

    /// The interfaces that are followed.
    #[must_use]
    pub fn interfaces(&self) -> &[String] {
        &self.names
    }
}

impl Listener {
    fn new(path: &Path, names: &[String]) -> Result<Listener, Failure> {
        let mut tool = Tool::attach(path).map_err(|why| Failure::Tool {
            path: path.to_owned(),
            why,
        })?;
        let each = names.iter().map(|name| tool.group(name)).collect();
        let total = tool.group("total");
        Ok(Listener { tool, each, total })
    }
}
