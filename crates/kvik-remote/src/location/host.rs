//! The hosts of S3 by their names. Anything that is not surely one of them is somebody else's.

/// What the name of a host of S3 says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shape<'a> {
    /// Where the bucket stands before the service.
    pub(super) bucket: Option<&'a str>,
    /// The service, which a region and the suffix follow: `s3`, `s3-fips`, `s3.dualstack` and so on.
    pub(super) service: &'a str,
    pub(super) region: Option<&'a str>,
    pub(super) suffix: &'static str,
}

/// Reads a host, which must be in lower case.
pub(super) fn read(host: &str) -> Option<Shape<'_>> {
    let (names, suffix) = SUFFIXES
        .into_iter()
        .find_map(|suffix| Some((host.strip_suffix(suffix)?.strip_suffix('.')?, suffix)))?;
    if names.split('.').any(str::is_empty) {
        return None;
    }
    let (rest, last) = split_last(names);
    let (bucket, service, region) = if let Some((service, region)) = region_within(last) {
        (rest, service, region)
    } else if last == "dualstack" && ends_in(rest, ACCELERATE) {
        (
            before(names, "s3-accelerate.dualstack"),
            "s3-accelerate.dualstack",
            None,
        )
    } else {
        let service = REGIONAL
            .into_iter()
            .find(|service| ends_in(rest, service))?;
        if !is_region(last) {
            return None;
        }
        (before(rest, service), service, Some(last))
    };
    let shape = Shape {
        bucket: (!bucket.is_empty()).then_some(bucket),
        service,
        region,
        suffix,
    };
    let needs_bucket = service.starts_with(ACCELERATE) || service.starts_with("s3-accesspoint");
    (shape.bucket.is_some() || !needs_bucket).then_some(shape)
}

/// Whether an object can be asked for at the same service of another region.
pub(super) fn moves(service: &str) -> bool {
    !service.starts_with(ACCELERATE) && !service.starts_with("s3-accesspoint")
}

/// The part of AWS that a region belongs to, as hosts are called there.
pub(crate) fn suffix_of(region: &str) -> &'static str {
    match region.starts_with("cn-") {
        true => CHINA,
        false => WORLD,
    }
}

/// The region of the host of all regions of one part of AWS.
pub(super) fn first_region(suffix: &str) -> &'static str {
    match suffix == CHINA {
        true => "cn-north-1",
        false => "us-east-1",
    }
}

/// Names of one label: the service of all regions, and the old ones that have the region within.
fn region_within(label: &str) -> Option<(&'static str, Option<&str>)> {
    match label {
        "s3" => return Some(("s3", None)),
        ACCELERATE => return Some((ACCELERATE, None)),
        "s3-external-1" => return Some(("s3", Some("us-east-1"))),
        _ => {}
    }
    let (service, region) = match label.strip_prefix("s3-fips-") {
        Some(region) => ("s3-fips", region),
        None => ("s3", label.strip_prefix("s3-")?),
    };
    let other = OTHER_SERVICES.iter().any(|other| region.starts_with(other));
    (is_region(region) && !other).then_some((service, Some(region)))
}

/// Whether it can be the name of a region of AWS's. It goes into a host and a signature, so that nothing else is one.
pub(crate) fn is_region(label: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !label.is_empty() && label != "dualstack" && label.bytes().all(plain)
}

fn split_last(names: &str) -> (&str, &str) {
    names.rsplit_once('.').unwrap_or(("", names))
}

/// Whether the last labels of `names` are those of `end`.
fn ends_in(names: &str, end: &str) -> bool {
    names
        .strip_suffix(end)
        .is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// The labels before `end`, which is at the end.
fn before<'a>(names: &'a str, end: &str) -> &'a str {
    let before = names.strip_suffix(end).unwrap_or_default();
    before.strip_suffix('.').unwrap_or(before)
}

