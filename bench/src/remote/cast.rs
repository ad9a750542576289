//! What a remote case does, and the scene for it.

use crate::data::Data;
use crate::memory::Pages;
use crate::race::Scene;
use crate::remote::door::{BUCKET, Door, KEY};
use crate::remote::guests::GuestWay;
use crate::remote::loops::{ClientLoop, SocketLoop};
use crate::remote::ours::{self, Ours, Way};
use crate::remote::reader::Reader;
use crate::remote::scenes::{PiecesScene, WholeScene};
use crate::remote::site::Site;
use crate::scenes::Joined;
use crate::trouble::{Outcome, Trouble};

/// What is read, and by whom beside kvik and the loops.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RemoteKind {
    pub(crate) door: Door,
    pub(crate) what: What,
    pub(crate) guests: Vec<GuestWay>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// All of the object, to so many bytes past a page boundary.
    Whole { page_offset: usize },
    /// Ranges of this size, so many under way at a time.
    Pieces {
        size: usize,
        under_way: usize,
        /// How many at the least, between two looks at the clock of the run.
        list: usize,
    },
}

impl RemoteKind {
    pub(crate) fn counts_operations(&self) -> bool {
        matches!(self.what, What::Pieces { .. })
    }

    /// The scene of this kind. Who cannot take part here goes into the notes.
    pub(crate) fn scene<'a>(
        &self,
        name: &str,
        data: &'a Data,
        pages: &'a mut Pages,
        site: &'a Site,
        notes: &mut Vec<String>,
    ) -> Outcome<Box<dyn Scene + 'a>> {
        let seed = data.seed.ok_or_else(|| {
            Trouble::Unfit("a server is given a file of the run's, whose bytes are known".into())
        })?;
        let scene: Box<dyn Scene + 'a> = match self.what {
            What::Whole { page_offset } => {
                let target = pages.view_mut(page_offset, data.len as usize);
                let readers = self.readers(site)?;
                Box::new(WholeScene::new(name, (data, seed), target, readers))
            }
            What::Pieces { size, list, .. } => {
                let readers = self.readers(site)?;
                Box::new(PiecesScene::new(name, data, (size, list), readers)?)
            }
        };
        let object = site.object(self.door)?;
        let (rivals, absent) = site.guests.rivals(self, &object, (data.len, seed));
        notes.extend(absent.iter().map(|why| format!("{name}: {why}")));
        Ok(Box::new(Joined {
            name: name.to_owned(),
            scene,
            rivals,
        }))
    }

    /// kvik, and the loops.
    fn readers<'a>(&self, site: &'a Site) -> Outcome<Vec<Box<dyn Reader + 'a>>> {
        let handle = ours::open(site, self.door)?;
        let mut readers: Vec<Box<dyn Reader + 'a>> = match self.what {
            What::Whole { .. } | What::Pieces { under_way: 1, .. } => {
                vec![Box::new(Ours::new(handle, Way::OneByOne))]
            }
            What::Pieces { under_way, .. } => vec![
                Box::new(Ours::new(handle.clone(), Way::Submitted(under_way))),
                Box::new(Ours::beside(handle, Way::InOneCall)),
            ],
        };
        let (clients, connections): (&[_], &[_]) = match self.what {
            What::Whole { .. } => (&[(2, 4)], &[1, 4]),
            What::Pieces { under_way: 1, .. } => (&[(1, 1)], &[1]),
            What::Pieces { under_way, .. } => (&[(2, under_way / 2)], &[under_way]),
        };
        let server = site.server();
        // The loops do not sign: nobody would look at it.
        let url = site.url(self.door)?;
        let (address, path, authority, url) = match self.door {
            Door::Plain => (server.plain, format!("/{KEY}"), None, url),
            Door::Tls => (
                server.secure,
                format!("/{KEY}"),
                Some(server.authority.as_path()),
                url,
            ),
            Door::WebHdfs => {
                for &(threads, lanes) in clients {
                    let client = ClientLoop::new(&url, None, threads, lanes)?.of_hdfs();
                    readers.push(Box::new(client));
                }
                return Ok(readers);
            }
            Door::S3 => {
                let path = format!("/{BUCKET}/{KEY}");
                let url = format!("{}{path}", site.endpoint());
                (server.plain, path, None, url)
            }
        };
        for &(threads, lanes) in clients {
            readers.push(Box::new(ClientLoop::new(&url, authority, threads, lanes)?));
        }
        for &connections in connections {
            let sockets = SocketLoop::connect(address, &path, authority, connections)?;
            readers.push(Box::new(sockets));
        }
        Ok(readers)
    }
}
