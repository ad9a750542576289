//! The gateway of JuiceFS: MinIO's front end for S3, which checks signatures, over a folder.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::Command;

use super::group::{Group, Starting};
use super::place::{self, Place, text};
use super::ports::Ports;
use super::state::Server;
use super::{fetch, fixtures, http};
use crate::process::Done;

const REGION: &str = "us-east-1";
const BUCKET: &str = "fixtures";

pub(super) fn start(place: &Place, ports: &mut Ports) -> Done<Starting> {
    let port = ports.next()?;
    let folder = place.run("s3");
    place::make(&folder)?;
    let server = Server::new("s3", port, format!("http://127.0.0.1:{port}/{BUCKET}/"))
        .with("endpoint", format!("http://127.0.0.1:{port}"))
        .with("domain", format!("{DOMAIN}:{port}"))
        .with("bucket", BUCKET)
        .with("region", REGION)
        .with("access_key", format!("AK{}", random(9)?.to_uppercase()))
        // As in many real ones, with what URLs encode.
        .with(
            "secret_key",
            format!("{}/{}+{}", random(8)?, random(4)?, random(6)?),
        );
    let volume = volume(&folder)?;
    let mut format = juicefs(place, &folder)?;
    format
        .args([
            "format",
            "--storage",
            "file",
            "--trash-days",
            "0",
            "--bucket",
        ])
        .arg(folder.join("objects/"))
        .args([&volume, "kvik"]);
    Group::run(place, "s3-format", format)?;
    // A bucket is a folder of the volume.
    place::make(&folder.join("buckets").join(BUCKET))?;
    let mut bucket = juicefs(place, &folder)?;
    bucket
        .args(["sync", "--dirs", "--metrics", "127.0.0.1:0"])
        .arg(folder.join("buckets/"))
        .arg("jfs://volume/")
        .env("volume", &volume);
    Group::run(place, "s3-bucket", bucket)?;
    let mut gateway = juicefs(place, &folder)?;
    gateway
        .args([
            "gateway",
            "--multi-buckets",
            "--keep-etag",
            "--no-usage-report",
        ])
        .args(["--metrics", "127.0.0.1:0", "--cache-dir"])
        .arg(folder.join("cache"))
        .args([volume, format!("127.0.0.1:{port}")])
        .env("MINIO_ROOT_USER", server.fact("access_key"))
        .env("MINIO_ROOT_PASSWORD", server.fact("secret_key"))
        .env("MINIO_DOMAIN", DOMAIN);
    let group = Group::start(place, "s3", gateway)?;
    Ok(Starting::new(vec![group], vec![server]))
}

/// Puts the fixtures into the bucket, and reads them again to compare, by signed requests.
pub(super) fn fill(place: &Place, server: &Server) -> Done {
    let folder = place.run("s3");
    let mut sync = juicefs(place, &folder)?;
    sync.args([
        "sync",
        "--check-all",
        "--no-https",
        "--metrics",
        "127.0.0.1:0",
    ])
    // With its `/` at the end: what is in the folder, not the folder.
    .arg(fixtures::folder(place).join(""))
    .arg(format!("minio://{}/{BUCKET}/", server.address()))
    .env("MINIO_ACCESS_KEY", server.fact("access_key"))
    .env("MINIO_SECRET_KEY", server.fact("secret_key"));
    Group::run(place, "s3-fill", sync)
}

/// Whoever has not signed is refused.
pub(super) fn check(server: &Server) -> Done<String> {
    http::ask(server.address(), "GET", &format!("/{BUCKET}/one"))?.expect(403)
}

/// The program without its own door for debuggers, and with a home that goes away with the server.
fn juicefs(place: &Place, folder: &Path) -> Done<Command> {
    let mut command = Command::new(fetch::juicefs(&place.fetched())?);
    command.arg("--no-agent").env("HOME", folder);
    Ok(command)
}

/// Where the volume keeps its names.
fn volume(folder: &Path) -> Done<String> {
    Ok(format!("sqlite3://{}", text(&folder.join("names.db"))?))
}

/// This many bytes of chance, in hexadecimal.
fn random(count: usize) -> Done<String> {
    let mut bytes = vec![0; count];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|why| format!("/dev/urandom: {why}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Names below it are buckets, for clients that address them so.
const DOMAIN: &str = "s3.localhost";
