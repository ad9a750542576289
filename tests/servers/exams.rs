//! The exam of every door, with objects of real servers: those that can be given objects without kvik.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kvik::{ReadAt, RemoteHandle};
use kvik_tests::conformance::{Door, InFlight, Opened, Setting, short_exam};
use kvik_tests::need;
use kvik_tests::server::Server;

use crate::plain::send;

/// Gives a server objects, and takes them away.
trait Keeper {
    /// Puts `bytes` there; returns the URL.
    fn put(&self, name: &str, bytes: &[u8]) -> String;

    fn remove(&self, name: &str);
}

/// A folder that nginx serves.
struct Folder {
    path: PathBuf,
    url: String,
}

impl Keeper for Folder {
    fn put(&self, name: &str, bytes: &[u8]) -> String {
        std::fs::write(self.path.join(name), bytes).unwrap();
        format!("{}{name}", self.url)
    }

    fn remove(&self, name: &str) {
        std::fs::remove_file(self.path.join(name)).unwrap();
    }
}

struct Hdfs(Server);

impl Hdfs {
    fn target(&self, name: &str, operation: &str) -> String {
        let (path, user) = (self.0.path(), self.0.fact("user"));
        format!("{path}{name}?op={operation}&user.name={user}")
    }
}

impl Keeper for Hdfs {
    fn put(&self, name: &str, bytes: &[u8]) -> String {
        let (names, data) = (self.0.address(), self.0.fact("data"));
        let there = send("PUT", names, &self.target(name, "CREATE"), b"");
        assert_eq!(there.status, 307);
        let there = there.field("Location").to_owned();
        let target = &there[there.find("/webhdfs").unwrap()..];
        assert_eq!(send("PUT", data, target, bytes).status, 201);
        let user = self.0.fact("user");
        format!("{}{name}?user.name={user}", self.0.url())
    }

    fn remove(&self, name: &str) {
        let reply = send(
            "DELETE",
            self.0.address(),
            &self.target(name, "DELETE"),
            b"",
        );
        assert_eq!(reply.status, 200);
    }
}

/// Objects with a name of their own each.
struct Objects {
    keeper: Arc<dyn Keeper>,
    next: AtomicU64,
}

impl Objects {
    fn of(keeper: impl Keeper + 'static) -> Objects {
        let keeper = Arc::new(keeper);
        let next = AtomicU64::new(0);
        Objects { keeper, next }
    }
}

impl Door for Objects {
    fn open(&self, bytes: &[u8], setting: &Setting) -> Box<dyn Opened> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let name = format!("exam-{}-{number}", std::process::id());
        let url = self.keeper.put(&name, bytes);
        let options = RemoteHandle::builder().config(&setting.config());
        Box::new(Object {
            handle: options.open(&url).unwrap(),
            name,
            keeper: Arc::clone(&self.keeper),
        })
    }
}

struct Object {
    handle: RemoteHandle,
    name: String,
    keeper: Arc<dyn Keeper>,
}

impl Opened for Object {
    fn reader(&self) -> &dyn ReadAt {
        &self.handle
    }

    fn submit_read(&self, buffer: Vec<u8>, offset: u64) -> Box<dyn InFlight> {
        Box::new(self.handle.submit_read(buffer, offset))
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        self.keeper.remove(&self.name);
    }
}

#[test]
fn objects_of_nginx_pass() {
    let server = need::server("http");
    short_exam(
        &Objects::of(Folder {
            path: server.fact("folder").into(),
            url: server.url().to_owned(),
        }),
        60,
    );
}

#[test]
fn files_of_a_real_hdfs_pass() {
    short_exam(&Objects::of(Hdfs(need::server("webhdfs"))), 60);
}
