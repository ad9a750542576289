//! What the cases of a remote run share: the server, and the guests who read from it.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use crate::remote::cluster::ClusterFile;
use crate::remote::door::{ACCESS_KEY, BUCKET, Door, KEY, REGION, SECRET_KEY};
use crate::remote::guests::Guests;
use crate::remote::nginx::Nginx;
use crate::rivals::Peers;
use crate::trouble::{Outcome, Trouble};

pub(crate) struct Site {
    // They go before the server that they are connected to.
    pub(super) guests: Guests,
    server: Nginx,
    /// Made when the first case wants it.
    cluster: OnceCell<ClusterFile>,
    cluster_url: Option<String>,
    data: PathBuf,
}

impl Site {
    /// Serves `data` and starts the guests, with memory for `len` bytes each. `folder`: of the run.
    pub(crate) fn open(peers: &Peers, folder: &Path, data: &Path, len: u64) -> Outcome<Self> {
        let program = peers.nginx.as_deref().ok_or_else(|| {
            let why = "remote objects are read from nginx, and no program of that kind was named";
            Trouble::Misuse(why.into())
        })?;
        let server = Nginx::start(program, folder, data)?;
        let guests = Guests::gather(peers, folder, len, &server.authority)?;
        Ok(Self {
            guests,
            server,
            cluster: OnceCell::new(),
            cluster_url: peers.webhdfs.clone(),
            data: data.to_owned(),
        })
    }

    /// What a reader of the report should know of them.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "the server is nginx on this machine, one process; CPU seconds are the clients' alone"
                .to_owned(),
        ];
        notes.extend(self.guests.notes.iter().cloned());
        notes
    }

    /// What server and guests have cost so far.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        self.server.cpu_seconds() + self.guests.cpu_seconds()
    }

    /// The URL of the object behind a door; for S3 that of the bucket's object.
    pub(super) fn url(&self, door: Door) -> Outcome<String> {
        Ok(match door {
            Door::Plain => format!("http://{}/{KEY}", self.server.plain),
            Door::Tls => format!("https://localhost:{}/{KEY}", self.server.secure.port()),
            Door::S3 => format!("s3://{BUCKET}/{KEY}"),
            Door::WebHdfs => self.cluster()?.url().to_owned(),
        })
    }

    /// The file of HDFS, which is made at the first use.
    fn cluster(&self) -> Outcome<&ClusterFile> {
        if let Some(file) = self.cluster.get() {
            return Ok(file);
        }
        let url = self.cluster_url.as_deref().ok_or_else(|| {
            let why = "no cluster of HDFS was named; `cargo xtask servers up` starts one";
            Trouble::Unfit(why.into())
        })?;
        let file = ClusterFile::make(url, &self.data)?;
        Ok(self.cluster.get_or_init(|| file))
    }

    /// Where a client that speaks HTTP by itself connects to, and what it asks for there.
    pub(super) fn server(&self) -> &Nginx {
        &self.server
    }

    /// The store of S3.
    pub(super) fn endpoint(&self) -> String {
        format!("http://{}", self.server.plain)
    }

    /// The object as the guests are told of it.
    pub(super) fn object(&self, door: Door) -> Outcome<serde_json::Value> {
        Ok(serde_json::json!({
            "door": door.to_string(),
            "url": self.url(door)?,
            "key": KEY,
            "bucket": BUCKET,
            "region": REGION,
            "endpoint": self.endpoint(),
            "access_key": ACCESS_KEY,
            "secret_key": SECRET_KEY,
        }))
    }
}
