//! The doors of remote objects: over HTTP, into memory of the host.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use kvik::{ReadAt, RemoteHandle};

use super::{Door, InFlight, Opened, Setting};
use crate::hostile::{Reply, Server};

/// Objects of a server that is right.
#[derive(Debug)]
pub struct Remote {
    shelf: Arc<Shelf>,
    size_known: bool,
}

/// Objects by their path, and the server that has them.
#[derive(Debug)]
pub(super) struct Shelf {
    objects: Arc<Mutex<HashMap<String, Arc<Vec<u8>>>>>,
    next: AtomicUsize,
    server: Server,
}

impl Remote {
    /// Objects whose size is found out.
    #[must_use]
    pub fn new() -> Remote {
        Remote {
            shelf: Shelf::new(),
            size_known: false,
        }
    }

    /// Objects whose size is told, so that nothing of them is kept, and every byte comes when it is read.
    #[must_use]
    pub fn of_known_size() -> Remote {
        Remote {
            size_known: true,
            ..Remote::new()
        }
    }
}

impl Default for Remote {
    fn default() -> Remote {
        Remote::new()
    }
}

impl Shelf {
    pub(super) fn new() -> Arc<Shelf> {
        let objects: Arc<Mutex<HashMap<String, Arc<Vec<u8>>>>> = Arc::default();
        let served = Arc::clone(&objects);
        let server = Server::start(move |asked| {
            let object = served.lock().unwrap().get(&asked.path).cloned();
            match object {
                Some(object) => Reply::of(&object, asked).script(),
                None => Reply::status(404).script(),
            }
        });
        Arc::new(Shelf {
            objects,
            next: AtomicUsize::new(0),
            server,
        })
    }

    /// Puts an object there, and opens it.
    pub(super) fn open(&self, bytes: &[u8], setting: &Setting, size_known: bool) -> Placed {
        let name = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        let path = format!("/{name}");
        let object = Arc::new(bytes.to_owned());
        self.objects.lock().unwrap().insert(path.clone(), object);
        let mut options = RemoteHandle::builder().config(&setting.config());
        if size_known {
            options = options.len(bytes.len() as u64);
        }
        let handle = options.open(&self.server.url(&name)).unwrap();
        Placed { handle, path }
    }

    pub(super) fn take_away(&self, placed: &Placed) {
        self.objects.lock().unwrap().remove(&placed.path);
    }
}

/// An object that is there, opened.
pub(super) struct Placed {
    pub(super) handle: RemoteHandle,
    path: String,
}

impl Door for Remote {
    fn open(&self, bytes: &[u8], setting: &Setting) -> Box<dyn Opened> {
        Box::new(OpenObject {
            placed: self.shelf.open(bytes, setting, self.size_known),
            shelf: Arc::clone(&self.shelf),
        })
    }
}

struct OpenObject {
    placed: Placed,
    shelf: Arc<Shelf>,
}

impl Opened for OpenObject {
    fn reader(&self) -> &dyn ReadAt {
        &self.placed.handle
    }

    fn submit_read(&self, buffer: Vec<u8>, offset: u64) -> Box<dyn InFlight> {
        Box::new(self.placed.handle.submit_read(buffer, offset))
    }
}

impl Drop for OpenObject {
    fn drop(&mut self) {
        self.shelf.take_away(&self.placed);
    }
}
