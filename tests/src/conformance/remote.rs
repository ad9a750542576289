//! The doors of remote objects: over HTTP, of S3 by signed requests, without keys and by presigned URLs, and of HDFS, into
//! memory of the host or of a device.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use kvik::{Anonymous, Keys, Kind as RemoteKind, ReadAt, RemoteHandle};

use super::on_device::OnDevice;
use super::{Door, InFlight, Opened, Setting};
use crate::gpu::{Gpu, Kind};
use crate::hdfs::{Cluster, Setup};
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
    next: AtomicUsize,
    keeper: Keeper,
}

#[derive(Debug)]
enum Keeper {
    Server {
        objects: Objects,
        server: Server,
        by: By,
    },
    Cluster(Cluster),
}

/// How a server is asked.
#[derive(Clone, Debug)]
enum By {
    Url,
    /// As S3, by signed requests.
    Keys(Account),
    /// As S3, by unsigned ones.
    Nobody,
    /// By a URL of S3 with a signature. The server stands in for AWS as a proxy does.
    Signature,
}

type Objects = Arc<Mutex<HashMap<String, Arc<Vec<u8>>>>>;

impl Remote {
    /// Objects whose size is found out.
    #[must_use]
    pub fn new() -> Remote {
        Remote::of(Keeper::server(By::Url))
    }

    /// Objects of a server of S3 that checks each signature.
    #[must_use]
    pub fn of_s3() -> Remote {
        let account = Account::new("AKIAMINE", "hunter/2+2");
        Remote::of(Keeper::server(By::Keys(account)))
    }

    /// Objects of a server of S3 that refuses each signature.
    #[must_use]
    pub fn of_public_s3() -> Remote {
        Remote::of(Keeper::server(By::Nobody))
    }

    /// Objects by URLs of S3 that have their signature in the query.
    #[must_use]
    pub fn by_presigned_urls() -> Remote {
        Remote::of(Keeper::server(By::Signature))
    }

    /// Files of HDFS, in blocks that are shorter than most of them.
    #[must_use]
    pub fn of_hdfs() -> Remote {
        let setup = Setup {
            block_size: 10_000,
            ..Setup::default()
        };
        Remote::of(Keeper::Cluster(Cluster::start(setup)))
    }

    fn of(keeper: Keeper) -> Remote {
        let next = AtomicUsize::new(0);
        Remote {
            shelf: Arc::new(Shelf { next, keeper }),
            size_known: false,
            device: None,
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

impl Keeper {
    fn server(by: By) -> Keeper {
        let objects = Objects::default();
        let (served, asks) = (Arc::clone(&objects), by.clone());
        let server = Server::start(move |asked| {
            let checked = match &asks {
                By::Keys(account) => account.check(asked),
                By::Url | By::Nobody | By::Signature => match asked.header("authorization") {
                    None => Ok(()),
                    Some(_) => Err(Reply::status(403)),
                },
            };
            if let Err(refusal) = checked {
                return refusal.script();
            }
            let object = served.lock().unwrap().get(&asked.path).cloned();
            match object {
                Some(object) => Reply::of(&object, asked).script(),
                None => Reply::status(404).script(),
            }
        });
        Keeper::Server {
            objects,
            server,
            by,
        }
    }

    fn kind(&self) -> RemoteKind {
        match self {
            Keeper::Cluster(_) => RemoteKind::WebHdfs,
            Keeper::Server { by, .. } => match by {
                By::Url => RemoteKind::Http,
                By::Keys(_) => RemoteKind::S3,
                By::Nobody => RemoteKind::S3Public,
                By::Signature => RemoteKind::S3Presigned,
            },
        }
    }
}

const SIGNED: &str = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=5ec2e7";

impl Shelf {
    /// Puts an object there, and opens it.
    fn open(&self, bytes: &[u8], setting: &Setting, size_known: bool) -> Placed {
        let name = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        let mut options = RemoteHandle::builder().config(&setting.config());
        if size_known {
            options = options.len(bytes.len() as u64);
        }
        let (path, handle) = match &self.keeper {
            Keeper::Cluster(cluster) => {
                let path = format!("/{name}");
                cluster.put(&path, bytes);
                let handle = options.open(&cluster.url(&path));
                (path, handle)
            }
            Keeper::Server {
                objects,
                server,
                by,
            } => {
                let path = match by {
                    By::Url => format!("/{name}"),
                    By::Keys(_) | By::Nobody => format!("/bucket/{name}"),
                    By::Signature => {
                        format!("http://bucket.s3.eu-west-1.amazonaws.com/{name}?{SIGNED}")
                    }
                };
                let object = Arc::new(bytes.to_owned());
                objects.lock().unwrap().insert(path.clone(), object);
                let handle = match by {
                    By::Url => options.open(&server.url(&name)),
                    By::Keys(account) => options
                        .endpoint_url(&server.url(""))
                        .region(&account.region)
                        .keys(Keys::new(&account.id, &account.secret))
                        .open_bucket_key("bucket", &name),
                    By::Nobody => options
                        .endpoint_url(&server.url(""))
                        .anonymous(Anonymous::Always)
                        .open_bucket_key("bucket", &name),
                    By::Signature => options.proxy(&server.url("")).open(&path),
                };
                (path, handle)
            }
        };
        let handle = handle.unwrap();
        assert_eq!(handle.kind(), self.keeper.kind());
        Placed { handle, path }
    }

    fn take_away(&self, path: &str) {
        match &self.keeper {
            Keeper::Cluster(cluster) => cluster.remove(path),
            Keeper::Server { objects, .. } => drop(objects.lock().unwrap().remove(path)),
        }
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
        self.shelf.take_away(&self.path);
    }
}
