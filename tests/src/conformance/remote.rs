//! The doors of remote objects: over HTTP, and of S3 by signed requests, into memory of the host or of a device.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use kvik::{Keys, ReadAt, RemoteHandle};

use super::on_device::OnDevice;
use super::{Door, InFlight, Opened, Setting};
use crate::gpu::{Gpu, Kind};
use crate::hostile::{Reply, Server};
use crate::s3::Account;

/// Objects of a server that is right.
#[derive(Debug)]
pub struct Remote {
    shelf: Arc<Shelf>,
    size_known: bool,
    device: Option<Arc<Gpu>>,
}

/// Objects by their path, and the server that has them.
#[derive(Debug)]
struct Shelf {
    objects: Arc<Mutex<HashMap<String, Arc<Vec<u8>>>>>,
    next: AtomicUsize,
    server: Server,
    account: Option<Account>,
}

impl Remote {
    /// Objects whose size is found out.
    #[must_use]
    pub fn new() -> Remote {
        Remote {
            shelf: Shelf::new(None),
            size_known: false,
            device: None,
        }
    }

    /// Objects of a server of S3 that checks each signature.
    #[must_use]
    pub fn of_s3() -> Remote {
        Remote {
            shelf: Shelf::new(Some(Account::new("AKIAMINE", "hunter/2+2"))),
            ..Remote::new()
        }
    }

    /// The same with what is read landing on a device.
    #[must_use]
    pub fn to_device(self, gpu: Gpu) -> Remote {
        Remote {
            device: Some(Arc::new(gpu)),
            ..self
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
    fn new(account: Option<Account>) -> Arc<Shelf> {
        let objects: Arc<Mutex<HashMap<String, Arc<Vec<u8>>>>> = Arc::default();
        let served = Arc::clone(&objects);
        let checked = account.clone();
        let server = Server::start(move |asked| {
            let refusal = checked
                .as_ref()
                .and_then(|account| account.check(asked).err());
            if let Some(refusal) = refusal {
                return refusal.script();
            }
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
            account,
        })
    }

    /// Puts an object there, and opens it.
    fn open(&self, bytes: &[u8], setting: &Setting, size_known: bool) -> Placed {
        let name = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        let path = match &self.account {
            Some(_) => format!("/bucket/{name}"),
            None => format!("/{name}"),
        };
        let object = Arc::new(bytes.to_owned());
        self.objects.lock().unwrap().insert(path.clone(), object);
        let mut options = RemoteHandle::builder().config(&setting.config());
        if size_known {
            options = options.len(bytes.len() as u64);
        }
        let handle = match &self.account {
            None => options.open(&self.server.url(&name)),
            Some(account) => options
                .endpoint_url(&self.server.url(""))
                .region(&account.region)
                .keys(Keys::new(&account.id, &account.secret))
                .open_bucket_key("bucket", &name),
        };
        let handle = handle.unwrap();
        Placed { handle, path }
    }
}

/// An object that is there, opened.
struct Placed {
    handle: RemoteHandle,
    path: String,
}

impl Door for Remote {
    fn open(&self, bytes: &[u8], setting: &Setting) -> Box<dyn Opened> {
        let Placed { handle, path } = self.shelf.open(bytes, setting, self.size_known);
        let shelf = Arc::clone(&self.shelf);
        let _taken = TakenAway { shelf, path };
        match &self.device {
            None => Box::new(OpenObject { handle, _taken }),
            Some(gpu) => Box::new(OpenOnDevice {
                device: OnDevice {
                    gpu: Arc::clone(gpu),
                    kind: Kind::Plain,
                    handle,
                },
                _taken,
            }),
        }
    }
}

struct OpenObject {
    handle: RemoteHandle,
    _taken: TakenAway,
}

struct OpenOnDevice {
    device: OnDevice<RemoteHandle>,
    _taken: TakenAway,
}

impl Opened for OpenOnDevice {
    fn reader(&self) -> &dyn ReadAt {
        &self.device
    }

    fn submit_read(&self, buffer: Vec<u8>, offset: u64) -> Box<dyn InFlight> {
        self.device.submit(&buffer, offset)
    }
}

/// Takes an object away when nobody reads it any more.
struct TakenAway {
    shelf: Arc<Shelf>,
    path: String,
}

impl Opened for OpenObject {
    fn reader(&self) -> &dyn ReadAt {
        &self.handle
    }

    fn submit_read(&self, buffer: Vec<u8>, offset: u64) -> Box<dyn InFlight> {
        Box::new(self.handle.submit_read(buffer, offset))
    }
}

impl Drop for TakenAway {
    fn drop(&mut self) {
        self.shelf.objects.lock().unwrap().remove(&self.path);
    }
}
