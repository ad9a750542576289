//! A name node and a data node of Hadoop, for WebHDFS.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::group::{Group, Starting};
use super::place::{self, Place, text};
use super::ports::Ports;
use super::state::Server;
use super::{fetch, fixtures, http};
use crate::process::Done;

/// Who owns the files, and may read them.
const USER: &str = "kvik";
const ROOT: &str = "/webhdfs/v1/fixtures/";

pub(super) fn start(place: &Place, ports: &mut Ports) -> Done<Starting> {
    let (http, names, data) = (ports.next()?, ports.next()?, ports.next()?);
    let server = Server::new("webhdfs", http, format!("http://127.0.0.1:{http}{ROOT}"))
        .with("user", USER)
        .with("data", format!("127.0.0.1:{data}"));
    let folder = place.run("hdfs");
    configure(&folder, http, names, data)?;
    let classes = classes(place, &folder)?;
    let java = |node: &str| {
        let mut command = Command::new("java");
        // Half the time to start, for servers that do not run for long.
        command.args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m"]);
        // Nothing of it in the system's folder for temporary files.
        command.args(["-XX:-UsePerfData", "-Djava.io.tmpdir=."]);
        for package in OPENED {
            command.args(["--add-opens", &format!("java.base/{package}=ALL-UNNAMED")]);
        }
        command
            .args(["-cp", &classes])
            .arg(format!("org.apache.hadoop.hdfs.server.{node}"))
            .env("HADOOP_USER_NAME", USER);
        command
    };
    let mut format = java("namenode.NameNode");
    format.args(["-format", "-nonInteractive"]);
    Group::run(place, "hdfs-format", format)?;
    let names = Group::start(place, "hdfs-names", java("namenode.NameNode"))?;
    let data = Group::start(place, "hdfs-data", java("datanode.DataNode"))?;
    Ok(Starting::new(vec![names, data], vec![server]))
}

/// What Hadoop 3.3 reaches into of Java 17.
const OPENED: [&str; 5] = [
    "java.lang",
    "java.util",
    "java.net",
    "java.nio",
    "sun.nio.ch",
];

/// Files of settings, and folders without pages for the web servers, which want some.
fn configure(folder: &Path, http: u16, names: u16, data: u16) -> Done {
    for pages in ["hdfs", "datanode", "static"] {
        let to = folder.join("webapps").join(pages).join("WEB-INF");
        place::make(&to)?;
        place::write(
            &to.join("web.xml"),
            "<web-app xmlns=\"http://java.sun.com/xml/ns/javaee\" version=\"2.5\"/>",
        )?;
    }
    let store = text(folder)?;
    let core = [
        ("fs.defaultFS", format!("hdfs://127.0.0.1:{names}")),
        ("hadoop.tmp.dir", format!("{store}/store")),
    ];
    let hdfs = [
        ("dfs.namenode.http-address", format!("127.0.0.1:{http}")),
        ("dfs.datanode.http.address", format!("127.0.0.1:{data}")),
        ("dfs.datanode.address", "127.0.0.1:0".to_owned()),
        ("dfs.datanode.ipc.address", "127.0.0.1:0".to_owned()),
        // What a redirection names, as it names other machines elsewhere.
        ("dfs.datanode.hostname", "localhost".to_owned()),
        (
            "dfs.namenode.name.dir",
            format!("file://{store}/store/names"),
        ),
        (
            "dfs.datanode.data.dir",
            format!("file://{store}/store/data"),
        ),
        ("dfs.replication", "1".to_owned()),
    ];
    place::write(&folder.join("core-site.xml"), &settings(&core))?;
    place::write(&folder.join("hdfs-site.xml"), &settings(&hdfs))?;
    place::write(
        &folder.join("log4j.properties"),
        "log4j.rootLogger=WARN,A\n\
         log4j.appender.A=org.apache.log4j.ConsoleAppender\n\
         log4j.appender.A.layout=org.apache.log4j.PatternLayout\n\
         log4j.appender.A.layout.ConversionPattern=%d %p %c{1}: %m%n\n",
    )
}

