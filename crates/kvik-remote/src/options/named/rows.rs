//! The options that have a name: one row for each.

use std::time::Duration;

use super::read;
use super::{NamedOption, Part, Set};
use crate::endpoint::Addressing;
use crate::options::{Anonymous, BACKOFF, RemoteOptions};

pub(super) const ROWS: &[NamedOption] = &[
    // Which object it is.
    NamedOption {
        names: &["kinds", "kind"],
        expects: "a list of `s3`, `s3-public`, `s3-presigned`, `webhdfs` and `http`, with commas between them",
        says: "what a URL may be, in the order in which it is tried for them",
        set: Set::Alone(|options, value| Some(options.kinds(&read::kinds(value)?))),
    },
    NamedOption {
        names: &["len", "size"],
        expects: "a number of bytes",
        says: "the size of the object, which is not asked for then",
        set: Set::Alone(|options, value| Some(options.len(value.trim().parse().ok()?))),
    },
    // Who asks.
    NamedOption {
        names: &["access_key_id", "aws_access_key_id", "key"],
        expects: "the id of a key of S3",
        says: "the id of the key that signs; with `secret_access_key`",
        set: Set::Part(Part::KeyId),
    },
    NamedOption {
        names: &["secret_access_key", "aws_secret_access_key", "secret"],
        expects: "the secret key that belongs to the id",
        says: "the key that signs",
        set: Set::Part(Part::SecretKey),
    },
    NamedOption {
        names: &["session_token", "aws_session_token", "aws_token", "token"],
        expects: "the session token that belongs to the keys",
        says: "the session token, for keys that have one",
        set: Set::Part(Part::SessionToken),
    },
    NamedOption {
        names: &["profile", "aws_profile", "profile_name"],
        expects: "the name of a profile",
        says: "the profile of AWS's files that holds keys, region and endpoint",
        set: Set::Alone(|options, value| Some(options.profile(text(value)?))),
    },
    NamedOption {
        names: &[
            "anonymous",
            "anon",
            "skip_signature",
            "aws_skip_signature",
            "aws_no_sign_request",
        ],
        expects: "`auto`, `always` (or yes) or `never` (or no)",
        says: "whether objects of S3 are asked for without a signature; `auto`: where there are no keys",
        set: Set::Alone(|options, value| {
            let when = match (
                value.trim().to_ascii_lowercase().as_str(),
                read::yes_or_no(value),
            ) {
                ("auto", _) => Anonymous::Auto,
                ("always", _) | (_, Some(true)) => Anonymous::Always,
                ("never", _) | (_, Some(false)) => Anonymous::Never,
                _ => return None,
            };
            Some(options.anonymous(when))
        }),
    },
    NamedOption {
        names: &["requester_pays", "request_payer", "aws_request_payer"],
        expects: "yes (or `requester`) or no",
        says: "whether the caller pays for reading somebody else's object",
        set: Set::Alone(|options, value| {
            let pays = match value.trim().eq_ignore_ascii_case("requester") {
                true => true,
                false => read::yes_or_no(value)?,
            };
            Some(options.requester_pays(pays))
        }),
    },
    NamedOption {
        names: &["username", "user"],
        expects: "the name of a user",
        says: "who asks, by basic authentication; with `password`",
        set: Set::Part(Part::User),
    },
    NamedOption {
        names: &["password"],
        expects: "the password of the user",
        says: "the password of `username`",
        set: Set::Part(Part::Password),
    },
    NamedOption {
        names: &["bearer_token"],
        expects: "a bearer token",
        says: "the token that says who asks",
        set: Set::Instead("username", |options, value| {
            Some(options.bearer(text(value)?))
        }),
    },
    NamedOption {
        names: &["headers", "default_headers"],
        expects: "a header `Name: value` in each line",
        says: "headers of every request",
        set: Set::Alone(|options, value| {
            let headers = read::headers(value)?;
            Some(headers.into_iter().fold(options, |options, (name, value)| {
                options.header(name, value)
            }))
        }),
    },
    NamedOption {
        names: &["user_agent"],
        expects: "a text that a header can hold",
        says: "the program that asks, for the server's log",
        set: Set::Alone(|options, value| Some(options.header("user-agent", text(value)?))),
    },
    // Where it is asked for.
    NamedOption {
        names: &["region", "aws_region", "region_name"],
        expects: "the name of a region",
        says: "the region of the bucket",
        set: Set::Alone(|options, value| Some(options.region(text(value)?))),
    },
    NamedOption {
        names: &["default_region", "aws_default_region"],
        expects: "the name of a region",
        says: "the region of the bucket where `region` is not given",
        set: Set::Alone(|options, value| {
            let region = text(value)?;
            Some(match options.s3.region {
                Some(_) => options,
                None => options.region(region),
            })
        }),
    },
    NamedOption {
        names: &[
            "endpoint_url",
            "endpoint",
            "aws_endpoint",
            "aws_endpoint_url",
            "aws_endpoint_url_s3",
        ],
        expects: "an `http` or `https` URL",
        says: "the store that `s3:` URLs are for, in place of AWS",
        set: Set::Alone(|options, value| Some(options.endpoint_url(text(value)?))),
    },
    NamedOption {
        names: &["addressing_style", "addressing"],
        expects: "`auto`, `path` or `virtual`",
        says: "where the bucket stands in a request",
        set: Set::Alone(|options, value| Some(options.addressing(value.parse().ok()?))),
    },
    NamedOption {
        names: &[
            "virtual_hosted_style_request",
            "aws_virtual_hosted_style_request",
        ],
        expects: "yes or no",
        says: "whether the bucket stands in the host, else in the path",
        set: Set::Instead("addressing_style", |options, value| {
            Some(options.addressing(match read::yes_or_no(value)? {
                true => Addressing::VirtualHost,
                false => Addressing::Path,
            }))
        }),
    },
    NamedOption {
        names: &["force_path_style", "aws_s3_force_path_style"],
        expects: "yes or no",
        says: "whether the bucket stands in the path, whatever the store",
        set: Set::Instead("addressing_style", |options, value| {
            Some(options.addressing(match read::yes_or_no(value)? {
                true => Addressing::Path,
                false => Addressing::Auto,
            }))
        }),
    },
    // Which cluster it is in.
    NamedOption {
        names: &["hdfs_user", "webhdfs_username"],
        expects: "the name of a user",
        says: "the user of HDFS",
        set: Set::Alone(|options, value| Some(options.hdfs_user(text(value)?))),
    },
    NamedOption {
        names: &["delegation", "delegation_token"],
        expects: "a delegation token of HDFS",
        says: "what a cluster with Kerberos takes from those who do not speak it",
        set: Set::Alone(|options, value| Some(options.delegation(text(value)?))),
    },
    NamedOption {
        names: &["name_nodes", "namenodes"],
        expects: "a list of `HOST` or `HOST:PORT`, with commas between them",
        says: "the name nodes of HDFS, in place of the host of the URL; the active one is found",
        set: Set::Alone(|options, value| {
            let nodes: Vec<&str> = value.split(',').map(str::trim).collect();
            let are_all = nodes.iter().all(|node| !node.is_empty());
            are_all.then(|| options.name_nodes(&nodes))
        }),
    },
    NamedOption {
        names: &["data_nodes", "data_proxy"],
        expects: "a list of `HOST[:PORT]=HOST[:PORT]`, with commas between them",
        says: "what the cluster calls a data node, and where it is",
        set: Set::Alone(|options, value| {
            value.split(',').try_fold(options, |options, pair| {
                let (from, to) = pair.split_once('=')?;
                let options = options.data_node(from.trim(), to.trim());
                options.wrong.is_none().then_some(options)
            })
        }),
    },
    // By whom, and whom to trust.
    NamedOption {
        names: &["proxy_url", "proxy"],
        expects: "an `http` or `https` URL, with name and password where needed, or `none`",
        says: "the proxy by which all is asked for, whatever the settings say",
        set: Set::Alone(|options, value| {
            let options = options.proxy(text(value)?);
            // The reason would show a value that may be a password in the wrong place.
            options.wrong.is_none().then_some(options)
        }),
    },
    NamedOption {
        names: &["ca_bundle", "aws_ca_bundle", "cacert"],
        expects: "the path of a file",
        says: "the file with the certificates that servers must prove themselves by",
        set: Set::Alone(|options, value| Some(options.ca_bundle(text(value)?))),
    },
    NamedOption {
        names: &["verify"],
        expects: "yes, or the path of a file with certificates: servers are always checked",
        says: "the same as `ca_bundle`, as clients of Python have it",
        set: Set::Instead("ca_bundle", |options, value| match read::yes_or_no(value) {
            Some(true) => Some(options),
            Some(false) => None,
            None => Some(options.ca_bundle(text(value)?)),
        }),
    },
    NamedOption {
        names: &["allow_invalid_certificates"],
        expects: "no: servers are always checked",
        says: "nothing; it is taken for the sake of those who say no",
        set: Set::Alone(|options, value| {
            (read::yes_or_no(value) == Some(false)).then_some(options)
        }),
    },
    NamedOption {
        names: &["allow_http", "aws_allow_http"],
        expects: "yes or no",
        says: "whether `http` URLs are taken, which they are unless said otherwise",
        set: Set::Alone(|options, value| Some(options.https_only(!read::yes_or_no(value)?))),
    },
    // How long it may take, and how often it is tried.
    NamedOption {
        names: &["timeout", "request_timeout"],
        expects: LIMIT,
        says: "how long a call may take",
        set: Set::Alone(|options, value| Some(options.timeout(read::limit(value)?))),
    },
    NamedOption {
        names: &["connect_timeout"],
        expects: LIMIT,
        says: "how long a connection may take to be there",
        set: Set::Alone(|options, value| Some(options.connect_timeout(read::limit(value)?))),
    },
    NamedOption {
        names: &["first_byte_timeout"],
        expects: LIMIT,
        says: "how long an answer may take to begin",
        set: Set::Alone(|options, value| Some(options.first_byte_timeout(read::limit(value)?))),
    },
    NamedOption {
        names: &["idle_timeout", "read_timeout"],
        expects: LIMIT,
        says: "how long nothing may come in the midst of an answer",
        set: Set::Alone(|options, value| Some(options.idle_timeout(read::limit(value)?))),
    },
    NamedOption {
        names: &["max_attempts", "aws_max_attempts"],
        expects: COUNT,
        says: "how many requests in a row may fail",
        set: Set::Alone(|options, value| Some(options.max_attempts(read::count(value)?))),
    },
    NamedOption {
        names: &["max_retries", "retries"],
        expects: "a whole number",
        says: "the same without the first request: 0 is one attempt",
        set: Set::Instead("max_attempts", |options, value| {
            let retries: u32 = value.trim().parse().ok()?;
            Some(options.max_attempts(retries.saturating_add(1)))
        }),
    },
    NamedOption {
        names: &["init_backoff"],
        expects: TIME,
        says: "the longest first wait before a request is made again",
        set: Set::Alone(|options, value| {
            let (_, longest) = backoff(&options);
            Some(options.backoff(read::time(value)?, longest))
        }),
    },
    NamedOption {
        names: &["max_backoff"],
        expects: TIME,
        says: "the longest of all these waits",
        set: Set::Alone(|options, value| {
            let (first, _) = backoff(&options);
            Some(options.backoff(first, read::time(value)?))
        }),
    },
    // How it is read.
    NamedOption {
        names: &["concurrency", "max_concurrency"],
        expects: COUNT,
        says: "how many requests a call has under way at a time",
        set: Set::Alone(|options, value| Some(options.concurrency(read::count(value)?))),
    },
    NamedOption {
        names: &["part_size"],
        expects: SIZE,
        says: "the largest piece that one request asks for",
        set: Set::Alone(|options, value| Some(options.part_size(value.parse().ok()?))),
    },
    NamedOption {
        names: &["whole_limit"],
        expects: SIZE,
        says: "the longest object that is fetched as a whole where a server sends no ranges",
        set: Set::Alone(|options, value| Some(options.whole_limit(value.parse().ok()?))),
    },
];

/// A text that says something.
fn text(value: &str) -> Option<&str> {
    (!value.trim().is_empty()).then_some(value)
}

fn backoff(options: &RemoteOptions) -> (Duration, Duration) {
    options.backoff.unwrap_or(BACKOFF)
}

const TIME: &str = "a number of seconds, or a time such as `250ms` or `2m`";
const LIMIT: &str = "a number of seconds above 0, or a time such as `250ms` or `2m`";
const COUNT: &str = "a whole number above 0";
const SIZE: &str = "a size in bytes, or one such as `8MiB`";