const WORLD: &str = "amazonaws.com";
const CHINA: &str = "amazonaws.com.cn";
const SUFFIXES: [&str; 2] = [CHINA, WORLD];
const ACCELERATE: &str = "s3-accelerate";
const REGIONAL: [&str; 8] = [
    "s3-accesspoint-fips.dualstack",
    "s3-accesspoint.dualstack",
    "s3-accesspoint-fips",
    "s3-accesspoint",
    "s3-fips.dualstack",
    "s3.dualstack",
    "s3-fips",
    "s3",
];
/// What follows `s3-` in the names of services that take no signed GET of an object, or sign it by other rules.
const OTHER_SERVICES: [&str; 10] = [
    "accelerate",
    "accesspoint",
    "control",
    "deprecated",
    "external",
    "fips",
    "global",
    "object-lambda",
    "outposts",
    "website",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(host: &str, bucket: Option<&str>, service: &str, region: Option<&str>) {
        let shape = read(host).unwrap_or_else(|| panic!("{host} is a host of S3"));
        assert_eq!(
            (shape.bucket, shape.service, shape.region),
            (bucket, service, region),
            "{host}"
        );
    }

    #[test]
    fn every_shape_of_a_host_is_read() {
        let east = Some("us-east-1");
        check("s3.amazonaws.com", None, "s3", None);
        check("b.s3.amazonaws.com", Some("b"), "s3", None);
        check("my.b.s3.amazonaws.com", Some("my.b"), "s3", None);
        check("s3.us-east-1.amazonaws.com", None, "s3", east);
        check("b.s3.us-east-1.amazonaws.com", Some("b"), "s3", east);
        check("a.b.s3.us-east-1.amazonaws.com", Some("a.b"), "s3", east);
        check("s3-us-east-1.amazonaws.com", None, "s3", east);
        check("b.s3-us-east-1.amazonaws.com", Some("b"), "s3", east);
        check("b.s3-external-1.amazonaws.com", Some("b"), "s3", east);
        check("s3.s3.amazonaws.com", Some("s3"), "s3", None);
        check(
            "b.s3.dualstack.us-east-1.amazonaws.com",
            Some("b"),
            "s3.dualstack",
            east,
        );
        check(
            "s3.dualstack.us-east-1.amazonaws.com",
            None,
            "s3.dualstack",
            east,
        );
        check(
            "b.s3-fips.us-east-1.amazonaws.com",
            Some("b"),
            "s3-fips",
            east,
        );
        check(
            "b.s3-fips.dualstack.us-east-1.amazonaws.com",
            Some("b"),
            "s3-fips.dualstack",
            east,
        );
        check(
            "s3-fips-us-gov-west-1.amazonaws.com",
            None,
            "s3-fips",
            Some("us-gov-west-1"),
        );
        check(
            "ap-123456789012.s3-accesspoint.us-east-1.amazonaws.com",
            Some("ap-123456789012"),
            "s3-accesspoint",
            east,
        );
        check(
            "ap-1.s3-accesspoint-fips.dualstack.us-east-1.amazonaws.com",
            Some("ap-1"),
            "s3-accesspoint-fips.dualstack",
            east,
        );
        check(
            "b.s3-accelerate.amazonaws.com",
            Some("b"),
            "s3-accelerate",
            None,
        );
        check(
            "b.s3-accelerate.dualstack.amazonaws.com",
            Some("b"),
            "s3-accelerate.dualstack",
            None,
        );
        let china = read("b.s3.cn-north-1.amazonaws.com.cn");
        let china = china.map(|shape| (shape.region, shape.suffix));
        assert_eq!(china, Some((Some("cn-north-1"), "amazonaws.com.cn")));
    }

    #[test]
    fn a_host_that_is_not_surely_one_of_them_is_none() {
        for host in [
            "amazonaws.com",
            "s3amazonaws.com",
            "s3.amazonaws.com.evil.example",
            "s3.amazonaws.com.",
            "evilamazonaws.com",
            "b.s3.us-east-1.amazonaws.community",
            "s3.us-east-1.example.com",
            "notas3.us-east-1.amazonaws.com",
            "b.xs3.us-east-1.amazonaws.com",
            "xs3.amazonaws.com",
            "b.s3-website-us-east-1.amazonaws.com",
            "b.s3-website.us-east-1.amazonaws.com",
            "b.s3-control.us-east-1.amazonaws.com",
            "s3-accelerate.amazonaws.com",
            "s3-accesspoint.us-east-1.amazonaws.com",
            "b.s3-object-lambda.us-east-1.amazonaws.com",
            "b--use1-az4--x-s3.s3express-use1-az4.us-east-1.amazonaws.com",
            "ec2-1-2-3-4.us-east-1.compute.amazonaws.com",
            "s3.us-east-1.elb.amazonaws.com",
            "x.execute-api.us-east-1.amazonaws.com",
            "s3.dualstack.amazonaws.com",
            ".s3.amazonaws.com",
            "a..b.s3.amazonaws.com",
            "s3..amazonaws.com",
            "s3.us_east.amazonaws.com",
            "storage.googleapis.com",
            "127.0.0.1",
            "[::1]",
            "",
        ] {
            assert_eq!(read(host), None, "{host}");
        }
    }
}