fn settings(pairs: &[(&str, String)]) -> String {
    let rows: String = pairs
        .iter()
        .map(|(name, value)| {
            format!("<property><name>{name}</name><value>{value}</value></property>\n")
        })
        .collect();
    format!("<configuration>\n{rows}</configuration>\n")
}

/// The folder of settings and all jars. The unshaded one is the last: it fills in what no other has.
fn classes(place: &Place, folder: &Path) -> Done<String> {
    let fetched = place.fetched();
    let debian = fetch::java(&fetched);
    let mut paths = vec![folder.to_owned()];
    let jars = fetch::listed(&fetch::hadoop(&fetched))?;
    let named = |starts: &'static [&str]| {
        jars.iter().filter(move |path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            starts.iter().any(|start| name.starts_with(start))
        })
    };
    paths.extend(named(&HADOOP).cloned());
    paths.extend(DEBIAN.iter().map(|name| debian.join(format!("{name}.jar"))));
    paths.extend(named(&OTHERS).cloned());
    paths.push(fetch::unshaded(&fetched));
    let texts: Vec<&str> = paths.iter().map(|path| text(path)).collect::<Done<_>>()?;
    Ok(texts.join(":"))
}

const HADOOP: [&str; 4] = [
    "hadoop-hdfs-3",
    "hadoop-hdfs-client-3",
    "hadoop-common-3",
    "hadoop-auth-3",
];
const DEBIAN: [&str; 16] = [
    "jersey1-core",
    "jersey1-server",
    "jersey1-servlet",
    "jersey1-json",
    "jetty9-http",
    "jetty9-io",
    "jetty9-security",
    "jetty9-server",
    "jetty9-servlet",
    "jetty9-servlets",
    "jetty9-util",
    "jetty9-util-ajax",
    "jetty9-webapp",
    "jetty9-xml",
    "servlet-api",
    "jsr311-api",
];
const OTHERS: [&str; 11] = [
    "hadoop-shaded-",
    "netty-",
    "commons-",
    "guava-",
    "jackson-",
    "log4j-",
    "re2j-",
    "reload4j-",
    "slf4j-",
    "stax2-",
    "woodstox-",
];

/// Gives the files to the data node that the name node names for each.
pub(super) fn fill(place: &Place, server: &Server) -> Done {
    for (name, path) in fixtures::paths(place) {
        let target = format!(
            "{ROOT}{}?op=CREATE&user.name={USER}",
            fixtures::encoded(name)
        );
        let reply = sent_on(server, &target)?;
        reply.expect(307).map_err(|why| format!("{name}: {why}"))?;
        let there = reply.field("location").unwrap_or_default();
        // The name in it is that of this machine, whatever its own settings say.
        let target = there
            .strip_prefix("http://localhost:")
            .and_then(|rest| rest.find('/').map(|at| &rest[at..]))
            .ok_or_else(|| format!("{name}: redirected to {there:?}"))?;
        http::put(server.fact("data"), target, &path)?
            .expect(201)
            .map_err(|why| format!("{name}: {why}"))?;
    }
    Ok(())
}

/// The reply of the name node to a request for a new file. It refuses as long as the data node, which it knows, has not told of
/// its disk.
fn sent_on(server: &Server, target: &str) -> Done<http::Reply> {
    let end = Instant::now() + DISK;
    loop {
        let reply = http::ask(server.address(), "PUT", target)?;
        if reply.status != 403 || Instant::now() >= end {
            return Ok(reply);
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// A name node that sends a new file on has a data node that takes it. Nothing is made until somebody follows.
pub(super) fn check(server: &Server) -> Done<String> {
    let target = format!("{ROOT}checked?op=CREATE&user.name={USER}");
    http::ask(server.address(), "PUT", &target)?.expect(307)
}

// It takes a tenth of a second as a rule.
const DISK: Duration = Duration::from_secs(30);
